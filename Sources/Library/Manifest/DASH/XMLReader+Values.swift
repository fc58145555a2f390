import ReelCore

/// Attribute values of the last start tag.
extension XMLReader {
  /// A non-negative whole number. Throws `badManifest` for any other text, or a number beyond 63 bits.
  mutating func natural(_ name: StaticString) throws(ReelError) -> Int64? {
    guard let number = try integer(name) else { return nil }
    guard number >= 0 else { throw malformed("@\(name) is \(number), below 0") }
    return number
  }

  /// A positive whole number. Throws `badManifest` for any other text, or a number beyond 63 bits.
  mutating func counting(_ name: StaticString) throws(ReelError) -> Int64? {
    let number = try natural(name)
    if number == 0 { throw malformed("@\(name) is 0") }
    return number
  }

  /// A positive whole number; nil if the attribute is missing, and nil with a warning for any other text.
  mutating func positive(_ name: StaticString) -> Int64? {
    value(name, "a positive whole number") { text in text.wholeNumber.flatMap { $0 > 0 ? $0 : nil } }
  }

  /// The result of `read` for an attribute; nil if the attribute is missing, and nil with a warning if `read` returns
  /// nil.
  ///
  /// - Parameter what: The expected kind of value, for the warning.
  mutating func value<Value>(
    _ name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    string(name).flatMap { value($0, of: name, what, read) }
  }

  /// Adds a warning for an attribute that is not used and is not a whole number.
  mutating func checkWhole(_ name: StaticString) { _ = value(name, "a whole number") { $0.wholeNumber } }

  /// Like `value(_:_:_:)`, for an attribute with this local name and any prefix.
  mutating func value<Value>(
    anyPrefix name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    string(anyPrefix: name).flatMap { value($0, of: name, what, read) }
  }

  /// A duration. For any other text: `fallback`, with a warning.
  mutating func duration(_ name: StaticString, fallback: MediaTime? = nil) -> MediaTime? {
    guard let text = string(name) else { return nil }
    guard let duration = XMLDuration(text) else {
      let count = warnings.warnings.count
      let outcome = fallback.map { "treated as \($0.seconds) s" } ?? "ignored"
      warn("@\(name) '\(text.excerpt)' is not a duration: \(outcome)")
      malformedLengths += warnings.warnings[count...].map { (name.description, $0) }
      return fallback
    }
    if !duration.isWellFormed { warn("@\(name) '\(text.excerpt)' is not an xs:duration: treated as seconds") }
    return duration.time
  }

  // MARK: - Private

  private mutating func value<Value>(
    _ text: String, of name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    if let value = read(text) { return value }
    warn("@\(name) '\(text.excerpt)' is not \(what): ignored")
    return nil
  }
}
