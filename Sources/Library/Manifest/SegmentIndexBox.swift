import ReelCore

/// A Segment Index Box, `sidx` (ISO/IEC 14496-12 §8.16.3).
struct SegmentIndexBox: Sendable {
  /// One subsegment, or another index.
  struct Reference: Sendable, Hashable {
    /// From the beginning of the file.
    var offset: Int64
    var byteCount: Int64
    /// True if the reference is to another `sidx`, which lists further segments.
    var isIndex: Bool
    /// Media time of its beginning, in ticks.
    var start: Int64
    var duration: Int64
  }

  /// The result of a search for a `sidx`.
  enum Search: Sendable {
    /// Found: `box` within the bytes, and the byte of the file after the `moov`, if one was passed.
    case found(box: Range<Int>, body: Range<Int>, movieEnd: Int64?)
    /// It begins there with this size, but not all of its bytes are available.
    case cut(offset: Int64, byteCount: UInt64, available: Int)
    /// There is none; `offset` is the end of the boxes.
    case none(offset: Int64)
  }

  let timescale: Int64
  let references: [Reference]

  /// Reads the body of the `sidx` in `range` of `bytes`, which start at `offset` in the file. Throws `badMedia`.
  init(_ bytes: [UInt8], in range: Range<Int>, at offset: Int64) throws(ReelError) {
    var reader = IndexReader(bytes[range], offset: offset)
    let version = try reader.read(4) >> 24
    _ = try reader.read(4)
    timescale = Int64(try reader.read(4))
    guard timescale > 0 else {
      throw ReelError(.badMedia, "the sidx has a timescale of 0", place: .byte(reader.place))
    }
    let earliest = try reader.read(version == 0 ? 4 : 8)
    let firstOffset = try reader.read(version == 0 ? 4 : 8)
    let count = Int(try reader.read(4) & 0xFFFF)
    let boxEnd = offset &+ Int64(range.upperBound)
    guard var start = Int64(exactly: earliest), let distance = Int64(exactly: firstOffset) else {
      throw ReelError(.badMedia, "the sidx has numbers beyond 63 bits", place: .byte(reader.place))
    }
    var (position, overflow) = boxEnd.addingReportingOverflow(distance)
    var references: [Reference] = []
    references.reserveCapacity(min(count, range.count / 12))
    for _ in 0..<count {
      let head = try reader.read(4)
      let duration = Int64(try reader.read(4))
      _ = try reader.read(4)
      let size = Int64(head & 0x7FFF_FFFF)
      references.append(
        Reference(
          offset: position, byteCount: size, isIndex: head >> 31 == 1, start: start, duration: duration))
      let (next, tooFar) = position.addingReportingOverflow(size)
      let (time, tooLate) = start.addingReportingOverflow(duration)
      overflow = overflow || tooFar || tooLate
      (position, start) = (next, time)
    }
    guard !overflow else {
      throw ReelError(.badMedia, "the sidx exceeds 63 bits", place: .byte(boxEnd))
    }
    guard !references.isEmpty else {
      throw ReelError(.badMedia, "the sidx lists no segments", place: .byte(boxEnd))
    }
    self.references = references
  }

  /// Searches `bytes` from `start` for the first `sidx`, box by box, up to the first media; the bytes start at
  /// `offset` in the file. If `isNested` is true, the `sidx` must be at `start`, or directly after a `styp`.
  /// Throws `badMedia` for bytes that can't be a box.
  static func find(
    in bytes: [UInt8], from start: Int, at offset: Int64, isNested: Bool
  ) throws(ReelError) -> Search {
    var (position, boxCount) = (start, 0)
    var (index, movieEnd): ((box: Range<Int>, body: Range<Int>)?, Int64?) = (nil, nil)
    while let header = MP4BoxHeader(bytes[position...]) {
      // 0 for a box that extends to the end of the file.
      let size = header.byteCount ?? 0
      guard size == 0 || !header.isMalformed else {
        if index != nil { break }
        throw ReelError(
          .badMedia, "a box of \(size) bytes where a sidx is expected",
          place: .byte(offset + Int64(position)))
      }
      let available = bytes.count - position
      if header.type == "sidx", index == nil {
        guard size != 0, size <= available else {
          return .cut(offset: offset + Int64(position), byteCount: size, available: available)
        }
        let end = position + Int(size)
        index = (position..<end, position + header.headerByteCount..<end)
        if isNested { break }
      } else if header.type == "moof" || header.type == "mdat" {
        break
      }
      guard size != 0, size <= available else { break }
      position += Int(size)
      boxCount += 1
      if isNested, boxCount > 2 { break }
      if header.type == "moov" { movieEnd = offset + Int64(position) }
    }
    guard let index else { return .none(offset: offset + Int64(position)) }
    return .found(box: index.box, body: index.body, movieEnd: movieEnd)
  }
}

/// Reads the numbers of a `sidx`.
private struct IndexReader {
  private var reader: BigEndianReader
  private let offset: Int64

  init(_ bytes: ArraySlice<UInt8>, offset: Int64) {
    reader = BigEndianReader(bytes)
    self.offset = offset
  }

  /// The position of the next number in the file.
  var place: Int64 { offset &+ Int64(reader.rest.startIndex) }

  /// The next number of `count` bytes, at most 8.
  mutating func read(_ count: Int) throws(ReelError) -> UInt64 {
    guard let value = reader.number(count) else {
      throw ReelError(.badMedia, "the sidx ends too early", place: .byte(place))
    }
    return value
  }
}
