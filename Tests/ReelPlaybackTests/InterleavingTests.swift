import Foundation
import ReelCore
import ReelLab
import ReelSimulation
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelPlayback
import ReelSources

@Suite("MP4 files whose audio and video are stored apart, over a link of 1.5 times their rate", .hangLimit)
struct InterleavingTests {
  private static let arrangements: [StoredMP4.Arrangement] = [
    .videoAhead(-100), .videoAhead(100), .videoAhead(-3), .videoAhead(3),
    .pieces(seconds: 3, videoFirst: false), .pieces(seconds: 3, videoFirst: true),
    .pieces(seconds: 1, videoFirst: true),
  ]
  private static let url = URL(string: "http://fixtures.test/media/apart.mp4")

  /// Counts the requests, and the bytes that the link has brought.
  private final class Counter: Fetching {
    let base: any Fetching
    let counts = Locked((requests: 0, bytes: 0))

    init(_ base: any Fetching) { self.base = base }

    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      var request = request
      counts.withLock { $0.requests += 1 }
      request.addReport { [counts] metrics in counts.withLock { $0.bytes += Int(metrics.byteCount) } }
      return try await base.fetch(request)
    }
  }

  private struct Scene {
    let bytes: [UInt8]
    let counter: Counter
    let stage: SimulatedStage

    init(_ arrangement: StoredMP4.Arrangement, indexFirst: Bool, speedup: Double = 1.5) throws {
      let bytes = try StoredMP4(try Fixtures.bytes("media/h264-long.mp4")).stored(
        arrangement, indexFirst: indexFirst)
      self.bytes = bytes
      let simulation = SimulatedRuntime()
      let rate = Int(Double(bytes.count * 8) / 8000 * speedup)
      counter = Counter(
        ThrottledFetcher(
          FixtureFetcher { _, _ in .bytes(bytes) }, link: try LinkSpec(parsing: "\(rate)kbit/50ms"),
          in: simulation))
      stage = try SimulatedStage(.url(try #require(InterleavingTests.url)), fetcher: counter, in: simulation)
    }
  }

  @Test(
    "No stall, no byte twice, a few requests, and every frame", arguments: arrangements, [true, false])
  func playing(arrangement: StoredMP4.Arrangement, indexFirst: Bool) async throws {
    let scene = try Scene(arrangement, indexFirst: indexFirst)
    scene.stage.begin()
    try await scene.stage.end()
    let statistics = scene.stage.player.statistics
    try await scene.stage.close()
    #expect(scene.stage.recording.all.map(\.md5) == (try Golden("h264-long.mp4").frames.map(\.md5)))
    #expect(statistics.stallCount == 0, "\(statistics.stallDuration)")
    let counts = scene.counter.counts.withLock { $0 }
    #expect(counts.requests <= 4)
    #expect(counts.bytes <= scene.bytes.count + 16 << 10, "\(counts.bytes) of \(scene.bytes.count)")
  }

  @Test(
    "A preload to the first frame brings no byte twice",
    arguments: [true, false])
  func preloading(indexFirst: Bool) async throws {
    let scene = try Scene(.videoAhead(-100), indexFirst: indexFirst, speedup: 20)
    scene.stage.player.preloadTarget = PreloadTarget(stage: .firstFrame)
    scene.stage.player.replaceCurrentItem(with: scene.stage.item)
    await scene.stage.simulation.runToRest()
    #expect(scene.stage.item.preloadStage.value >= .firstFrame)
    try await scene.stage.close()
    let counts = scene.counter.counts.withLock { $0 }
    #expect(counts.requests <= (indexFirst ? 2 : 3))
    #expect(counts.bytes <= scene.bytes.count + 16 << 10, "\(counts.bytes) of \(scene.bytes.count)")
  }

  @Test("Without audio, the bytes of the audio are left out")
  func muted() async throws {
    let scene = try Scene(.videoAhead(-100), indexFirst: true)
    scene.stage.player.setMuted(true)
    scene.stage.begin()
    try await scene.stage.end()
    try await scene.stage.close()
    let counts = scene.counter.counts.withLock { $0 }
    #expect(counts.requests == 2)
    #expect(counts.bytes < scene.bytes.count - 60_000, "\(counts.bytes) of \(scene.bytes.count)")
  }

  @Test("A seek goes on with a transfer for each place", arguments: [true, false])
  func seeking(indexFirst: Bool) async throws {
    let scene = try Scene(.videoAhead(-100), indexFirst: indexFirst)
    scene.stage.begin()
    try await scene.stage.run(untilLoaded: .firstFrame)
    #expect(try await scene.stage.seek(to: MediaTime(value: 5, timescale: 1)))
    let before = scene.counter.counts.withLock { $0.requests }
    try await scene.stage.end()
    let stallCount = scene.stage.player.statistics.stallCount
    try await scene.stage.close()
    #expect(scene.counter.counts.withLock { $0.requests } <= before + 2)
    #expect(stallCount == 0)
  }
}
