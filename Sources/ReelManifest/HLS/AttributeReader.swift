import ReelCore

/// Reads typed values from the attributes of one tag, and remembers which of them could not be read.
struct AttributeReader: Sendable {
  let attributes: AttributeList
  /// The attributes whose values make no sense, as `NAME 'value'`.
  private(set) var unreadable: [String] = []

  init(_ attributes: AttributeList) { self.attributes = attributes }

  /// The text of an attribute; nil where there is none, or an empty one.
  subscript(name: String) -> String? { attributes[name] }

  /// What `read` makes of the text of an attribute; nil where there is none, or where it makes nothing.
  mutating func value<Value>(_ name: String, _ read: (String) -> Value?) -> Value? {
    guard let text = attributes[name] else { return nil }
    if let value = read(text) { return value }
    unreadable.append("\(name) '\(text.excerpt)'")
    return nil
  }

  /// A whole number in `range`; the decimals that some writers add are dropped.
  mutating func integer(_ name: String, in range: ClosedRange<Int64>) -> Int? {
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

  /// Remembers an attribute that is not used where it can't be read.
  mutating func check<Value>(_ name: String, _ read: (String) -> Value?) { _ = value(name, read) }

  /// Remembers a whole number that is not used where it can't be read, or is not in `range`.
  mutating func checkInteger(_ name: String, in range: ClosedRange<Int64>) { _ = integer(name, in: range) }

  /// Remembers a length of time that is not used where it can't be read.
  mutating func checkLength(_ name: String) { _ = length(name) }

  /// Adds a warning for what could not be read.
  func warn(_ tag: String, in log: inout WarningLog, place: ReelError.Place) {
    guard !unreadable.isEmpty else { return }
    log.add("\(tag): \(unreadable.joined(separator: ", ")) can't be read", place: place)
  }
}
