import Foundation
import Logging
import ReelCore
import ReelPlayback
import ReelPool
import ReelLab
import ReelReading
import ReelSources

/// One run of `reel memory`.
final class MemoryJob: Sendable {
  /// The result of the measurement.
  struct Outcome: Sendable {
    var players: [MemoryPlayerRecord] = []
    var summary: MemorySummaryRecord
    var errors: [ReelError] = []
    /// The number of sources that were opened.
    var sourceCount: Int
  }

  private let command: MemoryCommand
  private let fetcher: any Fetching
  private let configuration: PlayerConfiguration
  private let logger: Logger
  private let gate = CoreGate()
  private let clock = SystemMonotonicClock()
  private let players = Locked<[MemoryPlayer]>([])
  private let failures = Locked<[(record: MemoryPlayerRecord, error: ReelError)]>([])
  private let step = Locked("loading each source once")

  /// The players count as settled after this long without a change. Idle threads end within a second.
  private static let restDuration = Duration.milliseconds(1500)
  private static let lookInterval = Duration.milliseconds(100)
  private static let restLimit = Duration.seconds(10)
  private static let playLookInterval = Duration.milliseconds(20)
  /// The shortest rest over which processor time is measured.
  private static let watchDuration = Duration.milliseconds(500)
  /// The number of sources that are loaded once before the first reading.
  private static let warmUpLimit = 8
  /// The number of players of each kind for the decoder trial.
  private static let sampleLimit = 5
  /// The number of players that play at the same time to measure their memory.
  private static let playingLimit = 3

  init(
    _ command: MemoryCommand, fetcher: any Fetching, configuration: PlayerConfiguration, logger: Logger
  ) {
    self.command = command
    self.fetcher = fetcher
    self.configuration = configuration
    self.logger = logger
  }

  /// The current activity of the job, for the line on a terminal.
  var progress: String { step.withLock { $0 } }

  /// Throws `ReelError.cancelled` if the job was interrupted.
  func run() async throws -> Outcome {
    await warmUp()
    showStep("measuring the process without players")
    let (before, _) = try await restAndRead([])
    showStep("loading \(Self.players(command.playerCount))")
    try await openAll()
    showStep("measuring \(Self.players(command.playerCount))\(command.plays ? ", which play" : " at rest")")
    var after = before
    var rest = MemoryRest()
    var accounts: [(player: MemoryPlayer, account: MemoryLedger.Account)] = []
    if command.plays {
      (after, rest, accounts) = try await playAndRead()
    } else {
      let players = players.withLock { $0 }
      (after, rest) = try await restAndRead(players)
      accounts = players.map { ($0, $0.ledger) }
    }
    let held = accounts.map(\.player)
    let failed = failures.withLock { $0 }
    let records =
      (accounts.map { MemoryPlayerRecord($0, account: $1, plays: command.plays) }
      + failed.map(\.record))
      .sorted { $0.player < $1.player }
    var summary = MemorySummaryRecord(
      stage: command.plays ? "playing" : command.target.stage.reportName, target: command.target,
      accounts: accounts.map(\.account), failed: failed.count, before: before, after: after, rest: rest,
      budget: command.budget)
    showStep("measuring the cost of an open decoder")
    try await tryDecoders(held, &summary)
    showStep("measuring players while they play")
    try await tryPlaying(held, &summary)
    return Outcome(
      players: records, summary: summary, errors: failed.map(\.error),
      sourceCount: min(command.sources.count, command.playerCount))
  }

  /// Keeps the measured players, so that the process can be inspected from outside (`--hold`).
  ///
  /// Throws `ReelError.cancelled` if the job was interrupted.
  func hold() async throws {
    let players = players.withLock { $0 }
    guard command.hold > 0, !players.isEmpty else { return }
    _ = taken(from: players)
    let count = Self.players(players.count)
    Console.remark(
      "process \(getpid()) holds \(count) for \(DurationText.readable(.seconds(command.hold)))")
    let rest = try await watch(for: .seconds(command.hold))
    Console.remark("held \(count), with \(rest.cpuMs.formatted(places: 1)) ms of processor time")
  }

  /// Stops everything that is still running.
  func close() { for player in players.withLock({ $0 }) { player.stop() } }

  // MARK: - Private

  private func showStep(_ text: String) { step.withLock { $0 = text } }

  private static func players(_ count: Int) -> String { count.counted("player") }

  private func makePlayer(_ number: Int) throws(ReelError) -> MemoryPlayer {
    let argument = command.sources[number % command.sources.count]
    return MemoryPlayer(
      number, argument: argument, source: try MediaSource(argument: argument), target: command.target,
      fetcher: fetcher, configuration: configuration, gate: gate, logger: logger)
  }

  /// Loads some sources once, so that the first reading includes everything that all players share:
  /// libraries, threads, connections, the allocator's first pages.
  private func warmUp() async {
    let numbers = 0..<min(command.sources.count, command.playerCount, Self.warmUpLimit)
    let players = numbers.compactMap { try? makePlayer($0) }
    await settle(players)
    _ = players.map(\.ledger)
    for player in players { await player.close() }
  }

  /// Opens the players. Throws `cancelled`.
  private func openAll() async throws {
    var opened: [MemoryPlayer] = []
    for number in 0..<command.playerCount {
      do {
        opened.append(try makePlayer(number))
      } catch {
        record(error, of: number, command.sources[number % command.sources.count])
      }
    }
    replacePlayers(with: opened)
    await settle(opened)
    if Task.isCancelled { throw ReelError.interrupted }
    for player in opened where player.stage < command.target.stage { await giveUp(player) }
  }

  /// Closes a player that has failed, or is late.
  private func giveUp(_ player: MemoryPlayer) async {
    players.withLock { $0.removeAll { $0 === player } }
    let name = (try? MediaSource(argument: player.argument))?.name ?? player.argument
    record(
      player.failure ?? lateness(of: player, name), of: player.number, player.argument, stage: player.stage)
    await player.close()
  }

  private func record(
    _ error: ReelError, of number: Int, _ argument: String, stage: PreloadStage = .notLoaded
  ) {
    // Report each source once.
    let isNew = failures.withLock { failures in
      defer { failures.append((MemoryPlayerRecord(number, argument, stage: stage, error: error), error)) }
      return !failures.contains { $0.record.source == argument }
    }
    if isNew { Console.report(error) }
  }

  private func lateness(of player: MemoryPlayer, _ name: String) -> ReelError {
    let limit = DurationText.readable(command.limit)
    return ReelError(
      lateness: "stage \(command.target.stage.reportName) was not reached within \(limit)", of: name,
      after: player.lastFailure)
  }

  /// Waits until each player has reached its stage, has failed, or has run out of time.
  private func settle(_ players: [MemoryPlayer]) async {
    let deadline = clock.now + command.limit
    var waiting = players
    while clock.now < deadline, !Task.isCancelled {
      waiting.removeAll { $0.stage >= command.target.stage || $0.failure != nil }
      if waiting.isEmpty { return }
      try? await Task.sleep(for: .milliseconds(10))
    }
  }

  /// Waits until nothing changes any more, returns free memory to the system, and reads the figures.
  private func restAndRead(_ players: [MemoryPlayer]) async throws -> (MemoryReading, MemoryRest) {
    try await waitForRest(players)
    let memory = taken(from: players)
    let entries = players.map { MemoryLedger.Entry(slot: nil, item: nil, account: $0.ledger) }
    let reading = MemoryReading(
      memory, sharedBytes: MemoryLedger(entries: entries, shared: MemoryAccount.shared).sharedByteCount)
    return (reading, try await watch(for: Self.watchDuration))
  }

  /// Plays all players for a time, and reads the figures at the moment of most memory. Free memory is not
  /// returned to the system, because playing players reuse it. Closes players that fail.
  private func playAndRead() async throws -> (
    MemoryReading, MemoryRest, [(player: MemoryPlayer, account: MemoryLedger.Account)]
  ) {
    let (peak, rest) = try await peak(of: players.withLock { $0 })
    for player in players.withLock({ $0 }) where player.failure != nil { await giveUp(player) }
    let held = players.withLock { $0 }
    return (peak.reading, rest, peak.accounts.filter { played in held.contains { $0 === played.player } })
  }

  private struct Peak {
    var reading: MemoryReading
    var accounts: [(player: MemoryPlayer, account: MemoryLedger.Account)]
  }

  /// Plays players for a time.
  private func peak(of players: [MemoryPlayer]) async throws -> (Peak, MemoryRest) {
    for player in players { player.play() }
    let (began, before) = (clock.now, ProcessTime.now)
    var peak = Peak(reading: MemoryReading(nil, sharedBytes: nil), accounts: players.map { ($0, $0.ledger) })
    while clock.now - began < .seconds(command.play) {
      try await sleep(Self.playLookInterval)
      guard let memory = ProcessMemory.current, memory.anonymousByteCount > peak.reading.anonymousBytes
      else { continue }
      // The memory that no player owns is known only after free memory was returned.
      peak = Peak(
        reading: MemoryReading(memory, sharedBytes: nil), accounts: players.map { ($0, $0.ledger) })
    }
    return (
      peak, MemoryRest(duration: clock.now - began, processorTime: ProcessTime.now - before)
    )
  }

  /// Measures the memory of new players while they play, or records why it is unknown.
  private func tryPlaying(_ players: [MemoryPlayer], _ summary: inout MemorySummaryRecord) async throws {
    guard !players.isEmpty, !command.plays else { return }
    if let obstacle {
      summary.playingAbsence = obstacle
      return
    }
    for player in players { await player.close() }
    // Each source once, but at least as many players as play at a time.
    let count = min(players.count, max(Self.playingLimit, command.sources.count))
    let numbers = players.prefix(count).map(\.number)
    var (growth, duration) = (0, 0.0)
    for first in stride(from: 0, to: count, by: Self.playingLimit) {
      try await waitForRest([])
      summary.playingAbsence = "unknown: the system does not report the memory of the process"
      let before = MemoryReading(taken(from: []), sharedBytes: nil)
      let chosen = numbers[first..<min(first + Self.playingLimit, count)].compactMap { try? makePlayer($0) }
      replacePlayers(with: chosen)
      await settle(chosen)
      let (peak, rest) = try await peak(of: chosen)
      if let failed = chosen.first(where: { $0.failure != nil || $0.stage < command.target.stage }) {
        summary.playingAbsence =
          "unknown: \(failed.failure?.description ?? "\(failed.argument) was not loaded again")"
        return
      }
      for player in chosen { await player.close() }
      let grown = peak.reading.containerBytes - before.containerBytes
      guard grown > 0 else { return }
      growth += grown
      duration = rest.ms
    }
    let each = growth / count
    summary.playingAbsence = nil
    summary.playing = MemorySummaryRecord.Playing(
      players: count, ms: duration, perPlayerBytes: each,
      budgetPlayers: max(0, (command.budget - summary.before.containerBytes) / max(1, each)))
  }

  /// Replaces the players of the job. The earlier ones are released after the lock.
  private func replacePlayers(with chosen: [MemoryPlayer]) {
    let earlier = players.withLock { players in
      defer { players = chosen }
      return players
    }
    withExtendedLifetime(earlier) {}
  }

  /// The reason why the decoder trial, which plays and closes players, is impossible; nil if it is possible.
  private var obstacle: String? {
    if command.target.stage < .firstFrame {
      return "not measured: at stage \(command.target.stage.reportName) there is no decoder"
    }
    return command.hold > 0 ? "not measured: --hold keeps the players as they are" : nil
  }

  private func waitForRest(_ players: [MemoryPlayer]) async throws {
    let deadline = clock.now + Self.restLimit
    var last = players.map(\.movement)
    var since = clock.now
    while clock.now < min(deadline, since + Self.restDuration) {
      try await sleep(Self.lookInterval)
      let movement = players.map(\.movement)
      if movement != last { since = clock.now }
      last = movement
    }
  }

  /// Returns the figures of the process after free memory was returned to the system, first that of the
  /// players, then the rest.
  private func taken(from players: [MemoryPlayer]) -> ProcessMemory? {
    for player in players { player.account?.purge() }
    MemoryAccount.purgeProcess()
    return ProcessMemory.current
  }

  /// Measures the processor time of the idle process.
  private func watch(for duration: Duration) async throws -> MemoryRest {
    let (began, before) = (clock.now, ProcessTime.now)
    try await sleep(duration)
    return MemoryRest(duration: clock.now - began, processorTime: ProcessTime.now - before)
  }

  /// Returns why the decoder trial is impossible; nil if it is possible.
  private func decoderObstacle(_ players: [MemoryPlayer]) -> String? {
    if command.plays { return "not measured: playing players have open decoders" }
    if players.count < 2, command.target.stage >= .firstFrame {
      return "not measured: this takes two players"
    }
    return obstacle
  }

  /// Measures the memory cost and the time saving of an open decoder, or records why they are unknown.
  private func tryDecoders(_ players: [MemoryPlayer], _ summary: inout MemorySummaryRecord) async throws {
    guard !players.isEmpty else { return }
    if let obstacle = decoderObstacle(players) {
      summary.warmDecoderAbsence = obstacle
      return
    }
    summary.warmDecoderAbsence = "unknown: the system does not report the memory of the process"
    let half = min(Self.sampleLimit, players.count / 2)
    let (kept, changed) = (players.prefix(half), players.suffix(half))
    guard let before = taken(from: players) else { return }
    var target = command.target
    target.isDecoderWarm.toggle()
    for player in changed { player.setTarget(target) }
    try await waitForRest(players)
    guard let after = taken(from: players) else { return }
    let growth = (after.anonymousByteCount - before.anonymousByteCount) / half
    var times: [[Duration]] = []
    for sample in [kept, changed] {
      var sampled: [Duration] = []
      var absence: String?
      for player in sample {
        let second = await player.secondFrame(within: command.limit)
        if case .shown(let time) = second { sampled.append(time) }
        absence = absence ?? self.absence(of: second, from: player)
        await player.close()
      }
      if Task.isCancelled { throw ReelError.interrupted }
      guard !sampled.isEmpty else {
        summary.warmDecoderAbsence = absence.map { "unknown: \($0)" }
        return
      }
      times.append(sampled.sorted())
    }
    guard let first = times[0].middle, let second = times[1].middle else { return }
    let isWarm = command.target.isDecoderWarm
    summary.warmDecoderAbsence = nil
    summary.warmDecoder = MemorySummaryRecord.WarmDecoder(
      players: half, costBytes: isWarm ? -growth : growth,
      warmSecondFrameMs: (isWarm ? first : second).milliseconds,
      coldSecondFrameMs: (isWarm ? second : first).milliseconds)
  }

  /// Returns why there was no second frame; nil if there was one.
  private func absence(of second: MemoryPlayer.SecondFrame, from player: MemoryPlayer) -> String? {
    let name = (try? MediaSource(argument: player.argument))?.name ?? player.argument
    switch second {
    case .shown: return nil
    case .onlyOne: return "\(name) has one frame"
    case .failed(let error): return error.located(at: name).description
    case .late:
      return "\(name) showed no second frame within \(DurationText.readable(command.limit))"
    }
  }

  private func sleep(_ duration: Duration) async throws {
    do { try await Task.sleep(for: duration) } catch { throw ReelError.interrupted }
  }
}

extension [Duration] {
  /// The median of sorted durations.
  fileprivate var middle: Duration? { isEmpty ? nil : self[count / 2] }
}
