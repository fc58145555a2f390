internal import ReelCore

/// Decides whether to show, delay or drop the next frame.
///
/// A frame is shown when it is due. If its successor is due as well, it is late and dropped, unless nothing
/// has been shown for `maximumFreeze`: then it is shown late, so that a decoder that can't keep up produces
/// slow video instead of a still. The first frame after a start or a seek is shown at once, whatever its
/// time.
struct FramePacer: Sendable {
  enum Decision: Equatable, Sendable {
    case show
    /// The frame is late: count it as dropped.
    case drop
    case wait(until: Duration)
  }

  /// The deadline at rate 0, when no later media is ever due.
  static let never = Duration.seconds(Int64(1) << 32)

  var maximumFreeze: Duration = .milliseconds(250)

  /// - Parameters:
  ///   - next: The time of the frame.
  ///   - following: The time of the frame after it; nil if there is none yet.
  ///   - timebase: The timebase, by the same clock as `now`.
  ///   - lastShownAt: The time at which a frame was last shown, by the clock; nil for none since the start or
  ///     seek.
  func decision(
    next: MediaTime, following: MediaTime?, timebase: Timebase, now: Duration, lastShownAt: Duration?
  ) -> Decision {
    guard let lastShownAt else { return .show }
    let nextDue = dueTime(of: next, timebase: timebase, now: now)
    guard nextDue <= now else { return .wait(until: nextDue) }
    guard let following, dueTime(of: following, timebase: timebase, now: now) <= now else { return .show }
    return now - lastShownAt >= maximumFreeze ? .show : .drop
  }

  // MARK: - Private

  /// Returns the due time in clock time rather than media time, so that a wait ends exactly when the frame is
  /// due.
  private func dueTime(of time: MediaTime, timebase: Timebase, now: Duration) -> Duration {
    timebase.clockTime(of: time) ?? (time <= timebase.time(at: now) ? now : Self.never)
  }
}
