import Foundation
import ReelCore
import ReelLab
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPool
import ReelReading

@Suite("Waiting for the first frame of a swipe", .hangLimit) struct PoolFirstFrameTests {
  static let good = ["media/h264-bframes.mp4", "hls-ts/master.m3u8", "media/h264.ts"]

  @Test("A miss tells how long the viewer has waited")
  func miss() async throws {
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains("hls-ts") ? .hold : .none }
    let scene = try PoolScene(Self.good, policy: NoPreload(), fetcher: fetcher)
    let simulation = scene.simulation
    scene.pool.setPlaying(false)
    try await scene.rest(at: 0)
    let swipe = scene.pool.show(1)
    #expect(swipe.frame == nil)
    #expect(!swipe.isHit)
    #expect(swipe.duration == WaitTime(.zero, isOver: false))
    #expect(swipe.description == "no frame yet (not loaded) after 0 ms so far")
    await simulation.run(until: simulation.now + .milliseconds(1_204))
    fetcher.release()
    let shown = try await scene.firstFrame(of: swipe)
    #expect(shown.duration == WaitTime(.milliseconds(1_204)))
    #expect("\(shown.duration)" == "1.204 s")
    #expect(shown.frame?.item == scene.id(1))
    #expect(shown.frame?.time == scene.shown.last?.time)
    #expect(shown.isHit)
    // It was shown at that time, however late somebody asks.
    await simulation.run(until: simulation.now + .seconds(60))
    #expect(try await scene.firstFrame(of: swipe).duration == shown.duration)
    try await scene.close()
  }

  @Test("A broken item says that it is broken, and why", arguments: ["bad/text.mp4", "nowhere/none.mp4"])
  func broken(_ path: String) async throws {
    let scene = try PoolScene([Self.good[0], path], policy: NoPreload())
    try await scene.rest(at: 0)
    let swipe = scene.pool.show(1)
    #expect(swipe.error == nil)
    let error = try #require(await reelError { try await scene.firstFrame(of: swipe) })
    #expect(scene.item(1)?.status.value == .failed(error))
    // Whoever swipes to it again knows at once.
    let again = scene.pool.show(1)
    #expect(again.error == error)
    #expect(again.description == "no frame: \(error)")
    #expect(await reelError { try await scene.firstFrame(of: again) } == error)
    try await scene.close()
  }

  @Test("An item whose failure may pass is waited for again")
  func temporary() async throws {
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.contains("h264.ts") ? .error(ReelError(.network, "the connection was lost")) : .none
    }
    let scene = try PoolScene([Self.good[0], Self.good[2]], fetcher: fetcher)
    try await scene.rest(at: 0)
    #expect(scene.readiness(1)?.waiting == .failed)
    fetcher.setFault { _, _ in .none }
    let swipe = scene.pool.show(1)
    #expect(swipe.error == nil)
    #expect(try await scene.firstFrame(of: swipe).frame?.item == scene.id(1))
    try await scene.close()
  }

  @Test("Ends when another item is shown, and when the pool is closed")
  func ending() async throws {
    let scene = try PoolScene(Self.good, policy: NoPreload(), fetcher: FixtureFetcher { _, _ in .hold })
    let first = scene.pool.show(0, of: scene.snapshot)
    let second = scene.pool.show(1)
    let superseded = await reelError { try await scene.firstFrame(of: first) }
    #expect(superseded?.kind == .superseded && superseded?.location == scene.id(0).description)
    let waiting = scene.begin { try await second.firstFrame() }
    try await scene.until { scene.pool.core.changes.observerCount == 1 }
    try await scene.close()
    #expect(await reelError { _ = try await waiting.value }?.kind == .closed)
    #expect(scene.pool.show(0).error?.kind == .closed)
    #expect(await reelError { try await first.firstFrame() }?.kind == .closed)
  }

  @Test("An index that the feed does not have gives an error, and changes nothing", arguments: [-1, 3, .max])
  func outside(_ index: Int) async throws {
    let scene = try PoolScene(Self.good)
    try scene.show(0)
    let swipe = scene.pool.show(index)
    #expect(swipe.error?.kind == .usage)
    #expect(swipe.frame == nil)
    #expect(await reelError { try await scene.firstFrame(of: swipe) } == swipe.error)
    #expect(scene.pool.currentItem?.id == scene.id(0))
    try await scene.close()
  }

  @Test(
    "Waits print as people write them",
    arguments: [
      (Duration.nanoseconds(55_200), "0.055 ms"), (.zero, "0 ms"), (.milliseconds(33.3), "33.3 ms"),
      (.milliseconds(1_204), "1.204 s"), (.seconds(75), "75 s"),
    ])
  func text(_ duration: Duration, text: String) {
    #expect("\(WaitTime(duration))" == text)
    #expect("\(WaitTime(duration, isOver: false))" == "\(text) so far")
  }
}
