import Foundation
import ReelCore
import ReelLab
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

/// Wants the heads of the next items, and loads no neighbour.
private struct HeadsAhead: PreloadPolicy {
  var count = 3

  func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    (1...count).contains(distance) ? PreloadTarget(stage: .onDisk) : .notLoaded
  }

  var description: String { "heads" }
}

extension PoolScene {
  /// The items whose heads were stored, in order.
  fileprivate var stored: [Int] {
    events.compactMap { if case .stored(let id) = $0 { feed.index(of: id) } else { nil } }
  }

  fileprivate func source(_ index: Int) throws -> FetchRequest {
    FetchRequest(url: try #require(url(index)), purpose: .source)
  }

  /// How often the first request of an item has reached the network.
  fileprivate func sourceCount(_ index: Int) -> Int { fetcher.requests.count { $0.url == url(index) } }
}

@Suite("Heads on disk", .hangLimit)
struct HeadTests {
  private static let paths = [
    "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "dash-ondemand/manifest.mpd", "media/h264-moov-last.mp4",
    "dash-number/manifest.mpd",
  ]

  /// A pool with one slot and a store, over a link on which nothing comes at once.
  private func scene(
    _ paths: [String] = paths, slots: Int = 1, policy: any PreloadPolicy = HeadsAhead(),
    fetcher: FixtureFetcher = FixtureFetcher(),
    keeps: @escaping @Sendable (FetchRequest) -> Bool = { _ in true }
  ) throws -> PoolScene {
    try PoolScene(paths, slots: slots, policy: policy, fetcher: fetcher, link: .lte, keeps: keeps)
  }

  @Test("Heads are stored in the plan's order, without a slot, and the ledger has them")
  func order() async throws {
    let scene = try scene()
    try scene.show(0)
    try await scene.until { scene.stored.count == 3 }
    #expect(scene.stored == [1, 2, 3])
    #expect(scene.assigned == [scene.id(0)])
    let memory = scene.pool.memory
    #expect(memory.heads.map(\.item) == (1...3).map(scene.id))
    #expect(memory.heads.allSatisfy { $0.byteCount > 0 })
    #expect(memory.entries.count == 1)
    #expect(memory.storedByteCount == scene.store?.storedByteCount)
    // What is on disk is not fetched again, for any plan.
    let count = scene.fetcher.requests.count
    try scene.show(0)
    await scene.simulation.runToRest()
    #expect(scene.stored == [1, 2, 3])
    #expect(scene.fetcher.requests[count...].allSatisfy { $0.url.path.hasPrefix("/hls-ts/") })
    try await scene.close()
  }

  @Test(
    "An item whose head is on disk starts without the network",
    arguments: [
      "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "hls-byterange-fmp4/index.m3u8",
      "dash-ondemand/manifest.mpd",
      "dash-number/manifest.mpd", "dash-timeline/manifest.mpd", "media/h264-faststart.mp4",
      "media/h264-moov-last.mp4", "media/h264-fragmented.mp4",
    ])
  func start(_ path: String) async throws {
    let scene = try scene(["media/h264-gops.mp4", path])
    try scene.show(0)
    try await scene.until { scene.stored == [1] }
    let count = scene.fetcher.requests.count
    scene.fetcher.setFault { _, _ in .error(ReelError(.network, "no network")) }
    let found = scene.pool.show(1, of: scene.snapshot)
    #expect(found.stage == .onDisk)
    #expect(!found.isHit)
    let shown = try await scene.firstFrame(of: found)
    #expect(shown.isHit)
    #expect(scene.fetcher.requests.count == count)
    let slot = try #require(scene.readiness(1))
    #expect(slot.storedByteCount > 0)
    #expect(slot.fetchedByteCount == 0)
  }

  @Test("A head that is no longer wanted is abandoned, and what was fetched of it stays")
  func abandoned() async throws {
    let scene = try scene(policy: HeadsAhead(count: 1))
    let source = try scene.source(1)
    try scene.show(0)
    try await scene.until { scene.store?.stores(source) == true }
    try scene.show(3)
    try await scene.until { !scene.stored.isEmpty }
    #expect(scene.stored == [4])
    #expect(scene.store?.stores(source) == true)
    try await scene.close()
  }

  @Test(
    "An item of which not all was stored is not on disk, and is not tried again for some minutes",
    arguments: [0, 1])
  func notStored(_ number: Int) async throws {
    // Nothing is stored, or no segment.
    let scene = try scene(Array(Self.paths.prefix(2))) { number == 1 && $0.purpose != .segment }
    try scene.show(0)
    await scene.simulation.runToRest()
    try scene.show(0)
    await scene.simulation.runToRest()
    #expect(scene.stored.isEmpty)
    #expect(scene.pool.memory.heads.isEmpty)
    #expect(scene.sourceCount(1) == 1)
    #expect(scene.pool.show(1, of: scene.snapshot).stage == .notLoaded)
  }

  @Test("An item that can't be loaded does not hold up the others, and is tried again after some minutes")
  func failed() async throws {
    let scene = try scene([Self.paths[0], "missing/master.m3u8", Self.paths[1]])
    try scene.show(0)
    await scene.simulation.runToRest()
    #expect(scene.stored == [2])
    #expect(scene.sourceCount(1) == 1)
    await scene.simulation.run(until: scene.simulation.now + .seconds(600))
    try scene.show(0)
    await scene.simulation.runToRest()
    #expect(scene.sourceCount(1) == 2)
  }

  @Test("Without a store, no head is fetched, and nothing is on disk")
  func none() async throws {
    let scene = try PoolScene(Self.paths, slots: 1, policy: HeadsAhead(), link: .lte)
    try scene.show(0)
    await scene.simulation.runToRest()
    #expect(scene.stored.isEmpty)
    #expect(scene.fetcher.requests.allSatisfy { $0.url.path.hasPrefix("/hls-ts/") })
    #expect(scene.pool.memory.storedByteCount == nil)
    #expect(await scene.pool.trimDisk(to: 0) == 0)
  }

  @Test("What is removed from the disk is no longer on it")
  func trim() async throws {
    let scene = try scene()
    try scene.show(0)
    try await scene.until { scene.stored.count == 3 }
    let byteCount = try #require(scene.pool.memory.storedByteCount)
    #expect(byteCount > 0)
    #expect(await scene.pool.trimDisk(to: byteCount) == byteCount)
    #expect(scene.pool.memory.heads.count == 3)
    #expect(await scene.pool.trimDisk(to: 0) == 0)
    #expect(scene.pool.memory.heads.isEmpty)
    #expect(scene.pool.show(1, of: scene.snapshot).stage == .notLoaded)
  }

  @Test("The items of other feeds are kept after those of the policy, and a change of feed starts from disk")
  func otherFeed() async throws {
    let scene = try scene(Array(Self.paths.prefix(2)))
    let other = Feed(
      name: "other", sources: [try MediaSource(argument: "http://fixtures.test/\(Self.paths[2])")])
    scene.pool.keepStarts(of: other.items)
    try scene.show(0)
    try await scene.until { scene.events.contains(.stored(other.items[0].id)) }
    #expect(scene.stored == [1])
    #expect(scene.pool.show(0, of: FeedSnapshot(other)).stage == .onDisk)
  }

  @Test("adaptive keeps the nearest item without a slot on disk first")
  func adaptivePool() async throws {
    let scene = try scene(slots: 2, policy: AdaptivePreload())
    try scene.show(0)
    try await scene.until { !scene.stored.isEmpty }
    #expect(scene.stored == [2])
  }

  @Test("A poster is stored like media")
  func poster() async throws {
    let poster = try #require(URL(string: "http://fixtures.test/posters/poster.jpg"))
    let scene = try PoolScene(
      Array(Self.paths.prefix(1)), slots: 1, policy: NoPreload(), link: .lte, keeps: { _ in true },
      describe: { $1.poster = poster })
    try scene.show(0)
    try await scene.until { scene.store?.stores(FetchRequest(url: poster, purpose: .resource)) == true }
  }

  // MARK: Plans

  private func situation(
    hasStore: Bool = true, slots: Int = 3, current: Int = 10, direction: Int = 1, swipes: Int = 0
  ) -> PoolSituation {
    var situation = PoolSituation(
      direction: direction, slotCount: slots, itemCount: 20, currentIndex: current)
    situation.throughput = ThroughputEstimate(mean: 10e6, roundTripTime: .milliseconds(50))
    situation.hasStore = hasStore
    for _ in 0..<swipes {
      situation.history.record(ViewingHistory.Swipe(watchedDuration: .seconds(10), isForward: direction > 0))
    }
    return situation
  }

  private func heads(_ situation: PoolSituation) -> [Int] {
    AdaptivePreload().plan(in: situation).neighbours.filter { $0.target.stage == .onDisk }.map(\.distance)
  }

  @Test("adaptive stores the items ahead that have no slot, the more the likelier they are reached")
  func adaptive() {
    let plan = AdaptivePreload().plan(in: situation())
    let slotted = plan.neighbours.filter { $0.target.stage != .onDisk }
    #expect(slotted == AdaptivePreload().plan(in: situation(hasStore: false)).neighbours)
    #expect(slotted.count == 2)
    let counts = [0, 1, 5, 20].map { heads(situation(slots: 1, swipes: $0)).count }
    #expect(counts == counts.sorted())
    #expect(counts[0] >= 1)
    #expect(heads(situation(slots: 1, swipes: 20)) == Array(1...8))
    #expect(heads(situation(slots: 1, direction: -1, swipes: 20)) == (1...8).map { -$0 })
    #expect(heads(situation(slots: 1, current: 18, swipes: 20)) == [1])
    #expect(heads(situation(hasStore: false, slots: 1, swipes: 20)).isEmpty)
  }

  @Test("A head needs no slot, and an item with a slot needs no head")
  func window() {
    let distances: [(Int, PreloadStage)] = [
      (4, .onDisk), (1, .buffered), (1, .onDisk), (-1, .firstFrame), (0, .onDisk), (.max, .onDisk),
      (4, .onDisk),
      (-5, .onDisk), (2, .onDisk), (3, .buffered),
    ]
    let plan = PreloadPlan(
      neighbours: distances.map {
        PreloadPlan.Neighbour(distance: $0, target: PreloadTarget(stage: $1))
      })
    let window = PoolWindow(plan, in: situation())
    #expect(window.entries.map(\.distance) == [0, 1, -1])
    #expect(window.heads.map(\.distance) == [4, -5, 2])
    #expect(window.heads.map(\.index) == [14, 5, 12])
    #expect(PoolWindow(plan, in: situation(hasStore: false)).heads.isEmpty)
  }

  @Test("A policy is asked for items beyond the slots while it wants their heads, and there is a store")
  func policy() {
    let all = HeadsAhead(count: 100)
    #expect(all.plan(in: situation()).neighbours.map(\.distance) == Array(1...8))
    #expect(all.plan(in: situation(current: 15)).neighbours.map(\.distance) == Array(1...4))
    #expect(all.plan(in: situation(hasStore: false)).neighbours.isEmpty)
    // What has no slot gets a head instead.
    let plan = AheadPreload(5).plan(in: situation())
    #expect(plan.neighbours.map(\.distance) == Array(1...5))
    #expect(plan.neighbours.map { $0.target.stage == .onDisk } == [false, false, true, true, true])
    #expect(
      AdjacentPreload().plan(in: situation()) == AdjacentPreload().plan(in: situation(hasStore: false)))
  }
}
