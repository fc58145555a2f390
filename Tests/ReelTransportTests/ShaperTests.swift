import Foundation
import ReelCore
import ReelTesting
import ReelTransport
import Testing

/// The modelled link. Its times are real ones, so the bounds are loose; a quiet machine keeps far closer ones.
@Suite("The modelled link", .serialized, .timeLimit(.minutes(1)))
struct ShaperTests {
  @Test("A transfer has the stated rate")
  func rate() async throws {
    let link = try LinkSpec(parsing: "20Mbit/20ms")
    try await withOrigin(.init(routes: ["/a": .init(pattern(1_000_000))], link: link)) { origin in
      let reports = Reports()
      let fetcher = quickFetcher()
      _ = try await fetcher.fetch(reports.request(origin.url("a"))).body.collect(upTo: 1 << 20)
      let metrics = try #require(reports.all.first)
      print("SHAPER", metrics.timeToFirstByte!, metrics.transferTime)
      #expect(metrics.transferTime > .milliseconds(395))
      #expect(metrics.transferTime < .milliseconds(600))
    }
  }
}
