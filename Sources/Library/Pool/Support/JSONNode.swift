/// A JSON value (RFC 8259) and the line of its beginning.
struct JSONNode: Sendable {
  enum Value: Sendable {
    case null
    case bool(Bool)
    /// The number's text, so that whole numbers stay exact.
    case number(String)
    case string(String)
    case array([JSONNode])
    /// In the order of the text, without duplicate keys.
    case object([(key: String, value: JSONNode)])
  }

  let value: Value
  /// Counted from 1.
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
