internal import ReelCore

/// A box of an ISO base media file (ISO/IEC 14496-12 §4.2), located in an array of bytes.
struct Box {
  /// Four characters.
  let type: UInt32
  /// The first four bytes of the user type of a `uuid` box; nil for other boxes.
  let userType: UInt32?
  /// The offset of its header, which begins with the size.
  let start: Int
  /// The range of bytes after its header.
  let body: Range<Int>

  var end: Int { body.upperBound }

  /// The consecutive boxes in `range`, up to the first one that does not fit.
  static func all(in bytes: [UInt8], _ range: Range<Int>) -> [Box] {
    var found: [Box] = []
    var start = range.lowerBound
    while let box = Box(in: bytes, at: start, end: range.upperBound) {
      found.append(box)
      start = box.end
    }
    return found
  }

  /// The box whose header is at `start`; nil if it does not fit before `end`.
  private init?(in bytes: [UInt8], at start: Int, end: Int) {
    guard end - start >= 8 else { return nil }
    var fields = BoxFields(bytes, start..<end)
    guard let size = try? fields.number(4), let type = try? fields.number(4) else { return nil }
    var (length, header) = (Int(clamping: size), 8)
    if size == 1 {
      guard let long = try? fields.number(8) else { return nil }
      (length, header) = (Int(clamping: long), 16)
    } else if size == 0 {
      length = end - start
    }
    self.type = UInt32(truncatingIfNeeded: type)
    userType = self.type == .uuid ? (try? fields.number(4)).map { UInt32(truncatingIfNeeded: $0) } : nil
    if userType != nil { header += 16 }
    guard length >= header, length <= end - start else { return nil }
    self.start = start
    body = start + header..<start + length
  }
}

/// Reads the fields of a box in order.
struct BoxFields {
  private let bytes: [UInt8]
  private(set) var range: Range<Int>

  init(_ bytes: [UInt8], _ range: Range<Int>) {
    self.bytes = bytes
    self.range = range
  }

  var isAtEnd: Bool { range.isEmpty }

  /// Reads a big-endian number of `count` bytes. Throws `badMedia` past the end of the box.
  mutating func number(_ count: Int) throws(ReelError) -> UInt64 {
    guard range.count >= count else { throw .boxEnds }
    var value: UInt64 = 0
    for index in range.prefix(count) { value = value << 8 | UInt64(bytes[index]) }
    range = range.dropFirst(count)
    return value
  }

  /// Reads a number of at most four bytes.
  mutating func integer(_ count: Int) throws(ReelError) -> Int { Int(try number(count)) }

  mutating func bytes(_ count: Int) throws(ReelError) -> [UInt8] {
    guard range.count >= count else { throw .boxEnds }
    defer { range = range.dropFirst(count) }
    return Array(bytes[range.prefix(count)])
  }

  mutating func skip(_ count: Int) throws(ReelError) {
    guard range.count >= count else { throw .boxEnds }
    range = range.dropFirst(count)
  }

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

extension UInt32 {
  /// A box type of four ASCII characters.
  init(box: StaticString) {
    self = box.withUTF8Buffer { $0.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
  }

  static let uuid = UInt32(box: "uuid")
}
