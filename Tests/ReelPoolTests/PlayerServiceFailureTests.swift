import ReelCore
import ReelPlayback
import ReelPool
import ReelSources
import ReelTesting
import Testing

@Suite("A player service with items that can't be played") struct PlayerServiceFailureTests {
  @Test("By the rule to show them, a failed item stays")
  func show() throws {
    let scene = try ServiceScene(3)
    scene.service.playFirst()
    scene.pool.fail(scene.item(0).id)
    #expect(scene.shown == ["a0"])
  }

  @Test("By the rule to skip them, the next one comes in the direction of travel")
  func skip() throws {
    let scene = try ServiceScene(5, rule: .skip)
    scene.service.go(to: 1)
    scene.pool.fail(scene.item(1).id)
    #expect(scene.playing == "a2")
    scene.service.previous()
    scene.pool.fail(scene.item(1).id)
    #expect(scene.playing == "a0")
    // There is none before it.
    scene.pool.fail(scene.item(0).id)
    #expect(scene.shown == ["a1", "a2", "a1", "a0"])
  }

  @Test("A neighbour's failure moves nothing")
  func neighbour() throws {
    let scene = try ServiceScene(3, 3, rule: .skip)
    scene.service.go(to: 1)
    for item in [scene.item(0), scene.item(2), scene.item(1, 1)] { scene.pool.fail(item.id) }
    #expect(scene.shown == ["a1"])
  }

  @Test("A failure that is told twice skips once")
  func twice() throws {
    let scene = try ServiceScene(3, rule: .skip)
    scene.service.playFirst()
    scene.pool.fail(scene.item(0).id)
    scene.pool.fail(scene.item(0).id)
    #expect(scene.shown == ["a0", "a1"])
  }

  @Test("A swipe to a failed item that has not settled goes on to the next one, and settles there")
  func unsettled() throws {
    let scene = try ServiceScene(3, rule: .skip)
    scene.service.playFirst()
    scene.service.endDrag(to: 1)
    scene.pool.fail(scene.item(1).id)
    scene.service.settle()
    #expect(scene.shown == ["a0", "a1...", "a2...", "a2"])
  }

  @Test("Each feed has its own direction of travel")
  func directions() throws {
    let scene = try ServiceScene(3, 3, rule: .skip)
    scene.service.go(to: 2)
    scene.service.previous()
    scene.service.select(feed: "b")
    scene.pool.fail(scene.item(0, 1).id)
    #expect(scene.playing == "b1")
    scene.service.select(feed: "a")
    scene.pool.fail(scene.item(1).id)
    #expect(scene.playing == "a0")
  }

  @Test(
    "A feed of nothing but broken items is gone through once, and ends at its end", arguments: [0, 7, 19])
  func allBroken(start: Int) throws {
    let scene = try ServiceScene(20, rule: .skip)
    // Told while the item is being shown.
    for item in scene.feeds[0].items { scene.pool.setFailure(ReelError(.badMedia, "broken"), of: item.id) }
    scene.service.go(to: start)
    #expect(scene.playing == "a19")
    #expect(scene.pool.currentItem?.id == scene.item(19).id)
    // The first time each; the calls that were overtaken may tell the latest once more.
    var order: [String] = []
    for name in scene.shown where !order.contains(name) { order.append(name) }
    #expect(order == (start..<20).map { "a\($0)" })
    scene.service.previous()
    #expect(scene.playing == "a0")
  }

  @Test("A service that is let go is not told any more, and another one on the same pool is")
  func letGo() throws {
    let pool = FakePlayerPool()
    let feed = Feed(name: "a", sources: try (0..<3).map { try MediaSource(argument: "http://o/\($0)") })
    var first: PlayerService? = PlayerService(pool: pool, feeds: [feed], failureRule: .skip)
    first?.playFirst()
    let second = PlayerService(pool: pool, feeds: [feed], failureRule: .skip)
    weak let gone = first
    first = nil
    #expect(gone == nil)
    second.playFirst()
    #expect(pool.hasFailureHandler)
    pool.fail(feed.items[0].id)
    #expect(second.nowPlaying.value?.index == 1)
  }

  @Test("Failures and swipes from many threads: the pool ends where the service does")
  func threads() async throws {
    let scene = try ServiceScene(200, rule: .skip)
    scene.service.playFirst()
    await withTaskGroup(of: Void.self) { group in
      for thread in 0..<8 {
        group.addTask {
          for index in 0..<200 {
            if thread < 4 { scene.pool.fail(scene.item(index).id) } else { scene.service.go(to: index) }
          }
        }
      }
    }
    #expect(scene.pool.currentItem?.id == scene.service.nowPlaying.value?.item.id)
    #expect(scene.playing == "a199")
  }
}
