internal import ReelCore

/// Parses and prints durations.
package enum DurationText {
  /// Parses a duration in a form of `TimeText`. Nil for any other text, a negative number, and more than a day.
  ///
  /// - Parameter needsUnit: Refuses a number without a unit, which else counts seconds.
  package static func parse(_ text: some StringProtocol, needsUnit: Bool = false) -> Duration? {
    guard let seconds = TimeText.seconds(text, needsUnit: needsUnit), seconds >= 0, seconds <= 86_400 else {
      return nil
    }
    return .nanoseconds(Int64((seconds * 1e9).rounded()))
  }

  /// Prints a duration without a space, in the largest unit that gives a whole number, or in seconds with up to
  /// three decimals: `1.5s`, `250us`.
  package static func compact(_ duration: Duration) -> String {
    let microseconds = duration.wholeMicroseconds
    if microseconds % 1_000 != 0 { return "\(microseconds)us" }
    if microseconds != 0, microseconds < 1_000_000 { return "\(microseconds / 1_000)ms" }
    return "\((Double(microseconds) / 1e6).formatted(places: 3))s"
  }

  /// Prints a duration in milliseconds, or in seconds from 1 s on, with more decimals for smaller values.
  package static func readable(_ duration: Duration) -> String {
    let milliseconds = duration.milliseconds
    return switch milliseconds.magnitude {
    case 10_000...: "\((milliseconds / 1e3).formatted(places: 1)) s"
    case 1_000...: "\((milliseconds / 1e3).formatted(places: 3)) s"
    case 10...: "\(milliseconds.formatted(places: 1)) ms"
    case 1...: "\(milliseconds.formatted(places: 2)) ms"
    default: "\(milliseconds.formatted(places: 3)) ms"
    }
  }
}
