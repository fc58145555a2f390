import ReelPool
import ReelLab
import ReelSimulation
import Testing

@Suite("Summaries of waits")
struct LatencySummaryTests {
  /// The smallest value that at least so many percent of all are at or below, by counting.
  private static func percentile(_ percent: Int, of values: [Duration]) -> Duration? {
    values.sorted().first { value in
      values.filter { $0 <= value }.count * 100 >= percent * values.count
    }
  }

  @Test("Percentiles by nearest rank", arguments: 1..<60)
  func nearestRank(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let values = (0..<Int(seed) * 7).map { _ in Duration.microseconds(Int64(random.next() % 50)) }
    let summary = try #require(LatencySummary(values))
    #expect(summary.count == values.count)
    #expect(summary.p50 == Self.percentile(50, of: values))
    #expect(summary.p95 == Self.percentile(95, of: values))
    #expect(summary.p99 == Self.percentile(99, of: values))
    #expect(summary.max == values.max())
  }

  @Test("A hundred values, and none")
  func known() throws {
    let summary = try #require(LatencySummary((1...100).reversed().map { .milliseconds($0) }))
    #expect(summary.p50 == .milliseconds(50))
    #expect(summary.p95 == .milliseconds(95))
    #expect(summary.p99 == .milliseconds(99))
    #expect(summary.max == .milliseconds(100))
    #expect(LatencySummary([]) == nil)
    let waits = LatencySummary([.zero, .milliseconds(100), .microseconds(100_001), .seconds(1), .seconds(2)])
    #expect(waits?.over100msCount == 3)
    #expect(waits?.over1sCount == 1)
    #expect(waits?.mean == .nanoseconds(640_000_200))
  }
}
