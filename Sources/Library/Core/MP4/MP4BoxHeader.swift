/// The header of a box of an ISO base media file: its size and its type (ISO/IEC 14496-12 §4.2).
package struct MP4BoxHeader: Sendable, Hashable {
  package let type: FourCC
  /// The size of the header: 8, or 16 if it gives the size of the box in 64 bits.
  package let headerByteCount: Int
  /// The size of the box with its header, as written, and so possibly wrong; nil if the box extends to the end of the
  /// file.
  package let byteCount: UInt64?

  /// Reads the header that `bytes` begin with; nil if it has more bytes than there are.
  package init?(_ bytes: ArraySlice<UInt8>) {
    var fields = BigEndianReader(bytes)
    guard let size = fields.number(4), let type = fields.number(4) else { return nil }
    self.type = FourCC(UInt32(truncatingIfNeeded: type))
    guard size == 1 else {
      headerByteCount = 8
      byteCount = size == 0 ? nil : size
      return
    }
    guard let long = fields.number(8) else { return nil }
    headerByteCount = 16
    byteCount = long
  }

  /// True if the box is smaller than its own header.
  package var isMalformed: Bool { byteCount.map { $0 < UInt64(headerByteCount) } ?? false }

  /// The type in a header that `bytes` begin with; nil if there are fewer than 8. The size need not be whole.
  package static func type(in bytes: ArraySlice<UInt8>) -> FourCC? {
    guard bytes.count >= 8 else { return nil }
    return FourCC(UInt32(truncatingIfNeeded: bytes.dropFirst(4).prefix(4).bigEndianNumber))
  }

  /// The size of a header that `bytes` begin with: 8 or 16, or 8 while there are too few to tell.
  package static func headerByteCount(in bytes: ArraySlice<UInt8>) -> Int {
    bytes.count >= 8 && bytes.prefix(4).bigEndianNumber == 1 ? 16 : 8
  }
}
