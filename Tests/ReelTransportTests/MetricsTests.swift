import Foundation
import ReelCore
import ReelTesting
import ReelTransport
import ReelTestSupport
import Testing

@Suite("Metrics", .hangLimit)
struct MetricsTests {
  @Test("A request that ends well is reported once, with all that is known")
  func success() async throws {
    try await Origin.use(.init(routes: ["/a": .init(pattern(300_000))])) { origin in
      let reports = Reports()
      let fetcher = quickFetcher()
      for _ in 0..<2 {
        let response = try await fetcher.fetch(reports.request(origin.url("a"), purpose: .initialization))
        let before = reports.all.count
        _ = try await response.body.collect(upTo: 1 << 20)
        #expect(reports.all.count == before + 1)
      }
      for metrics in reports.all {
        #expect(metrics.url == origin.url("a"))
        #expect(metrics.purpose == .initialization)
        #expect(metrics.status == 200)
        #expect(metrics.byteCount == 300_000)
        #expect(metrics.requestCount == 1)
        #expect(metrics.redirectCount == 0)
        #expect(metrics.timeToFirstByte.map { $0 > .zero } == true)
        #expect(metrics.transferTime >= .zero)
      }
      #expect(reports.all.map(\.reusedConnection) == [false, true])
      #expect(origin.snapshot.acceptedConnectionCount == 1)
    }
  }

  @Test("A refusal is reported with its status")
  func refusal() async throws {
    try await Origin.use(.init()) { origin in
      let reports = Reports()
      _ = await reelError { _ = try await quickFetcher().fetch(reports.request(origin.url("a"))) }
      let metrics = try #require(reports.all.first)
      #expect(reports.all.count == 1)
      #expect(metrics.status == 404)
      #expect(metrics.timeToFirstByte == nil)
      #expect(metrics.byteCount == 0)
    }
  }

  @Test("An empty body has no first byte")
  func emptyBody() async throws {
    try await Origin.use(.init(routes: ["/a": .init([])])) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a")))
      #expect(response.bodyByteCount == 0)
      let body = try await response.body.collect(upTo: 10)
      #expect(body.isEmpty)
      #expect(reports.all.map(\.timeToFirstByte) == [nil])
    }
  }
}
