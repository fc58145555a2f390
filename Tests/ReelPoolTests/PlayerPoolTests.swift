import Foundation
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelTesting
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelPool
@testable import ReelSources

@Suite("A player pool", .hangLimit) struct PlayerPoolTests {
  static let paths = [
    "hls-fmp4/master.m3u8", "media/h264-bframes.mp4", "hls-ts/master.m3u8", "media/h264-moov-last.mp4",
    "dash-timeline/manifest.mpd", "media/h264.ts", "media/rate-25.mp4", "hls-aes128/index.m3u8",
  ]

  // MARK: Slots

  @Test("An item's slot is its index modulo the slots", arguments: [1, 2, 3, 4, 5, 12])
  func slots(_ count: Int) async throws {
    let scene = try PoolScene(Self.paths, slots: count)
    for (index, direction) in [(0, 1), (4, 1), (5, 1), (7, 1), (2, -1)] {
      try await scene.rest(at: index)
      let window = PoolWindow(
        itemCount: 8, slotCount: count, currentIndex: index, direction: direction, policy: AdjacentPreload())
      var expected = [Int?](repeating: nil, count: count)
      for item in window.indices { expected[item % count] = item }
      #expect(scene.slots == expected)
    }
    try await scene.close()
  }

  @Test("An item that its slot holds keeps its buffer when the window moves")
  func keepsBuffer() async throws {
    let scene = try PoolScene(Self.paths)
    try await scene.rest(at: 1)
    let (current, next) = (try #require(scene.item(1)), try #require(scene.item(2)))
    try await scene.rest(at: 2)
    #expect(scene.item(1) === current)
    #expect(scene.item(2) === next)
    #expect(scene.item(0) == nil)
    try await scene.rest(at: 1)
    #expect(scene.item(2) === next)
    #expect(scene.assigned == [1, 2, 0, 3, 0].map(scene.id))
    // What was gone is fetched again, nothing else.
    let first = try #require(scene.url(0)).deletingLastPathComponent().absoluteString
    let others = scene.fetcher.keys.filter { !$0.hasPrefix(first) }
    #expect(Set(others).count == others.count)
    try await scene.close()
  }

  @Test("What leaves the window is cancelled, and its memory comes back")
  func eviction() async throws {
    let scene = try PoolScene(Self.paths)
    try await scene.rest(at: 1)
    let before = scene.pool.memory
    #expect(before.entries.count == 3)
    for entry in before.entries {
      #expect(entry.account[.packets] > 5_000)
      #expect(entry.account[.frames] + entry.account[.output] > 20_000)
    }
    // Its neighbours are far away: slots 0 and 2 get others, and those are held.
    scene.fetcher.setFault { _, _ in .hold }
    try scene.show(6)
    try await scene.until { scene.pool.core.isSteady && scene.fetcher.underWayCount >= 3 }
    #expect(
      scene.evicted.sorted { "\($0)" < "\($1)" } == [0, 1, 2].map(scene.id).sorted { "\($0)" < "\($1)" })
    try await scene.until {
      scene.pool.memory.entries.allSatisfy { entry in
        entry.account[.packets] == 0 && entry.account[.frames] + entry.account[.output] == 0
          && entry.account[.decoder] == 0
          && entry.account[.inFlight] == 0
      }
    }
    // Transfers that are under way end when their item leaves.
    let held = try [5, 6, 7].map { try #require(scene.url($0)) }
    #expect(held.allSatisfy { scene.fetcher.underWayCount(of: $0) == 1 })
    try scene.show(0)
    try await scene.until { held.allSatisfy { scene.fetcher.underWayCount(of: $0) == 0 } }
    try await scene.close()
  }

  // MARK: Identity

  @Test("Items before the current one are removed: what was loaded stays, and goes to its new slots")
  func removal() async throws {
    let scene = try PoolScene(Self.paths)
    try await scene.rest(at: 4)
    let items = [3, 4, 5].map(scene.item)
    let requests = scene.fetcher.keys
    let lines = scene.lines
    for removed in 1...3 {
      let rest = FeedSnapshot(feed: "feed", items: Array(scene.feed.items.dropFirst(removed)))
      scene.pool.update(rest, currentIndex: 4 - removed)
      try await scene.until { scene.pool.core.isSteady }
      for item in [3, 4, 5] { #expect(scene.slots[(item - removed) % 3] == item) }
      #expect([3, 4, 5].map(scene.item) == items)
      #expect([3, 4, 5].map { scene.readiness($0)?.index } == [3, 4, 5].map { $0 - removed })
    }
    #expect(scene.fetcher.keys == requests)
    #expect(scene.evicted.isEmpty)
    // The surface has stayed where it was.
    #expect(scene.lines.filter { if case .frame = $0 { false } else { true } } == [.attached(4)])
    #expect(scene.lines.starts(with: lines))
    try await scene.close()
  }

  @Test("A muted pool loads no separate audio, until it is unmuted")
  func muting() async throws {
    let paths = Array(repeating: "hls-fmp4/master.m3u8", count: 3)
    let scene = try PoolScene(paths, configure: { $0.isMuted = true })
    let hasAudio: @Sendable () -> Bool = {
      scene.fetcher.requests.contains { $0.url.path.contains("/audio/") }
    }
    let areMuted: @Sendable () -> Set<Bool> = {
      scene.pool.core.state.withLock {
        Set($0.slots.filter { $0.id != nil }.map { $0.player.player.isMuted.value })
      }
    }
    try await scene.rest(at: 1)
    #expect(areMuted() == [true] && !hasAudio())
    scene.pool.setMuted(false)
    try await scene.until { areMuted() == [false] && hasAudio() }
    // An item that gets a slot now is not muted either.
    try await scene.rest(at: 2)
    #expect(areMuted() == [false])
    scene.pool.setMuted(true)
    try await scene.until { areMuted() == [true] }
    try await scene.close()
  }

  @Test("A neighbour is removed: the one behind it is loaded in its place")
  func removalOfNeighbour() async throws {
    let scene = try PoolScene(Self.paths)
    try await scene.rest(at: 1)
    let item = scene.item(0)
    var items = scene.feed.items
    items.remove(at: 2)
    scene.pool.update(FeedSnapshot(feed: "feed", items: items), currentIndex: 1)
    try await scene.rest()
    #expect(scene.slots == [0, 1, 3])
    #expect(scene.evicted == [scene.id(2)])
    #expect(scene.item(0) === item)
    try await scene.close()
  }

  @Test("The same source in two feeds, and twice in one, is a different item each")
  func sameSource() async throws {
    let path = "media/h264-bframes.mp4"
    let scene = try PoolScene([path, path])
    let other = Feed(name: "other", sources: scene.feed.items.map(\.source))
    try await scene.rest(at: 0)
    let (first, second) = (try #require(scene.item(0)), try #require(scene.item(1)))
    #expect(first !== second)
    scene.pool.show(0, of: FeedSnapshot(other))
    try await scene.until { scene.pool.core.isSteady }
    #expect(scene.item(0) == nil)
    #expect(scene.pool.slotReadiness.map(\.item) == [other.items[0].id, other.items[1].id, nil])
    #expect(Set(scene.evicted) == [scene.id(0), scene.id(1)])
    // The first one goes: the second does not become it.
    try await scene.rest(at: 1)
    let rest = FeedSnapshot(feed: "feed", items: [scene.feed.items[1]])
    let item = try #require(scene.item(1))
    scene.pool.update(rest, currentIndex: 0)
    try await scene.until { scene.pool.core.isSteady }
    #expect(scene.item(1) === item)
    #expect(scene.slots == [1, nil, nil])
    try await scene.close()
  }

  // MARK: Edges

  @Test(
    "An index that the snapshot does not have is an error, and changes nothing",
    arguments: [-1, 8, .max, .min])
  func range(_ index: Int) async throws {
    let scene = try PoolScene(Self.paths)
    try await scene.rest(at: 0)
    let error = #expect(throws: ReelError.self) { try scene.show(index) }
    #expect(error?.kind == .usage)
    #expect(error?.reason == "the feed feed has no item \(index): its 8 items count from 0")
    let none = scene.pool.show(0, of: FeedSnapshot(feed: "none", items: [])).error
    #expect(none?.reason == "the feed none has no items")
    #expect(scene.pool.core.isSteady)
    #expect(scene.pool.surfaceItem == scene.id(0))
    // In an update it counts as none.
    scene.pool.update(scene.snapshot, currentIndex: index)
    try await scene.until { scene.pool.core.isSteady && scene.slots == [nil, nil, nil] }
    #expect(scene.pool.surfaceItem == nil)
    #expect(scene.pool.currentPlayer == nil)
    try await scene.close()
  }

  @Test("More slots than items, and one item alone: slots stay empty")
  func fewItems() async throws {
    let scene = try PoolScene(Array(Self.paths.prefix(2)), slots: 5, policy: AheadPreload(4))
    try await scene.rest(at: 0)
    #expect(scene.slots == [0, 1, nil, nil, nil])
    try #require(scene.pool.slotReadiness.count > 4)
    #expect(scene.pool.slotReadiness[4] == SlotReadiness(slot: 4))
    try await scene.close()
    let single = try PoolScene([Self.paths[1]])
    try await single.rest(at: 0)
    #expect(single.slots == [0, nil, nil])
    try single.show(0)
    #expect(single.assigned == [single.id(0)])
    try await single.close()
  }

  // MARK: Policies

  @Test(
    "The window is as the policy wants it",
    arguments: [
      ("none", [3]), ("adjacent", [2, 3, 4]), ("ahead:2", [3, 4, 5]), ("ahead:9", [3, 4, 5, 6]),
      ("budget:1kB", [3]), ("budget:1GB", [1, 2, 3, 4, 5]),
    ])
  func policies(_ policy: String, _ expected: [Int]) async throws {
    let scene = try PoolScene(
      Self.paths, slots: policy.hasPrefix("budget") ? 5 : 4, policy: try PreloadPolicies.parse(policy))
    try scene.show(3)
    // A budget is planned anew as it becomes known what stages cost.
    try await scene.until { scene.isResting && scene.slots.compactMap { $0 }.sorted() == expected }
    if policy == "budget:1GB" {
      try await scene.until { scene.readiness(1)?.stage == .buffered && scene.isResting }
    }
    #expect(scene.readiness(3)?.target == nil)
    #expect(scene.readiness(3)?.rank == 0)
    try await scene.close()
  }

  @Test("What is ahead is by the direction of travel")
  func direction() async throws {
    let scene = try PoolScene(Self.paths, policy: AheadPreload(2))
    try await scene.rest(at: 5)
    #expect(Set(scene.slots) == [5, 6, 7])
    try await scene.rest(at: 4)
    #expect(Set(scene.slots) == [2, 3, 4])
    // The same item, from the other side, in a list that has become shorter.
    let rest = FeedSnapshot(feed: "feed", items: Array(scene.feed.items.dropFirst(2)))
    scene.pool.show(3, of: rest)
    try await scene.until { scene.pool.core.isSteady }
    #expect(Set(scene.slots) == [5, 6, 7])
    // Another feed is begun forwards.
    try await scene.rest(at: 4)
    let other = Feed(name: "other", sources: scene.feed.items.map(\.source))
    scene.pool.show(3, of: FeedSnapshot(other))
    try await scene.until { scene.pool.core.isSteady }
    #expect(Set(scene.pool.slotReadiness.map(\.index)) == [3, 4, 5])
    try await scene.close()
  }

  @Test("Connections are opened to hosts beyond the window, in the direction of travel")
  func connections() async throws {
    let feed = Feed(
      name: "feed",
      sources: try (0..<8).map { try MediaSource(argument: "http://host\($0)/media/h264-bframes.mp4") })
    let fetcher = FixtureFetcher()
    let simulation = SimulatedRuntime()
    var configuration = PoolConfiguration()
    configuration.enter(simulation)
    configuration.connectionsAhead = 2
    let pool = PlayerPool(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    pool.pause()
    pool.show(2, of: FeedSnapshot(feed))
    await simulation.runToRest()
    let ahead = fetcher.opened.compactMap(\.host)
    #expect(ahead.prefix(2) == ["host4", "host5"])
    #expect(Set(ahead).count == 2)
    pool.show(6, of: FeedSnapshot(feed))
    await simulation.runToRest()
    pool.show(5, of: FeedSnapshot(feed))
    await simulation.runToRest()
    let back = fetcher.opened.compactMap(\.host).dropFirst(ahead.count)
    #expect(back.prefix(2) == ["host3", "host2"])
    #expect(Set(back).count == 2)
    pool.close()
    await simulation.runToRest()
  }

  // MARK: A feed that changes during a turn

  /// Serves the fixtures, and calls `onCancel` at the moment when a request for a poster is cancelled.
  private final class PosterHolder: Fetching, ConnectionOpening {
    let fixtures = FixtureFetcher()
    let onCancel = Locked(Callback<Void>())

    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      guard request.url.path.contains("poster") else { return try await fixtures.fetch(request) }
      return try await withTaskCancellationHandler {
        try await fixtures.fetch(request)
      } onCancel: {
        onCancel.withLock { $0.call }?(())
      }
    }

    func openConnection(to url: URL) { fixtures.openConnection(to: url) }
  }

  @Test("Items that a program removes in the middle of a turn, before connections are opened")
  func removalInTurn() async throws {
    let fetcher = PosterHolder()
    fetcher.fixtures.setFault { request, _ in request.url.path.contains("poster") ? .never : .none }
    var feed = Feed(name: "feed")
    for number in 0..<9 {
      feed.append(try MediaSource(argument: "http://host\(number)/media/h264-bframes.mp4")) {
        $0.poster = URL(string: "http://host\(number)/posters/poster-\(number).jpg")
      }
    }
    let simulation = SimulatedRuntime()
    var configuration = PoolConfiguration()
    configuration.enter(simulation)
    configuration.showsPosters = true
    configuration.connectionsAhead = 2
    let pool = PlayerPool(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    try pool.setSurface(CallbackOutput { _ in })
    pool.pause()
    pool.show(0, of: FeedSnapshot(feed))
    await simulation.runToRest()
    let rest = FeedSnapshot(feed: "feed", items: [feed.items[6]])
    let removal = Callback<Void> { [weak pool] _ in pool?.update(rest, currentIndex: 0) }
    fetcher.onCancel.withLock { $0 = removal }
    let opened = fetcher.fixtures.opened.count
    // The posters of the items that are left are cancelled in the turn.
    pool.show(6, of: FeedSnapshot(feed))
    await simulation.runToRest()
    #expect(fetcher.fixtures.opened.dropFirst(opened).map(\.host) == ["host8"])
    #expect(pool.currentItem == feed.items[6])
    #expect(pool.core.state.withLock { $0.snapshot } == rest)
    #expect(pool.slotReadiness.compactMap(\.item) == [feed.items[6].id])
    pool.close()
    await simulation.runToRest()
  }

  /// Removes an item each time that it is asked, and asks for what no pool has.
  private struct Wrecking: PreloadPolicy {
    let remove: @Sendable () -> Void
    var description: String { "wrecking" }

    func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
      remove()
      return PreloadTarget(
        stage: .buffered, bufferDuration: distance < 0 ? .seconds(-5) : .seconds(Int64.max),
        byteLimit: distance < 0 ? .min : .max, peakBitRate: distance < 0 ? .min : .max)
    }
  }

  @Test("A policy that removes items while it is asked, and asks for any amount", arguments: [nil, 40 << 20])
  func wreckingPolicy(memoryLimit: Int?) async throws {
    let pool = Locked<PlayerPool?>(nil)
    let policy = Wrecking {
      guard let pool = pool.withLock({ $0 }) else { return }
      let snapshot = pool.core.state.withLock { $0.snapshot }
      guard snapshot.items.count > 3 else { return }
      pool.update(FeedSnapshot(feed: "feed", items: Array(snapshot.items.dropFirst())), currentIndex: 1)
    }
    let scene = try PoolScene(
      Self.paths, slots: 4, policy: policy,
      configure: {
        $0.memoryLimit = memoryLimit
        $0.connectionsAhead = .max
      })
    try scene.show(6)
    pool.withLock { $0 = scene.pool }
    scene.pool.update(scene.snapshot, currentIndex: 6)
    try await scene.until { scene.pool.core.isSteady && scene.pool.currentPlayer?.hasFrame == true }
    #expect(scene.pool.currentItem == scene.feed.items[6])
    #expect(scene.pool.core.state.withLock { $0.snapshot.items } == Array(scene.feed.items.suffix(3)))
    pool.withLock { $0 = nil }
    try await scene.close()
  }

  /// A clock that calls a closure, once, when it is asked for the time.
  private struct TellingClock: MonotonicClock {
    let base: SimulatedRuntime
    let onAsk = Locked(Callback<Void>(), rank: .clock)

    var now: Duration {
      if let call = onAsk.withLock({ $0.call.take() }) { call(()) }
      return base.now
    }

    func schedule(at deadline: Duration, _ handler: @escaping @Sendable () -> Void) -> any ScheduledCall {
      base.schedule(at: deadline, handler)
    }
  }

  @Test("A swipe within the feed does not bring back items that another thread removes at the same time")
  func swipeKeepsChanges() async throws {
    let clock = Locked<TellingClock?>(nil)
    let scene = try PoolScene(
      Self.paths,
      configure: { configuration in
        guard let simulation = configuration.player.clock as? SimulatedRuntime else { return }
        let telling = TellingClock(base: simulation)
        configuration.player.clock = telling
        clock.withLock { $0 = telling }
      })
    try await scene.rest(at: 2)
    let rest = FeedSnapshot(feed: "feed", items: Array(scene.feed.items.prefix(4)))
    let pool = scene.pool
    let (telling, removal) = (
      try #require(clock.withLock { $0 }), Callback<Void> { _ in pool.update(rest, currentIndex: 2) }
    )
    telling.onAsk.withLock { $0 = removal }
    #expect(pool.show(3, phase: .settled).error == nil)
    #expect(pool.core.state.withLock { $0.snapshot } == rest)
    #expect(pool.show(4, phase: .settled).error?.kind == .usage)
    try await scene.close()
  }

  @Test("An item that is listed twice has one slot")
  func listedTwice() async throws {
    let scene = try PoolScene(Self.paths)
    let items = [0, 1, 1, 2, 0].map { scene.feed.items[$0] }
    for index in [1, 2, 4, 0] {
      scene.pool.show(index, of: FeedSnapshot(feed: "feed", items: items))
      try await scene.rest()
      let loaded = scene.pool.slotReadiness.compactMap(\.item)
      #expect(Set(loaded).count == loaded.count)
      #expect(scene.pool.surfaceItem == items[index].id)
    }
    try await scene.close()
  }

  @Test("Waiting for an item that is removed ends with an error")
  func readyOfRemoved() async throws {
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains("h264-bframes") ? .never : .none }
    let scene = try PoolScene(Self.paths, fetcher: fetcher)
    try scene.show(0)
    let pool = scene.pool
    let wait = scene.begin { try await pool.ready(1) }
    try await scene.until { fetcher.underWayCount > 0 && scene.pool.core.isSteady }
    pool.update(FeedSnapshot(feed: "feed", items: [scene.feed.items[0]]), currentIndex: 0)
    let error = await #expect(throws: ReelError.self) { try await scene.run { try await wait.value } }
    #expect(error?.reason.contains("no longer") == true)
    try await scene.close()
  }
}
