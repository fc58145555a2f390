public import ReelCore
public import ReelSources

/// An event during the playback of an item. Times are on the item's timeline.
public enum PlayerEvent: Sendable, Hashable {
  /// The first frame of the item was shown, `after` the beginning of loading.
  case firstFrame(time: MediaTime, after: Duration)
  /// The frame of a seek was shown, `after` the call to `seek`.
  case seekDone(time: MediaTime, after: Duration)
  /// Playback stalled: the loaded media has run out. Loading continues.
  case stalled(time: MediaTime)
  /// A stall has ended. It lasted for `after`.
  case resumed(time: MediaTime, after: Duration)
  /// The first frame of another rung was shown. `from` and `to` are the ids of the rungs. `cause` is nil if
  /// unknown.
  case rungSwitched(from: String?, to: String, time: MediaTime, cause: RungSwitchCause?)
  /// The item is being retried after the error: attempt `attempt` of `of`, after the delay `after`.
  case retry(attempt: Int, of: Int, after: Duration, ReelError)
  /// A segment could not be loaded, and was left out.
  case segmentMissed(start: MediaTime, duration: MediaTime, ReelError)
  /// Playback continued at once after a gap in the timeline.
  case gapSkipped(from: MediaTime, to: MediaTime)
  /// A live item that was too far behind jumped towards the live edge.
  case jumpedToLive(from: MediaTime, to: MediaTime)
  /// A looping item started again. Its first frame was shown `gap` later than it was due.
  case looped(gap: Duration)
  /// The item was played to its end. A looping item has no end.
  case playedToEnd(time: MediaTime)
  /// The item failed and is not retried. The media loaded before the failure has been shown. Also sent by a player that
  /// refuses an item, because another player has it.
  case failed(ReelError)
  /// An output threw this error or is no longer allowed, and was detached. Sent by the player only, not by the item.
  case outputFailed(ReelError)

  /// The number of events that an item and a player remember for readers that come later.
  static var memory: Int { 128 }

  /// True for the end of playback, after which the item may be played again.
  var isEnding: Bool {
    switch self {
    case .playedToEnd, .failed: true
    default: false
    }
  }
}

/// The state of playback: playing, paused, or waiting. The names are AVFoundation's.
public enum TimeControlStatus: Sendable, Hashable {
  /// The reason why a player waits.
  public enum WaitingReason: String, Sendable, Hashable {
    /// The player has no item.
    case noItemToPlay
    /// The first frame, or the frame of a seek, is not on show yet, or too little media is buffered to start.
    case evaluatingBufferingRate
    /// Playback has stalled: the loaded media has run out.
    case toMinimizeStalls
  }

  /// Paused, at the end, or failed.
  case paused
  /// Playback was requested but can't start or resume yet.
  case waitingToPlayAtSpecifiedRate(WaitingReason)
  /// Frames are shown at the player's rate.
  case playing
}
