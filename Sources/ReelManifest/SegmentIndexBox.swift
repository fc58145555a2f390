import ReelCore

/// A Segment Index Box, `sidx` (ISO/IEC 14496-12 §8.16.3).
struct SegmentIndexBox: Sendable {
  /// One subsegment.
  struct Entry: Sendable, Hashable {
    /// From the beginning of the file.
    var offset: Int64
    var byteCount: Int64
    /// Media time of its beginning, in ticks.
    var start: Int64
    var duration: Int64
  }

  let timescale: Int64
  let entries: [Entry]
  /// The bytes from the beginning of the file that a decoder needs first, where the MPD does not tell.
  private let impliedInitialization: ByteRange

  /// Reads the first `sidx` in `bytes`, which start at `offset` in the file. Throws `badMedia` or `unsupported`.
  init(_ bytes: [UInt8], at offset: Int64) throws(ReelError) {
    let (box, movieEnd) = try Self.find(bytes, at: offset)
    var reader = BigEndianReader(bytes, in: box.body, offset: offset)
    let version = try reader.read(4) >> 24
    _ = try reader.read(4)
    timescale = Int64(try reader.read(4))
    guard timescale > 0 else {
      throw ReelError(.badMedia, "the sidx has a timescale of 0", place: .byte(reader.place))
    }
    let earliest = try reader.read(version == 0 ? 4 : 8)
    let firstOffset = try reader.read(version == 0 ? 4 : 8)
    let count = Int(try reader.read(4) & 0xFFFF)
    let boxEnd = offset &+ Int64(box.body.upperBound)
    guard var start = Int64(exactly: earliest), let distance = Int64(exactly: firstOffset) else {
      throw ReelError(.badMedia, "the sidx has numbers beyond 63 bits", place: .byte(reader.place))
    }
    var (position, overflow) = boxEnd.addingReportingOverflow(distance)
    var entries: [Entry] = []
    entries.reserveCapacity(count)
    for _ in 0..<count {
      let reference = try reader.read(4)
      let duration = Int64(try reader.read(4))
      _ = try reader.read(4)
      guard reference >> 31 == 0 else {
        throw ReelError(
          .unsupported, "the sidx lists other sidx boxes, which are not read yet", place: .byte(reader.place))
      }
      let size = Int64(reference & 0x7FFF_FFFF)
      entries.append(Entry(offset: position, byteCount: size, start: start, duration: duration))
      let (next, tooFar) = position.addingReportingOverflow(size)
      let (time, tooLate) = start.addingReportingOverflow(duration)
      overflow = overflow || tooFar || tooLate
      (position, start) = (next, time)
    }
    guard !overflow else {
      throw ReelError(.badMedia, "the sidx leads beyond 63 bits", place: .byte(boxEnd))
    }
    guard !entries.isEmpty else {
      throw ReelError(.badMedia, "the sidx lists no segments", place: .byte(boxEnd))
    }
    self.entries = entries
    let start0 = offset &+ Int64(box.start)
    let end = max(start0, movieEnd ?? 0)
    impliedInitialization = ByteRange(offset: 0, length: end > 0 ? end : boxEnd)
  }

  /// The segments on the presentation's timeline: those that overlap the period, where its length is known.
  func segments(of reference: SegmentIndexReference) -> SegmentList {
    let offset =
      reference.timestampOffset
      ?? reference.start - MediaTime(ticks: entries.first?.start ?? 0, timescale: timescale)
    let initialization =
      reference.initialization
      ?? InitializationReference(url: reference.url, byteRange: impliedInitialization)
    var (first, last) = (0, entries.count)
    if let duration = reference.duration {
      let end = reference.start + duration
      while last > 1, time(entries[last - 1].start) + offset >= end { last -= 1 }
      while first < last - 1, time(entries[first].start + entries[first].duration) + offset <= reference.start
      {
        first += 1
      }
    }
    let chosen = Array(entries[first..<last])
    let firstNumber = Int64(first) + 1
    let timescale = timescale
    let end = chosen.last.map { MediaTime(ticks: $0.start + $0.duration, timescale: timescale) + offset }
    return SegmentList(count: chosen.count, end: end ?? reference.start) { index in
      let entry = chosen[index]
      return SegmentReference(
        number: firstNumber + Int64(index), url: reference.url,
        byteRange: ByteRange(offset: entry.offset, length: entry.byteCount),
        start: MediaTime(ticks: entry.start, timescale: timescale) + offset,
        duration: MediaTime(ticks: entry.duration, timescale: timescale), initialization: initialization,
        discontinuity: reference.discontinuity, timestampOffset: reference.timestampOffset)
    }
  }

  // MARK: - Private

  private struct Box {
    var start: Int
    var body: Range<Int>
  }

  private func time(_ ticks: Int64) -> MediaTime { MediaTime(ticks: ticks, timescale: timescale) }

  /// The first `sidx`, and the byte after the `moov` where one stands before or after it.
  private static func find(
    _ bytes: [UInt8], at offset: Int64
  ) throws(ReelError) -> (index: Box, movieEnd: Int64?) {
    guard offset >= 0, offset <= Int64.max - Int64(bytes.count) else {
      throw ReelError(.badMedia, "the index lies beyond 63 bits")
    }
    var position = 0
    var (index, movieEnd): (Box?, Int64?) = (nil, nil)
    while bytes.count - position >= 8 {
      var header = BigEndianReader(bytes, in: position..<bytes.count, offset: offset)
      var size = try header.read(4)
      let type = try header.read(4)
      var headerCount = 8
      if size == 1 {
        guard bytes.count - position >= 16 else { break }
        size = try header.read(8)
        headerCount = 16
      }
      guard size == 0 || size >= UInt64(headerCount) else {
        throw ReelError(
          .badMedia, "a box of \(size) bytes where a sidx is expected",
          place: .byte(offset + Int64(position)))
      }
      let available = UInt64(bytes.count - position)
      if type == 0x7369_6478 {  // "sidx"
        guard size != 0, size <= available else {
          throw ReelError(
            .badMedia, "the sidx has \(size) bytes, of which \(available) are there",
            place: .byte(offset + Int64(position)))
        }
        if index == nil { index = Box(start: position, body: position + headerCount..<position + Int(size)) }
      } else if type == 0x6D6F_6F66 || type == 0x6D64_6174 {  // "moof", "mdat"
        break
      }
      guard size != 0, size <= available else { break }
      position += Int(size)
      if type == 0x6D6F_6F76 { movieEnd = offset + Int64(position) }  // "moov"
    }
    guard let index else {
      throw ReelError(
        .badMedia, "no sidx where the segments are to be listed", place: .byte(offset + Int64(position)))
    }
    return (index, movieEnd)
  }
}

/// Reads numbers in network byte order, never beyond its range.
private struct BigEndianReader {
  private let bytes: [UInt8]
  private var position: Int
  private let end: Int
  private let offset: Int64

  init(_ bytes: [UInt8], in range: Range<Int>, offset: Int64) {
    self.bytes = bytes
    self.offset = offset
    position = range.lowerBound
    end = range.upperBound
  }

  /// Where the next number stands in the file.
  var place: Int64 { offset &+ Int64(position) }

  /// The next `count` bytes, 8 at the most.
  mutating func read(_ count: Int) throws(ReelError) -> UInt64 {
    guard end - position >= count else {
      throw ReelError(.badMedia, "the sidx ends too early", place: .byte(place))
    }
    var value: UInt64 = 0
    for index in position..<position + count { value = value << 8 | UInt64(bytes[index]) }
    position += count
    return value
  }
}
