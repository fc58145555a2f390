import ReelCore
import ReelManifest

/// An attribute list read by the letter (RFC 8216 §4.2), unlike `AttributeList`, which reads what it can.
struct AttributeSyntax: Sendable {
  /// One attribute as it is written.
  struct Item: Sendable {
    var name: String
    /// Without quotes.
    var value: String
    var isQuoted: Bool
  }

  private(set) var items: [Item] = []
  /// The faults of the list, in clauses.
  private(set) var faults: [String] = []

  /// More attributes than this are not looked at.
  private static let limit = 256

  /// The list of a tag that has none.
  static let none = AttributeSyntax()

  private init() {}

  init(_ bytes: [UInt8], in range: Range<Int>) {
    var index = range.lowerBound
    if range.isEmpty { faults.append("an attribute list that is empty") }
    while index < range.upperBound, items.count + faults.count < Self.limit {
      readItem(bytes, at: &index, end: range.upperBound)
    }
    var names: Set<String> = []
    for item in items where !names.insert(item.name).inserted {
      faults.append("the attribute \(item.name.excerpt) twice")
    }
  }

  /// The attribute of this name.
  subscript(name: String) -> Item? { items.first { $0.name == name } }

  /// The value of the attribute of this name.
  func value(_ name: String) -> String? { self[name]?.value }

  /// The value of a number of seconds.
  func seconds(_ name: String) -> MediaTime? { value(name).flatMap { AttributeList.seconds($0) } }

  // MARK: - Private

  private mutating func readItem(_ bytes: [UInt8], at index: inout Int, end: Int) {
    let start = index
    while index < end, bytes[index] != UInt8(ascii: "="), bytes[index] != UInt8(ascii: ",") { index += 1 }
    let name = bytes.text(in: bytes.trimmed(start..<index))
    guard index < end, bytes[index] == UInt8(ascii: "=") else {
      faults.append(
        name.isEmpty ? "a comma without an attribute" : "the attribute \(name.excerpt) without a value")
      index += 1
      return
    }
    checkName(name, isSpaced: bytes.trimmed(start..<index) != start..<index)
    index += 1
    let valueStart = index
    while index < end, bytes[index].isSpace { index += 1 }
    var isSpaced = index > valueStart
    if index < end, bytes[index] == UInt8(ascii: "\"") {
      let close = bytes.firstIndex(of: UInt8(ascii: "\""), in: index + 1..<end)
      items.append(Item(name: name, value: bytes.text(in: index + 1..<(close ?? end)), isQuoted: true))
      if close == nil { faults.append("\(name.excerpt) without its closing quote") }
      let after = min((close ?? end) + 1, end)
      index = bytes.firstIndex(of: UInt8(ascii: ","), in: after..<end) ?? end
      let rest = bytes.trimmed(after..<index)
      if !rest.isEmpty {
        faults.append("'\(bytes.text(in: rest).excerpt)' after the closing quote of \(name.excerpt)")
      }
      isSpaced = isSpaced || (rest.isEmpty && after < index)
    } else {
      let close = bytes.firstIndex(of: UInt8(ascii: ","), in: index..<end) ?? end
      let range = bytes.trimmed(index..<close)
      let text = bytes.text(in: range)
      items.append(Item(name: name, value: text, isQuoted: false))
      isSpaced = isSpaced || range.upperBound < close
      if text.isEmpty { faults.append("the attribute \(name.excerpt) without a value") }
      if text.utf8.contains(where: { $0.isSpace || $0 == UInt8(ascii: "\"") }) {
        faults.append("white space or a quote in the unquoted value of \(name.excerpt)")
      }
      index = close
    }
    if isSpaced { faults.append("white space around the value of \(name.excerpt)") }
    if index == end - 1 { faults.append("a comma at the end of the attribute list") }
    index += 1
  }

  private mutating func checkName(_ name: String, isSpaced: Bool) {
    if isSpaced { faults.append("white space around the attribute name \(name.excerpt)") }
    let isPlain = name.utf8.allSatisfy {
      $0.isDigit || $0 == UInt8(ascii: "-") || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
    }
    if name.isEmpty || !isPlain { faults.append("'\(name.excerpt)' is not an attribute name") }
  }
}
