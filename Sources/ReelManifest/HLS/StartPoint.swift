public import ReelCore

/// EXT-X-START (RFC 8216 §4.3.5.2): where playback is to start.
public struct StartPoint: Sendable, Hashable {
  /// TIME-OFFSET: from the beginning, or from the end where it is negative.
  public var timeOffset: MediaTime
  /// PRECISE: samples before the point are not to be shown.
  public var isPrecise: Bool

  /// Nil where TIME-OFFSET is missing or can't be read.
  init?(_ reader: inout AttributeReader) {
    guard let offset = reader.value("TIME-OFFSET", AttributeList.seconds) else { return nil }
    timeOffset = offset
    isPrecise = reader.attributes.flag("PRECISE")
  }
}
