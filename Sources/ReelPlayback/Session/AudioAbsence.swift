internal import ReelCore

/// How long sound that is a stream of its own has not come, as far as that is the server's doing.
///
/// A machine that is busy gets to nothing in time: neither to the bytes that have come, nor to a look at the clock. So
/// the time is counted in intervals, and of each interval a multiple of what the look at its end was late is left out.
///
/// A pure value.
struct AudioAbsence: Sendable {
  /// Counted so far.
  private(set) var length = Duration.zero
  /// When sound came last, or was asked for.
  private(set) var since = Duration.zero
  private var intervalStart = Duration.zero

  /// In one interval a look that is late by a tenth of it leaves nothing.
  private static let weight = 10

  /// Sound has come, or is asked for from now on.
  mutating func end(at now: Duration) {
    length = .zero
    since = now
    intervalStart = now
  }

  /// Counts the time up to `due`, for which the look that is taken `now` was planned.
  mutating func count(to due: Duration, now: Duration) {
    length += max(.zero, due - intervalStart - max(.zero, now - due) * Self.weight)
    intervalStart = now
  }

  /// When to look next. Always after a whole interval: of a shorter one nothing might be left, time and again.
  func nextLook(after now: Duration, patience: Duration) -> Duration { now + patience / 10 }
}
