/// What came of a walk: every swipe, and what it cost.
///
/// As JSON all keys are in snake_case, times in `_ms` to the microsecond and sizes in `_bytes`; totals are written beside
/// the swipes, and made from them again when a report is read.
public struct WalkReport: Sendable, Hashable {
  /// An item that could not be played.
  public struct FailedItem: Sendable, Hashable, Codable {
    /// In the feed.
    public var index: Int
    /// The item's identity in words.
    public var id: String
    /// Why, in words.
    public var error: String

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

  /// What tells this report from others that it is compared with.
  public var label: String
  public var settings: WalkSettings
  /// In their order, the start of the walk first.
  public var swipes: [SwipeRecord] = []
  /// Of the walk, on the clock that it went by.
  public var duration: Duration = .zero
  /// For all items, those that were never looked at included.
  public var fetchedByteCount: Int64 = 0
  /// Of these, what no frame or sound came of that was on show.
  public var unshownByteCount: Int64 = 0
  public var decodedFrameCount = 0
  /// Of these, what was never on show.
  public var unshownFrameCount = 0
  /// The most memory that each slot ever took, in bytes, by slot; empty where it was not measured.
  public var slotHighWaterByteCounts: [Int] = []
  /// The most that all of them took at one time; nil where it was not measured.
  public var poolHighWaterByteCount: Int?
  /// Each once, in the order in which they failed.
  public var failedItems: [FailedItem] = []

  public init(label: String, settings: WalkSettings) {
    self.label = label
    self.settings = settings
  }

  /// The figures of the whole walk.
  public var totals: WalkTotals { WalkTotals(self) }
}
