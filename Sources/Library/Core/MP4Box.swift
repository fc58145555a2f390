/// The header of a box of an ISO base media file: its size and its type (ISO/IEC 14496-12 §4.2).
package struct MP4BoxHeader: Sendable, Hashable {
  package let type: FourCC
  /// The size of the header: 8, or 16 if it gives the size of the box in 64 bits.
  package let headerByteCount: Int
  /// The size of the box with its header, as written, and so possibly wrong; nil if the box extends to the
  /// end of the file.
  package let byteCount: UInt64?

  /// Reads the header at the start of `bytes`; nil if it is not complete.
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

  /// True if a box of an unknown type may begin like this. Its type has four printable characters, and its size is
  /// smaller than any that begins with a character of text: a page in place of media is no box.
  package var isPlausible: Bool {
    !isMalformed && type.isPrintable && (headerByteCount > 8 || byteCount ?? 0 < 0x0900_0000)
  }

  /// Returns the type in a header at the start of `bytes`; nil if there are fewer than 8. The size may be
  /// incomplete.
  package static func type(in bytes: ArraySlice<UInt8>) -> FourCC? {
    guard bytes.count >= 8 else { return nil }
    return FourCC(UInt32(truncatingIfNeeded: bytes.dropFirst(4).prefix(4).bigEndianNumber))
  }

  /// Returns the size of a header at the start of `bytes`: 8 or 16, or 8 if there are too few bytes to tell.
  package static func headerByteCount(in bytes: ArraySlice<UInt8>) -> Int {
    bytes.count >= 8 && bytes.prefix(4).bigEndianNumber == 1 ? 16 : 8
  }
}

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

  /// Returns the consecutive boxes in `bytes`, up to the first one that does not fit.
  package static func all(in bytes: ArraySlice<UInt8>) -> [MP4Box] {
    var found: [MP4Box] = []
    var rest = bytes
    while let box = MP4Box(rest) {
      found.append(box)
      rest = rest[box.end...]
    }
    return found
  }

  /// Returns the boxes that a path of types leads to, such as all `elst` boxes of `moov`, `trak`, `edts`, `elst`.
  package static func all(_ path: [FourCC], in bytes: ArraySlice<UInt8>) -> [MP4Box] {
    guard let type = path.first else { return [] }
    let boxes = all(in: bytes).filter { $0.type == type }
    return path.count == 1 ? boxes : boxes.flatMap { all(Array(path.dropFirst()), in: bytes[$0.body]) }
  }

  /// Reads the box at the start of `bytes`; nil if it does not fit.
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

/// Reads big-endian numbers in order, never beyond the end of its bytes.
package struct BigEndianReader: Sendable {
  /// The bytes that have not been read.
  package private(set) var rest: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  /// Reads a number of `count` bytes, at most 8; nil if there are fewer, which then stay unread.
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

/// Reads the fields of a box in order. Throws `badMedia` past its end.
package struct BoxFields {
  private var reader: BigEndianReader
  /// The box, for errors.
  private let name: String
  /// The position of the bytes in the file; nil if it is not known.
  private let offset: Int64?

  /// - Parameters:
  ///   - name: The box, for errors.
  ///   - offset: The position in the file of the byte with index 0, for errors.
  package init(_ bytes: ArraySlice<UInt8>, of name: String, at offset: Int64? = nil) {
    reader = BigEndianReader(bytes)
    self.name = name
    self.offset = offset
  }

  /// The range of the bytes that have not been read.
  package var range: Range<Int> { reader.rest.indices }

  /// The position of the next field in the file, if it is known.
  package var place: ReelError.Place? { offset.map { .byte($0 &+ Int64(reader.rest.startIndex)) } }

  /// Reads a big-endian number of at most eight bytes.
  package mutating func number(_ count: Int) throws(ReelError) -> UInt64 {
    guard let value = reader.number(count) else { throw end }
    return value
  }

  /// Reads a number of at most four bytes.
  package mutating func integer(_ count: Int) throws(ReelError) -> Int { Int(try number(count)) }

  package mutating func bytes(_ count: Int) throws(ReelError) -> [UInt8] {
    guard let bytes = reader.bytes(count) else { throw end }
    return Array(bytes)
  }

  package mutating func skip(_ count: Int) throws(ReelError) {
    guard reader.bytes(count) != nil else { throw end }
  }

  /// Reads four characters.
  package mutating func fourCC() throws(ReelError) -> FourCC {
    FourCC(UInt32(truncatingIfNeeded: try number(4)))
  }

  /// Reads the version and flags of a full box.
  package mutating func versionAndFlags() throws(ReelError) -> (version: Int, flags: Int) {
    (try integer(1), try integer(3))
  }

  private var end: ReelError { ReelError(.badMedia, "\(name) ends too early", place: place) }
}

extension ArraySlice<UInt8> {
  /// The value of these bytes, at most 8, as a big-endian number.
  package var bigEndianNumber: UInt64 { reduce(0) { $0 << 8 | UInt64($1) } }
}

extension FixedWidthInteger {
  /// The bytes of the number, the most significant first.
  package var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

/// A four-character code: the type of a box, a brand or a codec (ISO/IEC 14496-12 §4.2).
package struct FourCC: Sendable, Hashable {
  /// The characters in file order, the first in the highest byte.
  package let code: UInt32

  package init(_ code: UInt32) { self.code = code }
}

extension FourCC {
  /// True if all characters are printable ASCII.
  package var isPrintable: Bool { (0..<4).allSatisfy { (0x20...0x7e).contains(code >> (8 * $0) & 0xff) } }
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
