internal import ReelPool

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

/// Percentiles of the waits for the first or second frame: of all swipes, of hits and of misses.
///
/// A hit is a swipe that found the first frame decoded when it settled.
public struct LatencyTable: Sendable, Hashable {
  /// The swipe with the longest wait; the first of several.
  package struct Slowest: Sendable, Hashable {
    /// The swipe's number.
    package let swipe: Int
    package let itemIndex: Int
    package let itemID: String
    package let duration: Duration
    package let cause: String?
    /// True if the item was left before the frame came. The wait is then a lower bound.
    package let isAbandoned: Bool
  }

  /// The waits of all swipes that count; `nil` if none does.
  public let all: LatencySummary?
  /// The waits of hits; `nil` if there are none.
  public let hits: LatencySummary?
  /// The waits of misses; `nil` if there are none.
  public let misses: LatencySummary?
  package let slowest: Slowest?

  /// `measured` returns the measured time of a swipe; `counted` its wait as statistics count it, or nil if they do not.
  init(
    _ swipes: [SwipeRecord], measured: (SwipeRecord) -> Duration?, counted: (SwipeRecord) -> Duration?
  ) {
    let waits = swipes.compactMap { swipe in counted(swipe).map { (swipe: swipe, duration: $0) } }
    all = LatencySummary(waits.map(\.duration))
    hits = LatencySummary(waits.filter(\.swipe.isHit).map(\.duration))
    misses = LatencySummary(waits.filter { !$0.swipe.isHit }.map(\.duration))
    let longest = all?.max
    slowest = waits.first { $0.duration == longest }.map { wait in
      Slowest(
        swipe: wait.swipe.number, itemIndex: wait.swipe.itemIndex, itemID: wait.swipe.itemID,
        duration: wait.duration, cause: wait.swipe.cause, isAbandoned: measured(wait.swipe) == nil)
    }
  }
}

extension LatencyTable: Encodable {}

extension LatencyTable.Slowest: Encodable {
  private enum CodingKeys: String, CodingKey {
    case swipe, cause
    case itemIndex = "item_index"
    case itemID = "item_id"
    case duration = "time_ms"
    case isAbandoned = "abandoned"
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(swipe, forKey: .swipe)
    try values.encode(itemIndex, forKey: .itemIndex)
    try values.encode(itemID, forKey: .itemID)
    try values.encode(milliseconds: duration, forKey: .duration)
    try values.encodeIfPresent(cause, forKey: .cause)
    try values.encode(isAbandoned, forKey: .isAbandoned)
  }
}

/// How long a part of an item's way to its first frame took.
package struct StageTime: Sendable, Hashable {
  /// The part's name: `manifest`, `segment`, `decode`.
  package let stage: String
  package let duration: Duration

  package init(stage: String, duration: Duration) {
    self.stage = stage
    self.duration = duration
  }
}

extension StageTime: CustomStringConvertible {
  /// `segment 201 ms`.
  package var description: String { "\(stage) \(DurationText.readable(duration))" }
}

extension StageTime: Codable {
  private enum CodingKeys: String, CodingKey {
    case stage
    case duration = "time_ms"
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(stage, forKey: .stage)
    try values.encode(milliseconds: duration, forKey: .duration)
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      stage: try values.decode(String.self, forKey: .stage),
      duration: try values.decodeMilliseconds(forKey: .duration))
  }
}
