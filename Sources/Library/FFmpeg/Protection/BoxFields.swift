internal import ReelCore

/// Reads the fields of a box in order.
struct BoxFields {
  private var reader: BigEndianReader

  init(_ bytes: [UInt8], _ range: Range<Int>) { reader = BigEndianReader(bytes[range]) }

  /// The range of the bytes that have not been read.
  var range: Range<Int> { reader.rest.indices }

  /// Reads a big-endian number of `count` bytes. Throws `badMedia` past the end of the box.
  mutating func number(_ count: Int) throws(ReelError) -> UInt64 {
    guard let value = reader.number(count) else { throw .boxEnds }
    return value
  }

  /// Reads a number of at most four bytes.
  mutating func integer(_ count: Int) throws(ReelError) -> Int { Int(try number(count)) }

  mutating func bytes(_ count: Int) throws(ReelError) -> [UInt8] {
    guard let bytes = reader.bytes(count) else { throw .boxEnds }
    return Array(bytes)
  }

  mutating func skip(_ count: Int) throws(ReelError) {
    guard reader.bytes(count) != nil else { throw .boxEnds }
  }

  /// Reads four characters.
  mutating func fourCC() throws(ReelError) -> FourCC { FourCC(UInt32(truncatingIfNeeded: try number(4))) }

  /// Reads the version and flags of a full box.
  mutating func versionAndFlags() throws(ReelError) -> (version: Int, flags: Int) {
    (try integer(1), try integer(3))
  }
}

extension ReelError {
  fileprivate static var boxEnds: ReelError {
    ReelError(.badMedia, "a box that describes encrypted samples ends too early")
  }
}

extension MP4Box {
  /// The consecutive boxes in `range`, up to the first one that does not fit. A `uuid` box without a whole user type
  /// does not.
  static func all(in bytes: [UInt8], _ range: Range<Int>) -> [MP4Box] {
    Array(all(in: bytes[range]).prefix { $0.type != "uuid" || $0.userType != nil })
  }
}
