public import ReelCore

/// The frames to extract from a source.
public enum FrameSelection: Sendable, Hashable {
  /// The earliest frame, from as few bytes as possible.
  case first
  /// This number of frames from the beginning, in presentation order; 0 for all frames.
  case count(Int)
  /// The frames on show at these times, in order of time: the last frame that begins at or before each.
  ///
  /// A frame that begins up to 1 µs after the time is accepted, as printed times are rounded. Time 0 selects the first
  /// frame, even if the manifest places it before 0. A time after the end is an error.
  case times([MediaTime])
  /// The frames on show at 0 and at every multiple of this interval, to the end. An interval that is not greater than 0
  /// is an error.
  case every(MediaTime)
}
