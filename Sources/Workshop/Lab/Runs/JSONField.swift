package import ReelCore
internal import ReelPool

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
      try JSONParser.node(in: try LocalText.validated(bytes)), path: "", subject: subject, kind: kind)
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
