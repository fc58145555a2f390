import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool
import ReelLab
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("Walks in simulations", .hangLimit)
struct SimulatedWalkTests {
  /// HLS in TS and fMP4, DASH, MP4; H.264 with B-frames, open GOPs, fields and other sizes; HEVC.
  private static let remote = [
    "/hls-fmp4/master.m3u8", "/hls-ts/master.m3u8", "/dash-timeline/manifest.mpd", "/hls-hevc/index.m3u8",
    "/media/h264-bframes.mp4", "/media/hevc-open-gop.mp4", "/media/h264-gops.mp4",
    "/media/hevc-hev1-inband.mp4",
    "/media/h264-size-change.ts", "/media/h264-interlaced-tff.mp4", "/media/rate-variable.mp4",
    "/hls-discontinuity/ts.m3u8", "/media/h264-open-gop.ts", "/dash-gpac/multirate.mpd", "/media/mpeg2.ts",
  ]

  private func walk(
    _ policy: any PreloadPolicy, slotCount: Int = 3, link: String = "2Mbit/40ms", seed: UInt64 = 3
  ) throws -> SimulatedWalk {
    var feed = Feed(name: "fixtures")
    for path in Self.remote {
      feed.append(.url(try #require(URL(string: "http://origin\(path)"))))
    }
    let plan = try WalkPlan(
      itemCount: feed.items.count, swipeCount: 24, dwell: try DwellSpec(parsing: "exp:1500ms"), seed: seed)
    var configuration = PoolConfiguration()
    configuration.slotCount = slotCount
    configuration.policy = policy
    configuration.decodingPermits = 2
    let settings = WalkSettings(
      feed: "fixtures", itemCount: feed.items.count, slotCount: slotCount, policy: policy.description,
      link: link, dwell: "exp:1500ms", seed: seed)
    return SimulatedWalk(
      Walk(
        feed, plan: plan, settings: settings, label: policy.description, configuration: configuration),
      link: try LinkSpec(parsing: link), fetcher: FixtureFetcher(),
      memory: SimulatedWalk.Memory(), logger: silentLogger)
  }

  @Test(
    "The report is the same where all that is decoded is known before",
    arguments: ["adjacent", "none", "ahead:4", "budget:40MB"], ["2Mbit/40ms", "20Mbit/10ms"])
  func known(policy: String, link: String) async throws {
    let walk = try walk(try PreloadPolicies.parse(policy), link: link)
    let first = try await walk.run()
    #expect(first.swipes.count > 20)
    #expect(first.decodedFrameCount > 200)
    #expect(first.poolHighWaterByteCount ?? 0 > 0)
    #expect(walk.memory.starts.byteCount > 0)
    #expect(try await walk.run().json() == first.json())
  }

  @Test(
    "Items that have ended are ready when they are swiped back to",
    arguments: ["adjacent", "adaptive"], [1, 2] as [UInt64])
  func rewind(policy: String, seed: UInt64) async throws {
    /// Items of 3 s, each looked at for longer.
    func walk() throws -> SimulatedWalk {
      let paths = ["/hls-fmp4/master.m3u8", "/hls-ts/master.m3u8", "/dash-number/manifest.mpd"]
      let feed = Feed(
        name: "short",
        urls: try (0..<6).map { try #require(URL(string: "http://origin\(paths[$0 % 3])?\($0)")) })
      let plan = try WalkPlan(
        feed, swipeCount: 16,
        spec: SwipeSpec(
          dwell: try DwellSpec(parsing: "fixed:4s"), shares: SwipeShares(back: 0.4, bursts: 0)),
        settle: .milliseconds(250), seed: seed)
      var configuration = PoolConfiguration()
      configuration.policy = try PreloadPolicies.parse(policy)
      configuration.decodingPermits = 2
      configuration.player.adaptsBitRate = true
      let settings = WalkSettings(
        feed: "short", itemCount: 6, slotCount: 3, policy: policy, dwell: "fixed:4s", seed: seed)
      return SimulatedWalk(
        Walk(feed, plan: plan, settings: settings, label: policy, configuration: configuration),
        link: try LinkSpec(parsing: "3Mbit/60ms"), fetcher: FixtureFetcher(),
        memory: SimulatedWalk.Memory(), logger: silentLogger)
    }
    let report = try await walk().run()
    #expect(report.swipes.count { $0.kind == .previous } > 3)
    for swipe in report.swipes.dropFirst() {
      // A frame is shown for 40 ms at most.
      let second = try #require(swipe.timeToSecondFrame, "swipe \(swipe.number)")
      #expect(second < .milliseconds(100), "swipe \(swipe.number), \(swipe.kind)")
      #expect(!swipe.isStill)
    }
  }

  @Test("What rewinding costs counts as fetched, and as wasted unless it is watched")
  func rewindCost() async throws {
    let feed = Feed(
      name: "short",
      urls: try (0..<3).map { try #require(URL(string: "http://origin/hls-ts/master.m3u8?\($0)")) })
    let plan = try WalkPlan(
      itemCount: 3, swipeCount: 1, dwell: try DwellSpec(parsing: "fixed:4s"), settle: .milliseconds(250))
    #expect(plan.steps.map(\.target) == [1])
    func report(_ policy: any PreloadPolicy) async throws -> WalkReport {
      var configuration = PoolConfiguration()
      configuration.policy = policy
      let settings = WalkSettings(
        feed: "short", itemCount: 3, slotCount: 3, policy: policy.description, dwell: "fixed:4s", seed: 0)
      let walk = SimulatedWalk(
        Walk(feed, plan: plan, settings: settings, label: "short", configuration: configuration),
        link: try LinkSpec(parsing: "20Mbit/20ms"),
        fetcher: FixtureFetcher(), memory: SimulatedWalk.Memory(),
        logger: silentLogger)
      return try await walk.run()
    }
    let ahead = try await report(AheadPreload(1))
    let adjacent = try await report(AdjacentPreload())
    let more = adjacent.fetchedByteCount - ahead.fetchedByteCount
    #expect(more > 20_000)
    // The start of the third item, which is never shown, is fetched and wasted in both.
    let wasted = adjacent.unshownByteCount - ahead.unshownByteCount
    // The last audio is never shown, whether the item is rewound or ends with the walk.
    #expect(wasted <= more && wasted > more - 500)
    #expect(adjacent.unshownFrameCount - ahead.unshownFrameCount == 1)
  }

  @Test(
    "Waits count from the settle, by default the end of the drag; hits are decided at the end of the drag")
  func settle() async throws {
    let feed = Feed(
      name: "two",
      urls: try ["hls-ts", "hls-fmp4"].map { try #require(URL(string: "http://origin/\($0)/master.m3u8")) })
    func swipe(_ settle: Duration) async throws -> SwipeRecord {
      let plan = try WalkPlan(
        itemCount: 2, swipeCount: 1, dwell: try DwellSpec(parsing: "fixed:2s"), settle: settle)
      var configuration = PoolConfiguration()
      configuration.policy = NoPreload()
      let settings = WalkSettings(
        feed: "two", itemCount: 2, slotCount: 3, policy: "none", dwell: "fixed:2s", seed: 0)
      let walk = SimulatedWalk(
        Walk(feed, plan: plan, settings: settings, label: "two", configuration: configuration),
        link: try LinkSpec(parsing: "2Mbit/40ms"), fetcher: FixtureFetcher(),
        memory: SimulatedWalk.Memory(), logger: silentLogger)
      let report = try await walk.run()
      #expect(report.settings.settle == settle)
      #expect(report.duration == .seconds(4) + settle)
      return try #require(report.swipes.last)
    }
    let (first, later, last) = (
      try await swipe(.zero), try await swipe(.milliseconds(100)), try await swipe(.seconds(2))
    )
    for swipe in [first, later, last] {
      #expect(!swipe.isHit && swipe.stage == .notLoaded)
      #expect(swipe.loadedByteCount == 0 && swipe.byteCount > 0)
    }
    let wait = try #require(first.timeToFirstFrame)
    let saved = wait - (try #require(later.timeToFirstFrame))
    // An item that plays may decode more at a time.
    #expect(saved >= .milliseconds(92) && saved <= .milliseconds(108), "\(saved)")
    #expect(last.timeToFirstFrame == .zero && last.waitParts.isEmpty)
    #expect(first.time == .seconds(2) && last.time == .seconds(4))
  }

  @Test("Side by side, walks give the same reports as one after the other")
  func concurrent() async throws {
    var walks: [SimulatedWalk] = []
    for policy in ["adjacent", "none", "ahead:4", "media3"] {
      for slotCount in [1, 3] {
        walks.append(try walk(try PreloadPolicies.parse(policy), slotCount: slotCount, seed: 5))
      }
    }
    // What they have in common must not show.
    let memory = SimulatedWalk.Memory()
    let shared = walks.map { walk in
      var walk = walk
      walk.memory = memory
      return walk
    }
    var reports: [Int: WalkReport] = [:]
    var waiting = shared.enumerated().makeIterator()
    try await SideBySide.run(4, next: { waiting.next() }) { _, walk in
      try await walk.run()
    } ended: { walk, result in
      reports[walk.offset] = try result.get()
    }
    #expect(reports.count == walks.count)
    for (place, walk) in walks.enumerated() {
      #expect(try reports[place]?.json() == (await walk.run()).json())
    }
  }

  @Test("A walk that is cancelled leaves no work of its pool behind")
  func cancelledWalk() async throws {
    let (simulation, fixtures) = (SimulatedRuntime(), FixtureFetcher())
    let feed = Feed(
      name: "fixtures", urls: try Self.remote.map { try #require(URL(string: "http://origin\($0)")) })
    let plan = try WalkPlan(
      itemCount: feed.items.count, swipeCount: 5000, dwell: try DwellSpec(parsing: "fixed:1s"), seed: 1)
    var configuration = PoolConfiguration()
    configuration.enter(simulation)
    let isShown = ObservedSource(false)
    let walk = Walk(
      feed, plan: plan,
      settings: WalkSettings(
        feed: feed.name, itemCount: feed.items.count, slotCount: 3, policy: "adaptive", dwell: "fixed:1s",
        seed: 1),
      label: "cancelled", configuration: configuration, frames: { _, _ in isShown.set(true) })
    let replay = FeedReplay(
      walk, fetcher: ThrottledFetcher(fixtures, link: try LinkSpec(parsing: "2Mbit/40ms"), in: simulation),
      logger: silentLogger)
    let task = Task { try await replay.run(in: simulation) }
    for await value in isShown.values where value { break }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(simulation.bodyCount == 0)
    #expect(fixtures.underWayCount == 0)
  }

  @Test("Files are read once, and in the same parts as before")
  func files() async throws {
    var feed = Feed(name: "files")
    for path in ["hls-ts/master.m3u8", "media/h264-gops.mp4", "media/h264-moov-last.mp4"] {
      feed.append(.url(URL(filePath: Fixtures.path(path))))
    }
    let plan = try WalkPlan(
      itemCount: 3, swipeCount: 9, dwell: try DwellSpec(parsing: "fixed:1s"), seed: 1)
    let settings = WalkSettings(
      feed: "files", itemCount: 3, slotCount: 3, policy: "adjacent", dwell: "fixed:1s", seed: 1)
    var walk = SimulatedWalk(
      Walk(feed, plan: plan, settings: settings, label: "files", configuration: PoolConfiguration()),
      link: try LinkSpec(parsing: "lte"), fetcher: FixtureFetcher(),
      memory: SimulatedWalk.Memory(), logger: silentLogger)
    let report = try await walk.run()
    #expect(report.failedItems.isEmpty, "\(report.failedItems)")
    let count = walk.memory.files?.byteCount ?? 0
    #expect(count > 0)
    walk.memory.files = nil
    #expect(try await walk.run() == report)
    walk.memory.files = FileAnswers(byteLimit: 100_000)
    #expect(try await walk.run() == report)
    #expect(walk.memory.files?.byteCount ?? 0 <= 100_000 + 128 << 10)
  }
}
