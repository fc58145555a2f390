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

  /// The text without the user names and passwords of its URLs (RFC 3986 §3.2.1), those without a scheme included.
  ///
  /// A password may have characters that a URL must not have. Where the text leaves open whether it is a password, it is
  /// left out. The text may be JSON: slashes may be escaped, and a string ends at its quotation mark.
  package var withoutUserInformation: String {
    guard utf8.contains(UInt8(ascii: "@")) else { return String(self) }
    let bytes = Array(utf8)
    var (kept, copied, index, isQuoted) = ([UInt8](), 0, 0, false)
    while let start = bytes.authority(from: index) {
      for position in index..<start where bytes.isQuote(at: position) { isQuoted.toggle() }
      index = start
      if let end = bytes.userInformation(from: start, isQuoted: isQuoted) {
        kept += bytes[copied..<start]
        for position in start..<end where bytes.isQuote(at: position) { isQuoted.toggle() }
        copied = end
        index = end
      }
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
      // Two slashes within a path begin none.
      if slashes == 2, !before.isLetter, !before.isDigit, !"-._~%+!$&*;@?#/".utf8.contains(before) {
        return end
      }
      index = Swift.max(index + 1, end)
    }
    return nil
  }

  /// Returns the end of the user name and password that begin at `start`, after their `@`; nil if there are none.
  ///
  /// - Parameter isQuoted: Whether `start` is between quotation marks.
  fileprivate func userInformation(from start: Int, isQuoted: Bool) -> Int? {
    let (at, colon) = (UInt8(ascii: "@"), UInt8(ascii: ":"))
    var limit = authority(from: start) ?? count
    limit = self[start..<limit].firstIndex { $0 == 0x0a || $0 == 0x0d } ?? limit
    if isQuoted { limit = (start..<limit).first { isEndOfString(at: $0) } ?? limit }
    let text = self[start..<limit]
    let end = text.firstIndex { $0.endsURL || $0.endsAuthority || $0 == UInt8(ascii: "\\") } ?? limit
    if let last = text[..<end].lastIndex(of: at) { return last + 1 }
    // Not as a URL must be written: a path or text follows, or a password with characters that end an authority.
    guard let first = text.firstIndex(of: at), let mark = text[..<first].firstIndex(of: colon),
      text.first != UInt8(ascii: "["), !text[..<mark].contains(where: \.endsAuthority),
      !isPort(in: mark + 1..<first)
    else { return nil }
    let host = text[first...].firstIndex(where: \.endsAuthority) ?? limit
    return text[..<host].lastIndex(of: at).map { $0 + 1 }
  }

  /// True if a range begins with a port, possibly an empty one, and not with a password.
  private func isPort(in range: Range<Int>) -> Bool {
    let rest = self[range].drop(while: \.isDigit)
    guard let next = rest.first else { return false }
    if next == UInt8(ascii: ":") { return rest.dropFirst().first?.isSpace ?? true }
    if next.isSpace {
      // A word with an @ that follows a number is more likely the end of a password.
      return rest.startIndex == range.lowerBound || rest.dropFirst().contains(where: \.isSpace)
    }
    return next.endsAuthority || rest.starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "/")])
  }

  /// True for a quotation mark that is not escaped by a backslash.
  fileprivate func isQuote(at index: Int) -> Bool {
    let backslash = UInt8(ascii: "\\")
    guard self[index] == UInt8(ascii: "\"") else { return false }
    return self[..<index].reversed().prefix { $0 == backslash }.count.isMultiple(of: 2)
  }

  /// True for a quotation mark after which no password goes on.
  private func isEndOfString(at index: Int) -> Bool {
    guard isQuote(at: index) else { return false }
    return index + 1 == count || self[index + 1].isSpace || ",}]:;.)".utf8.contains(self[index + 1])
  }
}

extension UInt8 {
  /// True for white space, controls, and characters that delimit URLs in text.
  fileprivate var endsURL: Bool { self <= 0x20 || self == 0x7f || "\"<>`".utf8.contains(self) }

  /// True for the characters with which path, query and fragment begin.
  fileprivate var endsAuthority: Bool { "/?#".utf8.contains(self) }
}

extension Unicode.Scalar {
  /// True for C0, DEL and C1 controls, and for separators, marks and overrides that break or reorder a line.
  package var isControl: Bool {
    value < 0x20 || (0x7f...0x9f).contains(value) || (0x2028...0x202e).contains(value)
      || (0x2066...0x2069).contains(value) || value == 0x200e || value == 0x200f || value == 0x061c
  }
}

/// Times as users write them: `2`, `2.5s`, `500ms`, `250us`, `1.5min`, `1h`, `7d`, `1:30` or `00:01:30.5`.
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
    ("us", 1e-6), ("ms", 1e-3), ("min", 60), ("h", 3600), ("d", 86_400), ("s", 1), ("", 1),
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
