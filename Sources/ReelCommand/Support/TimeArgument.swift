import ArgumentParser
import Foundation

/// Reads option values that are times.
enum TimeArgument {
  /// The seconds of `2`, `2.5s`, `500ms`, `1.5min`, `1:30` or `00:01:30.5`. An `ArgumentParser` transform.
  static func seconds(_ text: String) throws -> Double {
    guard let seconds = parse(text.trimmingCharacters(in: .whitespaces).lowercased()) else {
      throw ValidationError("'\(text)' is not a time: write 2, 2.5s, 500ms, 1:30 or 00:01:30")
    }
    return seconds
  }

  private static let units: [(name: String, seconds: Double)] = [
    ("us", 1e-6), ("ms", 1e-3), ("min", 60), ("h", 3600), ("s", 1), ("", 1),
  ]

  private static func parse(_ text: String) -> Double? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    if parts.count > 1 { return clock(parts) }
    guard let unit = units.first(where: { text.hasSuffix($0.name) }) else { return nil }
    return number(text.dropLast(unit.name.count)).map { $0 * unit.seconds }
  }

  /// Hours, minutes and seconds, or only the last two.
  private static func clock(_ parts: [Substring]) -> Double? {
    guard parts.count <= 3, let last = parts.last, !last.hasPrefix("-"), let seconds = number(last),
      seconds < 60
    else { return nil }
    var total = 0.0
    for (place, part) in parts.dropLast().enumerated() {
      guard !part.isEmpty, part.allSatisfy({ $0.isASCII && $0.isNumber }), let value = Double(part),
        place == 0 || value < 60
      else { return nil }
      total = (total + value) * 60
    }
    return total + seconds
  }

  private static func number(_ text: some StringProtocol) -> Double? {
    let digits = text.first == "-" ? text.dropFirst() : text[...]
    guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }) else { return nil }
    return Double(text)
  }
}
