internal import Foundation
package import ReelCore

/// A number followed by a unit.
package enum Quantity {
  /// Splits a text into the number and the unit, both trimmed; nil if the text does not begin with a decimal
  /// number. Signs and exponents are not allowed.
  package static func split(_ text: some StringProtocol) -> (value: Double, unit: String)? {
    let trimmed = text.trimmed
    let number = trimmed.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard let value = Double(number), value.isFinite else { return nil }
    return (value, trimmed[number.endIndex...].trimmed)
  }
}

/// A number of bytes that reads and prints as text: `64MB`, `1.5GiB`, `800kB`, or a plain number of bytes.
///
/// The text is a decimal number and an optional unit in any letter case: `B`, `kB`, `MB`, `GB` (powers of
/// 1,000), `KiB`, `MiB` or `GiB` (powers of 1,024). The `B` can be left out, as in `64M`. White space is
/// allowed around the text and before the unit.
public struct ByteSize: Sendable, Hashable {
  /// The number of bytes.
  public let byteCount: Int

  /// A size of this many bytes.
  public init(byteCount: Int) {
    self.byteCount = byteCount
  }

  /// Parses a size such as `64MB`.
  ///
  /// - Parameter needsUnit: True to refuse a number without a unit, which otherwise counts bytes.
  /// - Throws: `ReelError` of kind `usage` if `text` is not a size, or a size above 1 PB.
  package init(parsing text: String, needsUnit: Bool = false) throws(ReelError) {
    guard let (value, unit) = Quantity.split(text),
      let size = Self.size(of: unit.lowercased())
    else {
      throw ReelError(.usage, "\"\(text)\" is not a size", advice: "write 64M, 64MB, 1.5GiB or 800000")
    }
    guard !needsUnit || !unit.isEmpty else {
      throw ReelError(
        .usage, "\"\(text)\" has no unit", advice: "write \(text.trimmed)MB, or \(text.trimmed)B for bytes")
    }
    let bytes = (value * size).rounded()
    guard bytes <= 1e15 else { throw ReelError(.usage, "the size \"\(text)\" is above 1 PB") }
    byteCount = Int(clamping: bytes)
  }

  /// The units and their bytes, the smallest first.
  static let units: [(name: String, size: Double)] = [
    ("B", 1), ("kB", 1e3), ("KiB", 1024), ("MB", 1e6), ("MiB", 1_048_576), ("GB", 1e9),
    ("GiB", 1_073_741_824),
  ]

  private static func size(of unit: String) -> Double? {
    if unit.isEmpty { return 1 }
    return units.first { $0.name.lowercased() == unit || $0.name.lowercased() == unit + "b" }?.size
  }

  /// The size in the largest decimal unit that gives it exactly, without a space: `64MB`.
  var compact: String {
    for (unit, size) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)]
    where byteCount >= size && byteCount % size == 0 {
      return "\(byteCount / size)\(unit)"
    }
    return "\(byteCount)B"
  }
}

extension ByteSize: CustomStringConvertible {
  /// The size with one decimal in the largest decimal unit, `3.5 MB`; whole bytes below 1 kB.
  public var description: String {
    for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] where Double(byteCount) >= size * 0.99995 {
      return "\((Double(byteCount) / size).formatted(places: 1)) \(unit)"
    }
    return "\(byteCount) B"
  }
}

/// Parses and prints durations.
package enum DurationText {
  /// Parses a duration in a form of `TimeText`. Nil for any other text, a negative number, and more than a day.
  ///
  /// - Parameter needsUnit: True to refuse a number without a unit, which otherwise counts seconds.
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
