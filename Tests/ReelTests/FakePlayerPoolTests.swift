import Foundation
import Reel
import ReelTestSupport
import ReelTesting
import Synchronization
import Testing

@Suite("A pool without media", .hangLimit) struct FakePlayerPoolTests {
  private static let failure = ReelError(.badMedia, "the item can't be played")

  private static func pool() -> FakePlayerPool {
    FakePlayerPool(frames: [.solid(.red, width: 9, height: 16), .solid(.green, width: 16, height: 9)])
  }

  private static func pixel(_ frame: VideoFrame?) throws -> [UInt8]? { try frame?.rgba.prefix(4).map(\.self) }

  @Test("A test draws a pool without media")
  func drawing() async throws {
    #expect(try await drawnPixels() == [[255, 0, 0, 255], [0, 0, 255, 255]])
    #expect(try await frameAfterMiss()?.presentationSize == PixelSize(width: 160, height: 90))
  }

  @Test("A frame has one color, a size and a time")
  func solid() throws {
    let frame = VideoFrame.solid(
      .init(red: 1, green: 2, blue: 3), width: 5, height: 3, at: .seconds(2))
    #expect(frame.presentationSize == PixelSize(width: 5, height: 3) && frame.time == .seconds(2))
    #expect(try Array(frame.bgra) == (0..<15).flatMap { _ in [3, 2, 1, 255] as [UInt8] })
    #expect(try frame.png().starts(with: [0x89, 0x50]))
  }

  @Test("It shows the first item, paused, and then each item that is shown")
  func shows() async throws {
    let pool = Self.pool()
    #expect(!pool.isPlaying)
    let ids = pool.memory.entries.map(\.item)
    #expect(pool.currentItem?.id == ids[0])
    var frames = pool.frames.makeAsyncIterator()
    #expect(await frames.next()?.item == ids[0])
    try await pool.ready(1)
    let swipe = pool.show(1, phase: .dragEnded)
    #expect(swipe.isHit && swipe.frame?.item == ids[1])
    #expect(try Self.pixel(swipe.frame) == [0, 255, 0, 255])
    pool.show(1)  // Its frame is on show.
    pool.play()
    pool.show(0)
    #expect(await frames.next()?.item == ids[1])
    #expect(await frames.next()?.item == ids[0])
    #expect(pool.isPlaying && pool.calls.count == 4)
    pool.close()
    #expect(await frames.next() == nil)
    var late: [FeedItem.ID?] = []
    for await frame in pool.frames { late.append(frame.item) }
    #expect(late == [ids[0], ids[1], ids[0]])
  }

  @Test("A miss has its frame later, and a broken item none")
  func misses() async throws {
    let pool = Self.pool()
    let id = try #require(pool.memory.entries[1].item)
    pool.setStage(.notLoaded, of: id)
    #expect(pool.show(1).stage == .notLoaded)
    pool.setStage(.manifest, of: id)
    let miss = pool.show(1)
    #expect(!miss.isHit && miss.frame == nil && miss.stage == .manifest)
    #expect(pool.memory.entries[1].account[.frames] == 0)
    async let frame = miss.firstFrame().frame
    async let ready: Void = pool.ready(1)
    pool.setStage(.firstFrame, of: id)
    #expect(try Self.pixel(await frame) == [0, 255, 0, 255])
    try await ready
    pool.close()
    var shown: [FeedItem.ID?] = []
    for await frame in pool.frames { shown.append(frame.item) }
    #expect(shown.count == 2 && shown.last == id)
  }

  @Test("A miss can fail, be left, or outlive its pool")
  func missesWithoutFrame() async throws {
    let pool = Self.pool()
    let ids = pool.memory.entries.map(\.item)
    let id = try #require(ids[1])
    pool.setStage(.manifest, of: id)
    let failing = pool.show(1)
    async let failure = reelError { try await failing.firstFrame() }
    pool.fail(id, with: Self.failure)
    #expect(await failure == Self.failure)
    let left = pool.show(1)
    async let leaving = reelError { try await left.firstFrame() }
    pool.show(0)
    #expect(await leaving?.kind == .superseded)
    let last = pool.show(1)
    let cancelled = Task { try await last.firstFrame() }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    async let closing = reelError { try await last.firstFrame() }
    pool.close()
    #expect(await closing?.kind == .closed)
    #expect(await reelError { try await pool.ready(1) }?.kind == .closed)
    #expect(pool.show(1).error?.kind == .closed)
  }

  @Test("A broken item has an error whenever it is shown")
  func broken() async throws {
    let pool = Self.pool()
    let id = try #require(pool.memory.entries[1].item)
    pool.setFailure(Self.failure, of: id)
    let broken = pool.show(1)
    #expect(broken.error == Self.failure && broken.frame == nil && !broken.isHit)
    #expect(await reelError { try await pool.ready(1) } == Self.failure)
    #expect(await reelError { try await broken.firstFrame() } == Self.failure)
    pool.setFailure(nil, of: id)
    #expect(pool.show(1).isHit)
  }

  @Test("It records muting")
  func muting() {
    let pool = Self.pool()
    pool.setMuted(true)
    #expect(pool.calls == [.setMuted(true)])
  }

  @Test("Surface, readiness, events and picture in picture are there as in a pool with media")
  func surface() async throws {
    let fake = Self.pool()
    let pool: any PlayerPooling = fake
    let ids = fake.memory.entries.compactMap(\.item)
    let events = pool.events
    let shown = Mutex<[FeedItem.ID?]>([])
    let pinnedFrames = Mutex<[FeedItem.ID?]>([])
    let ends = Mutex(0)
    try pool.setSurface(
      CallbackOutput(
        onFinish: { ends.withLock { $0 += 1 } },
        onFrame: { frame in shown.withLock { $0.append(frame.item) } }))
    #expect(pool.surfaceItem == ids[0])
    fake.setStage(.manifest, of: ids[1])
    pool.show(1, phase: .settled)
    #expect(pool.readiness.value.map(\.stage) == [.firstFrame, .manifest])
    #expect(pool.readiness.value.map(\.frameCount) == [1, 0])
    fake.setStage(.firstFrame, of: ids[1])
    #expect(shown.withLock { $0 } == [ids[0], ids[1]])
    let pinned = try pool.startPictureInPicture(
      to: CallbackOutput { frame in pinnedFrames.withLock { $0.append(frame.item) } })
    #expect(pinned.state.value == .didStart && pinned.item.id == ids[1])
    #expect(pinnedFrames.withLock { $0 } == [ids[1]] && pool.surfaceItem == nil)
    #expect(await reelError { try await pool.ready(1) }?.kind == .usage)
    pinned.stop()
    #expect(pool.surfaceItem == ids[1] && shown.withLock { $0 } == [ids[0], ids[1], ids[1]])
    pool.close()
    #expect(ends.withLock { $0 } == 1)
    var told: [PoolEvent] = []
    for await event in events { told.append(event) }
    #expect(
      told == [
        .assigned(ids[0], slot: 0), .assigned(ids[1], slot: 1), .surfaceAttached(ids[0]),
        .shown(ids[1], .settled, stage: .manifest), .surfaceDetached(ids[0]), .surfaceAttached(ids[1]),
        .reached(ids[1], slot: 1, .firstFrame, after: .zero), .pinned(ids[1], .willStart),
        .surfaceDetached(ids[1]), .pinned(ids[1], .didStart), .pinned(ids[1], .willStop),
        .surfaceAttached(ids[1]), .pinned(ids[1], .didStop), .surfaceDetached(ids[1]),
      ])
  }

  @Test("An index outside the feed is an error")
  func outside() async {
    let pool = Self.pool()
    #expect(pool.show(2).error?.kind == .usage)
    #expect(pool.currentItem?.id == pool.memory.entries[0].item)
    #expect(await reelError { try await pool.ready(-1) }?.kind == .usage)
  }

  @Test("Memory counts the frames")
  func memory() {
    let pool = Self.pool()
    #expect(pool.memory.entries.count == 2)
    #expect(pool.memory.total.byteCount >= 2 * 9 * 16 * 3)
    #expect(FakePlayerPool().memory.total.byteCount == 0)
  }

  @Test("A feed of its own, and a service over it")
  func service() async throws {
    let urls = (0..<5).map { URL(filePath: "/\($0).mp4") }
    let feed = Feed(urls: urls)
    let pool = FakePlayerPool(frames: [.solid(.black, width: 2, height: 2)], feed: feed)
    #expect(pool.memory.entries.map(\.item) == feed.items.map(\.id))
    let service = PlayerService(pool: pool, feeds: [feed])
    service.playFirst()
    #expect(service.next()?.frame?.item == feed.items[1].id)
    #expect(pool.currentItem == feed.items[1])
  }

  @Test("Waiting for an item that is removed ends with an error")
  func removed() async throws {
    let pool = Self.pool()
    pool.setStage(.manifest, of: try #require(pool.memory.entries[1].item))
    async let error = reelError { try await pool.ready(1) }
    pool.update(FeedSnapshot(feed: "fake", items: [try #require(pool.currentItem)]), currentIndex: 0)
    #expect(await error?.kind == .usage)
  }

  @Test("Swipes bring back no items that another thread removes at the same time")
  func swipesAndChanges() async throws {
    let pool = FakePlayerPool(
      frames: [.solid(.red, width: 9, height: 16)], feed: Feed(urls: (0..<4).map { URL(filePath: "/\($0)") }))
    let item = try #require(pool.currentItem)
    let all = pool.memory.entries.count
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for _ in 0..<5000 { pool.show(0, phase: .settled) } }
      group.addTask { pool.update(FeedSnapshot(feed: "default", items: [item]), currentIndex: 0) }
    }
    #expect(all == 4 && pool.memory.entries.count == 1)
  }
}
