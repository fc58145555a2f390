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
