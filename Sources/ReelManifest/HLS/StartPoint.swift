public import ReelCore

/// EXT-X-START (RFC 8216 §4.3.5.2): where playback is to start.
public struct StartPoint: Sendable, Hashable {
  /// TIME-OFFSET: from the beginning, or from the end where it is negative.
  public var timeOffset: MediaTime
  /// PRECISE: samples before the point are not to be shown.
  public var isPrecise: Bool

  init?(_ attributes: AttributeList) {
    guard let offset = attributes.seconds("TIME-OFFSET") else { return nil }
    timeOffset = offset
    isPrecise = attributes.flag("PRECISE")
  }
}
