import ReelCore

/// Values of the attributes of the start tag that was read last.
extension XMLReader {
  /// A whole number from 0 on. Throws `badManifest` where it is something else, or beyond 63 bits.
  mutating func natural(_ name: StaticString) throws(ReelError) -> Int64? {
    guard let number = try integer(name) else { return nil }
    guard number >= 0 else { throw malformed("@\(name) is \(number), below 0") }
    return number
  }

  /// A whole number from 1 on. Throws `badManifest` where it is something else, or beyond 63 bits.
  mutating func counting(_ name: StaticString) throws(ReelError) -> Int64? {
    let number = try natural(name)
    if number == 0 { throw malformed("@\(name) is 0") }
    return number
  }

  /// A whole number from 1 on, or nil, with a warning where there is something else.
  mutating func positive(_ name: StaticString) -> Int64? {
    value(name, "a positive whole number") { text in text.wholeNumber.flatMap { $0 > 0 ? $0 : nil } }
  }

  /// What `read` makes of an attribute, or nil, with a warning where that is nothing.
  ///
  /// - Parameter what: What the attribute has to be, for the warning.
  mutating func value<Value>(
    _ name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    string(name).flatMap { value($0, of: name, what, read) }
  }

  /// The same of an attribute by its local name, whatever its prefix.
  mutating func value<Value>(
    anyPrefix name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    string(anyPrefix: name).flatMap { value($0, of: name, what, read) }
  }

  /// A length of time. Where there is something else: `fallback`, with a warning.
  mutating func duration(_ name: StaticString, fallback: MediaTime? = nil) -> MediaTime? {
    guard let text = string(name) else { return nil }
    guard let duration = XMLDuration(text) else {
      let count = warnings.warnings.count
      let outcome = fallback.map { "taken as \($0.seconds) s" } ?? "passed over"
      warn("@\(name) '\(text.excerpt)' is not a length of time: \(outcome)")
      malformedLengths += warnings.warnings[count...].map { (name.description, $0) }
      return fallback
    }
    if !duration.isWellFormed { warn("@\(name) '\(text.excerpt)' is not an xs:duration: taken as seconds") }
    return duration.time
  }

  // MARK: - Private

  private mutating func value<Value>(
    _ text: String, of name: StaticString, _ what: String, _ read: (String) -> Value?
  ) -> Value? {
    if let value = read(text) { return value }
    warn("@\(name) '\(text.excerpt)' is not \(what): passed over")
    return nil
  }
}
