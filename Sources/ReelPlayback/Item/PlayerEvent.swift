public import ReelCore

/// What happens once while an item is played.
public enum PlayerEvent: Sendable, Hashable {
  /// The first frame of the item was shown, so long after the item began to load.
  case firstFrame(time: MediaTime, after: Duration)
  /// The frame of a seek was shown.
  case seekDone(time: MediaTime, after: Duration)
  /// Nothing is left to show; loading goes on.
  case stalled(time: MediaTime)
  case resumed(time: MediaTime, after: Duration)
  /// The first frame of another rung was shown.
  case rungSwitched(from: String?, to: String, time: MediaTime)
  /// The item is tried again, for the so-manieth time of so many.
  case retry(attempt: Int, of: Int, after: Duration, ReelError)
  /// A segment could not be had, and is left out.
  case segmentMissed(start: MediaTime, duration: MediaTime, ReelError)
  /// Playback went on behind a hole in the timeline.
  case gapSkipped(from: MediaTime, to: MediaTime)
  /// A live item that was too far behind went on nearer to the edge.
  case jumpedToLive(from: MediaTime, to: MediaTime)
  /// The item began anew, its first frame so much later than it was due.
  case looped(gap: Duration)
  case playedToEnd(time: MediaTime)
  case failed(ReelError)
  /// An output was detached, for this failure of its own.
  case outputFailed(ReelError)
}
