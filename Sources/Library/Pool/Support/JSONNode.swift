package import ReelCore

/// A JSON value (RFC 8259) and the line of its beginning.
struct JSONNode: Sendable {
  enum Value: Sendable {
    case null
    case bool(Bool)
    /// The number's text, so that whole numbers stay exact.
    case number(String)
    case string(String)
    case array([JSONNode])
    /// The members in the order of the text, without duplicate keys.
    case object([(key: String, value: JSONNode)])
  }

  let value: Value
  /// The line, counted from 1.
  let line: Int

  /// The kind of value, in words.
  var kind: String {
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
  subscript(key: String) -> JSONNode? {
    guard case .object(let members) = value,
      let member = members.first(where: { $0.key == key })?.value
    else { return nil }
    if case .null = member.value { return nil }
    return member
  }
}

/// A value of a JSON text with its path, such as `viewers[1].dwell`. Its errors name the path and the line.
package struct JSONField: Sendable {
  private let node: JSONNode
  package let path: String
  /// The name of the whole text in place of a path: `a configuration`.
  private let subject: String
  /// The kind of the errors of values.
  private let errorKind: ReelError.Kind

  /// Reads a JSON text in UTF-8.
  ///
  /// - Parameters:
  ///   - subject: The subject of the text, for errors: `a configuration`.
  ///   - kind: The kind of the errors of values.
  /// - Throws: `ReelError` of kind `badManifest` with the line if the text is not JSON, not UTF-8, has a key
  ///   twice or is nested too deeply.
  package init(
    json bytes: [UInt8], of subject: String, failing kind: ReelError.Kind
  ) throws(ReelError) {
    self.init(
      try JSONText.node(in: try LocalText.validated(bytes)), path: "", subject: subject, kind: kind)
  }

  private init(_ node: JSONNode, path: String, subject: String, kind: ReelError.Kind) {
    self.node = node
    self.path = path
    self.subject = subject
    errorKind = kind
  }

  /// The kind of value, in words.
  package var kind: String { node.kind }

  package var isObject: Bool {
    if case .object = node.value { return true }
    return false
  }

  package var isNumber: Bool {
    if case .number = node.value { return true }
    return false
  }

  package var isText: Bool {
    if case .string = node.value { return true }
    return false
  }

  /// Throws for a value that is not an object, and for a member that is not one of `names`.
  package func allow(_ names: [String]) throws(ReelError) {
    guard case .object(let members) = node.value else {
      throw failure("must be an object, not \(node.kind)")
    }
    for (key, value) in members where !names.contains(key) {
      throw child(value, member(key)).failure(
        "unknown field", advice: "the fields are \(names.joined(separator: ", "))")
    }
  }

  /// Returns a member; nil if there is none, or if it is null.
  package func optional(_ key: String) -> JSONField? { node[key].map { child($0, member(key)) } }

  package func required(_ key: String) throws(ReelError) -> JSONField {
    guard let field = optional(key) else { throw child(node, member(key)).failure("the field is missing") }
    return field
  }

  /// Returns the elements of an array with at least one.
  package func elements() throws(ReelError) -> [JSONField] {
    guard case .array(let elements) = node.value else {
      throw failure("must be an array, not \(node.kind)")
    }
    guard !elements.isEmpty else { throw failure("must have at least one element") }
    return elements.enumerated().map { child($1, "\(path)[\($0)]") }
  }

  /// Returns a text that is not blank.
  package func text(upTo limit: Int = 100) throws(ReelError) -> String {
    guard case .string(let text) = node.value else { throw failure("must be a string, not \(node.kind)") }
    guard !text.trimmed.isEmpty, text.count <= limit else {
      throw failure("must be a string of 1 to \(limit) characters")
    }
    return text
  }

  package func flag() throws(ReelError) -> Bool {
    guard case .bool(let flag) = node.value else {
      throw failure("must be true or false, not \(node.kind)")
    }
    return flag
  }

  package func count<Count: FixedWidthInteger>(in range: ClosedRange<Count>) throws(ReelError) -> Count {
    guard case .number(let text) = node.value else {
      throw failure("must be a whole number, not \(node.kind)")
    }
    guard let value = Count(text) ?? Double(text).flatMap(Count.init(exactly:)), range.contains(value) else {
      throw failure(
        "must be a whole number from \(range.lowerBound) to \(range.upperBound), not \(text)")
    }
    return value
  }

  /// Returns an error at this value.
  package func failure(_ reason: String, advice: String? = nil) -> ReelError {
    ReelError(
      errorKind, path.isEmpty ? "\(subject) \(reason)" : "\(path): \(reason)", place: .line(node.line),
      advice: advice)
  }

  /// Returns an error of something that the value refers to, such as a file, as an error at this value.
  package func failure(_ cause: ReelError) -> ReelError {
    var bare = cause
    bare.advice = nil
    var failure = cause
    failure.reason = path.isEmpty ? "\(bare)" : "\(path): \(bare)"
    failure.location = nil
    failure.place = .line(node.line)
    return failure
  }

  // MARK: - Private

  private func child(_ node: JSONNode, _ path: String) -> JSONField {
    JSONField(node, path: path, subject: subject, kind: errorKind)
  }

  private func member(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }
}

/// Reads JSON (RFC 8259) into nodes with line numbers, for error messages.
struct JSONText {
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
  static func node(in bytes: ArraySlice<UInt8>) throws(ReelError) -> JSONNode {
    var reader = JSONText(bytes)
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
    while let byte = current, byte.isBlank {
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
      guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw failure("expected four hexadecimal digits")
      }
      unit = unit << 4 + UInt32(digit)
      index += 1
    }
    return unit
  }

  private mutating func number() throws(ReelError) -> String {
    let start = index
    func isDigit(_ byte: UInt8?) -> Bool { byte.map { (0x30...0x39).contains($0) } ?? false }
    _ = take("-")
    guard isDigit(current) else {
      index = start
      throw failure("expected a value")
    }
    if !take("0") { while isDigit(current) { index += 1 } }
    if take(".") {
      guard isDigit(current) else { throw failure("expected a digit") }
      while isDigit(current) { index += 1 }
    }
    if take("e") || take("E") {
      _ = take("+") || take("-")
      guard isDigit(current) else { throw failure("expected a digit") }
      while isDigit(current) { index += 1 }
    }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }
}
