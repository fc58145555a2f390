internal import ReelCore

/// Decides what to do with the next frame.
///
/// The rule: a frame is shown when its time has come. One whose successor is due as well is late: it is dropped,
/// unless nothing has been shown for `maximumFreeze`; then it is shown though it is late, so that a decoder which can't
/// keep up gives a slow film and not a still. The first frame after a start or a seek is shown at once, whatever its
/// time.
struct FramePacer: Sendable {
  enum Decision: Equatable, Sendable {
    case show
    /// Late: to be counted as dropped.
    case drop
    case wait(until: Duration)
  }

  /// A deadline that does not come: a timebase that stands still has no time for what lies ahead.
  static let never = Duration.seconds(Int64(1) << 32)

  var maximumFreeze: Duration = .milliseconds(250)

  /// - Parameters:
  ///   - next: The time of the frame in question.
  ///   - following: That of the one after it; nil where it is not there yet, or there is none.
  ///   - timebase: Of the same clock as `now`.
  ///   - lastShownAt: When a frame was shown last, by the clock; nil for none since the start or seek.
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

  /// By the clock, and never by media time, so that the time which is waited for is the time at which it is due.
  private func dueTime(of time: MediaTime, timebase: Timebase, now: Duration) -> Duration {
    timebase.clockTime(of: time) ?? (time <= timebase.time(at: now) ? now : Self.never)
  }
}
