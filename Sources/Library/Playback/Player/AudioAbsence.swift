internal import ReelCore

/// Measures how long the server has failed to deliver a separate audio stream.
///
/// On a busy machine everything is late: the handling of bytes that have arrived as well as the check of the
/// clock. Therefore, time is counted in intervals with a check at the end of each, and a multiple of the
/// check's delay is subtracted from the interval.
///
/// A pure value.
struct AudioAbsence: Sendable {
  /// The time counted so far.
  private(set) var length = Duration.zero
  /// The time at which audio last arrived or was requested.
  private(set) var since = Duration.zero
  private var intervalStart = Duration.zero

  /// The factor for a check's delay: if a check is late by a tenth of its interval, the interval does not
  /// count.
  private static let weight = 10

  /// Records that audio has arrived, or is requested from now on.
  mutating func end(at now: Duration) {
    length = .zero
    since = now
    intervalStart = now
  }

  /// Counts the interval up to `due`, the time for which the current check was planned.
  mutating func count(to due: Duration, now: Duration) {
    length += max(.zero, due - intervalStart - max(.zero, now - due) * Self.weight)
    intervalStart = now
  }

  /// Returns the time of the next check. It is always a whole interval away: with shorter ones, nothing might
  /// ever count.
  func nextLook(after now: Duration, patience: Duration) -> Duration { now + patience / 10 }
}
