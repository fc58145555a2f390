public import ReelCore

/// Which pictures of a source are wanted.
public enum FrameSelection: Sendable, Hashable {
  /// The earliest picture, for the fewest bytes.
  case first
  /// So many from the beginning, in presentation order; 0 for all.
  case count(Int)
  /// The pictures on show at these times (the last that begins at or before each), handed out in order of time.
  /// The first picture is the one at 0, even if a manifest places it before.
  case times([MediaTime])
  /// The pictures on show at 0 and at every multiple of this length, to the end.
  case every(MediaTime)
}
