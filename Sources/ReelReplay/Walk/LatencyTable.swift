/// Waits for one thing, of all swipes and by whether the first frame was there when they settled.
public struct LatencyTable: Sendable, Hashable {
  /// The swipe that waited longest, the first of several.
  package struct Slowest: Sendable, Hashable {
    /// The swipe's number.
    package let swipe: Int
    package let itemIndex: Int
    package let itemID: String
    package let duration: Duration
    package let cause: String?
    /// It was left before the frame came: the wait is the least that it can have been.
    package let isAbandoned: Bool
  }

  /// Nil where no swipe counts.
  public let all: LatencySummary?
  public let hits: LatencySummary?
  public let misses: LatencySummary?
  package let slowest: Slowest?

  /// `measured` gives the time that was measured for a swipe; `counted` its wait as it counts, nil where it does not.
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
