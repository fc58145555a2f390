package import ReelCore
package import ReelManifest

/// The result of one check of a live presentation.
package struct LiveUpdate: Sendable {
  /// Nil for the first check.
  package let change: SegmentWindow.Change?
  /// True if the manifest was reloaded, false if new segments appeared by the clock alone.
  package let isReading: Bool
  /// The time of the check, by the server's clock if the manifest names one.
  package let time: WallTime
  /// The new segments, oldest first. They are created when accessed.
  package let segments: SegmentList
  /// The start of the oldest segment in the window.
  package let windowStart: MediaTime
  /// The end of the newest segment.
  package let windowEnd: MediaTime
  /// The time from the end of the newest segment to the clock; nil if segments are not tied to it.
  package let distanceFromClock: MediaTime?
  /// True if no more segments will come.
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
