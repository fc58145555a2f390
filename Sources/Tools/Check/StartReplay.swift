internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelManifest
internal import ReelModels
internal import ReelPlayback
package import ReelSimulation
internal import ReelSources

/// Replays a recorded start in simulated time: as it is, with the change of each finding alone, and with all changes in
/// turn, the largest saving first.
///
/// A replay is a real player on a modelled link and a modelled device, so its times depend on neither the network nor
/// this machine: the same recording gives the same times.
package struct StartReplay: Sendable {
  /// The start; a replay fetches what is missing through its fetcher.
  let recording: StartRecording
  let source: MediaSource
  /// The configuration that the start was recorded with.
  let configuration: LoadingConfiguration
  let options: CheckOptions
  let logger: Logger
  private let starts = DecodedStarts()

  /// The most replays of a source on a link.
  private static let replayLimit = 8
  /// The simulated time at which a start counts as failed.
  private static let patience = Duration.seconds(600)
  /// The real time to wait for bytes that were not recorded.
  private static let realPatience = Duration.seconds(5)

  /// Returns the start on each link, and adds the costs of findings.
  ///
  /// Findings that need a cost to count are removed if they cost less on every link. Empty for standard input, and if
  /// the start has no first frame. Throws `RungPlayback.Unknown` if the player of a model can't play it.
  package func results(for findings: inout [Finding], facts: StreamFacts) async throws -> [StartResult] {
    guard case .url = source, facts.start != nil else { return [] }
    var results: [StartResult] = []
    var models: [ModelledStart?] = []
    var played: [PlaybackFindings.Played] = []
    for link in options.links {
      let own: StartResult.Course
      do {
        own = try await course(on: link.spec, [])
      } catch let error as ReelError {
        logger.debug("the start can't be replayed", metadata: ["link": "\(link.name)", "error": "\(error)"])
        return []
      }
      let bounds = StartBounds(facts: facts, link: link.spec, device: options.device)
      let floor = bounds.floor(of: own)
      let play = playback(on: link.spec, after: own, facts)
      let model = try options.player.map { try ModelledStart($0, play, options) }
      guard let now = model.map({ $0.course() }) ?? own else {
        throw RungPlayback.Unknown(reason: "no first frame within 10 minutes on \(link.name)")
      }
      models.append(model)
      // One after the other, as a start waits for them.
      let waits = now.requests.reduce(into: [FetchPurpose: Duration]()) { waits, request in
        let wait = request.location.map { url in
          model?.behaviour(of: url, request.purpose).wait ?? recording.behaviour(of: url).wait
        }
        waits[request.purpose] = max(waits[request.purpose] ?? .zero, wait ?? .zero)
      }
      var result = StartResult(
        link: link.name, now: now, floorMilliseconds: min(now.milliseconds, floor.milliseconds))
      (result.floorRequestCount, result.floorByteCount) = (floor.requestCount, floor.byteCount)
      if let model {
        let played = model.played()
        (result.player, result.rung) = (options.player?.title, model.rungName)
        result.secondFrameMilliseconds = played?.secondFrame?.milliseconds
        if let rung = played?.rung {
          result.playback = facts.isLive ? Self.unknownOfLive : .played(rung, wholeMilliseconds: nil)
        }
      } else if let rung = facts.startRungIndex {
        result.wholeMilliseconds = play.wholeStart(rung).map { ($0 + bounds.frameTime).milliseconds }
        result.playback = facts.isLive ? Self.unknownOfLive : playback(of: rung, play)
      }
      if options.areLinksNamed {
        let rungs = playableRungs(facts).compactMap { rung in
          playedAlone(rung, play).flatMap { $0.estimatedCount == 0 ? (rung, $0) : nil }
        }
        played.append(.init(link: link, rungs: Dictionary(uniqueKeysWithValues: rungs)))
      }
      result.waitMilliseconds = waits.values.reduce(.zero, +).milliseconds
      results.append(result)
    }
    findings += PlaybackFindings.findings(played, payer, options.thresholds)
    addCostOfUnderstating(to: &findings, results, facts)
    try await addCosts(to: &findings, &results, models, facts)
    for place in results.indices {
      results[place].floorMilliseconds = min(
        results[place].floorMilliseconds, results[place].possibleMilliseconds)
    }
    return results
  }

  // MARK: Costs

  /// The player that the costs are those of.
  private var payer: FindingCost.Player { options.player.map { .model($0.name) } ?? .reel }

  /// The savings of the findings on a link, by their index.
  private struct Savings {
    var alone: [Int: Double] = [:]
    var inTurn: [Int: Double] = [:]
    var steps: [StartResult.Step] = []
    var mended: StartResult.Course?
  }

  private func addCosts(
    to findings: inout [Finding], _ results: inout [StartResult], _ models: [ModelledStart?],
    _ facts: StreamFacts
  ) async throws {
    var alone: [[StartChange: StartResult.Course]] = results.map { _ in [:] }
    var savings: [Savings] = []
    // A finding that costs too little is dropped, and what remains is mended in turn again.
    while true {
      savings = []
      for (place, link) in options.links.enumerated() where place < results.count {
        savings.append(
          try await self.savings(
            of: findings, on: link.spec, models[place], now: results[place].now, &alone[place]))
      }
      let least = options.thresholds[.startBytes]
      let dropped = findings.indices.filter { index in
        findings[index].id == .startBytes && findings[index].change != nil && !results.isEmpty
          && !savings.contains { max($0.alone[index] ?? 0, $0.inTurn[index] ?? 0) >= least }
          && !options.links.contains { orderedCost(of: findings[index], on: $0.spec) >= least }
      }
      guard !dropped.isEmpty else { break }
      for index in dropped.reversed() { findings.remove(at: index) }
    }
    for (place, saving) in savings.enumerated() {
      results[place].steps = saving.steps
      results[place].mended = saving.mended
      for index in findings.indices {
        guard let cost = saving.alone[index], findings[index].change != nil else { continue }
        let inTurn = saving.inTurn[index]
        guard max(cost, inTurn ?? 0) >= options.thresholds[.printedCost] else { continue }
        findings[index].costs.append(
          FindingCost(.start, cost, link: results[place].link, player: payer, inTurn: inTurn))
      }
      for index in findings.indices {
        let cost = orderedCost(of: findings[index], on: options.links[place].spec)
        guard cost >= max(options.thresholds[.printedCost], saving.alone[index] ?? 0) else { continue }
        findings[index].costs.append(FindingCost(.start, cost, link: results[place].link, player: .whole))
      }
    }
    addCostOfOrder(to: &findings, results, models, facts)
  }

  /// Measures each change alone, and then all in turn, the largest saving first.
  private func savings(
    of findings: [Finding], on link: LinkSpec, _ model: ModelledStart?, now: StartResult.Course,
    _ known: inout [StartChange: StartResult.Course]
  ) async throws -> Savings {
    var savings = Savings()
    // Findings with the same change are mended together.
    var changes: [(change: StartChange, index: Int)] = []
    for index in findings.indices {
      guard let change = findings[index].change, findings[index].id != .firstRungHeavy,
        !changes.contains(where: { $0.change == change })
      else { continue }
      changes.append((change, index))
    }
    guard !changes.isEmpty else { return savings }
    // Half of the replays at least measure the changes in turn.
    changes = Array(changes.prefix(Self.replayLimit / 2))
    var order: [(change: StartChange, index: Int, course: StartResult.Course)] = []
    for (change, index) in changes {
      let course: StartResult.Course
      if let measured = known[change] {
        course = measured
      } else {
        guard let measured = try await self.changed(link, model, [change]) else { continue }
        course = measured
        known[change] = course
      }
      order.append((change, index, course))
    }
    order.sort { ($0.course.milliseconds, $0.index) < ($1.course.milliseconds, $1.index) }
    var applied: [StartChange] = []
    var last = now
    for (change, index, course) in order {
      let same = findings.indices.filter { findings[$0].change == change }
      for place in same { savings.alone[place] = max(0, now.milliseconds - course.milliseconds) }
      let next = applied.isEmpty ? course : try await changed(link, model, applied + [change])
      guard let next else { continue }
      let saving = max(0, last.milliseconds - next.milliseconds)
      for place in same { savings.inTurn[place] = saving }
      guard saving >= options.thresholds[.printedCost] else { continue }
      applied.append(change)
      last = next
      savings.steps.append(StartResult.Step(finding: findings[index].name, milliseconds: next.milliseconds))
      savings.mended = next
    }
    return savings
  }

  /// Returns the start with changes; nil if it then fails.
  private func changed(
    _ link: LinkSpec, _ model: ModelledStart?, _ changes: [StartChange]
  ) async throws -> StartResult.Course? {
    if let model { return model.course(changes) }
    do {
      return try await course(on: link, changes)
    } catch let error as ReelError {
      logger.debug("a changed start can't be replayed", metadata: ["error": "\(error)"])
      return nil
    }
  }

  /// Adds the cost of a heavy first variant, for the player of the model, or else for one that begins with that variant
  /// and loads whole segments.
  private func addCostOfOrder(
    to findings: inout [Finding], _ results: [StartResult], _ models: [ModelledStart?], _ facts: StreamFacts
  ) {
    guard let index = findings.firstIndex(where: { $0.id == .firstRungHeavy }),
      let order = RungOrder(facts)
    else { return }
    var isHeavy = false
    for (place, link) in options.links.enumerated() where place < results.count {
      let play = playback(on: link.spec, after: results[place].now, facts)
      let model = models[place]
      guard
        let first = model.map({ $0.course()?.milliseconds }) ?? play.wholeStart(order.first)?.milliseconds,
        let best = model.map({ $0.course(listingFirst: order.best)?.milliseconds })
          ?? play.wholeStart(order.best)?.milliseconds
      else { continue }
      let cost = first - best
      guard cost >= options.thresholds[.firstRungHeavy], first >= best * RungOrder.leastRatio else {
        continue
      }
      isHeavy = true
      findings[index].costs.append(
        FindingCost(.start, cost, link: link.name, player: model == nil ? .whole : payer))
    }
    if !isHeavy, !results.isEmpty { findings.remove(at: index) }
  }

  /// What bytes that are not needed cost a player that reads a file in order, in milliseconds. Reel seeks over them. A
  /// model knows what its player does.
  private func orderedCost(of finding: Finding, on link: LinkSpec) -> Double {
    guard options.player == nil, case .remove(let ranges)? = finding.change else { return 0 }
    let count = ranges.reduce(0) { $0 + ($1.range.length ?? 0) }
    return LinkModel(link).duration(ofByteCount: Int(clamping: count)).milliseconds
  }

  // MARK: Playing on

  private func playback(
    on link: LinkSpec, after start: StartResult.Course, _ facts: StreamFacts
  ) -> RungPlayback {
    RungPlayback(facts: facts, recording: recording, configuration: configuration, link: link, start: start)
  }

  private static let unknownOfLive = StartResult.Playback.unknown(
    "it is live, and plays only as fast as new segments appear")

  private func playback(of rung: Int, _ play: RungPlayback) -> StartResult.Playback {
    do throws(RungPlayback.Unknown) {
      let whole = play.playedWhole(rung)
      return .played(try play.played(rung), wholeMilliseconds: whole?.stalled.milliseconds)
    } catch {
      return .unknown(error.reason)
    }
  }

  /// Plays a rung that is the only one; nil if too little is known.
  private func playedAlone(_ rung: Int, _ play: RungPlayback) -> PlayedRung? {
    guard let player = options.player else { return try? play.played(rung) }
    return try? ModelledStart(player, play, options, alone: rung).played()?.rung
  }

  /// The rungs of video that viewers are given one of; those of audio if there is no video.
  private func playableRungs(_ facts: StreamFacts) -> [Int] {
    guard let start = facts.startRungIndex else { return [] }
    let period = facts.rungs[start].place.period
    let rungs = facts.rungs.indices.filter {
      facts.rungs[$0].place.period == period && facts.rungs[$0].kind == facts.rungs[start].kind
        && facts.rungs[$0].status == .read
    }
    let videos = rungs.filter { facts.rungs[$0].wantsVideo }
    return videos.isEmpty ? rungs : videos
  }

  /// Adds what an understated bit rate costs: on a link with a tenth more than the stated rate, for which players choose
  /// the rung.
  private func addCostOfUnderstating(
    to findings: inout [Finding], _ results: [StartResult], _ facts: StreamFacts
  ) {
    for index in findings.indices where findings[index].name == "bandwidth-mismatch/understated" {
      let rungs = facts.rungs.indices.filter {
        facts.rungs[$0].name == findings[index].rung ?? facts.rungs[$0].name
      }
      guard let rung = rungs.first, let start = results.first?.now,
        let stated = facts.rungs[rung].declared?.bitsPerSecond,
        let link = try? LinkSpec(
          bitsPerSecond: Int64(stated) * 11 / 10, roundTripTime: Self.understatedRoundTrip),
        let played = playedAlone(rung, playback(on: link, after: start, facts)), played.estimatedCount == 0,
        played.stalledMilliseconds >= options.thresholds[.printedCost]
      else { continue }
      // In a form that --link takes.
      let kilobits = (Double(link.bitsPerSecond) / 1000).formatted(places: 0)
      findings[index].costs = [
        FindingCost(
          .stall, played.stalledMilliseconds.rounded(), link: "\(kilobits)kbit/50ms", player: payer)
      ]
    }
  }

  private static let understatedRoundTrip = Duration.milliseconds(50)

  // MARK: One replay

  /// Returns the start on a link with changes, from the request to the first frame.
  ///
  /// Throws the error of a start that fails.
  package func course(on link: LinkSpec, _ changes: [StartChange]) async throws -> StartResult.Course {
    guard case .url(let url) = source else {
      throw ReelError(.usage, "a start from standard input can't be replayed")
    }
    let simulation = SimulatedRuntime()
    let changed = try await ChangedStart(recording, changes)
    let record = CourseRecord(simulation)
    let network = ThrottledFetcher(
      changed, link: link, in: simulation, limit: Self.realPatience,
      servers: LinkServers { [recording] request, answer in
        var behaviour = recording.behaviour(of: request.url)
        if changed.dropsRedirects { behaviour.hops = [] }
        if changed.promptPurposes.contains(request.purpose) { behaviour.wait = .zero }
        if changed.dropsHandshakes { behaviour.closesConnection = false }
        return behaviour
      } onDeparture: { request, time in
        record.left(request, at: time)
      })
    var player = PlayerConfiguration()
    player.loading = configuration
    simulation.apply(to: &player)
    player.loading.clock = SimulatedWallClock(simulation, beginning: recording.beginning)
    var decoders = ModelledDecoders(cost: options.device.decodeCost, starts: starts, in: simulation)
    decoders.leavesOutHiddenFrames = changed.hiddenFrameCount > 0
    decoders.onUse = { record.decoded($0) }
    player.decoders = decoders
    let fetcher = ReplayedLink(link: network, changed: changed, record: record, simulation: simulation)
    let replayed = Player(fetcher: fetcher, configuration: player, logger: logger)
    let item = PlayerItem(url: changed.dropsRedirects ? recording.target(of: url) : url)
    let error = try await simulation.runToRest {
      await replayed.loadFirstFrame(of: item) {
        try? await simulation.sleep(for: Self.patience)
        return ReelError(.timedOut, "no frame within \(Self.patience.components.seconds) s")
      }
    }
    if let error { throw error }
    guard let time = item.stageTimes[.firstFrame] else {
      throw ReelError(.internalFault, "a replay without a first frame", at: source.name)
    }
    return record.course(until: time)
  }
}

/// The link of a replay, behind which bytes that cost nothing are put back.
private struct ReplayedLink: Fetching {
  let link: ThrottledFetcher
  let changed: ChangedStart
  let record: CourseRecord
  let simulation: SimulatedRuntime

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    if changed.dropsRedirects { request.url = changed.recording.target(of: request.url) }
    let number = record.began(request)
    let answer: FetchResponse
    do {
      answer = try await link.fetch(request)
    } catch {
      record.ended(number)
      throw error
    }
    record.answered(number)
    let counted = answer.wrappingBody { [record] body in
      do {
        let chunk = try await body.next()
        record.received(number, chunk?.count)
        return chunk
      } catch {
        record.ended(number)
        throw error
      }
    }
    return changed.restoring(counted, to: request) { [simulation] read in try simulation.outside(read) }
  }
}

/// A request of a start, by simulated times.
struct CourseRequest {
  let url: URL
  let purpose: FetchPurpose
  let began: Duration
  /// The time at which it left on an open connection.
  var left: Duration?
  var answered: Duration?
  var end: Duration?
  var byteCount: Int64 = 0
}

/// Records the requests and the decoding of a replay.
private final class CourseRecord: Sendable {
  private struct State {
    var requests: [CourseRequest] = []
    var decoding: [Range<Duration>] = []
  }

  private let clock: any MonotonicClock
  private let state = Locked(State())

  init(_ clock: any MonotonicClock) { self.clock = clock }

  func began(_ request: FetchRequest) -> Int {
    state.withLock { state in
      state.requests.append(CourseRequest(url: request.url, purpose: request.purpose, began: clock.now))
      return state.requests.count - 1
    }
  }

  func left(_ request: FetchRequest, at time: Duration) {
    state.withLock { state in
      guard let index = state.requests.firstIndex(where: { $0.url == request.url && $0.left == nil }) else {
        return
      }
      state.requests[index].left = time
    }
  }

  func answered(_ number: Int) { state.withLock { $0.requests[number].answered = clock.now } }

  func received(_ number: Int, _ count: Int?) {
    guard let count else { return ended(number) }
    state.withLock { $0.requests[number].byteCount += Int64(count) }
  }

  func ended(_ number: Int) {
    state.withLock { $0.requests[number].end = $0.requests[number].end ?? clock.now }
  }

  func decoded(_ range: Range<Duration>) { state.withLock { $0.decoding.append(range) } }

  func course(until end: Duration) -> StartResult.Course {
    let state = state.withLock { $0 }
    return StartResult.Course(until: end, requests: state.requests, decoding: state.decoding)
  }
}

extension StartResult.Course {
  /// The course of a start whose first frame came at `end`.
  ///
  /// Each moment belongs to the decoder if it is busy, and otherwise to the request that counts: the earliest open one,
  /// sources before manifests before media.
  ///
  /// - Parameter idle: What moments without any of them count as.
  init(
    until end: Duration, requests: [CourseRequest], decoding: [Range<Duration>],
    idle: WritableKeyPath<Self, Double> = \.answering
  ) {
    self.init(milliseconds: end.milliseconds)
    // What a player has asked for ahead has not begun to arrive.
    let counted = requests.filter { ($0.began < end || $0.began == .zero) && $0.byteCount > 0 }
    self.requests = counted.map { request in
      let stop = min(request.end ?? end, end)
      return StartResult.Request(
        url: request.url.reelName, purpose: request.purpose, began: request.began.milliseconds,
        firstByte: min(request.answered ?? stop, stop).milliseconds, end: stop.milliseconds,
        byteCount: request.byteCount)
    }
    let ordered = counted.enumerated().sorted {
      ($0.element.purpose.order, $0.offset) < ($1.element.purpose.order, $1.offset)
    }.map(\.element)
    var bounds: Set<Duration> = [.zero, end]
    for request in counted {
      bounds.formUnion([request.began, request.left, request.answered, request.end].compactMap { $0 })
    }
    for range in decoding { bounds.formUnion([range.lowerBound, range.upperBound]) }
    let times = bounds.filter { $0 >= .zero && $0 <= end }.sorted()
    // A decoder is opened first. If it was waited for, a frame follows at once.
    let waited = decoding.dropFirst().first?.lowerBound == decoding.first?.upperBound
    let used = waited ? decoding[...] : decoding.dropFirst()
    for (start, stop) in zip(times, times.dropFirst()) {
      let length = (stop - start).milliseconds
      let open = ordered.first { $0.began <= start && start < $0.end ?? end }
      if used.contains(where: { $0.contains(start) }) {
        self.decoding += length
      } else if let open, start >= open.answered ?? end {
        receiving += length
      } else if let open, start < open.left ?? end {
        connecting += length
      } else {
        self[keyPath: open == nil ? idle : \.answering] += length
      }
    }
  }
}

extension Duration {
  /// The duration in milliseconds.
  var milliseconds: Double { self / .milliseconds(1) }
}
