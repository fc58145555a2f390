import Foundation
import ReelCore
import ReelLab
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelPool

@Suite("A pool with items that can't be played", .hangLimit) struct PoolFailureTests {
  static let good = ["media/h264-bframes.mp4", "hls-ts/master.m3u8", "media/h264.ts", "hls-fmp4/master.m3u8"]
  static let broken = [
    "bad/text.mp4", "bad/empty.mp4", "bad/html.m3u8", "bad/not-xml.mpd", "bad/audio-only.mp4",
    "bad/cut-in-moov.mp4",
    "nowhere/none.mp4",
  ]

  @Test("A broken item fails alone: its slot says so, and its neighbours play", arguments: broken)
  func alone(_ path: String) async throws {
    let scene = try PoolScene([Self.good[0], path, Self.good[1]])
    try await scene.rest(at: 0)
    try await scene.rest(at: 1)
    let readiness = try #require(scene.readiness(1))
    guard case .failed(let error) = readiness.status else {
      Issue.record("\(readiness)")
      return
    }
    #expect(error.location != nil)
    #expect(readiness.waiting == .failed)
    #expect(scene.events.contains(.player(scene.id(1), .failed(error))))
    #expect(!scene.pool.currentPlayer.map(\.hasFrame)!)
    try await scene.rest(at: 2)
    let count = scene.shown.count
    try await scene.until { scene.shown.count > count + 3 }
    #expect(scene.readiness(2)?.timeControlStatus == .playing)
    try await scene.close()
  }

  @Test("Who asks is told of a failure when it happens, and when its item is shown")
  func handler() async throws {
    let told = Locked<[FeedItem.ID]>([])
    let scene = try PoolScene([Self.good[0], "bad/text.mp4"])
    scene.pool.setFailureHandler { id, _ in told.withLock { $0.append(id) } }
    try await scene.rest(at: 0)
    try await scene.until { told.withLock { $0 } == [scene.id(1)] }
    let item = scene.item(1)
    try scene.show(1)
    try await scene.until { told.withLock { $0 } == [scene.id(1), scene.id(1)] }
    // It would fail once more.
    #expect(scene.item(1) === item)
    scene.pool.setFailureHandler(nil)
    try scene.show(0)
    try scene.show(1)
    try await scene.rest()
    #expect(told.withLock { $0.count } == 2)
    try await scene.close()
  }

  @Test("What may pass is tried again when it is shown")
  func temporary() async throws {
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.contains("h264.ts") ? .error(ReelError(.network, "the connection was lost")) : .none
    }
    let scene = try PoolScene([Self.good[0], Self.good[2]], fetcher: fetcher)
    try await scene.rest(at: 0)
    #expect(scene.readiness(1)?.waiting == .failed)
    fetcher.setFault { _, _ in .none }
    try scene.show(1)
    try await scene.until { scene.readiness(1)?.status == .readyToPlay }
    let count = scene.shown.count
    try await scene.until { scene.shown.count > count + 2 }
    #expect(scene.assigned == [0, 1, 1].map(scene.id))
    #expect(scene.evicted == [scene.id(1)])
    try await scene.close()
  }

  @Test("A service skips broken items, also those that have failed as preloads", arguments: [1, 3, 6])
  func skipping(slots: Int) async throws {
    let paths = [Self.good[0]] + Self.broken + [Self.good[1]] + Self.broken
    let scene = try PoolScene(paths, slots: slots, policy: AheadPreload(4))
    let service = PlayerService(pool: scene.pool, feeds: [scene.feed], failureRule: .skip)
    service.playFirst()
    try await scene.rest()
    service.next()
    try await scene.until { service.nowPlaying.value?.index == 8 && scene.pool.surfaceItem == scene.id(8) }
    let count = scene.shown.count
    try await scene.until { scene.shown.count > count + 3 }
    // No good one is left: it ends with the last.
    service.next()
    try await scene.until { service.nowPlaying.value?.index == paths.count - 1 }
    try await scene.rest()
    #expect(service.nowPlaying.value?.index == paths.count - 1)
    // And back over all of them.
    service.previous()
    try await scene.until { service.nowPlaying.value?.index == 8 }
    try await scene.close()
  }

  @Test("A failure of the item that a player had before is not taken for one of its next item")
  func stale() async throws {
    let scene = try PoolScene(["bad/text.mp4", Self.good[0]], runtime: .system, slots: 1)
    let wrong = Locked(0)
    let good = scene.id(1)
    scene.pool.setFailureHandler { id, _ in if id == good { wrong.withLock { $0 += 1 } } }
    for round in 0..<300 {
      try scene.show(round % 2)
      if round % 10 == 0 { await Task.yield() }
    }
    try await scene.rest()
    #expect(wrong.withLock { $0 } == 0)
    #expect(!scene.events.contains { if case .player(good, .failed) = $0 { true } else { false } })
    try await scene.close()
  }

  // MARK: Readiness

  @Test("Says how far each slot is")
  func readiness() async throws {
    let scene = try PoolScene(["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-timeline/manifest.mpd"])
    scene.pool.setPlaying(false)
    try await scene.rest(at: 1)
    try await scene.until { scene.pool.readiness.value == scene.pool.slotReadiness }
    for index in 0..<3 {
      let slot = try #require(scene.readiness(index))
      #expect(slot.slot == index)
      #expect(slot.index == index)
      #expect(slot.rank == [2, 0, 1][index])
      #expect(slot.target == [.buffered, nil, .current][index])
      #expect(slot.stage == .buffered)
      #expect(slot.status == .readyToPlay)
      #expect(slot.timeControlStatus == .paused)
      #expect(slot.bufferedDuration >= .seconds(2.9))
      #expect(slot.bufferedByteCount > 10_000)
      #expect(slot.fetchedByteCount > Int64(slot.bufferedByteCount))
      #expect(slot.waiting == .atTarget)
      #expect(slot.rung != nil)
      let times = PreloadStage.ofPlayers.compactMap { slot.stageTimes[$0] }
      #expect(times.count == 4)
      #expect(times == times.sorted())
      // Each stage was told once, in order.
      let reached = scene.events.compactMap { event -> PreloadStage? in
        guard case .reached(let id, slot: index, let stage, let after) = event, id == scene.id(index),
          after == slot.stageTimes[stage]
        else { return nil }
        return stage
      }
      #expect(reached == [.manifest, .initialization, .firstFrame, .buffered])
    }
    // Cold, with all that the ring takes, and warm.
    #expect((0..<3).map { scene.readiness($0)?.frameCount } == [1, 5, 2])
    try await scene.close()
  }

  @Test("Says why a slot waits: for the source, for more important slots, for media")
  func waiting() async throws {
    let fetcher = FixtureFetcher { request, _ in
      ["h264-bframes", "segment-1"].contains { request.url.path.contains($0) } ? .hold : .none
    }
    let scene = try PoolScene(
      ["hls-ts/master.m3u8", "media/h264-bframes.mp4", "media/h264.ts"], fetcher: fetcher)
    try scene.show(1)
    try await scene.until { scene.readiness(1)?.waiting == .source }
    try await scene.until { [0, 2].allSatisfy { scene.readiness($0)?.waiting == .rank } }
    #expect([0, 2].allSatisfy { scene.readiness($0)?.stage == PreloadStage.notLoaded })
    #expect(fetcher.requests.count == 1)
    // A slot that waits for too long blocks no other.
    try await scene.until {
      let (first, last) = (scene.readiness(0), scene.readiness(2))
      return last?.waiting == .atTarget && first?.stage == .firstFrame && first?.waiting == .media
    }
    #expect(scene.readiness(1)?.waiting == .source)
    try await scene.close()
  }

  @Test("Says why a slot waits: for the next attempt")
  func waitingToRetry() async throws {
    let fetcher = FixtureFetcher { _, _ in .error(ReelError(.network, "the connection was lost")) }
    let scene = try PoolScene(
      [Self.good[0]], fetcher: fetcher,
      configure: { configuration in
        configuration.player.retryPolicy = ItemRetryPolicy(attempts: 2, baseDelay: .seconds(10))
      })
    try scene.show(0)
    try await scene.until { scene.readiness(0)?.waiting == .retry }
    fetcher.setFault { _, _ in .none }
    try await scene.until { scene.pool.currentPlayer?.hasFrame == true }
    // After a pause of which a quarter is random.
    #expect(scene.simulation.now >= .seconds(7.5))
    try await scene.close()
  }
}
