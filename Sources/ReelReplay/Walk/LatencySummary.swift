/// How long waits were: percentiles by nearest rank.
///
/// The p-th percentile of n values is the value at place ceil(p × n ÷ 100) of the sorted ones, counted from 1: always
/// one that was measured. The 99th of fewer than 100 values is their largest.
public struct LatencySummary: Sendable, Hashable {
  public let count: Int
  public let p50: Duration
  public let p95: Duration
  public let p99: Duration
  public let max: Duration

  /// Nil where there are no values.
  public init?(_ values: some Sequence<Duration>) {
    let sorted = values.sorted()
    guard let last = sorted.last else { return nil }
    count = sorted.count
    p50 = Self.percentile(50, of: sorted)
    p95 = Self.percentile(95, of: sorted)
    p99 = Self.percentile(99, of: sorted)
    max = last
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
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(count, forKey: .count)
    try values.encode(milliseconds: p50, forKey: .p50)
    try values.encode(milliseconds: p95, forKey: .p95)
    try values.encode(milliseconds: p99, forKey: .p99)
    try values.encode(milliseconds: max, forKey: .max)
  }
}
