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

  /// The text as one line: control characters, line breaks among them, are escaped, such as `\u{1b}`.
  ///
  /// Text from a server can then neither control a terminal nor forge a line of output.
  package var printable: String { escaped { $0.isControl } }

  /// Like `printable`, for text of several lines and columns: keeps line feeds and tabs.
  package var printableText: String { escaped { $0.isControl && $0 != "\n" && $0 != "\t" } }

  /// The text of a JSON value whose strings have no control characters, those beyond ASCII included.
  package var printableJSON: String { escaped({ $0.value >= 0x7f && $0.isControl }) { "\\u\($0)" } }

  /// The text with some scalars replaced.
  ///
  /// - Parameter form: Returns the replacement of a scalar for its value in hexadecimal, of at least four digits.
  private func escaped(
    _ isEscaped: (Unicode.Scalar) -> Bool, _ form: ((String) -> String)? = nil
  ) -> String {
    guard unicodeScalars.contains(where: isEscaped) else { return String(self) }
    var text = ""
    for scalar in unicodeScalars {
      let digits = String(scalar.value, radix: 16)
      if !isEscaped(scalar) {
        text.unicodeScalars.append(scalar)
      } else if let form {
        text += form(String(repeating: "0", count: Swift.max(0, 4 - digits.count)) + digits)
      } else {
        text += "\\u{\(digits)}"
      }
    }
    return text
  }

  /// The text without the user names and passwords of its URLs (RFC 3986 §3.2.1), those without a scheme included. The
  /// slashes may be escaped as in JSON.
  package var withoutUserInformation: String {
    guard utf8.contains(UInt8(ascii: "@")) else { return String(self) }
    let bytes = Array(utf8)
    var (kept, copied, index) = ([UInt8](), 0, 0)
    while let start = bytes.authority(from: index) {
      let ends = Array("/?#\\".utf8)
      var end = bytes[start...].firstIndex { $0.endsURL || ends.contains($0) } ?? bytes.count
      var at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@"))
      let port = bytes[start..<end].drop { $0 != UInt8(ascii: ":") }.dropFirst()
      if at == nil, bytes[start..<end].first != UInt8(ascii: "["), !port.allSatisfy(\.isDigit) {
        // No port, so a password with one of the characters that end an authority.
        end = bytes[start...].firstIndex(where: \.endsURL) ?? bytes.count
        at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@"))
      }
      if let at {
        kept += bytes[copied..<start]
        copied = at + 1
      }
      index = Swift.max(start, copied)
    }
    return String(decoding: kept + bytes[copied...], as: UTF8.self)
  }
}

extension [UInt8] {
  /// Returns the position after the next two slashes that begin the authority of a URL.
  fileprivate func authority(from start: Int) -> Int? {
    let (slash, backslash) = (UInt8(ascii: "/"), UInt8(ascii: "\\"))
    var index = start
    while index < count {
      guard self[index] == slash || self[index] == backslash else {
        index += 1
        continue
      }
      // What precedes the slashes, and the place after them.
      let before: UInt8 = index > 0 ? self[index - 1] : 0x20
      var (end, slashes) = (index, 0)
      while end < count, slashes < 2 {
        if self[end] == backslash, end + 1 < count, self[end + 1] == slash { end += 1 }
        guard self[end] == slash else { break }
        (end, slashes) = (end + 1, slashes + 1)
      }
      if slashes == 2, before == UInt8(ascii: ":") || before.endsURL || "'(=,[".utf8.contains(before) {
        return end
      }
      index = Swift.max(index + 1, end)
    }
    return nil
  }
}

extension UInt8 {
  /// True for white space, controls, and characters that delimit URLs in text.
  fileprivate var endsURL: Bool { self <= 0x20 || self == 0x7f || "\"<>`".utf8.contains(self) }
}

extension Unicode.Scalar {
  /// True for C0, DEL and C1 controls, and for separators, marks and overrides that break or reorder a line.
  package var isControl: Bool {
    value < 0x20 || (0x7f...0x9f).contains(value) || (0x2028...0x202e).contains(value)
      || (0x2066...0x2069).contains(value) || value == 0x200e || value == 0x200f || value == 0x061c
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
