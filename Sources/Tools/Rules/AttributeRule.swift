import ReelCore
import ReelManifest

/// How the value of an attribute has to be written (RFC 8216 §4.2).
struct AttributeRule: Sendable {
  /// The types of values.
  enum Syntax: Sendable {
    case quoted
    /// A quoted date and time (RFC 8216 §4.3.2.6).
    case date
    /// A quoted `length[@offset]`.
    case byteRange
    case integer
    case float
    case signedFloat
    case hexadecimal
    case resolution
    /// One of these words, without quotes.
    case word([String])
    /// A quoted text, or the word `NONE` without quotes.
    case quotedOrNone
  }

  let name: String
  let syntax: Syntax
  let isRequired: Bool

  init(_ name: String, _ syntax: Syntax, isRequired: Bool = false) {
    self.name = name
    self.syntax = syntax
    self.isRequired = isRequired
  }

  /// The fault of a value, as a clause that follows the attribute's name; nil if it has none.
  func fault(of attribute: AttributeSyntax.Item) -> String? {
    let (text, isQuoted) = (attribute.value, attribute.isQuoted)
    if let fault = quotingFault(of: attribute) { return fault }
    // The text does not show what a variable expands to.
    if text.contains("{$") { return nil }
    switch syntax {
    case .quoted, .quotedOrNone: return isQuoted && text.isEmpty && isRequired ? "is empty" : nil
    case .date: return WallTime(iso8601: text) == nil ? "'\(text.excerpt)' is not a date" : nil
    case .byteRange: return ByteRangeText(text) == nil ? "'\(text.excerpt)' is not a byte range" : nil
    case .integer: return Self.isInteger(text) ? nil : "'\(text.excerpt)' is not a decimal integer"
    case .float: return Self.isFloat(text) ? nil : "'\(text.excerpt)' is not a decimal number of 0 or more"
    case .signedFloat:
      let isNumber = Self.isFloat(text.hasPrefix("-") ? String(text.dropFirst()) : text)
      return isNumber ? nil : "'\(text.excerpt)' is not a decimal number"
    case .hexadecimal:
      return Self.isHexadecimal(text) ? nil : "'\(text.excerpt)' is not a hexadecimal sequence"
    case .resolution:
      let sides = text.split(separator: "x", omittingEmptySubsequences: false)
      let isResolution = sides.count == 2 && sides.allSatisfy { Self.isInteger(String($0)) }
      return isResolution ? nil : "'\(text.excerpt)' is not a resolution"
    case .word(let words):
      return words.contains(text) ? nil : "'\(text.excerpt)' is none of \(words.joined(separator: ", "))"
    }
  }

  /// True for a decimal integer of 64 bits.
  static func isInteger(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(\.isDigit) && UInt64(text) != nil
  }

  /// True for digits, and a point and digits after them.
  static func isFloat(_ text: String) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return (1...2).contains(parts.count) && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(\.isDigit) }
  }

  // MARK: - Private

  private func quotingFault(of attribute: AttributeSyntax.Item) -> String? {
    switch syntax {
    case .quoted, .date, .byteRange: return attribute.isQuoted ? nil : "is not quoted"
    case .quotedOrNone:
      if attribute.isQuoted || attribute.value == "NONE" { return nil }
      return "is neither quoted nor NONE"
    case .integer, .float, .signedFloat, .hexadecimal, .resolution, .word:
      return attribute.isQuoted ? "is quoted" : nil
    }
  }

  /// Small letters are let pass, though the set of RFC 8216 §4.2 has only capital ones.
  private static func isHexadecimal(_ text: String) -> Bool {
    guard text.hasPrefix("0x") || text.hasPrefix("0X") else { return false }
    let digits = text.utf8.dropFirst(2)
    return !digits.isEmpty && digits.allSatisfy { $0.hexDigitValue != nil }
  }
}
