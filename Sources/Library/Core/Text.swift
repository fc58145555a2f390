internal import Foundation

extension UInt8 {
  /// True for the digits 0 to 9.
  @inlinable package var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }

  /// True for the letters of ASCII.
  @inlinable package var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }

  /// Space, tab, carriage return or line feed.
  @inlinable package var isSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A }

  /// The value of a hexadecimal digit; nil for any other character.
  @inlinable package var hexDigitValue: UInt8? {
    if isDigit { return self - UInt8(ascii: "0") }
    let letter = (self | 0x20) &- UInt8(ascii: "a")
    return letter < 6 ? letter + 10 : nil
  }
}

extension StringProtocol {
  /// The text without white space at its ends.
  package var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }

  /// The text with its control characters escaped, such as `\u{1b}`.
  ///
  /// Text from a server can then neither control a terminal nor forge a line of output.
  package var printable: String {
    guard unicodeScalars.contains(where: \.isControl) else { return String(self) }
    var text = ""
    for scalar in unicodeScalars {
      if scalar.isControl {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// The text without the user names and passwords of its URLs (RFC 3986 §3.2.1).
  package var withoutUserInformation: String {
    guard utf8.contains(UInt8(ascii: "@")) else { return String(self) }
    var (text, rest) = ("", String(self)[...])
    while let scheme = rest.firstRange(of: "://") {
      text += rest[..<scheme.upperBound]
      rest = rest[scheme.upperBound...]
      let authority = rest.prefix { !$0.isWhitespace && !"/?#\"<>".contains($0) }
      if let end = authority.lastIndex(of: "@") { rest = rest[rest.index(after: end)...] }
    }
    return text + rest
  }
}

extension Unicode.Scalar {
  /// True for C0, DEL and C1 controls, and for separators and overrides that break or reorder a line.
  fileprivate var isControl: Bool {
    value < 0x20 || (0x7f...0x9f).contains(value) || (0x2028...0x202e).contains(value)
      || (0x2066...0x2069).contains(value)
  }
}

/// Times as users write them: `2`, `2.5s`, `500ms`, `250us`, `1.5min`, `1h`, `1:30` or `00:01:30.5`.
///
/// Letter case does not matter. White space is allowed around the text and before the unit.
package enum TimeText {
  /// Returns the seconds of a time; nil for any other text. A minus sign is allowed before a number.
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

extension StringProtocol where SubSequence == Substring {
  /// The text without spaces and tabs at its ends.
  package func trimmingSpaces() -> Substring {
    var text = self[startIndex...]
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}
