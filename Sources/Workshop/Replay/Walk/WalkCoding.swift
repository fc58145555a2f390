internal import ReelCore
internal import ReelPlayback

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
