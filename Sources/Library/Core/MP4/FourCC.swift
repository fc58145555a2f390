/// A four-character code: the type of a box, a brand or a codec (ISO/IEC 14496-12 §4.2).
package struct FourCC: Sendable, Hashable {
  /// The characters in file order, the first in the highest byte.
  package let code: UInt32

  package init(_ code: UInt32) { self.code = code }
}

extension FourCC: ExpressibleByStringLiteral {
  /// - Parameter value: Four ASCII characters.
  package init(stringLiteral value: StaticString) {
    code = value.withUTF8Buffer { $0.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
  }
}

extension FourCC: CustomStringConvertible {
  /// The four characters, with `?` for one that is not printable ASCII.
  package var description: String {
    String(
      decoding: (0..<4).map { UInt8(truncatingIfNeeded: code >> (24 - 8 * UInt32($0))) }.map {
        (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: "?")
      }, as: UTF8.self)
  }
}
