import ReelCore
import ReelPlayback
import ReelPool
import ReelSources
import ReelTestSupport
import ReelTesting
import Testing

/// A service over a pool without players.
struct ServiceScene {
  let pool: FakePlayerPool
  let service: PlayerService
  let feeds: [Feed]

  /// - Parameter counts: of items, by feed; feeds are named `a`, `b` and so on.
  init(_ counts: Int..., rule: FailureRule = .show, stage: PreloadStage = .notLoaded) throws {
    let pool = FakePlayerPool(stage: stage)
    feeds = try counts.enumerated().map { number, count in
      let name = String(UnicodeScalar(UInt8(97 + number)))
      return Feed(
        name: name, sources: try (0..<count).map { try MediaSource(argument: "http://o/\(name)\($0)") })
    }
    self.pool = pool
    service = PlayerService(pool: pool, feeds: feeds, failureRule: rule)
  }

  func item(_ index: Int, _ feed: Int = 0) -> FeedItem { feeds[feed].items[index] }

  /// The indices that were shown, in order, with `...` where the swipe has not settled.
  var shown: [String] {
    pool.calls.compactMap { call in
      guard case .show(let index, let snapshot, let phase) = call else { return nil }
      return "\(snapshot.feed)\(index)\(phase == .settled ? "" : "...")"
    }
  }

  /// What is told, as `a1`; nil for nothing.
  var playing: String? { service.nowPlaying.value.map { "\($0.feed)\($0.index)" } }
}

@Suite("A player service") struct PlayerServiceTests {
  @Test("Plays the first item, and goes from item to item as far as the feed goes")
  func walk() throws {
    let scene = try ServiceScene(3)
    #expect(scene.playing == nil)
    #expect(scene.pool.calls.isEmpty)
    #expect(shows(scene.service) { $0.playFirst() })
    #expect(scene.playing == "a0")
    #expect(!shows(scene.service) { $0.previous() })
    #expect(shows(scene.service) { $0.next() })
    #expect(shows(scene.service) { $0.next() })
    #expect(!shows(scene.service) { $0.next() })
    #expect(scene.playing == "a2")
    #expect(shows(scene.service) { $0.previous() })
    #expect(scene.shown == ["a0", "a1", "a2", "a1"])
    #expect(scene.playing == "a1")
    #expect(scene.service.position(in: "a") == 1)
    #expect(scene.service.position(in: "b") == nil)
  }

  @Test("Goes to any item, and nowhere beyond the feed", arguments: [-1, 3, .min, .max])
  func go(beyond: Int) throws {
    let scene = try ServiceScene(3)
    #expect(shows(scene.service) { $0.go(to: 2) })
    #expect(!shows(scene.service) { $0.go(to: beyond) })
    #expect(!shows(scene.service) { $0.endDrag(to: beyond) })
    #expect(scene.shown == ["a2"])
    #expect(scene.playing == "a2")
  }

  @Test("Before anything was shown, next is the first item, and there is no previous one")
  func beginning() throws {
    let scene = try ServiceScene(2)
    #expect(!shows(scene.service) { $0.previous() })
    #expect(!shows(scene.service) { $0.settle() })
    #expect(shows(scene.service) { $0.next() })
    #expect(scene.shown == ["a0"])
  }

  @Test("Hands over what the pool has")
  func handover() throws {
    let scene = try ServiceScene(2, stage: .initialization)
    scene.pool.setStage(.buffered, of: scene.item(1).id)
    let first = scene.service.playFirst()
    let second = try #require(scene.service.next())
    #expect(first.stage == .initialization)
    #expect([first.isHit, second.isHit] == [false, true])
  }

  @Test("A swipe that was let go of is told, and settles")
  func phases() throws {
    let scene = try ServiceScene(3)
    scene.service.playFirst()
    scene.service.endDrag(to: 1)
    #expect(scene.service.nowPlaying.value?.phase == .dragEnded)
    #expect(scene.playing == "a1")
    // Another swipe comes before the first has settled.
    scene.service.endDrag(to: 2)
    scene.service.settle()
    #expect(scene.service.nowPlaying.value?.phase == .settled)
    #expect(scene.shown == ["a0", "a1...", "a2...", "a2"])
  }

  @Test("Feeds of one name are told apart by numbers")
  func namesakes() throws {
    let pool = FakePlayerPool()
    let feeds = try ["new", "new (2)", "new", "new"].enumerated().map { number, name in
      Feed(name: name, sources: [try MediaSource(argument: "http://o/\(number)")])
    }
    let service = PlayerService(pool: pool, feeds: feeds)
    #expect(service.feeds.map(\.name) == ["new", "new (2)", "new (3)", "new (4)"])
    #expect(service.feeds.allSatisfy { $0.items.map(\.id.feed) == [$0.name] })
    #expect(service.feeds.map { $0.items[0].source } == feeds.map { $0.items[0].source })
    service.select(feed: "new (4)")
    service.playFirst()
    #expect(pool.currentItem?.source.name == "http://o/3")
    #expect(service.remove(service.feeds[2].items[0].id))
    #expect(service.feeds.map(\.items.count) == [1, 1, 0, 1])
  }

  @Test("An empty feed plays nothing, until something is added")
  func emptyFeed() throws {
    let pool = FakePlayerPool()
    let service = PlayerService(pool: pool, feeds: [])
    #expect(service.feeds.map(\.name) == ["items"])
    #expect(!shows(service) { $0.playFirst() })
    #expect(!shows(service) { $0.next() })
    #expect(!shows(service) { $0.previous() })
    #expect(service.nowPlaying.value == nil)
    #expect(service.append(try MediaSource(argument: "http://o/x"), to: "other") == nil)
    let item = try #require(service.append(try MediaSource(argument: "http://o/x"), to: "items"))
    #expect(service.nowPlaying.value == nil)
    #expect(shows(service) { $0.playFirst() })
    #expect(service.nowPlaying.value?.item == item)
    #expect(pool.currentItem?.id == item.id)
  }

  // MARK: Feeds

  @Test("Each feed keeps its place")
  func feeds() throws {
    let scene = try ServiceScene(3, 2, 0)
    scene.service.go(to: 2)
    #expect(shows(scene.service) { $0.select(feed: "b") })
    #expect(scene.service.selectedFeed.value == "b")
    #expect(scene.playing == "b0")
    scene.service.next()
    scene.service.select(feed: "a")
    #expect(scene.playing == "a2")
    scene.service.select(feed: "b")
    #expect(scene.shown == ["a2", "b0", "b1", "a2", "b1"])
    #expect(!shows(scene.service) { $0.select(feed: "unknown") })
    #expect(scene.service.selectedFeed.value == "b")
    // Nothing plays in an empty one.
    #expect(!shows(scene.service) { $0.select(feed: "c") })
    #expect(scene.playing == nil)
    #expect(scene.pool.currentItem == nil)
    #expect(scene.pool.calls.last == .update(FeedSnapshot(scene.feeds[2]), currentIndex: nil))
    #expect(scene.service.position(in: "b") == 1)
  }

  @Test("The pool is told the items at which the other feeds were left, the latest first")
  func others() throws {
    let scene = try ServiceScene(3, 2, 0)
    #expect(scene.pool.itemsOfOtherFeeds == [scene.item(0, 1)])
    scene.service.go(to: 2)
    scene.service.select(feed: "b")
    #expect(scene.pool.itemsOfOtherFeeds == [scene.item(2)])
    scene.service.next()
    #expect(scene.pool.itemsOfOtherFeeds == [scene.item(2)])
    scene.service.remove(scene.item(2).id)
    #expect(scene.pool.itemsOfOtherFeeds == [scene.item(1)])
    let added = try #require(
      scene.service.append(try MediaSource(argument: "http://o/c0"), to: "c"))
    #expect(scene.pool.itemsOfOtherFeeds == [scene.item(1), added])
    scene.service.select(feed: "c")
    #expect(scene.pool.itemsOfOtherFeeds == [scene.item(1, 1), scene.item(1)])
    scene.service.select(feed: "a")
    #expect(scene.pool.itemsOfOtherFeeds == [added, scene.item(1, 1)])
  }

  @Test("What is added is known to the pool, and the current item goes on")
  func append() throws {
    let scene = try ServiceScene(1, 1)
    scene.service.playFirst()
    let source = try MediaSource(argument: "http://o/a0")
    let item = try #require(scene.service.append(source, to: "a") { $0.title = "again" })
    // The second entry of one source is another item.
    #expect(item.id != scene.item(0).id)
    #expect(item.title == "again")
    var feed = scene.feeds[0]
    feed.append(source) { $0.title = "again" }
    #expect(scene.pool.calls.last == .update(FeedSnapshot(feed), currentIndex: 0))
    try #require(!scene.service.feeds.isEmpty)
    #expect(scene.service.feeds[0] == feed)
    // Another feed's is of no interest to the pool.
    scene.pool.forgetCalls()
    scene.service.append(source, to: "b")
    #expect(scene.pool.calls.isEmpty)
    #expect(shows(scene.service) { $0.next() })
    #expect(scene.service.nowPlaying.value?.item == item)
  }

  @Test("An item before the current one is removed: the index moves, the item plays on")
  func removeBefore() throws {
    let scene = try ServiceScene(4)
    scene.service.go(to: 2)
    #expect(scene.service.remove(scene.item(0).id))
    #expect(!scene.service.remove(scene.item(0).id))
    #expect(scene.playing == "a1")
    #expect(scene.service.nowPlaying.value?.item == scene.item(2))
    #expect(scene.shown == ["a2"])
    #expect(scene.pool.currentItem?.id == scene.item(2).id)
    scene.service.next()
    #expect(scene.service.nowPlaying.value?.item == scene.item(3))
  }

  @Test("An item behind the current one is removed: nothing moves")
  func removeBehind() throws {
    let scene = try ServiceScene(3)
    scene.service.playFirst()
    #expect(scene.service.remove(scene.item(1).id))
    #expect(scene.playing == "a0")
    #expect(scene.shown == ["a0"])
    scene.service.next()
    #expect(scene.service.nowPlaying.value?.item == scene.item(2))
  }

  @Test("The current item is removed: the one behind it comes, or the one before, or none")
  func removeCurrent() throws {
    let scene = try ServiceScene(3)
    scene.service.go(to: 1)
    #expect(scene.service.remove(scene.item(1).id))
    #expect(scene.service.nowPlaying.value?.item == scene.item(2))
    #expect(scene.service.remove(scene.item(2).id))
    #expect(scene.service.nowPlaying.value?.item == scene.item(0))
    #expect(scene.shown == ["a1", "a1", "a0"])
    #expect(scene.service.remove(scene.item(0).id))
    #expect(scene.service.nowPlaying.value == nil)
    #expect(scene.pool.currentItem == nil)
    #expect(scene.pool.calls.last == .update(FeedSnapshot(feed: "a", items: []), currentIndex: nil))
    #expect(!shows(scene.service) { $0.next() })
    #expect(scene.service.position(in: "a") == nil)
  }

  @Test("Items of a feed that is not selected are removed without a word, and its place follows")
  func removeElsewhere() throws {
    let scene = try ServiceScene(1, 3)
    scene.service.select(feed: "b")
    scene.service.go(to: 2)
    scene.service.select(feed: "a")
    scene.pool.forgetCalls()
    #expect(scene.service.remove(scene.item(0, 1).id))
    #expect(scene.service.remove(scene.item(2, 1).id))
    #expect(scene.pool.calls.isEmpty)
    #expect(scene.service.position(in: "b") == 0)
    scene.service.select(feed: "b")
    #expect(scene.service.nowPlaying.value?.item == scene.item(1, 1))
  }

  @Test("What plays is observed, in the order in which it changed")
  func observed() async throws {
    let scene = try ServiceScene(3)
    let values = scene.service.nowPlaying.values
    scene.service.playFirst()
    scene.service.endDrag(to: 1)
    scene.service.settle()
    for item in 0..<3 { scene.service.remove(scene.item(item).id) }
    scene.service.nowPlayingSource.finish()
    var seen: [String] = []
    for await value in values {
      seen.append(value.map { "\($0.item.source.stem) at \($0.index) \($0.phase)" } ?? "none")
    }
    let expected = [
      "none", "a0 at 0 settled", "a1 at 1 dragEnded", "a1 at 1 settled", "a1 at 0 settled", "a2 at 0 settled",
      "none",
    ]
    #expect(seen == expected)
  }

  @Test("Pausing is passed on")
  func pause() throws {
    let scene = try ServiceScene(1)
    scene.service.playFirst()
    scene.service.setPlaying(false)
    #expect(!scene.pool.isPlaying)
    scene.service.setPlaying(true)
    #expect(scene.pool.isPlaying)
  }

  @Test("Calls from many threads: the pool ends where the service does", arguments: 0..<4)
  func threads(_ round: Int) async throws {
    let scene = try ServiceScene(50, 20)
    await withTaskGroup(of: Void.self) { group in
      for thread in 0..<8 {
        group.addTask {
          var random = SplitMix(seed: UInt64(round * 8 + thread))
          for _ in 0..<300 {
            switch random.next() % 10 {
            case 0...2: scene.service.next()
            case 3: scene.service.previous()
            case 4: scene.service.endDrag(to: Int(random.next() % 50))
            case 5: scene.service.settle()
            case 6: scene.service.select(feed: random.next() % 2 == 0 ? "a" : "b")
            case 7: scene.service.remove(scene.item(Int(random.next() % 50)).id)
            case 8:
              if let source = try? MediaSource(argument: "http://o/new") {
                scene.service.append(source, to: "a")
              }
            default: scene.service.go(to: Int(random.next() % 20))
            }
          }
        }
      }
    }
    let playing = try #require(scene.service.nowPlaying.value)
    #expect(scene.pool.currentItem?.id == playing.item.id)
    let feed = try #require(scene.service.feeds.first { $0.name == scene.service.selectedFeed.value })
    #expect(feed.items[playing.index] == playing.item)
    #expect(scene.service.position(in: feed.name) == playing.index)
    switch try #require(scene.pool.calls.last) {
    case .show(let index, let snapshot, _):
      #expect(index == playing.index)
      #expect(snapshot == FeedSnapshot(feed))
    case .update(let snapshot, let index):
      #expect(index == playing.index)
      #expect(snapshot == FeedSnapshot(feed))
    case .setPlaying, .setMuted: Issue.record("nobody has asked for that")
    }
  }
}

/// True if a call has a target and its index is in the feed.
private func shows(_ service: PlayerService, _ call: (PlayerService) -> Handover?) -> Bool {
  call(service).map { $0.error?.kind != .usage } ?? false
}
