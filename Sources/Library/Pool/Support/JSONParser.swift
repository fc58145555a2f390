package import ReelCore

/// A JSON value (RFC 8259) and the line of its beginning.
package struct JSONNode: Sendable {
  package enum Value: Sendable {
    case null
    case bool(Bool)
    /// The number's text, so that whole numbers stay exact.
    case number(String)
    case string(String)
    case array([JSONNode])
    /// The members in the order of the text, without duplicate keys.
    case object([(key: String, value: JSONNode)])
  }

  package let value: Value
  /// The line, counted from 1.
  package let line: Int

  /// The kind of value, in words.
  package var kind: String {
    switch value {
    case .null: "null"
    case .bool: "true or false"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }

  /// The member with this key; nil if it is missing or null, or if the value is not an object.
  package subscript(key: String) -> JSONNode? {
    guard case .object(let members) = value,
      let member = members.first(where: { $0.key == key })?.value
    else { return nil }
    if case .null = member.value { return nil }
    return member
  }
}

/// Reads JSON (RFC 8259) into nodes with line numbers, for error messages.
package struct JSONParser {
  /// The limit for the depth of nested values.
  static let depthLimit = 64

  private let bytes: ArraySlice<UInt8>
  private var index: Int
  private var line = 1
  private var lineStart: Int

  /// Parses `bytes`, which must be UTF-8.
  ///
  /// Throws `ReelError.badManifest` with line and column for invalid JSON, for a duplicate key, and for values
  /// nested deeper than `depthLimit`.
  package static func node(in bytes: ArraySlice<UInt8>) throws(ReelError) -> JSONNode {
    var reader = JSONParser(bytes)
    let node = try reader.node(depth: 1)
    reader.skipBlanks()
    guard reader.index == bytes.endIndex else { throw reader.failure("unexpected text after the JSON value") }
    return node
  }

  private init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    index = bytes.startIndex
    lineStart = bytes.startIndex
  }

  // MARK: - Private

  private var current: UInt8? { index < bytes.endIndex ? bytes[index] : nil }

  private func failure(_ reason: String) -> ReelError {
    ReelError(.badManifest, reason, place: .line(line, column: index - lineStart + 1))
  }

  private mutating func skipBlanks() {
    while let byte = current, byte.isSpace {
      index += 1
      // CRLF counts once, at its LF.
      if byte == 0x0a || byte == 0x0d && current != 0x0a {
        line += 1
        lineStart = index
      }
    }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard current == UInt8(ascii: character) else { return false }
    index += 1
    return true
  }

  private mutating func node(depth: Int) throws(ReelError) -> JSONNode {
    skipBlanks()
    guard depth <= Self.depthLimit else {
      throw failure("nested deeper than the limit of \(Self.depthLimit)")
    }
    let start = line
    switch current {
    case nil: throw failure("the text ends where a value is expected")
    case UInt8(ascii: "{"): return JSONNode(value: .object(try members(depth: depth)), line: start)
    case UInt8(ascii: "["): return JSONNode(value: .array(try elements(depth: depth)), line: start)
    case UInt8(ascii: "\""): return JSONNode(value: .string(try string()), line: start)
    default: break
    }
    for (word, value) in [("null", JSONNode.Value.null), ("true", .bool(true)), ("false", .bool(false))]
    where bytes[index...].starts(with: word.utf8) {
      index += word.utf8.count
      return JSONNode(value: value, line: start)
    }
    return JSONNode(value: .number(try number()), line: start)
  }

  private mutating func members(depth: Int) throws(ReelError) -> [(key: String, value: JSONNode)] {
    index += 1
    var members: [(key: String, value: JSONNode)] = []
    var keys: Set<String> = []
    skipBlanks()
    if take("}") { return members }
    while true {
      skipBlanks()
      guard current == UInt8(ascii: "\"") else { throw failure("expected a key in quotes") }
      let place = failure("")
      let key = try string()
      guard keys.insert(key).inserted else {
        throw ReelError(.badManifest, "the key \"\(key)\" appears twice", place: place.place)
      }
      skipBlanks()
      guard take(":") else { throw failure("expected a colon") }
      members.append((key, try node(depth: depth + 1)))
      skipBlanks()
      if take("}") { return members }
      guard take(",") else { throw failure("expected a comma or }") }
    }
  }

  private mutating func elements(depth: Int) throws(ReelError) -> [JSONNode] {
    index += 1
    var elements: [JSONNode] = []
    skipBlanks()
    if take("]") { return elements }
    while true {
      elements.append(try node(depth: depth + 1))
      skipBlanks()
      if take("]") { return elements }
      guard take(",") else { throw failure("expected a comma or ]") }
    }
  }

  private mutating func string() throws(ReelError) -> String {
    index += 1
    var text: [UInt8] = []
    while let byte = current {
      switch byte {
      case UInt8(ascii: "\""):
        index += 1
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        index += 1
        text.append(contentsOf: String(try escaped()).utf8)
      case ..<0x20: throw failure("a control character or line break in a string must be escaped")
      default:
        text.append(byte)
        index += 1
      }
    }
    throw failure("a string has no closing quote")
  }

  private mutating func escaped() throws(ReelError) -> Unicode.Scalar {
    guard let byte = current else { throw failure("a string has no closing quote") }
    index += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): break
    default:
      index -= 1
      throw failure("invalid escape sequence")
    }
    let high = try codeUnit()
    if let scalar = Unicode.Scalar(high) { return scalar }
    // A surrogate pair encodes one character.
    guard (0xd800..<0xdc00).contains(high), take("\\"), take("u") else {
      throw failure("unpaired surrogate")
    }
    let low = try codeUnit()
    guard (0xdc00..<0xe000).contains(low),
      let scalar = Unicode.Scalar(0x10000 + (high - 0xd800) << 10 + (low - 0xdc00))
    else { throw failure("unpaired surrogate") }
    return scalar
  }

  private mutating func codeUnit() throws(ReelError) -> UInt32 {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = current?.hexDigitValue else {
        throw failure("expected four hexadecimal digits")
      }
      unit = unit << 4 + UInt32(digit)
      index += 1
    }
    return unit
  }

  private mutating func number() throws(ReelError) -> String {
    let start = index
    _ = take("-")
    guard current?.isDigit == true else {
      index = start
      throw failure("expected a value")
    }
    if !take("0") { while current?.isDigit == true { index += 1 } }
    if take(".") {
      guard current?.isDigit == true else { throw failure("expected a digit") }
      while current?.isDigit == true { index += 1 }
    }
    if take("e") || take("E") {
      _ = take("+") || take("-")
      guard current?.isDigit == true else { throw failure("expected a digit") }
      while current?.isDigit == true { index += 1 }
    }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }
}
