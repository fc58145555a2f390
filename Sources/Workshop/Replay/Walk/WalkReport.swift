public import ReelCore
internal import ReelPlayback
public import ReelPool

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
  mutating func recordFailures(_ items: [FailedItem]) {
    failedItems = (failedItems + items).sorted { $0.index < $1.index }
    for item in items {
      for place in swipes.indices where swipes[place].itemIndex == item.index {
        swipes[place].recordFailure(item.error)
      }
    }
  }

  /// The figures of the whole walk, computed from the records.
  public var totals: WalkTotals { WalkTotals(self) }
}

extension WalkReport: Codable {
  private enum CodingKeys: String, CodingKey {
    case label, settings, swipes, totals
    case duration = "duration_ms"
    case fetchedByteCount = "fetched_bytes"
    case unshownByteCount = "unshown_bytes"
    case decodedFrameCount = "decoded_frames"
    case unshownFrameCount = "unshown_frames"
    case slotHighWaterByteCounts = "slot_peak_bytes"
    case poolHighWaterByteCount = "pool_peak_bytes"
    case failedItems = "failed_items"
    case isInterrupted = "interrupted"
    case assertions
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(label, forKey: .label)
    try values.encode(settings, forKey: .settings)
    try values.encode(swipes, forKey: .swipes)
    try values.encode(totals, forKey: .totals)
    try values.encode(milliseconds: duration, forKey: .duration)
    try values.encode(fetchedByteCount, forKey: .fetchedByteCount)
    try values.encode(unshownByteCount, forKey: .unshownByteCount)
    try values.encode(decodedFrameCount, forKey: .decodedFrameCount)
    try values.encode(unshownFrameCount, forKey: .unshownFrameCount)
    try values.encode(slotHighWaterByteCounts, forKey: .slotHighWaterByteCounts)
    try values.encodeIfPresent(poolHighWaterByteCount, forKey: .poolHighWaterByteCount)
    try values.encode(failedItems, forKey: .failedItems)
    if isInterrupted { try values.encode(true, forKey: .isInterrupted) }
    if !assertions.isEmpty { try values.encode(assertions, forKey: .assertions) }
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      label: try values.decode(String.self, forKey: .label),
      settings: try values.decode(WalkSettings.self, forKey: .settings))
    swipes = try values.decode([SwipeRecord].self, forKey: .swipes)
    duration = try values.decodeMilliseconds(forKey: .duration)
    fetchedByteCount = try values.decode(Int64.self, forKey: .fetchedByteCount)
    unshownByteCount = try values.decode(Int64.self, forKey: .unshownByteCount)
    decodedFrameCount = try values.decode(Int.self, forKey: .decodedFrameCount)
    unshownFrameCount = try values.decode(Int.self, forKey: .unshownFrameCount)
    slotHighWaterByteCounts = try values.decode([Int].self, forKey: .slotHighWaterByteCounts)
    poolHighWaterByteCount = try values.decodeIfPresent(Int.self, forKey: .poolHighWaterByteCount)
    failedItems = try values.decode([FailedItem].self, forKey: .failedItems)
    isInterrupted = try values.decodeIfPresent(Bool.self, forKey: .isInterrupted) ?? false
  }

  /// The report as one line of JSON, with keys in alphabetical order. Equal reports give equal bytes.
  ///
  /// - Throws: `ReelError` of kind `internalFault` if encoding fails.
  public func json() throws(ReelError) -> String { try JSONLine.string(self, of: "report") }
}

/// The settings of a walk, complete enough to repeat it.
public struct WalkSettings: Sendable, Hashable {
  /// The name or file of the feed.
  public var feed: String
  /// The number of items in the feed.
  public var itemCount: Int
  /// The number of slots in the pool.
  public var slotCount: Int
  /// The preload policy, such as `adjacent`.
  public var policy: String
  /// The modelled link, such as `10Mbit/50ms`; `nil` for the real network.
  public var link: String?
  /// The dwell times, such as `exp:5s`.
  public var dwell: String
  /// The shares of flicks, swipes back and bursts; `nil` if a trace determines the swipes, and in reports that do not
  /// state them.
  public var shares: SwipeShares?
  /// The seed of the plan.
  public var seed: UInt64
  /// True if the walk ran in a simulation. Damage and resident memory are then not measured.
  public var isVirtual: Bool
  /// The simulated time that decoding a frame cost; `nil` for the real time.
  public var decodeCost: Duration?
  /// The rung of each item's first segment.
  public var firstRung = FirstRung.adapted
  /// The device whose limits and costs applied: a name or a file; `nil` for none.
  public var device: String?

  /// Settings for a report.
  public init(
    feed: String, itemCount: Int, slotCount: Int, policy: String, link: String? = nil, dwell: String,
    shares: SwipeShares? = nil, seed: UInt64, isVirtual: Bool = false, decodeCost: Duration? = nil,
    device: String? = nil
  ) {
    self.feed = feed
    self.itemCount = itemCount
    self.slotCount = slotCount
    self.policy = policy
    self.link = link
    self.dwell = dwell
    self.shares = shares
    self.seed = seed
    self.isVirtual = isVirtual
    self.decodeCost = decodeCost
    self.device = device
  }
}

extension WalkSettings: Codable {
  private enum CodingKeys: String, CodingKey {
    case feed, policy, link, dwell, seed, device
    case shares = "swipe_shares"
    case itemCount = "items"
    case firstRung = "first_rung"
    case slotCount = "slots"
    case isVirtual = "virtual"
    case decodeCost = "decode_cost_ms"
    case notMeasured
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(feed, forKey: .feed)
    try values.encode(itemCount, forKey: .itemCount)
    try values.encode(slotCount, forKey: .slotCount)
    try values.encode(policy, forKey: .policy)
    try values.encodeIfPresent(link, forKey: .link)
    try values.encode(dwell, forKey: .dwell)
    try values.encodeIfPresent(shares, forKey: .shares)
    if firstRung != .adapted { try values.encode(firstRung.rawValue, forKey: .firstRung) }
    try values.encode(seed, forKey: .seed)
    try values.encode(isVirtual, forKey: .isVirtual)
    try values.encode(millisecondsIfPresent: decodeCost, forKey: .decodeCost)
    try values.encodeIfPresent(device, forKey: .device)
    if isVirtual { try values.encode(["damage", "resident_memory"], forKey: .notMeasured) }
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      feed: try values.decode(String.self, forKey: .feed),
      itemCount: try values.decode(Int.self, forKey: .itemCount),
      slotCount: try values.decode(Int.self, forKey: .slotCount),
      policy: try values.decode(String.self, forKey: .policy),
      link: try values.decodeIfPresent(String.self, forKey: .link),
      dwell: try values.decode(String.self, forKey: .dwell),
      shares: try values.decodeIfPresent(SwipeShares.self, forKey: .shares),
      seed: try values.decode(UInt64.self, forKey: .seed),
      isVirtual: try values.decode(Bool.self, forKey: .isVirtual),
      decodeCost: try values.decodeMillisecondsIfPresent(forKey: .decodeCost),
      device: try values.decodeIfPresent(String.self, forKey: .device))
    let rung = try values.decodeIfPresent(String.self, forKey: .firstRung)
    firstRung = rung.flatMap { FirstRung(rawValue: $0) } ?? .adapted
  }
}

extension KeyedEncodingContainer {
  /// In milliseconds, to the microsecond.
  mutating func encode(milliseconds duration: Duration, forKey key: Key) throws {
    try encode(duration.milliseconds, forKey: key)
  }

  /// Nothing is written for nil.
  mutating func encode(millisecondsIfPresent duration: Duration?, forKey key: Key) throws {
    try encodeIfPresent(duration?.milliseconds, forKey: key)
  }
}

extension KeyedDecodingContainer {
  func decodeMilliseconds(forKey key: Key) throws -> Duration {
    try duration(try decode(Double.self, forKey: key), forKey: key)
  }

  func decodeMillisecondsIfPresent(forKey key: Key) throws -> Duration? {
    try decodeIfPresent(Double.self, forKey: key).map { try duration($0, forKey: key) }
  }

  private func duration(_ milliseconds: Double, forKey key: Key) throws -> Duration {
    guard let microseconds = Int64(exactly: (milliseconds * 1e3).rounded()) else {
      throw DecodingError.dataCorruptedError(forKey: key, in: self, debugDescription: "not a duration")
    }
    return .microseconds(microseconds)
  }
}

extension PreloadStage {
  /// As reports write it.
  package var reportName: String { self == .firstFrame ? "first_frame" : String(describing: self) }

  package init?(reportName: String) {
    guard let stage = Self.allCases.first(where: { $0.reportName == reportName }) else { return nil }
    self = stage
  }
}
