import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelTestSupport
import Testing

@testable import ReelPool
import ReelReading

@Suite("Waiting for an item of a pool", .hangLimit) struct PoolReadyTests {
  static let good = ["media/h264-bframes.mp4", "hls-ts/master.m3u8", "media/h264.ts", "hls-fmp4/master.m3u8"]

  @Test("Returns when the next item's first frame is decoded: a swipe to it is a hit")
  func hit() async throws {
    let scene = try PoolScene(Self.good)
    try scene.show(0)
    try await scene.ready(1)
    let swipe = scene.pool.show(1)
    #expect(swipe.isHit)
    #expect(swipe.duration.isOver)
    #expect(swipe.error == nil)
    let frame = try #require(swipe.frame)
    let expected = try await plainFrames(Self.good[1])
    #expect(frame.item == scene.id(1))
    #expect(frame.time == expected.first?.time)
    #expect(try frame.md5() == expected.first?.md5)
    #expect(swipe.description == "\(frame) after \(swipe.duration)")
    #expect(try await scene.firstFrame(of: swipe).frame?.decoded === frame.decoded)
    try await scene.ready(1)
    try await scene.close()
  }

  @Test("Waits as long as it takes")
  func waits() async throws {
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains("hls-ts") ? .hold : .none }
    let scene = try PoolScene(Self.good, fetcher: fetcher)
    try scene.show(0)
    let isReady = Locked(false)
    let waiting = scene.begin {
      try await scene.pool.ready(1)
      isReady.withLock { $0 = true }
    }
    try await scene.until {
      scene.pool.core.changes.observerCount == 1 && scene.readiness(0)?.stage == .buffered
    }
    #expect(!isReady.withLock { $0 })
    fetcher.release()
    try await scene.run { try await waiting.value }
    #expect(scene.item(1)?.status.value == .readyToPlay)
    try await scene.close()
  }

  @Test("Throws where the policy does not preload the item, or not so far")
  func policy() async throws {
    let scene = try PoolScene(Self.good, policy: NoPreload())
    #expect(await reelError { try await scene.ready(0) }?.kind == .usage)
    try scene.show(0)
    try await scene.ready(0)
    let error = await reelError { try await scene.ready(1) }
    #expect(error?.kind == .usage)
    #expect(error?.reason == "item 1 is not preloaded by the policy none")
    #expect(error?.location == "http://fixtures.test/hls-ts/master.m3u8")
    #expect(await reelError { try await scene.ready(4) }?.kind == .usage)
    try await scene.close()

    let shallow = try PoolScene(Self.good, policy: ManifestPreload())
    try shallow.show(0)
    let reason = await reelError { try await shallow.ready(1) }?.reason
    #expect(reason == "item 1 is preloaded only to manifest by the policy manifests")
    try await shallow.close()
  }

  private struct ManifestPreload: PreloadPolicy {
    var description: String { "manifests" }

    func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
      PreloadTarget(stage: .manifest)
    }
  }

  @Test("Throws what the item failed with", arguments: ["bad/text.mp4", "bad/html.m3u8", "nowhere/none.mp4"])
  func broken(_ path: String) async throws {
    let scene = try PoolScene([Self.good[0], path])
    try scene.show(0)
    let error = try #require(await reelError { try await scene.ready(1) })
    #expect(scene.item(1)?.status.value == .failed(error))
    // Once more, when it has failed already.
    #expect(await reelError { try await scene.ready(1) } == error)
    try await scene.close()
  }

  @Test("Throws when a swipe takes the item out of the window")
  func left() async throws {
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains("hls-ts") ? .hold : .none }
    let scene = try PoolScene(Self.good, fetcher: fetcher)
    try scene.show(0)
    let waiting = scene.begin { try await scene.pool.ready(1) }
    try await scene.until { scene.pool.core.changes.observerCount == 1 }
    scene.pool.show(3)
    #expect(await reelError { try await scene.run { try await waiting.value } }?.kind == .usage)
    try await scene.close()
  }

  @Test("Ends when its task is cancelled, and when the pool is closed")
  func ending() async throws {
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains("hls-ts") ? .hold : .none }
    let scene = try PoolScene(Self.good, fetcher: fetcher)
    try scene.show(0)
    let cancelled = scene.begin { try await scene.pool.ready(1) }
    try await scene.until { scene.pool.core.changes.observerCount == 1 }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await scene.run { try await cancelled.value } }
    let closed = scene.begin { try await scene.pool.ready(1) }
    try await scene.until { scene.pool.core.changes.observerCount == 1 }
    try await scene.close()
    #expect(await reelError { try await closed.value }?.kind == .closed)
    #expect(await reelError { try await scene.ready(1) }?.kind == .closed)
  }
}
