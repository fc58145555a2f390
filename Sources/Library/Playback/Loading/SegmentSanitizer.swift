internal import ReelCore

/// Checks the bytes of one segment on their way to the demuxer.
enum SegmentSanitizer {
  case fragments(FragmentSanitizer)
  case stream(StreamSanitizer)

  /// The property of `FragmentSanitizer`; nil for other segments.
  var keyFrameEnd: Int64? {
    switch self {
    case .fragments(let watch): watch.keyFrameEnd
    case .stream: nil
    }
  }

  /// Returns the bytes to pass on. Throws `ReelError.badMedia` if the segment is unusable.
  mutating func pass(_ chunk: [UInt8]) throws(ReelError) -> [UInt8] {
    switch self {
    case .fragments(var watch):
      defer { self = .fragments(watch) }
      return try watch.pass(chunk)
    case .stream(var watch):
      defer { self = .stream(watch) }
      return try watch.pass(chunk)
    }
  }

  /// Ends the segment. Throws `ReelError.badMedia` if none of it can be used.
  mutating func finish() throws(ReelError) -> FragmentSanitizer.Ending {
    switch self {
    case .fragments(var watch):
      defer { self = .fragments(watch) }
      return try watch.finish()
    case .stream(var watch):
      defer { self = .stream(watch) }
      return try watch.finish()
    }
  }
}
