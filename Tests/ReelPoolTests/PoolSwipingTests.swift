import Foundation
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPool
import ReelReading
@testable import ReelSources

@Suite("Fast swiping", .hangLimit) struct PoolSwipingTests {
  static let kinds = [
    "hls-ts/master.m3u8", "media/h264-bframes.mp4", "hls-fmp4/master.m3u8", "media/h264.ts",
    "dash-timeline/manifest.mpd", "media/h264-moov-last.mp4",
  ]

  static func paths(_ count: Int) -> [String] { (0..<count).map { kinds[$0 % kinds.count] } }

  @Test("Without a pause: ends at the right item, and nothing else is under way")
  func burst() async throws {
    let scene = try PoolScene(Self.paths(502))
    for index in 0...500 { try scene.show(index, phase: index < 500 ? .dragEnded : .settled) }
    let last = try await plainFrames(Self.kinds[500 % Self.kinds.count])
    try #require(!last.isEmpty)
    try await scene.until { scene.shown.contains(last[0]) && scene.pool.surfaceItem == scene.id(500) }
    #expect(scene.pool.currentPlayer?.currentItem.value === scene.item(500))
    try await scene.rest()
    #expect(Set(scene.slots) == [499, 500, 501])
    // What has begun and left has ended.
    #expect(Set(scene.assigned).subtracting(scene.evicted) == Set([499, 500, 501].map(scene.id)))
    #expect(scene.fetcher.underWayCount == 0)
    try await scene.close()
  }

  @Test("50 swipes in a second: the last item's first frame comes as if it had been reached directly")
  func second() async throws {
    /// From the last swipe to the first frame, in the simulation's time.
    @Sendable func walk(swipes: Int) async throws -> (duration: Duration, transfers: Int, waiting: Int) {
      let simulation = SimulatedRuntime()
      let fetcher = ThrottledFetcher(FixtureFetcher(), link: .lte, in: simulation)
      var configuration = PoolConfiguration()
      configuration.enter(simulation)
      let feed = Feed(
        name: "feed",
        sources: try Self.paths(52).map { try MediaSource(argument: "http://origin/\($0)") })
      let pool = PlayerPool(fetcher: fetcher, configuration: configuration, logger: silentLogger)
      let duration = try await simulation.run {
        let snapshot = FeedSnapshot(feed)
        for index in (50 - swipes)..<50 {
          pool.show(index, of: snapshot, phase: .dragEnded)
          try await simulation.sleep(for: .milliseconds(20))
        }
        let began = simulation.now
        pool.show(50, of: snapshot)
        let player = { pool.currentPlayer }
        while player()?.hasFrame != true { try await simulation.sleep(for: .milliseconds(1)) }
        return simulation.now - began
      }
      // All three slots rest.
      try await simulation.run {
        while pool.slotReadiness.contains(where: { $0.stage < .buffered }) {
          try await simulation.sleep(for: .milliseconds(10))
        }
      }
      let counts = (fetcher.transferCount, pool.core.resources.network.waiterCount)
      pool.setPlaying(false)
      try await simulation.run { pool.close() }
      await simulation.runToRest()
      #expect(simulation.bodyCount == 0)
      return (duration, counts.0, counts.1)
    }
    let (fast, direct) = (try await walk(swipes: 50), try await walk(swipes: 0))
    #expect(fast.duration <= direct.duration + .milliseconds(1))
    #expect(fast.transfers == 0)
    #expect(fast.waiting == 0)
    let again = try await walk(swipes: 50)
    #expect(again.duration == fast.duration)
  }

  @Test("2,000 swipes back and forth over 20 items leave nothing behind")
  func soak() async throws {
    let scene = try PoolScene(Self.paths(20), runtime: .system)
    var random = SplitMix(seed: 7)
    @Sendable func counts() -> (packets: Int, frames: Int, decoder: Int) {
      scene.pool.memory.entries.reduce(into: (0, 0, 0)) { sum, entry in
        sum.0 += entry.account[.packets]
        sum.1 += entry.account[.frames]
        sum.2 += entry.account[.decoder]
      }
    }
    /// As at the same place each time.
    func settle() async throws -> (packets: Int, frames: Int, decoder: Int) {
      scene.pool.setPlaying(false)
      // Neither it nor its neighbours have been shown before.
      try await scene.rest(at: 18)
      try await scene.rest(at: 2)
      try await scene.rest(at: 10)
      try await scene.until { scene.threads.count == 0 }
      let counts = counts()
      scene.pool.setPlaying(true)
      return counts
    }
    var index = 10
    func swipe(_ count: Int) async throws {
      for number in 0..<count {
        index = min(19, max(0, index + (random.next() % 3 == 0 ? -1 : 1) * (index > 15 ? -1 : 1)))
        try scene.show(index, phase: number % 3 == 0 ? .dragEnded : .settled)
        if number % 25 == 0 { try await scene.until { scene.pool.currentPlayer?.hasFrame == true } }
      }
    }
    try await swipe(50)
    let before = try await settle()
    try await swipe(1950)
    let after = try await settle()
    #expect(after.packets == before.packets)
    #expect(after.frames == before.frames)
    #expect(after.decoder == before.decoder)
    #expect(scene.fetcher.underWayCount == 0)
    #expect(scene.pool.core.resources.network.waiterCount == 0)
    #expect(scene.pool.core.resources.gate.waiterCount == 0)
    try await scene.close()
  }

  @Test("Anything from many threads, in any order", arguments: [1, 2, 3])
  func stress(seed: UInt64) async throws {
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.contains("h264.ts") && Int.random(in: 0..<4) == 0
        ? .error(ReelError(.network, "the connection was lost")) : .none
    }
    let scene = try PoolScene(
      Self.paths(12) + ["bad/text.mp4"], runtime: .system, slots: 4, policy: AheadPreload(3),
      fetcher: fetcher,
      describe: { $1.poster = URL(string: "http://fixtures.test/posters/poster.jpg") })
    let other = Feed(name: "other", sources: scene.feed.items.map(\.source))
    let pins = Locked<[PictureInPicturePlayer]>([], rank: .outputs)
    await withTaskGroup(of: Void.self) { group in
      for thread in 0..<6 {
        group.addTask {
          var random = SplitMix(seed: seed * 100 + UInt64(thread))
          for _ in 0..<150 {
            Self.act(scene, other, pins, Int(random.next() % 32), index: Int(random.next() % 13))
            if random.next() % 8 == 0 { try? await Task.sleep(for: .microseconds(500)) }
          }
        }
      }
    }
    for pinned in pins.withLock({ $0 }) { pinned.stop() }
    pins.withLock { $0 = [] }
    scene.pool.setPlaying(true)
    try scene.pool.setSurface(scene.makeOutput())
    try await scene.rest(at: 4)
    let expected = try await plainFrames(Self.kinds[4])
    #expect(scene.pool.surfaceItem == scene.id(4))
    #expect(scene.pool.currentPlayer?.currentItem.value === scene.item(4))
    let time = scene.pool.currentPlayer?.currentFrame()?.time
    #expect(expected.contains { $0.time == time })
    #expect(scene.pool.memory.entries.allSatisfy { $0.slot != nil })
    try await scene.close()
  }

  @Test(
    "Feeds that change on several threads, while others swipe: in the end the pool has what is left",
    arguments: 1...3)
  func changes(seed: UInt64) async throws {
    let scene = try PoolScene(
      Self.paths(12), runtime: .system, slots: 4, policy: AheadPreload(3),
      describe: { $1.poster = URL(string: "http://host\($0).test/posters/poster.jpg") },
      configure: { $0.connectionsAhead = 3 })
    let other = Feed(name: "other", sources: scene.feed.items.map(\.source))
    let service = PlayerService(pool: scene.pool, feeds: [scene.feed, other], failureRule: .skip)
    service.playFirst()
    await withTaskGroup(of: Void.self) { group in
      for thread in 0..<5 {
        group.addTask {
          var random = SplitMix(seed: seed * 100 + UInt64(thread))
          for _ in 0..<200 {
            Self.change(service, scene.pool, Int(random.next() % 16), Int(random.next() % 13))
            if random.next() % 8 == 0 { try? await Task.sleep(for: .microseconds(500)) }
          }
        }
      }
    }
    let name = service.selectedFeed.value
    let left = try #require(service.feeds.first { $0.name == name })
    #expect(scene.pool.core.state.withLock { $0.snapshot } == FeedSnapshot(left))
    let item = service.append(try #require(scene.feed.items.first).source, to: name)
    let count = left.items.count
    #expect(service.go(to: count).error == nil)
    try await scene.until { scene.pool.core.isSteady && scene.pool.currentPlayer?.hasFrame == true }
    #expect(scene.pool.currentItem == item && scene.pool.surfaceItem == item?.id)
    try await scene.close()
  }

  /// Does something to a service, or to its pool behind its back.
  private static func change(_ service: PlayerService, _ pool: PlayerPool, _ choice: Int, _ index: Int) {
    let name = index % 2 == 0 ? "feed" : "other"
    let items = service.feeds.first { $0.name == name }?.items ?? []
    switch choice {
    case 0, 1: service.next()
    case 2: service.previous()
    case 3: service.go(to: index)
    case 4:
      service.endDrag(to: index)
      service.settle()
    case 5, 6, 7: if items.count > 1 { service.remove(items[index % items.count].id) }
    case 8, 9: if let source = items.last?.source { service.append(source, to: name) }
    case 10: service.select(feed: name)
    case 11, 12: pool.show(index, phase: .dragEnded)
    case 13: pool.trim(to: index * 100_000)
    case 14: #expect(pool.slotReadiness.count == 4)
    default: _ = pool.currentPlayer?.currentFrame()?.time
    }
  }

  private static func act(
    _ scene: PoolScene, _ other: Feed, _ pins: Locked<[PictureInPicturePlayer]>, _ choice: Int, index: Int
  ) {
    let pool = scene.pool
    switch choice {
    case 0...11: _ = try? scene.show(index, phase: choice % 2 == 0 ? .settled : .dragEnded)
    case 12, 13: _ = pool.show(index, of: FeedSnapshot(other))
    case 14: pool.setPlaying(index % 2 == 0)
    case 15: pool.trim(to: index * 100_000)
    case 16, 17:
      if let pinned = try? pool.startPictureInPicture(to: EndingOutput()) {
        pins.withLock { $0.append(pinned) }
      }
    case 18, 19:
      let pinned = pins.withLock { $0.popLast() }
      if index % 2 == 0 { pinned?.stop() }
    case 20: try? pool.setSurface(scene.makeOutput())
    case 21: try? pool.setSurface(index % 3 == 0 ? nil : EndingOutput(failsAt: 3))
    case 22, 23:
      let rest = Array(scene.feed.items.dropFirst(index))
      pool.update(FeedSnapshot(feed: "feed", items: rest), currentIndex: rest.isEmpty ? nil : 0)
    case 24: pool.update(scene.snapshot, currentIndex: index)
    case 25: #expect(pool.memory.byteCount >= 0)
    case 26: #expect(pool.slotReadiness.count == 4)
    case 27: pool.currentPlayer?.setRate(index % 2 == 0 ? 2 : .infinity)
    case 28: pool.currentPlayer?.allowsExternalPlayback = index % 2 == 0
    case 29: _ = pool.startup(of: scene.id(index))
    case 30: #expect(pool.fetchedByteCount(of: scene.id(index)) >= 0)
    default: _ = pool.currentPlayer?.currentFrame()?.time
    }
  }
}
