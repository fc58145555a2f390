extension StringProtocol {
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
