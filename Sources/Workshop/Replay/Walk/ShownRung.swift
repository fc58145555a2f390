/// A rung that was on show during a visit to an item, from its first frame until another rung's.
public struct ShownRung: Sendable, Hashable {
  /// The rung's id in its manifest; `nil` for a media file.
  public var rung: String?
  /// The rung's bit rate as the manifest states it, in bits per second; `nil` if it states none.
  public var bitRate: Int?
  /// The media time of the frames shown.
  public var duration: Duration

  /// A rung and how much of it was shown.
  public init(rung: String?, bitRate: Int?, duration: Duration) {
    self.rung = rung
    self.bitRate = bitRate
    self.duration = duration
  }
}

extension ShownRung: Codable {
  private enum CodingKeys: String, CodingKey {
    case rung
    case bitRate = "bit_rate"
    case duration = "shown_ms"
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encodeIfPresent(rung, forKey: .rung)
    try values.encodeIfPresent(bitRate, forKey: .bitRate)
    try values.encode(milliseconds: duration, forKey: .duration)
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      rung: try values.decodeIfPresent(String.self, forKey: .rung),
      bitRate: try values.decodeIfPresent(Int.self, forKey: .bitRate),
      duration: try values.decodeMilliseconds(forKey: .duration))
  }
}
