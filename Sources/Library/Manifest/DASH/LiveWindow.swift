import ReelCore

/// The available part of a live presentation at a time, on the presentation's timeline, whose zero is
/// @availabilityStartTime (ISO/IEC 23009-1 §5.3.9.5.3).
struct LiveWindow: Sendable {
  /// The current time.
  let now: MediaTime
  /// The end of the presentation, if the MPD states it.
  let end: MediaTime?
  /// @timeShiftBufferDepth.
  let depth: MediaTime?
  /// The end of the time-shift buffer: now, or the end of the presentation.
  private var edge: MediaTime
  private var keepsListed = false

  /// Nil for an MPD that is static, or whose @availabilityStartTime is missing or no date.
  init?(_ mpd: MPD, now: WallTime) {
    guard mpd.type == .dynamic, let start = mpd.availabilityStartTime.flatMap({ WallTime(iso8601: $0) })
    else { return nil }
    self.now = now - start
    let last = mpd.periods.last
    let ends = [
      mpd.availabilityEndTime.flatMap { WallTime(iso8601: $0) }.map { $0 - start },
      mpd.mediaPresentationDuration,
      last?.start.flatMap { start in last?.duration.map { start + $0 } },
    ]
    end = ends.compactMap { $0 }.filter { $0 > .zero }.min()
    depth = mpd.timeShiftBufferDepth
    edge = min(self.now, end ?? self.now)
  }

  /// The start of the time-shift buffer.
  var start: MediaTime? { depth.map { edge - $0 } }

  /// True for a presentation that has not begun and lists all of its segments in advance.
  ///
  /// - Parameter time: The end of the last listed segment.
  func isAnnouncement(endingAt time: MediaTime) -> Bool {
    guard now < .zero, let end else { return false }
    return time >= end - MediaTime(value: 1, timescale: 1)
  }

  /// The available part of a period. `isListed` is true if the MPD lists its segments one by one. An infinite
  /// `offset` makes all segments available if the MPD states their number, and has no effect otherwise.
  func frame(
    periodStart: MediaTime, periodDuration: MediaTime?, offset: AvailabilityTimeOffset, isListed: Bool
  ) -> SegmentTiming.Frame.Window {
    var available = end
    if let time = offset.time ?? (end == nil && periodDuration == nil ? .zero : nil) {
      available = min(now + time, end ?? .distant)
    }
    let start = isListed && keepsListed ? nil : start
    return SegmentTiming.Frame.Window(
      end: available.map { $0 - periodStart }, start: start.map { $0 - periodStart })
  }

  /// The same for an MPD that has not been renewed since `end`: the time-shift buffer is counted back from there, and
  /// what the MPD lists one by one counts whatever its age.
  func ending(at end: MediaTime) -> LiveWindow {
    var window = self
    window.edge = min(window.edge, end)
    window.keepsListed = true
    return window
  }
}

extension MediaTime {
  /// Later than any other.
  fileprivate static let distant = MediaTime(value: .max, timescale: 1)
}
