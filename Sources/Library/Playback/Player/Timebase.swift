package import ReelCore

/// Maps the time of a clock to media time at a rate, like CMTimebase.
///
/// Both ways are exact to the nanosecond and rounded up, so that at `clockTime(of: time)` the media time is `time` or
/// at most a few nanoseconds past it, never before.
package struct Timebase: Sendable, Hashable {
  /// The rate in seconds of media per second of the clock; 0 when stopped.
  package private(set) var rate: Double

  private var anchorTime: MediaTime
  private var anchorClock: Duration

  /// - Parameters:
  ///   - time: The media time at `now`.
  ///   - rate: Negative values and NaN count as 0.
  ///   - now: The time of the clock that all calls use.
  package init(time: MediaTime = .zero, rate: Double = 0, at now: Duration = .zero) {
    self.rate = Self.valid(rate)
    anchorTime = time
    anchorClock = now
  }

  /// Returns the media time in nanoseconds; if no time has passed since the last change, exactly as it was
  /// set.
  package func time(at now: Duration) -> MediaTime {
    let elapsed = Self.attoseconds(of: now - anchorClock) / Self.attosecondsPerTick * rate
    guard elapsed != 0 else { return anchorTime }
    // Sums of times without a common timescale are rounded down; negate them to round up.
    let negated =
      MediaTime(seconds: -elapsed / Double(Self.timescale), timescale: Self.timescale) - anchorTime
    return MediaTime(value: 0, timescale: 1) - negated
  }

  /// Returns when the clock reaches the media time; nil at rate 0.
  package func clockTime(of time: MediaTime) -> Duration? {
    guard rate > 0 else { return nil }
    // Negate only after rounding down.
    let distance = -Double((anchorTime - time).ticks(timescale: Self.timescale))
    let length = (distance / rate).rounded(.up)
    return anchorClock + .nanoseconds(Int64(exactly: length) ?? (length < 0 ? .min : .max))
  }

  /// Continues at another rate from the media time at `now`.
  package mutating func setRate(_ rate: Double, at now: Duration) {
    self = Timebase(time: time(at: now), rate: rate, at: now)
  }

  /// Continues at the same rate from another media time.
  package mutating func setTime(_ time: MediaTime, at now: Duration) {
    self = Timebase(time: time, rate: rate, at: now)
  }

  // MARK: - Private

  /// The same as `Double(duration.attoseconds)`, whose conversion from 128 bits takes much longer.
  private static func attoseconds(of duration: Duration) -> Double {
    let (seconds, rest) = duration.components
    let fraction = Double(rest)
    guard Int64(fraction) == rest, let whole = Double(exactly: seconds) else {
      return Double(duration.attoseconds)
    }
    // One rounding.
    return fraction.addingProduct(whole, 1e18)
  }

  private static let timescale: Int32 = 1_000_000_000
  private static let attosecondsPerTick = 1e9

  private static func valid(_ rate: Double) -> Double { rate.isFinite ? max(rate, 0) : 0 }
}

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
