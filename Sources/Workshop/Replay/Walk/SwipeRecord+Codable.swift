internal import ReelPlayback

extension SwipeRecord: Codable {
  private enum CodingKeys: String, CodingKey {
    case number = "swipe"
    case time = "time_ms"
    case kind
    case isPassing = "passing"
    case itemIndex = "item_index"
    case itemID = "item_id"
    case stage
    case isHit = "hit"
    case watched = "watched_ms"
    case timeToFirstFrame = "ttff_ms"
    case timeToSecondFrame = "second_frame_ms"
    case isStill = "still"
    case cause
    case stallCount = "stalls"
    case stallDuration = "stalled_ms"
    case longestStall = "longest_stall_ms"
    case stageTimes = "stages"
    case waitParts = "wait"
    case loadedByteCount = "loaded_bytes"
    case rung
    case rungBitRate = "rung_bits_per_second"
    case byteCount = "fetched_bytes"
    case rungs, error
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(number, forKey: .number)
    try values.encode(milliseconds: time, forKey: .time)
    try values.encode(kind, forKey: .kind)
    try values.encode(isPassing, forKey: .isPassing)
    try values.encode(itemIndex, forKey: .itemIndex)
    try values.encode(itemID, forKey: .itemID)
    try values.encode(stage.reportName, forKey: .stage)
    try values.encode(isHit, forKey: .isHit)
    try values.encode(milliseconds: watched, forKey: .watched)
    try values.encode(millisecondsIfPresent: timeToFirstFrame, forKey: .timeToFirstFrame)
    try values.encode(millisecondsIfPresent: timeToSecondFrame, forKey: .timeToSecondFrame)
    try values.encode(isStill, forKey: .isStill)
    try values.encodeIfPresent(cause, forKey: .cause)
    try values.encode(stallCount, forKey: .stallCount)
    try values.encode(milliseconds: stallDuration, forKey: .stallDuration)
    try values.encode(milliseconds: longestStall, forKey: .longestStall)
    try values.encode(stageTimes, forKey: .stageTimes)
    try values.encode(waitParts, forKey: .waitParts)
    try values.encode(loadedByteCount, forKey: .loadedByteCount)
    try values.encodeIfPresent(rung, forKey: .rung)
    try values.encodeIfPresent(rungBitRate, forKey: .rungBitRate)
    try values.encode(byteCount, forKey: .byteCount)
    try values.encode(rungs, forKey: .rungs)
    try values.encodeIfPresent(error, forKey: .error)
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    guard let stage = PreloadStage(reportName: try values.decode(String.self, forKey: .stage)) else {
      throw DecodingError.dataCorruptedError(forKey: .stage, in: values, debugDescription: "no stage")
    }
    self.init(
      number: try values.decode(Int.self, forKey: .number),
      time: try values.decodeMilliseconds(forKey: .time),
      kind: try values.decode(SwipeKind.self, forKey: .kind),
      itemIndex: try values.decode(Int.self, forKey: .itemIndex),
      itemID: try values.decode(String.self, forKey: .itemID), stage: stage)
    isPassing = try values.decode(Bool.self, forKey: .isPassing)
    watched = try values.decodeMilliseconds(forKey: .watched)
    timeToFirstFrame = try values.decodeMillisecondsIfPresent(forKey: .timeToFirstFrame)
    timeToSecondFrame = try values.decodeMillisecondsIfPresent(forKey: .timeToSecondFrame)
    isStill = try values.decode(Bool.self, forKey: .isStill)
    cause = try values.decodeIfPresent(String.self, forKey: .cause)
    stallCount = try values.decode(Int.self, forKey: .stallCount)
    stallDuration = try values.decodeMilliseconds(forKey: .stallDuration)
    longestStall = try values.decodeMilliseconds(forKey: .longestStall)
    stageTimes = try values.decode([StageTime].self, forKey: .stageTimes)
    waitParts = try values.decodeIfPresent([StageTime].self, forKey: .waitParts) ?? []
    loadedByteCount = try values.decodeIfPresent(Int64.self, forKey: .loadedByteCount) ?? 0
    rung = try values.decodeIfPresent(String.self, forKey: .rung)
    rungBitRate = try values.decodeIfPresent(Int.self, forKey: .rungBitRate)
    byteCount = try values.decode(Int64.self, forKey: .byteCount)
    rungs = try values.decodeIfPresent([ShownRung].self, forKey: .rungs) ?? []
    error = try values.decodeIfPresent(String.self, forKey: .error)
  }
}
