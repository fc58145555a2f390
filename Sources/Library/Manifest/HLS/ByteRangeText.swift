package import ReelCore

/// `<n>[@<o>]`, the value of EXT-X-BYTERANGE and of BYTERANGE (RFC 8216 §4.3.2.2).
package struct ByteRangeText: Sendable, Hashable {
  var length: Int64
  package var offset: Int64?

  /// Nil for what is none.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard let range = try? ByteRangeText(bytes, in: 0..<bytes.count, place: .line(0)) else { return nil }
    self = range
  }

  package init(_ bytes: [UInt8], in range: Range<Int>, place: ReelError.Place) throws(ReelError) {
    let at = bytes.firstIndex(of: UInt8(ascii: "@"), in: range)
    let length = bytes.integer(in: bytes.trimmed(range.lowerBound..<(at ?? range.upperBound)))
    let offset = at.flatMap { bytes.integer(in: bytes.trimmed($0 + 1..<range.upperBound)) }
    guard let length, length >= 0, at == nil || (offset ?? -1) >= 0 else {
      throw ReelError(
        .badManifest, "'\(bytes.text(in: range).excerpt)' is not a byte range of the form length@offset",
        place: place)
    }
    self.length = length
    self.offset = offset
  }

  /// The range, at `implicitOffset` if it states no offset. Throws `badManifest` if it ends beyond 63 bits.
  package func byteRange(implicitOffset: Int64, place: ReelError.Place) throws(ReelError) -> ByteRange {
    guard let range = byteRange(implicitOffset: implicitOffset) else {
      throw ReelError(.badManifest, "the byte range ends beyond 63 bits", place: place)
    }
    return range
  }

  /// The range, at `implicitOffset` if it states no offset; nil if it ends beyond 63 bits.
  package func byteRange(implicitOffset: Int64) -> ByteRange? {
    let range = ByteRange(offset: offset ?? implicitOffset, length: length)
    return range.end == nil ? nil : range
  }
}
