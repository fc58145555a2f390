public import ReelCore

/// Media of an item that was not shown, or not heard, as it should be.
public struct MediaLoss: Sendable, Hashable {
  /// Why media is lost.
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// It could not be loaded, or the manifest has no segment for it.
    case missing
    /// It was loaded, but it is cut off or can't be decoded.
    case damaged
    /// The timestamps jump, or a live item jumped towards the live edge.
    case jumped
    /// Its frames were late.
    case dropped
  }

  /// Whether video or audio is lost.
  public var kind: PlayerItem.Track.Kind
  /// Why it is lost.
  public var reason: Reason
  /// The part of the item's timeline that is affected. Nil if it is not known.
  public var range: Range<MediaTime>?

  /// Creates a value.
  public init(kind: PlayerItem.Track.Kind, reason: Reason, range: Range<MediaTime>?) {
    self.kind = kind
    self.reason = reason
    self.range = range
  }

  /// True if the loss is of this kind and affects a part of `other`.
  func affects(_ kind: PlayerItem.Track.Kind, in other: Range<MediaTime>) -> Bool {
    self.kind == kind && range?.overlaps(other) ?? false
  }
}
