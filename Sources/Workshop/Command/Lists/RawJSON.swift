import Foundation

/// Finds the members of a JSON object without changing their text, so that they can be copied as they are.
enum RawJSON {
  struct Member {
    let key: String
    /// The value's text, without white space around it.
    let value: ArraySlice<UInt8>
  }

  /// The members of the object that `bytes` holds; nil if there is none, or if it is cut.
  ///
  /// Only the structure is checked: strings, brackets, commas and colons. Values may be malformed otherwise.
  static func members(of bytes: ArraySlice<UInt8>) -> [Member]? {
    var scanner = Scanner(bytes: bytes, index: bytes.startIndex)
    guard scanner.take(UInt8(ascii: "{")) else { return nil }
    var members: [Member] = []
    if scanner.take(UInt8(ascii: "}")) { return scanner.isAtEnd ? members : nil }
    while true {
      scanner.skipBlanks()
      guard let key = scanner.value(), let name = string(key), scanner.take(UInt8(ascii: ":")) else {
        return nil
      }
      scanner.skipBlanks()
      guard let value = scanner.value() else { return nil }
      members.append(Member(key: name, value: value))
      if scanner.take(UInt8(ascii: "}")) { return scanner.isAtEnd ? members : nil }
      guard scanner.take(UInt8(ascii: ",")) else { return nil }
    }
  }

  /// The text of a JSON string; nil for another value.
  static func string(_ value: ArraySlice<UInt8>) -> String? {
    guard value.count >= 2, value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") else {
      return nil
    }
    guard value.contains(UInt8(ascii: "\\")) else {
      return String(validating: value.dropFirst().dropLast(), as: UTF8.self)
    }
    return try? JSONDecoder().decode(String.self, from: Data(value))
  }

  /// `text` as a JSON string.
  static func quoted(_ text: String) -> String {
    var json = JSONText()
    json.object { $0.field("", text) }
    // Without `{"":` and `}`.
    return String(decoding: json.bytes.dropFirst(4).dropLast(), as: UTF8.self)
  }

  /// Whether `bytes` are valid JSON.
  static func isValid(_ bytes: ArraySlice<UInt8>) -> Bool {
    (try? JSONSerialization.jsonObject(with: Data(bytes))) != nil
  }

  // MARK: - Private

  private struct Scanner {
    let bytes: ArraySlice<UInt8>
    var index: Int

    var isAtEnd: Bool {
      mutating get {
        skipBlanks()
        return index == bytes.endIndex
      }
    }

    mutating func skipBlanks() {
      while index < bytes.endIndex, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[index]) { index += 1 }
    }

    /// Skips white space, and a byte if it is this one.
    mutating func take(_ byte: UInt8) -> Bool {
      skipBlanks()
      guard index < bytes.endIndex, bytes[index] == byte else { return false }
      index += 1
      return true
    }

    /// Skips a value; nil if it is empty or does not end.
    mutating func value() -> ArraySlice<UInt8>? {
      let start = index
      // The closing brackets that are still to come.
      var closing: [UInt8] = []
      while index < bytes.endIndex {
        let byte = bytes[index]
        switch byte {
        case UInt8(ascii: "\""):
          guard skipString() else { return nil }
          if closing.isEmpty, bytes[start] == UInt8(ascii: "\"") { return bytes[start..<index] }
          continue
        case UInt8(ascii: "{"): closing.append(UInt8(ascii: "}"))
        case UInt8(ascii: "["): closing.append(UInt8(ascii: "]"))
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
          guard !closing.isEmpty else { return scalar(from: start) }
          guard closing.removeLast() == byte else { return nil }
          if closing.isEmpty {
            index += 1
            return bytes[start..<index]
          }
        case UInt8(ascii: ","), UInt8(ascii: ":"):
          if closing.isEmpty { return scalar(from: start) }
        default: break
        }
        index += 1
      }
      return nil
    }

    private func scalar(from start: Int) -> ArraySlice<UInt8>? {
      var value = bytes[start..<index]
      while let last = value.last, [0x20, 0x09, 0x0a, 0x0d].contains(last) { value.removeLast() }
      return value.isEmpty ? nil : value
    }

    private mutating func skipString() -> Bool {
      index += 1
      while index < bytes.endIndex {
        switch bytes[index] {
        case UInt8(ascii: "\\"): index += 2
        case UInt8(ascii: "\""):
          index += 1
          return true
        default: index += 1
        }
      }
      index = bytes.endIndex
      return false
    }
  }
}
