import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelReading
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

/// A player in a simulation, with a record of its frames and events.
///
/// A test acts between two steps of the simulation, which goes on only within the stage's methods. So every act comes at
/// the same moment in every run, and no test waits for real time.
final class Stage: Sendable {
  let simulation: SimulatedRuntime
  let fetcher: any Fetching
  let screen: Screen
  let speaker = Speaker()
  let account: MemoryAccount
  private let held: Locked<Player?>
  private let log = Locked<[PlayerEvent]>([])
  private let current = Locked<PlayerItem?>(nil)

  init(
    fetcher: any Fetching, in simulation: SimulatedRuntime = SimulatedRuntime(),
    configure: (inout PlayerConfiguration) -> Void = { _ in }
  ) throws {
    self.simulation = simulation
    self.fetcher = fetcher
    var configuration = PlayerConfiguration()
    configuration.retryPolicy = ItemRetryPolicy(attempts: 3, baseDelay: .milliseconds(100))
    configuration.loading.keyProvider = KeyList.fixtures
    configuration.loading.decoderThreads = 1
    simulation.apply(to: &configuration)
    configure(&configuration)
    account = try MemoryAccount()
    screen = Screen(clock: simulation)
    let player = Player(
      fetcher: fetcher, configuration: configuration, account: account, logger: silentLogger)
    held = Locked(player)
    try player.attach(screen)
    player.attach(speaker)
    let (events, log) = (player.events, log)
    Task(executorPreference: simulation) { for await event in events { log.withLock { $0.append(event) } } }
  }

  /// A stage that has an item below Fixtures, and does not play.
  convenience init(
    _ path: String,
    fault: @escaping @Sendable (FetchRequest, Int) -> FixtureFetcher.Fault = { _, _ in .none },
    configure: (inout PlayerConfiguration) -> Void = { _ in }
  ) throws {
    let simulation = SimulatedRuntime()
    let fetcher = FixtureFetcher(chunkByteCount: 16 << 10, clock: simulation, fault: fault)
    try self.init(fetcher: fetcher, in: simulation, configure: configure)
    try load(path)
  }

  convenience init(network: Network, configure: (inout PlayerConfiguration) -> Void = { _ in }) throws {
    try self.init(fetcher: network, configure: configure)
  }

  var player: Player {
    guard let player = held.withLock({ $0 }) else { preconditionFailure("the player was released") }
    return player
  }
  /// The item that was loaded last.
  var item: PlayerItem {
    guard let item = current.withLock({ $0 }) else { preconditionFailure("no item was loaded") }
    return item
  }
  /// The stage's network, for a stage that was made with one.
  var network: Network {
    guard let network = fetcher as? Network else { preconditionFailure("the stage has another fetcher") }
    return network
  }
  var shown: [Shown] { screen.all }
  var events: [PlayerEvent] { log.withLock { $0 } }
  /// The names of the events so far, without changes of rung.
  var eventNames: [String] { events.map(\.name).filter { $0 != "rungSwitched" } }
  var status: TimeControlStatus { player.timeControlStatus.value }

  // MARK: Acting

  @discardableResult
  func load(_ path: String) throws -> PlayerItem {
    let item = PlayerItem(try MediaSource(argument: "http://fixtures.test/\(path)"))
    // The item before may end here, which takes locks of its own.
    let before = current.withLock { current in
      defer { current = item }
      return current
    }
    withExtendedLifetime(before) {}
    player.replaceCurrentItem(with: item)
    return item
  }

  /// Begins to seek. What comes of it is known when the simulation has gone on.
  func seek(to time: MediaTime) -> Seek {
    let seek = Seek()
    let (player, screen) = (player, screen)
    Task(executorPreference: simulation) {
      seek.begin(after: screen.count)
      do { seek.end(.success(try await player.seek(to: time))) } catch { seek.end(.failure(error)) }
    }
    return seek
  }

  /// Seeks, and expects that the frame on show at that time is shown, and that nothing else was asked for.
  func seek(
    to time: MediaTime, shows wanted: Shown?, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let seek = seek(to: time)
    try await run("the end of a seek", sourceLocation: sourceLocation) { seek.isOver }
    #expect(try seek.result(), "nothing else was asked for", sourceLocation: sourceLocation)
    #expect(shown.last == wanted, "\(events)", sourceLocation: sourceLocation)
  }

  // MARK: Going on

  /// Goes on until `condition` holds, and fails if it never does.
  func run(
    _ what: String = "", sourceLocation: SourceLocation = #_sourceLocation,
    until condition: @escaping @Sendable () -> Bool
  ) async throws {
    let holds = await simulation.run(by: simulation.now + .seconds(600), until: condition)
    try #require(
      holds, "\(what): \(status), \(shown.count) frames, \(events)", sourceLocation: sourceLocation)
  }

  func run(for duration: Duration) async { await simulation.run(until: simulation.now + duration) }

  /// Goes on until so many steps were run, or nothing is left to run.
  func run(untilStep count: Int) async {
    let simulation = simulation
    await simulation.run { simulation.stepCount >= count }
  }

  func run(untilShown count: Int, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let screen = screen
    try await run("\(count) frames", sourceLocation: sourceLocation) { screen.count >= count }
  }

  /// Goes on until the item has ended or failed, and returns that event.
  @discardableResult
  func end(sourceLocation: SourceLocation = #_sourceLocation) async throws -> PlayerEvent {
    let count = events.count { $0.isEnd }
    try await run("the end", sourceLocation: sourceLocation) { self.events.count { $0.isEnd } > count }
    return try #require(events.last { $0.isEnd }, sourceLocation: sourceLocation)
  }

  /// Expects that the item is played to its end.
  func playsOut(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let end = try await end(sourceLocation: sourceLocation)
    #expect(end.name == "playedToEnd", "\(end)", sourceLocation: sourceLocation)
  }

  /// Ends everything, and expects that nothing is left: no body, request, frame, packet, player or item.
  func close(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    try await stop()
    try await closeStopped(sourceLocation: sourceLocation)
  }

  /// Stops the player, without keeping it.
  private func stop() async throws {
    let player = player
    try await simulation.run { await player.stopAndWait() }
  }

  /// Like `close()`, for a player that is let go as it is.
  func closeReleased(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    _ = held.withLock { $0.take() }
    try await closeStopped(sourceLocation: sourceLocation)
  }

  /// Like `close()`, for a player that was stopped.
  func closeStopped(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    await simulation.runToRest()
    #expect(screen.isFinished && screen.lateCount == 0, sourceLocation: sourceLocation)
    weak let item = current.withLock { $0.take() }
    weak let player = held.withLock { $0.take() }
    await simulation.runToRest()
    // The thread that ran the simulation's last step may still hold the work that it ran.
    try await until({ "something is left" }) { player == nil && item == nil }
    #expect(simulation.bodyCount == 0, sourceLocation: sourceLocation)
    if let fixtures = fetcher as? FixtureFetcher ?? (fetcher as? Network)?.fixtures {
      #expect(fixtures.heldCount == 0, sourceLocation: sourceLocation)
    }
    #expect(account.figures.frameByteCount == 0, sourceLocation: sourceLocation)
    #expect(account.figures.packetByteCount == 0, sourceLocation: sourceLocation)
  }
}

/// What came of a seek that was begun.
final class Seek: Sendable {
  private let before = Locked(0)
  private let outcome = Locked<Result<Bool, any Error>?>(nil)

  var isOver: Bool { outcome.withLock { $0 } != nil }
  /// How many frames had been shown when it was called.
  var mark: Int { before.withLock { $0 } }

  func begin(after count: Int) { before.withLock { $0 = count } }

  func end(_ result: Result<Bool, any Error>) { outcome.withLock { $0 = result } }

  /// False if something else was asked for before the frame was shown.
  func result() throws -> Bool {
    let result = try #require(outcome.withLock { $0 })
    return try result.get()
  }
}

/// Keeps the frames that are shown, in order, with the simulated time.
final class Screen: FrameOutput {
  private struct State {
    var shown: [(frame: Shown, at: Duration)] = []
    var isFinished = false
    var lateCount = 0
  }

  let isExternal: Bool
  private let clock: any MonotonicClock
  private let state = Locked(State())

  init(clock: any MonotonicClock, isExternal: Bool = false) {
    self.clock = clock
    self.isExternal = isExternal
  }

  var all: [Shown] { state.withLock { $0.shown.map(\.frame) } }
  var times: [Duration] { state.withLock { $0.shown.map(\.at) } }
  var count: Int { state.withLock { $0.shown.count } }
  var isFinished: Bool { state.withLock { $0.isFinished } }
  /// Frames that were shown after `finish()`.
  var lateCount: Int { state.withLock { $0.lateCount } }

  func show(_ frame: VideoFrame) throws {
    let (shown, now) = (try Shown(frame), clock.now)
    state.withLock { state in
      state.shown.append((shown, now))
      if state.isFinished { state.lateCount += 1 }
    }
  }

  func finish() { state.withLock { $0.isFinished = true } }
}

/// Keeps where the sound begins and ends that is handed out.
final class Speaker: AudioOutput {
  private let pieces = Locked<[Range<MediaTime>]>([])

  var all: [Range<MediaTime>] { pieces.withLock { $0 } }

  func write(_ audio: TimedAudio) {
    pieces.withLock { $0.append(audio.time..<audio.time + audio.buffer.duration) }
  }

  func finish() {}
}

extension PlayerEvent {
  /// The event's name, without its figures.
  var name: String { String("\(self)".prefix { $0 != "(" }) }

  var isEnd: Bool {
    switch self {
    case .playedToEnd, .failed: true
    default: false
    }
  }
}
