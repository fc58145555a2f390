internal import ReelCore

/// Lengths of time as users write them, and as they are printed.
package enum DurationText {
  /// Units and their nanoseconds.
  package static let units: [(name: String, nanoseconds: Double)] = [
    ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9),
  ]

  /// The length that `text` means: a number with `us`, `ms`, `s` or `min`, or of seconds without a unit. Nil for what is
  /// none, and for more than a day.
  package static func parse(_ text: some StringProtocol) -> Duration? {
    guard let (value, unit) = Quantity.split(text) else { return nil }
    return duration(value, unit: unit.isEmpty ? "s" : unit)
  }

  /// So many of a unit; nil for another unit, and for more than a day.
  package static func duration(_ value: Double, unit: String) -> Duration? {
    guard let size = units.first(where: { $0.name == unit.lowercased() })?.nanoseconds,
      value * size <= 86_400e9
    else { return nil }
    return .nanoseconds(Int64((value * size).rounded()))
  }

  /// Without a space, in the largest unit that gives it in whole numbers, but seconds with up to three decimals: `1.5s`,
  /// `250us`.
  package static func compact(_ duration: Duration) -> String {
    let microseconds = duration.wholeMicroseconds
    if microseconds % 1_000 != 0 { return "\(microseconds)us" }
    if microseconds != 0, microseconds < 1_000_000 { return "\(microseconds / 1_000)ms" }
    return "\((Double(microseconds) / 1e6).formatted(places: 3))s"
  }

  /// For reading: milliseconds, from 1 s on seconds, with the more decimals the fewer digits stand before them.
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
