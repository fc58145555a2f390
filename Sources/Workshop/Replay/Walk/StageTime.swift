internal import ReelPool

/// How long a part of an item's way to its first frame took.
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

extension StageTime: Codable {
  private enum CodingKeys: String, CodingKey {
    case stage
    case duration = "time_ms"
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(stage, forKey: .stage)
    try values.encode(milliseconds: duration, forKey: .duration)
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      stage: try values.decode(String.self, forKey: .stage),
      duration: try values.decodeMilliseconds(forKey: .duration))
  }
}
