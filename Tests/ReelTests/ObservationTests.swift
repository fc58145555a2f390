import Foundation
import Observation
import Reel
import ReelTestSupport
import ReelTesting
import Synchronization
import Testing

@Suite("Observation of players", .hangLimit) struct ObservationTests {
  private static func url(_ path: String) -> URL { URL(filePath: Fixtures.path(path)) }

  // MARK: Models

  @Test("A model follows its player, and tells of changes") @MainActor
  func model() async throws {
    let player = Player(url: Self.url("hls-fmp4/master.m3u8"))
    let model = PlayerModel(title: "Clip")
    let changes = Mutex(0)
    withObservationTracking {
      _ = model.isPlaying
    } onChange: {
      changes.withLock { $0 += 1 }
    }
    #expect(model.time == .zero && model.status == .unknown && !model.isStalled)
    player.play()
    await model.follow(player)
    #expect(model.title == "Clip" && model.status == .readyToPlay)
    #expect(model.time.seconds > 2.9)
    #expect(model.duration.map { (2.9...3.1).contains($0.seconds) } == true)
    #expect(changes.withLock { $0 } == 1)
  }

  @Test("A model of a source that can't be played has its error") @MainActor
  func brokenModel() async throws {
    let model = PlayerModel(title: "Text")
    let player = Player(url: Self.url("bad/text.mp4"))
    await #expect(throws: ReelError.self) { try await player.ready() }
    await model.follow(player)
    guard case .failed(let error) = model.status else {
      Issue.record("\(model.status)")
      return
    }
    #expect(error.location?.hasSuffix("bad/text.mp4") == true)
  }

  // MARK: Events

  @Test("A late reader gets the events since the item began to load")
  func late() async throws {
    let player = Player(url: Self.url("hls-fmp4/master.m3u8"))
    let item = try #require(player.currentItem.value)
    try await player.ready()
    for events in [player.events, item.events] {
      var reader = events.makeAsyncIterator()
      guard case .firstFrame? = await reader.next() else {
        Issue.record("no first frame")
        return
      }
    }
    try await player.playToEnd()
    for events in [player.events, item.events] { #expect(await Self.reachesEnd(events)) }

    // Once it plays again, the end is over, and its next end comes.
    player.pause()
    try await player.seek(to: .zero)
    for events in [player.events, item.events] {
      var reader = events.makeAsyncIterator()
      let first = [await reader.next(), await reader.next()]
      guard case .firstFrame? = first[0], case .seekDone? = first[1] else {
        Issue.record("\(first)")
        return
      }
    }
    player.play()
    #expect(await Self.reachesEnd(player.events))
  }

  @Test("A late reader gets the failure of an item, and nothing of items before it")
  func failure() async throws {
    let player = Player(url: Self.url("bad/text.mp4"))
    let error = await reelError { try await player.ready() }
    var reader = player.events.makeAsyncIterator()
    guard case .failed(error)? = await reader.next() else {
      Issue.record("no failure")
      return
    }
    player.replaceCurrentItem(with: PlayerItem(url: Self.url("hls-fmp4/master.m3u8")))
    var next = player.events.makeAsyncIterator()
    guard case .firstFrame? = await next.next() else {
      Issue.record("an event of the item before")
      return
    }
    // A reader from before goes on with the new item.
    guard case .firstFrame? = await reader.next() else {
      Issue.record("no first frame")
      return
    }
  }

  @Test("A late reader of a pool gets the events of the items that have a slot")
  func pool() async throws {
    let paths = ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-number/manifest.mpd", "media/h264.ts"]
    let feed = Feed(urls: paths.map(Self.url))
    var configuration = PoolConfiguration()
    configuration.slotCount = 2
    configuration.policy = AdjacentPreload()
    let pool = PlayerPool(feed: feed, fetcher: TransportFetcher(), configuration: configuration)
    try await pool.ready(0)
    try await pool.show(3).firstFrame()
    let last = feed.items[3].id
    var seen: [PoolEvent] = []
    for await event in pool.events {
      seen.append(event)
      if case .reached(last, _, .firstFrame, _) = event { break }
    }
    #expect(seen.contains { if case .assigned(last, _) = $0 { true } else { false } })
    #expect(seen.contains { if case .shown(last, .settled, _) = $0 { true } else { false } })
    #expect(!seen.contains { if case .assigned(feed.items[0].id, _) = $0 { true } else { false } })
    pool.close()
    for await _ in pool.events {}  // It ends.
  }

  private static func reachesEnd(_ events: AsyncStream<PlayerEvent>) async -> Bool {
    for await event in events { if case .playedToEnd = event { return true } }
    return false
  }
}
