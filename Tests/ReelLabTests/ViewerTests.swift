import Foundation
import ReelCore
import ReelLab
import ReelModels
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelSources
import ReelTestSupport
import ReelTesting
import Testing

/// Viewers that count beside players of the same sources over the same link.
@Suite("A viewer that counts", .hangLimit)
struct ViewerTests {
  /// What a player and a viewer made of a scene.
  private func both(
    _ scene: ViewerScene
  ) async throws -> (player: ViewerScene.Outcome, viewer: ViewerScene.Outcome) {
    (try await scene.watch(decodes: true), try await scene.watch(decodes: false))
  }

  private func expectNear(
    _ one: Duration?, _ other: Duration?, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let (one, other) = (try #require(one), try #require(other))
    let isNear = abs(one / .seconds(1) - other / .seconds(1)) <= 0.05 * (other / .seconds(1))
    #expect(isNear, "\(one) \(other)", sourceLocation: sourceLocation)
  }

  @Test(
    "It starts as a player does, and requests the same",
    arguments: [
      "/hls-ts/master.m3u8", "/hls-fmp4/master.m3u8", "/hls-aes128/index.m3u8",
      "/hls-byterange-fmp4/index.m3u8", "/hls-discontinuity/ts.m3u8", "/dash-number/manifest.mpd",
      "/dash-timeline/manifest.mpd", "/dash-ondemand/manifest.mpd", "/dash-periods/manifest.mpd",
    ], ["5Mbit/40ms", "300kbit/100ms"])
  func start(path: String, link: String) async throws {
    let scene = ViewerScene(link: link, server: ViewerScene.fixture(path))
    let (player, viewer) = try await both(scene)
    #expect(viewer.ending == .played)
    #expect(player.ending == .played)
    // Video and separate audio are loaded beside each other.
    #expect(viewer.urls.sorted() == player.urls.sorted())
    try expectNear(viewer.sums.start, player.sums.start)
    #expect(viewer.sums.byteCount == player.sums.byteCount)
    #expect(viewer.sums.requestCount == viewer.urls.count)
    #expect(viewer.sums.stallCount == player.sums.stallCount)
  }

  @Test(
    "On a link that is too slow it stalls as long as a player",
    arguments: ["hls-ts/master.m3u8", "hls-fmp4/master.m3u8"])
  func stalls(manifest: String) async throws {
    let scene = ViewerScene(
      link: "120kbit/40ms", duration: .seconds(120),
      server: ViewerScene.loop(manifest, segmentCount: 30))
    let (player, viewer) = try await both(scene)
    #expect(viewer.ending == .played)
    #expect(viewer.sums.start == player.sums.start)
    #expect(viewer.sums.stallCount > 4)
    try expectNear(viewer.sums.times[.stalled], player.sums.times[.stalled])
    try expectNear(viewer.sums.times[.playing], player.sums.times[.playing])
    for track in ["low/", "audio/"] { #expect(viewer.urls(of: track) == player.urls(of: track)) }
  }

  @Test("It chooses rungs as a player does")
  func adaptation() async throws {
    let scene = ViewerScene(
      link: "600kbit/40ms", peakBitRate: nil,
      server: ViewerScene.loop("hls-ts/master.m3u8", segmentCount: 20))
    let (player, viewer) = try await both(scene)
    #expect(viewer.urls == player.urls)
    for rung in ["low/live", "high/live"] { #expect(!viewer.urls(of: rung).isEmpty, "\(rung)") }
  }

  @Test(
    "It keeps a player's distance from a live edge, and requests the same",
    arguments: ["hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "dash-number/manifest.mpd"])
  func live(manifest: String) async throws {
    let scene = ViewerScene(duration: .seconds(40), server: ViewerScene.loop(manifest))
    let (player, viewer) = try await both(scene)
    #expect(viewer.ending == .left)
    try expectNear(viewer.sums.start, player.sums.start)
    try expectNear(viewer.sums.latency, player.sums.latency)
    #expect(viewer.sums.stallCount == 0)
    #expect(player.sums.stallCount == 0)
    #expect(viewer.urls.sorted() == player.urls.sorted())
  }

  @Test("It jumps to the edge after a pause of the broadcast, as a player does")
  func jump() async throws {
    let pause = LiveDisturbances.Stall(
      after: MediaTime(value: 75, timescale: 1), length: MediaTime(value: 12, timescale: 1))
    let scene = ViewerScene(server: ViewerScene.loop("hls-ts/master.m3u8", stall: pause))
    let (player, viewer) = try await both(scene)
    for outcome in [player, viewer] {
      #expect(outcome.events.count { if case .jumped = $0 { true } else { false } } == 1)
      #expect(outcome.sums.stallCount == 1)
      // At the start, and at the edge.
      #expect(outcome.events.count { if case .playing = $0 { true } else { false } } == 2)
    }
    try expectNear(viewer.sums.latency, player.sums.latency)
    try expectNear(viewer.sums.times[.stalled], player.sums.times[.stalled])
  }

  @Test("After a rung has listed nothing new for long, it goes on with another one at the edge")
  func longPause() async throws {
    let pause = LiveDisturbances.Stall(
      after: MediaTime(value: 75, timescale: 1), length: MediaTime(value: 45, timescale: 1))
    let scene = ViewerScene(
      duration: .seconds(120), server: ViewerScene.loop("hls-ts/master.m3u8", stall: pause))
    let (player, viewer) = try await both(scene)
    #expect(viewer.consequences == [.handled(.otherRung)])
    #expect(viewer.consequences == player.consequences)
    #expect(viewer.urls == player.urls)
    try expectNear(viewer.sums.latency, player.sums.latency)
  }

  /// A fault by the number of the request, or for a path.
  typealias Fault = @Sendable (FetchRequest, Int) -> FixtureFetcher.Fault

  private static let faults: [(name: String, fault: Fault)] = [
    (
      "a segment is missing in all rungs",
      { request, _ in
        request.url.path.hasSuffix("segment-1.ts")
          ? .error(ReelError(.server, "404", status: 404)) : .none
      }
    ),
    (
      "a segment is missing in one rung",
      { request, _ in
        request.url.path.hasSuffix("low/segment-1.ts")
          ? .error(ReelError(.server, "404", status: 404)) : .none
      }
    ),
    ("a connection is lost within a segment", { _, number in number == 3 ? .cut(5000) : .none }),
    (
      "the first requests are reset",
      { _, number in number < 3 ? .error(ReelError(.network, "reset", isTemporary: true)) : .none }
    ),
    ("the source is dead", { _, _ in .error(ReelError(.server, "404", status: 404)) }),
  ]

  @Test("Failures are followed by what follows them in a player", arguments: faults.indices)
  func failures(index: Int) async throws {
    let (name, fault) = Self.faults[index]
    let scene = ViewerScene(server: ViewerScene.fixture("/hls-ts/master.m3u8", fault: fault))
    let (player, viewer) = try await both(scene)
    #expect(!viewer.consequences.isEmpty, "\(name)")
    #expect(viewer.consequences == player.consequences, "\(name)")
    #expect(viewer.ending == player.ending, "\(name)")
    #expect(viewer.urls == player.urls, "\(name)")
    #expect(viewer.sums.failureCount == viewer.consequences.count)
  }

  @Test("The time over media that is missing is skipped")
  func hole() async throws {
    let server = ViewerScene.fixture("/hls-ts/master.m3u8", fault: Self.faults[0].fault)
    let scene = ViewerScene(server: server)
    let viewer = try await scene.watch(decodes: false)
    // Two of three segments of a second.
    try expectNear(viewer.sums.times[.playing], .seconds(2))
  }

  @Test("A file with an index of its segments is counted, another one is left to viewers that decode")
  func files() async throws {
    let indexed = ViewerScene(server: ViewerScene.fixture("/dash-ondemand/low.mp4"))
    #expect(try await indexed.watch(decodes: false).ending == .played)
    let plain = ViewerScene(server: ViewerScene.fixture("/media/av1.mp4"))
    guard case .failed(let error) = try await plain.watch(decodes: false).ending else {
      Issue.record("a plain file is counted")
      return
    }
    #expect(error.kind == .unsupported)
    #expect(error.advice?.contains("--decode") == true)
  }

  @Test("A buffer that is full before the first frame has come does not keep it back")
  func smallBuffer() async throws {
    let scene = ViewerScene(
      link: "300kbit/40ms", buffer: .milliseconds(10), server: ViewerScene.fixture("/hls-fmp4/master.m3u8"))
    let viewer = try await scene.watch(decodes: false)
    #expect(viewer.sums.start != nil)
    #expect(viewer.ending == .played)
  }

  @Test("By a model it starts with whole segments and the rung that the model begins with")
  func model() async throws {
    let model = try PlayerModel(argument: "hls.js")
    let server = ViewerScene.loop("hls-fmp4/master.m3u8", segmentCount: 40)
    let viewer = try await ViewerScene(link: "1Mbit/40ms", model: model, peakBitRate: nil, server: server)
      .watch(decodes: false)
    let reel = try await ViewerScene(link: "1Mbit/40ms", server: server).watch(decodes: false)
    #expect(viewer.ending == .played)
    // It waits for all of the first segments of video and audio.
    #expect(try #require(viewer.sums.start) > #require(reel.sums.start))
    #expect(viewer.sums.times[.buffering] == .zero)
    let rungs = viewer.events.compactMap { if case .rung(let rung) = $0 { rung.bitRate } else { nil } }
    #expect(rungs.first == 400_000)
    let mpv = try PlayerModel(argument: "mpv")
    let error = #expect(throws: ReelError.self) { try ViewerSettings(model: mpv) }
    #expect(error?.reason.contains("start.opens") == true)
  }
}

@Suite("A run of viewers", .hangLimit)
struct ViewerRunTests {
  private func run(
    _ plan: ViewerPlan,
    fault: @escaping @Sendable (FetchRequest, Int) -> FixtureFetcher.Fault = { _, _ in .none },
    cancelAfter: Duration? = nil
  ) async throws -> (events: [ViewerEvent], requests: [FetchRequest], ended: Duration) {
    let simulation = SimulatedRuntime()
    let base = FixtureFetcher(clock: simulation, fault: fault)
    let settings = try ViewerScene.settings(in: simulation)
    let link = try LinkSpec(parsing: "5Mbit/40ms")
    let events = Locked<[ViewerEvent]>([])
    let source = MediaSource.url(try #require(URL(string: "http://origin/hls-ts/master.m3u8")))
    let run = ViewerRun(plan, settings: settings, logger: silentLogger) { _ in
      ViewerAccess(fetcher: ThrottledFetcher(base, link: link, in: simulation)) { _ in source }
    } report: { event in
      events.withLock { $0.append(event) }
    }
    let ended = try await simulation.runToRest {
      let task = simulation.task { await run.run() }
      if let cancelAfter {
        try await simulation.sleep(for: cancelAfter)
        task.cancel()
      }
      await task.value
      return simulation.now
    }
    return (events.withLock { $0 }, base.requests, ended)
  }

  private func begun(_ events: [ViewerEvent]) -> [ViewerEvent] {
    events.filter { if case .began = $0.kind { true } else { false } }
  }

  private func sums(_ events: [ViewerEvent]) -> [ViewerSums] {
    events.compactMap { if case .left(let sums) = $0.kind { sums } else { nil } }
  }

  /// Returns the requests of each look, in the order in which the looks ended.
  private func requestCounts(_ events: [ViewerEvent]) -> [Int] {
    var counts: [[Int]: Int] = [:]
    var ended: [Int] = []
    for event in events {
      let look = [event.viewer, event.session, event.look]
      switch event.kind {
      case .request(let metrics): counts[look, default: 0] += metrics.requestCount
      case .left: ended.append(counts.removeValue(forKey: look) ?? 0)
      default: break
      }
    }
    // None may come after the end of its look.
    #expect(counts.isEmpty)
    return ended
  }

  @Test("Viewers come by the ramp, and come again until the run is over")
  func course() async throws {
    let plan = try ViewerPlan(
      viewerCount: 4, ramp: .seconds(2), duration: .seconds(10), choice: .inOrder(count: 1),
      decodeShare: 0.25)
    let (events, requests, ended) = try await run(plan)
    #expect(ended == .seconds(10))
    for viewer in 0..<4 {
      let own = events.filter { $0.viewer == viewer }
      let begun = begun(own)
      #expect(begun.map(\.session) == Array(begun.indices))
      #expect(begun.first?.time == .milliseconds(500 * viewer))
      // The source lasts for 3 s.
      #expect((3...4).contains(begun.count))
      let left = own.filter { if case .left = $0.kind { true } else { false } }
      #expect(left.map(\.session) == Array(begun.indices))
      #expect(left.last?.time == .seconds(10))
      #expect(sums(own).map(\.ending) == begun.indices.map { $0 == begun.indices.last ? .left : .played })
      #expect(sums(own).allSatisfy { $0.decodes == plan.decodes(viewer) })
    }
    #expect(events.map(\.time) == events.map(\.time).sorted())
    let reported = events.count { if case .request = $0.kind { true } else { false } }
    #expect(reported == requests.count)
    #expect(requestCounts(events) == sums(events).map(\.requestCount))
  }

  @Test("A stay ends a session, and the next one begins at once")
  func stay() async throws {
    let plan = try ViewerPlan(
      viewerCount: 1, ramp: .zero, duration: .seconds(10), stay: .fixed(.seconds(2)),
      choice: .inOrder(count: 1))
    let (events, _, _) = try await run(plan)
    #expect(begun(events).map(\.time) == (0..<5).map { .seconds(2 * $0) })
    #expect(sums(events).map(\.ending) == [ViewerSums.Ending](repeating: .left, count: 5))
    #expect(requestCounts(events) == sums(events).map(\.requestCount))
  }

  @Test("A feed is swiped through, then the next session begins")
  func feed() async throws {
    var feed = Feed(name: "items")
    for index in 0..<2 { feed.append(try MediaSource(argument: "/\(index).mp4")) }
    let swipes = try SwipeSpec(
      dwell: .fixed(.milliseconds(1500)), shares: try SwipeShares(back: 0, bursts: 0))
    let plan = try ViewerPlan(
      viewerCount: 1, ramp: .zero, duration: .seconds(6), choice: .feed(feed, swipes))
    let (events, _, _) = try await run(plan)
    let begun = begun(events)
    #expect(begun.map(\.time) == (0..<4).map { .milliseconds(1500 * $0) })
    #expect(begun.map(\.session) == [0, 0, 1, 1])
    #expect(sums(events).map(\.source) == [0, 1, 0, 1])
  }

  @Test("A viewer whose source is dead does not ask for it without a pause")
  func pause() async throws {
    let plan = try ViewerPlan(
      viewerCount: 1, ramp: .zero, duration: .seconds(20), choice: .inOrder(count: 1))
    let (events, requests, _) = try await run(plan) { _, _ in
      .error(ReelError(.server, "404", status: 404))
    }
    #expect(requests.count == 4)
    #expect(sums(events).count == 4)
    #expect(sums(events).allSatisfy { if case .failed = $0.ending { true } else { false } })
  }

  @Test("A run that is cancelled ends at once, and tells of each look")
  func cancellation() async throws {
    let plan = try ViewerPlan(
      viewerCount: 20, ramp: .seconds(1), duration: .seconds(600), choice: .inOrder(count: 1),
      decodeShare: 0.1)
    let (events, _, ended) = try await run(plan, cancelAfter: .milliseconds(1500))
    #expect(ended == .milliseconds(1500))
    #expect(sums(events).count == 20)
    #expect(requestCounts(events) == sums(events).map(\.requestCount))
  }
}
