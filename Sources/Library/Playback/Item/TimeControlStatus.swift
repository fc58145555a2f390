/// Whether a player plays, is paused, or waits. The names are AVFoundation's.
public enum TimeControlStatus: Sendable, Hashable {
  /// Why a player waits.
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
  case waitingToPlay(WaitingReason)
  /// Frames are shown at the player's rate.
  case playing
}
