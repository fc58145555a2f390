public import ReelCore

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
