import Foundation
package import ReelCore

/// The attributes of a tag (RFC 8216 §4.2), in order, with variables put in.
///
/// It reads what lists in the wild look like: spaces around names and values, a missing closing quote, an attribute
/// without a value. Of two attributes of one name the first counts.
package struct AttributeList: Sendable, Hashable {
  /// One attribute: its name, its value without quotes.
  package struct Attribute: Sendable, Hashable {
    package let name: String
    package let value: String
  }

  package private(set) var attributes: [Attribute] = []

  /// The number of attributes per tag. Further ones are ignored.
  private static let limit = 256

  /// The attributes in `range` of `bytes`. Throws `badManifest` if a value names a variable that is not defined.
  init(
    _ bytes: [UInt8], in range: Range<Int>, variables: inout PlaylistVariables, place: ReelError.Place
  ) throws(ReelError) {
    var index = range.lowerBound
    let end = range.upperBound
    while index < end, attributes.count < Self.limit {
      let nameStart = index
      while index < end, bytes[index] != UInt8(ascii: "="), bytes[index] != UInt8(ascii: ",") { index += 1 }
      let name = bytes.text(in: bytes.trimmed(nameStart..<index))
      guard index < end, bytes[index] == UInt8(ascii: "=") else {
        index += 1
        continue
      }
      index += 1
      while index < end, bytes[index].isSpace { index += 1 }
      let value: Range<Int>
      if index < end, bytes[index] == UInt8(ascii: "\"") {
        let close = bytes.firstIndex(of: UInt8(ascii: "\""), in: index + 1..<end) ?? end
        value = index + 1..<close
        index = bytes.firstIndex(of: UInt8(ascii: ","), in: min(close + 1, end)..<end) ?? end
      } else {
        let close = bytes.firstIndex(of: UInt8(ascii: ","), in: index..<end) ?? end
        value = bytes.trimmed(index..<close)
        index = close
      }
      index += 1
      let text = try variables.substituting(in: bytes.text(in: value), place: place)
      if !name.isEmpty { attributes.append(Attribute(name: name, value: text)) }
    }
  }

  /// The value of the first attribute of this name; nil if there is none, or an empty one.
  package subscript(name: String) -> String? {
    guard let value = attributes.first(where: { $0.name == name })?.value, !value.isEmpty else { return nil }
    return value
  }

  /// True if the attribute exists, even if it is empty.
  func contains(_ name: String) -> Bool { attributes.contains { $0.name == name } }

  /// `YES` or `NO`; false if it is missing.
  func flag(_ name: String) -> Bool { self[name]?.uppercased() == "YES" }

  /// A signed decimal number of seconds; nil for anything else.
  package static func seconds(_ text: String) -> MediaTime? {
    var text = text.trimmed
    let isNegative = text.hasPrefix("-")
    if isNegative { text.removeFirst() }
    let bytes = Array(text.utf8)
    guard let (value, end) = ExactSeconds.parse(bytes, in: 0..<bytes.count), end == bytes.count else {
      return nil
    }
    let time = value.time
    return isNegative ? MediaTime.zero - time : time
  }

  /// A comma-separated list.
  func list(_ name: String) -> [String] {
    guard let text = self[name] else { return [] }
    return text.split(separator: ",").prefix(64).map { String($0).trimmed }.filter { !$0.isEmpty }
  }
}
