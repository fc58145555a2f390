public import ReelCore

/// Which frames of a source are wanted.
public enum FrameSelection: Sendable, Hashable {
  /// The earliest frame, for the fewest bytes.
  case first
  /// So many from the beginning, in presentation order; 0 for all.
  case count(Int)
  /// The frames on show at these times (the last that begins at or before each), handed out in order of time.
  /// The first frame is the one at 0, even if a manifest places it before.
  case times([MediaTime])
  /// The frames on show at 0 and at every multiple of this length, to the end.
  case every(MediaTime)
}
