package import ReelCore
package import ReelManifest

/// What one look at a live presentation has brought.
package struct LiveUpdate: Sendable {
  /// Nil for the first look.
  package let change: SegmentWindow.Change?
  /// True where the manifest was read, false where the clock alone told of new segments.
  package let isReading: Bool
  /// By the server's clock, where the manifest names one.
  package let time: WallTime
  /// The segments that are new, oldest first, made when they are asked for.
  package let segments: SegmentList
  /// Where the oldest segment of the window begins.
  package let windowStart: MediaTime
  /// Where the newest segment ends.
  package let windowEnd: MediaTime
  /// How far the end of the newest segment lies behind the clock; nil where segments are not tied to it.
  package let distanceFromClock: MediaTime?
  /// True where no more segments will come.
  package let hasEnded: Bool

  init(
    _ window: SegmentWindow, from index: Int, change: SegmentWindow.Change?, isReading: Bool,
    clock: any WallClock, live: LiveTiming?
  ) {
    self.change = change
    self.isReading = isReading
    time = clock.now
    segments = window.segments(from: index)
    windowStart = window.start
    windowEnd = window.end
    let end = window.end
    distanceFromClock = live?.availabilityStart.map { [time] in time - ($0 + end) }
    hasEnded = window.hasEnded
  }
}
