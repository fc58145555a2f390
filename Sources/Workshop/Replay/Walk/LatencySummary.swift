/// Percentiles of waits, by nearest rank.
///
/// The p-th percentile of n values is the value at position ceil(p × n ÷ 100) in sorted order, counted from 1. It is
/// always a measured value. The 99th percentile of fewer than 100 values is the largest.
public struct LatencySummary: Sendable, Hashable {
  /// The number of values.
  public let count: Int
  /// The median.
  public let p50: Duration
  /// The 95th percentile.
  public let p95: Duration
  /// The 99th percentile.
  public let p99: Duration
  /// The largest value.
  public let max: Duration
  /// The number of values over 100 ms.
  public let over100msCount: Int
  /// The number of values over 1 s.
  public let over1sCount: Int

  /// The share of values over 100 ms, from 0 to 1.
  public var shareOver100ms: Double { Double(over100msCount) / Double(count) }
  /// The share of values over 1 s, from 0 to 1.
  public var shareOver1s: Double { Double(over1sCount) / Double(count) }

  /// The percentiles of `values`; `nil` if there are none.
  public init?(_ values: some Sequence<Duration>) {
    let sorted = values.sorted()
    guard let last = sorted.last else { return nil }
    count = sorted.count
    p50 = Self.percentile(50, of: sorted)
    p95 = Self.percentile(95, of: sorted)
    p99 = Self.percentile(99, of: sorted)
    max = last
    over100msCount = sorted.count { $0 > .milliseconds(100) }
    over1sCount = sorted.count { $0 > .seconds(1) }
  }

  // MARK: - Private

  private static func percentile(_ percent: Int, of sorted: [Duration]) -> Duration {
    sorted[(sorted.count * percent + 99) / 100 - 1]
  }
}

extension LatencySummary: Encodable {
  private enum CodingKeys: String, CodingKey {
    case count
    case p50 = "p50_ms"
    case p95 = "p95_ms"
    case p99 = "p99_ms"
    case max = "max_ms"
    case shareOver100ms = "over_100ms"
    case shareOver1s = "over_1s"
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(count, forKey: .count)
    try values.encode(milliseconds: p50, forKey: .p50)
    try values.encode(milliseconds: p95, forKey: .p95)
    try values.encode(milliseconds: p99, forKey: .p99)
    try values.encode(milliseconds: max, forKey: .max)
    try values.encode(shareOver100ms, forKey: .shareOver100ms)
    try values.encode(shareOver1s, forKey: .shareOver1s)
  }
}
