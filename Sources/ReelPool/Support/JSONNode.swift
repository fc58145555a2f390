/// A value of JSON (RFC 8259) and the line that it begins in.
struct JSONNode: Sendable {
  enum Value: Sendable {
    case null
    case bool(Bool)
    /// As it is written, so that whole numbers stay exact.
    case number(String)
    case string(String)
    case array([JSONNode])
    /// In the order of the text; no key is there twice.
    case object([(key: String, value: JSONNode)])
  }

  let value: Value
  /// Counted from 1.
  let line: Int

  /// What the value is, in words.
  var kind: String {
    switch value {
    case .null: "null"
    case .bool: "a truth value"
    case .number: "a number"
    case .string: "a text"
    case .array: "an array"
    case .object: "an object"
    }
  }

  /// The member of this key; nil where there is none, where it is null, and of what is no object.
  subscript(key: String) -> JSONNode? {
    guard case .object(let members) = value,
      let member = members.first(where: { $0.key == key })?.value
    else { return nil }
    if case .null = member.value { return nil }
    return member
  }
}
