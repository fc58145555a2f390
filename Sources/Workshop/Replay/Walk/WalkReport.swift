/// The result of a walk: a record of every swipe, and the costs of the walk.
///
/// In JSON, keys are in snake_case; times end with `_ms` and are precise to the microsecond; sizes end with `_bytes`.
/// Totals are written along with the swipes, and computed again when a report is decoded.
public struct WalkReport: Sendable, Hashable {
  /// An item that failed.
  public struct FailedItem: Sendable, Hashable, Codable {
    /// The item's index in the feed.
    public var index: Int
    /// The description of the item's identity.
    public var id: String
    /// The description of the error.
    public var error: String

    /// A failed item.
    public init(index: Int, id: String, error: String) {
      self.index = index
      self.id = id
      self.error = error
    }

    private enum CodingKeys: String, CodingKey {
      case index = "item_index"
      case id = "item_id"
      case error
    }
  }

  /// A label that distinguishes the report from others that it is compared with.
  public var label: String
  /// The settings of the walk.
  public var settings: WalkSettings
  /// The records of all swipes in order; the first one is the start of the walk.
  public var swipes: [SwipeRecord] = []
  /// The duration of the walk on the pool's clock.
  public var duration: Duration = .zero
  /// The bytes fetched for all items, including items that were never shown.
  public var fetchedByteCount: Int64 = 0
  /// The part of `fetchedByteCount` that was never shown: all bytes of items that were never on the surface, and of the
  /// others the bytes left when they were evicted.
  public var unshownByteCount: Int64 = 0
  /// The frames decoded for all items.
  public var decodedFrameCount = 0
  /// The part of `decodedFrameCount` that was never shown.
  public var unshownFrameCount = 0
  /// The peak memory of each slot, in bytes; empty if it was not measured.
  public var slotHighWaterByteCounts: [Int] = []
  /// The peak memory of all slots together, in bytes; `nil` if it was not measured.
  public var poolHighWaterByteCount: Int?
  /// The items that failed, each once, in the order of their first failure.
  public var failedItems: [FailedItem] = []
  /// True if the walk was cancelled. The report then covers the time until that moment.
  public var isInterrupted = false
  /// The outcomes of the assertions that were evaluated for the report, if any. Written to JSON, but not decoded.
  public var assertions: [WalkAssertion.Outcome] = []

  /// An empty report.
  public init(label: String, settings: WalkSettings) {
    self.label = label
    self.settings = settings
  }

  /// Adds items that failed. Their error is that of each swipe to them that saw no frame, and its cause.
  mutating func noteFailures(_ items: [FailedItem]) {
    failedItems = (failedItems + items).sorted { $0.index < $1.index }
    for item in items {
      for place in swipes.indices where swipes[place].itemIndex == item.index {
        swipes[place].noteFailure(item.error)
      }
    }
  }

  /// The figures of the whole walk, computed from the records.
  public var totals: WalkTotals { WalkTotals(self) }
}
