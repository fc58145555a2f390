/// What a player is doing, as AVFoundation names it.
public enum TimeControlStatus: Sendable, Hashable {
  public enum WaitingReason: String, Sendable, Hashable {
    case noItemToPlay
    /// The first frame is not there yet, or there is too little behind it to begin with.
    case evaluatingBufferingRate
    /// What was loaded has run out.
    case toMinimizeStalls
  }

  case paused
  case waitingToPlay(WaitingReason)
  case playing
}
