/// A box of an ISO base media file (ISO/IEC 14496-12 §4.2), located in an array of bytes.
package struct MP4Box: Sendable, Hashable {
  package let type: FourCC
  /// The first four bytes of the user type of a `uuid` box; nil for other boxes, and if the box is too small for one.
  package let userType: UInt32?
  /// The offset of its header, which begins with the size.
  package let start: Int
  /// The range of bytes after its header and its user type.
  package let body: Range<Int>
  /// True if the header gives no size, so that the box extends to the end of the bytes.
  package let isOpenEnded: Bool

  package var end: Int { body.upperBound }

  /// The consecutive boxes in `bytes`, up to the first one that does not fit.
  package static func all(in bytes: ArraySlice<UInt8>) -> [MP4Box] {
    var found: [MP4Box] = []
    var rest = bytes
    while let box = MP4Box(rest) {
      found.append(box)
      rest = rest[box.end...]
    }
    return found
  }

  /// The box that `bytes` begin with; nil if it does not fit.
  private init?(_ bytes: ArraySlice<UInt8>) {
    guard let header = MP4BoxHeader(bytes), !header.isMalformed else { return nil }
    let byteCount = header.byteCount ?? UInt64(bytes.count)
    guard byteCount <= UInt64(bytes.count) else { return nil }
    let box = bytes.prefix(Int(byteCount))
    let body = box.dropFirst(header.headerByteCount)
    let hasUserType = header.type == "uuid" && body.count >= 16
    type = header.type
    userType = hasUserType ? UInt32(truncatingIfNeeded: body.prefix(4).bigEndianNumber) : nil
    start = box.startIndex
    self.body = body.startIndex + (hasUserType ? 16 : 0)..<body.endIndex
    isOpenEnded = header.byteCount == nil
  }
}
