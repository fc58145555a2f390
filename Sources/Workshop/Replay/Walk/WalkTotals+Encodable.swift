internal import ReelPlayback

extension WalkTotals: Encodable {
  private enum CodingKeys: String, CodingKey {
    case swipeCount = "swipes"
    case countedSwipeCount = "counted_swipes"
    case abandonedSwipeCount = "abandoned_swipes"
    case firstFrame = "ttff"
    case secondFrame
    case hitRatio = "hit_ratio"
    case hitRatios = "hit_ratio_by_stage"
    case stallCount = "stalls"
    case stallDuration = "stalled_ms"
    case longestStall = "longest_stall_ms"
    case watchedDuration = "watched_ms"
    case rebufferingRatio = "rebuffering_ratio"
    case meanBitRate = "mean_bit_rate"
    case rungSwitchCount = "rung_switches"
    case fetchedByteCount = "fetched_bytes"
    case unshownByteCount = "unshown_bytes"
    case decodedFrameCount = "decoded_frames"
    case unshownFrameCount = "unshown_frames"
    case slotHighWaterByteCount = "slot_peak_bytes"
    case poolHighWaterByteCount = "pool_peak_bytes"
    case failedItemCount = "failed_items"
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(swipeCount, forKey: .swipeCount)
    try values.encode(countedSwipeCount, forKey: .countedSwipeCount)
    try values.encode(abandonedSwipeCount, forKey: .abandonedSwipeCount)
    try values.encode(firstFrame, forKey: .firstFrame)
    try values.encode(secondFrame, forKey: .secondFrame)
    try values.encodeIfPresent(hitRatio(), forKey: .hitRatio)
    let ratios = PreloadStage.allCases.dropFirst().compactMap { stage in
      hitRatio(stage).map { (stage.reportName, $0) }
    }
    try values.encode(Dictionary(uniqueKeysWithValues: ratios), forKey: .hitRatios)
    try values.encode(stallCount, forKey: .stallCount)
    try values.encode(milliseconds: stallDuration, forKey: .stallDuration)
    try values.encode(milliseconds: longestStall, forKey: .longestStall)
    try values.encode(milliseconds: watchedDuration, forKey: .watchedDuration)
    try values.encodeIfPresent(rebufferingRatio, forKey: .rebufferingRatio)
    try values.encodeIfPresent(meanBitRate, forKey: .meanBitRate)
    try values.encode(rungSwitchCount, forKey: .rungSwitchCount)
    try values.encode(fetchedByteCount, forKey: .fetchedByteCount)
    try values.encode(unshownByteCount, forKey: .unshownByteCount)
    try values.encode(decodedFrameCount, forKey: .decodedFrameCount)
    try values.encode(unshownFrameCount, forKey: .unshownFrameCount)
    try values.encodeIfPresent(slotHighWaterByteCount, forKey: .slotHighWaterByteCount)
    try values.encodeIfPresent(poolHighWaterByteCount, forKey: .poolHighWaterByteCount)
    try values.encode(failedItemCount, forKey: .failedItemCount)
  }
}
