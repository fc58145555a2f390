import ReelCore

/// Reads typed values from the attributes of one tag, and remembers which of them could not be read.
struct AttributeReader: Sendable {
  let attributes: AttributeList
  /// The attributes whose values make no sense, as `NAME 'value'`.
  private(set) var unreadable: [String] = []

  init(_ attributes: AttributeList) { self.attributes = attributes }

  /// The text of an attribute; nil if there is none, or an empty one.
  subscript(name: String) -> String? { attributes[name] }

  /// The result of `read` for the text of an attribute; nil if the attribute is missing or `read` returns nil.
  mutating func value<Value>(_ name: String, _ read: (String) -> Value?) -> Value? {
    guard let text = attributes[name] else { return nil }
    if let value = read(text) { return value }
    unreadable.append("\(name) '\(text.excerpt)'")
    return nil
  }

  /// A whole number in `range`; the decimals that some writers add are dropped.
  package mutating func integer(_ name: String, in range: ClosedRange<Int64>) -> Int? {
    value(name) { text in
      let whole = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
      guard let number = whole.first.flatMap({ String($0).integer }), range.contains(number),
        whole.count < 2 || whole[1].utf8.allSatisfy(\.isDigit)
      else { return nil }
      return Int(exactly: number)
    }
  }

  /// A length of time, which is never negative.
  mutating func length(_ name: String) -> MediaTime? {
    value(name) { text in
      let time = AttributeList.seconds(text)
      return time.flatMap { $0 >= .zero ? $0 : nil }
    }
  }

  /// Records that an attribute is ignored because it is invalid.
  package mutating func check<Value>(_ name: String, _ read: (String) -> Value?) { _ = value(name, read) }

  /// Records that a number is ignored because it is invalid or not in `range`.
  mutating func checkInteger(_ name: String, in range: ClosedRange<Int64>) { _ = integer(name, in: range) }

  /// Records that a duration is ignored because it is invalid.
  mutating func checkLength(_ name: String) { _ = length(name) }

  /// Adds a warning for what could not be read.
  package func warn(_ tag: String, in log: inout WarningLog, place: ReelError.Place) {
    guard !unreadable.isEmpty else { return }
    log.add("\(tag): \(unreadable.joined(separator: ", ")) can't be read", place: place)
  }
}
