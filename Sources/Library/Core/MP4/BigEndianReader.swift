/// Reads big-endian numbers in order, never beyond the end of its bytes.
package struct BigEndianReader: Sendable {
  /// The bytes that have not been read.
  package private(set) var rest: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  /// Reads a number of `count` bytes, 8 at most; nil if there are fewer, which then stay unread.
  package mutating func number(_ count: Int) -> UInt64? {
    bytes(count)?.bigEndianNumber
  }

  /// Reads `count` bytes; nil if there are fewer, which then stay unread.
  package mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }
}

extension ArraySlice<UInt8> {
  /// The number that these bytes spell, 8 at most, the most significant first.
  package var bigEndianNumber: UInt64 { reduce(0) { $0 << 8 | UInt64($1) } }
}
