public import ReelCore

/// A failure during the loading or decoding of an item, whether or not a retry could fix it.
public struct ErrorLogEntry: Sendable, Hashable {
  /// The consequence of a failure.
  public enum Outcome: Sendable, Hashable {
    /// The item is retried.
    case retried
    /// Another rung is loaded instead.
    case otherRung
    /// The same rung is loaded from another location.
    case otherLocation
    /// No media is lost, as far as is known.
    case tolerated
    /// The item continues to play with less media.
    case lost(MediaLoss)
    /// The item has failed.
    case failed
  }

  /// The error.
  public var error: ReelError
  /// The id of the rung that was being loaded. Nil if no rung was involved.
  public var rung: String?
  /// The playback position at that time. Nil before anything was loaded.
  public var time: MediaTime?
  /// The consequence of the failure.
  public var outcome: Outcome

  package init(error: ReelError, rung: String?, time: MediaTime?, outcome: Outcome = .retried) {
    self.error = error
    self.rung = rung
    self.time = time
    self.outcome = outcome
  }

  /// The media that is lost; nil for none.
  package var loss: MediaLoss? { if case .lost(let loss) = outcome { loss } else { nil } }

  /// Extends the entry by a loss of the same kind, for the same reason, that begins where its own ends. Returns false
  /// without a change if `next` is another failure.
  package mutating func extend(by next: ErrorLogEntry) -> Bool {
    guard error == next.error, rung == next.rung, var loss, let other = next.loss, let range = loss.range,
      let following = other.range, loss.kind == other.kind, loss.reason == other.reason,
      range.upperBound == following.lowerBound
    else { return false }
    loss.range = range.lowerBound..<following.upperBound
    outcome = .lost(loss)
    return true
  }
}

/// Media of an item that was not shown, or not heard, as it should have been.
public struct MediaLoss: Sendable, Hashable {
  /// The reason why media is lost.
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// The media could not be loaded, or the manifest has no segment for it.
    case missing
    /// The media was loaded, but is cut off or can't be decoded.
    case damaged
    /// The timestamps jump, or a live item jumped towards the live edge.
    case jumped
    /// The frames were late.
    case dropped
  }

  /// The kind of media that is lost, video or audio.
  public var kind: TrackKind
  /// The reason for the loss.
  public var reason: Reason
  /// The part of the item's timeline that is affected. Nil if it is not known.
  public var range: Range<MediaTime>?

  package init(kind: TrackKind, reason: Reason, range: Range<MediaTime>?) {
    self.kind = kind
    self.reason = reason
    self.range = range
  }

  /// Returns true if the loss is of this kind and affects a part of `other`.
  package func affects(_ kind: TrackKind, in other: Range<MediaTime>) -> Bool {
    self.kind == kind && range?.overlaps(other) ?? false
  }
}

/// The reason why another rung was chosen.
public enum RungSwitchCause: String, Sendable, Hashable, CaseIterable {
  /// The adaptation chose a higher rung.
  case adaptationUp
  /// The adaptation chose a lower rung.
  case adaptationDown
  /// The previous rung could not be loaded.
  case failure
  /// The rung is tried again some time after it could not be loaded.
  case retry
  /// The previous rung exceeds the limit for the bit rate or the height.
  case limit
  /// The first segment was chosen under a limit of its own.
  case startup
  /// A new period has other rungs.
  case period
}

/// What a track has.
public enum TrackKind: String, Sendable, Hashable, CaseIterable {
  /// Video.
  case video
  /// Audio.
  case audio
}
