import Foundation
import Metrics
import MetricsTestKit
import Reel
import ReelTestSupport
import ReelTesting
import Synchronization
import Testing

@Suite("Metrics", .hangLimit) struct MetricsTests {
  private static func page() throws -> String {
    try String(
      contentsOf: Fixtures.folder.deletingLastPathComponent().appending(path: "Docs/Library.md"),
      encoding: .utf8)
  }

  @Test("An observer is told of each request")
  func observer() async throws {
    try await Origin.use { origin in
      let lines = Mutex<[String]>([])
      try await traceRequests(of: origin.url("hls-fmp4/master.m3u8")) { line in
        lines.withLock { $0.append(line) }
      }
      let told = lines.withLock { $0 }
      #expect(told.first?.hasPrefix("source /hls-fmp4/master.m3u8: completed, ") == true, "\(told)")
      #expect(told.contains { $0.hasPrefix("segment ") && $0.contains("completed") }, "\(told)")
    }
  }

  @Test("Requests, bytes, the start and frames are counted for a program that collects metrics")
  func player() async throws {
    let metrics = TestMetrics()
    let byteCounts = Mutex<[Int64]>([])
    try await Origin.use { origin in
      let player = withMetricsFactory(metrics) {
        Player(
          fetcher: TransportFetcher { request in byteCounts.withLock { $0.append(request.byteCount) } })
      }
      player.replaceCurrentItem(with: PlayerItem(url: origin.url("hls-fmp4/master.m3u8")))
      player.play()
      try await player.playToEnd()
      let statistics = player.statistics
      await player.stopAndWait()

      #expect(metrics.counterTotal(label: "reel_requests") == origin.requestLog.count)
      let failed = [("purpose", "segment"), ("outcome", "failed")]
      #expect(metrics.counterTotal(label: "reel_requests", dimensions: failed) == 0)
      let sources = [("purpose", "source"), ("outcome", "completed")]
      #expect(metrics.counterTotal(label: "reel_requests", dimensions: sources) == 1)
      let received = byteCounts.withLock { $0.reduce(0, +) }
      #expect(received > 10_000)
      #expect(metrics.counterTotal(label: "reel_request_bytes") == received)
      #expect(!metrics.timers(label: "reel_request_first_byte").flatMap(\.values).isEmpty)

      func frames(_ outcome: String) -> Int64 {
        metrics.counterTotal(label: "reel_frames", dimensions: [("outcome", outcome)])
      }
      #expect(frames("shown") == Int64(statistics.shownFrameCount))
      #expect(frames("decoded") == Int64(statistics.decodedFrameCount))
      #expect(frames("dropped") == Int64(statistics.droppedFrameCount))
      #expect(try metrics.expectTimer("reel_startup").values.count == 1)
      let stage = try metrics.expectTimer("reel_startup_stage", [("stage", "manifest")])
      #expect(stage.values.count == 1)
    }
  }

  @Test("Rebuffering and retries are counted")
  func stall() async throws {
    let metrics = TestMetrics()
    let faults = try FaultRule.parse("master.m3u8=status:503x1, segment-1.m4s=delay:8s")
    try await Origin.use(.init(directory: Fixtures.folder, faults: faults)) { origin in
      let player = withMetricsFactory(metrics) { Player(url: origin.url("hls-fmp4/master.m3u8")) }
      player.play()
      try await player.playToEnd()
      #expect(try metrics.expectCounter("reel_request_retries", [("purpose", "source")]).totalValue == 1)
      #expect(player.statistics.stallCount > 0)
      #expect(metrics.counterTotal(label: "reel_stalls") == player.statistics.stallCount)
      let lasted = metrics.timers(label: "reel_stall_duration").flatMap(\.values)
      #expect(lasted.count == player.statistics.stallCount)
      // Each is recorded in whole nanoseconds.
      let stalled = player.statistics.stallDuration / .nanoseconds(1)
      #expect(abs(Double(lasted.reduce(0, +)) - stalled) <= Double(lasted.count))
    }
  }

  @Test("The guide lists the metrics that Reel reports")
  func names() throws {
    let metrics = TestMetrics()
    _ = withMetricsFactory(metrics) { Player(playerItem: nil) }
    let labels = Set(metrics.counters.map(\.label) + metrics.timers.map(\.label))
    #expect(labels.count == 9)
    let page = try Self.page()
    for label in labels { #expect(page.contains("| `\(label)` |"), "\(label)") }
  }
}
