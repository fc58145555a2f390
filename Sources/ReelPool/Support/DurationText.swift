internal import ReelCore

/// Parses and prints durations.
package enum DurationText {
  /// Units and their nanoseconds.
  package static let units: [(name: String, nanoseconds: Double)] = [
    ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9),
  ]

  /// Parses a duration: a number with `us`, `ms`, `s` or `min`, or of seconds without a unit. Nil for any other
  /// text, and for more than a day.
  package static func parse(_ text: some StringProtocol) -> Duration? {
    guard let (value, unit) = Quantity.split(text) else { return nil }
    return duration(value, unit: unit.isEmpty ? "s" : unit)
  }

  /// The duration of `value` units; nil for an unknown unit, and for more than a day.
  package static func duration(_ value: Double, unit: String) -> Duration? {
    guard let size = units.first(where: { $0.name == unit.lowercased() })?.nanoseconds,
      value * size <= 86_400e9
    else { return nil }
    return .nanoseconds(Int64((value * size).rounded()))
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
