import ReelCore
import ReelPlayback
import ReelPool
import ReelSources
import ReelTestSupport
import Testing

@Suite("Slots of other feeds", .hangLimit)
struct OtherFeedTests {
  private let scene: PoolScene
  private let other: Feed

  init() throws {
    scene = try PoolScene(
      ["hls-ts/master.m3u8", "dash-number/manifest.mpd"], slots: 1, policy: NoPreload(),
      configure: { $0.slotsForOtherFeeds = 1 })
    other = Feed(
      name: "other", sources: [try MediaSource(argument: "http://fixtures.test/hls-fmp4/master.m3u8")])
  }

  private func showOther() -> Handover { scene.pool.show(0, of: FeedSnapshot(other)) }

  @Test("The item at which a feed was left stays loaded, and a change back is a hit")
  func back() async throws {
    try await scene.rest(at: 0)
    let item = try #require(scene.item(0))
    let swipe = showOther()
    #expect(!swipe.isHit)
    try await scene.firstFrame(of: swipe)
    try await scene.rest()
    #expect(scene.item(0) === item)
    #expect(scene.evicted.isEmpty)
    #expect(scene.pool.slotReadiness.map(\.item) == [other.items[0].id, scene.id(0)])
    #expect(scene.readiness(0)?.index == nil)
    #expect(scene.readiness(0)?.timeControlStatus == .paused)
    let found = scene.pool.show(0, of: scene.snapshot)
    #expect(found.isHit && found.frame != nil)
    try await scene.rest()
    #expect(scene.item(0) === item)
    #expect(scene.pool.slotReadiness.map(\.item) == [scene.id(0), other.items[0].id])
    #expect(showOther().isHit)
    #expect(scene.evicted.isEmpty)
    try await scene.close()
  }

  @Test("An item of a feed that was not shown yet is loaded ahead")
  func ahead() async throws {
    scene.pool.keepStarts(of: other.items)
    try await scene.rest(at: 0)
    #expect(scene.pool.slotReadiness.map(\.item) == [scene.id(0), other.items[0].id])
    #expect(showOther().isHit)
  }

  @Test("It keeps its slot while its own feed goes on, and is ended before anything else")
  func trim() async throws {
    scene.pool.keepStarts(of: other.items)
    try await scene.rest(at: 0)
    try await scene.rest(at: 1)
    #expect(scene.evicted == [scene.id(0)])
    #expect(scene.pool.slotReadiness.map(\.item) == [scene.id(1), other.items[0].id])
    scene.pool.trim(to: 0)
    #expect(scene.evicted == [scene.id(0), other.items[0].id])
    try await scene.rest()
    #expect(scene.pool.slotReadiness.map(\.item) == [scene.id(1), nil])
  }
}
