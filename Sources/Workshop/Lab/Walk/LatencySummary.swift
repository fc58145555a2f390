internal import ReelPool

/// Percentiles of waits, by nearest rank.
///
/// The p-th percentile of n values is the value at position ceil(p × n ÷ 100) in sorted order, counted from 1. It is
/// always a measured value. The 99th percentile of fewer than 100 values is the largest.
package struct LatencySummary: Sendable, Hashable {
  /// The number of values.
  package let count: Int
  /// The median.
  package let p50: Duration
  /// The 95th percentile.
  package let p95: Duration
  /// The 99th percentile.
  package let p99: Duration
  /// The largest value.
  package let max: Duration
  package let mean: Duration
  /// The number of values over 100 ms.
  package let over100msCount: Int
  /// The number of values over 1 s.
  package let over1sCount: Int

  /// The percentiles of `values`; `nil` if there are none.
  package init?(_ values: some Sequence<Duration>) {
    let sorted = values.sorted()
    guard let last = sorted.last else { return nil }
    count = sorted.count
    p50 = sorted.percentile(50)
    p95 = sorted.percentile(95)
    p99 = sorted.percentile(99)
    max = last
    mean = sorted.reduce(.zero, +) / sorted.count
    over100msCount = sorted.count { $0 > .milliseconds(100) }
    over1sCount = sorted.count { $0 > .seconds(1) }
  }
}

extension Array {
  /// The percentile by nearest rank, of sorted values.
  func percentile(_ percent: Int) -> Element { self[(count * percent + 99) / 100 - 1] }
}

extension LatencySummary: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "count": count, "p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "max_ms": max,
      "over_100ms": Double(over100msCount) / Double(count), "over_1s": Double(over1sCount) / Double(count),
    ])
  }
}

/// Percentiles of the waits for the first or second frame: of all swipes, of hits and of misses.
///
/// A hit is a swipe that found the first frame decoded when its drag ended.
package struct LatencyTable: Sendable, Hashable {
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
  package let all: LatencySummary?
  /// The waits of hits; `nil` if there are none.
  package let hits: LatencySummary?
  /// The waits of misses; `nil` if there are none.
  package let misses: LatencySummary?
  package let slowest: Slowest?

  /// - Parameters:
  ///  - measured: Returns the measured time of a swipe.
  ///  - counted: Returns the wait of a swipe for statistics, or nil if it does not count.
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

extension LatencyTable.Slowest: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "swipe": swipe, "item_index": itemIndex, "item_id": itemID, "time_ms": duration, "cause": cause,
      "abandoned": isAbandoned,
    ])
  }
}

/// The duration of a part of an item's loading up to its first frame.
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

extension StageTime: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode(["stage": stage, "time_ms": duration])
  }
}
