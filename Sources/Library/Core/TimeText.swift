/// Times as users write them: `2`, `2.5s`, `500ms`, `250us`, `1.5min`, `1h`, `1:30` or `00:01:30.5`.
///
/// Letter case does not matter. White space is allowed around the text and before the unit.
package enum TimeText {
  /// The seconds of a time; nil for any other text. A minus sign is allowed before a number.
  ///
  /// - Parameter needsUnit: Refuses a number without a unit. Times with colons need none.
  package static func seconds(_ text: some StringProtocol, needsUnit: Bool = false) -> Double? {
    let text = text.lowercased()[...].trimmingSpaces()
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    if parts.count > 1 { return clock(parts) }
    guard let unit = units.first(where: { text.hasSuffix($0.name) }), !(needsUnit && unit.name.isEmpty)
    else { return nil }
    return number(text.dropLast(unit.name.count).trimmingSpaces()).map { $0 * unit.seconds }
  }

  // MARK: - Private

  private static let units: [(name: String, seconds: Double)] = [
    ("us", 1e-6), ("ms", 1e-3), ("min", 60), ("h", 3600), ("s", 1), ("", 1),
  ]

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

  private static func number(_ text: Substring) -> Double? {
    let digits = text.first == "-" ? text.dropFirst() : text
    guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }) else { return nil }
    return Double(text)
  }
}
