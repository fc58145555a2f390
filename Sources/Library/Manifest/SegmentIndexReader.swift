package import ReelCore

/// Reads the segments of a single-file Representation from its `sidx` boxes (ISO/IEC 14496-12 §8.16.3), which
/// may refer to others: a hierarchy, or a chain. The index of WebM is `Cues` (`CueIndex`).
///
/// It does no input. As long as `missing` names a range, `add` those bytes of the file; then `segments()`
/// returns them all. Nested boxes within available bytes are read at once. Errors name the file.
///
/// The limits apply to the depth of a hierarchy (8), the boxes (4096), their bytes (1 MiB each,
/// `ManifestLimits.byteCount` in total) and the segments (`ManifestLimits.segments`). A box is read once, so
/// a loop is an error.
package struct SegmentIndexReader: Sendable {
  /// The next bytes that are needed; nil when the index is complete.
  package private(set) var missing: ByteRange?

  private let reference: SegmentIndexReference
  private let limits: ManifestLimits
  /// The boxes still to be read, the next one last.
  private var pending: [Pending] = []
  private var entries: [Entry] = []
  private var chunks: [Chunk] = []
  private var chunkByteCount = 0
  /// The positions of the boxes that were read.
  private var visited: Set<Int64> = []
  /// The first bytes of the file, up to the index, which a decoder needs if the MPD does not state an
  /// initialization.
  private var impliedInitialization: ByteRange?
  /// The box that `missing` is to complete: its size, and the number of available bytes.
  private var cut: (byteCount: UInt64, available: Int)?
  /// The index of a WebM file; nil for boxes.
  private var cues: CueIndex?

  private static let depthLimit = 8
  private static let boxLimit = 4096
  private static let boxByteLimit: UInt64 = 1 << 20
  /// The number of bytes to request if the size of a box is unknown: enough for a thousand segments.
  private static let guessedByteCount: Int64 = 16 << 10

  package init(reference: SegmentIndexReference, limits: ManifestLimits = ManifestLimits()) {
    self.reference = reference
    self.limits = limits
    missing = reference.indexRange ?? ByteRange(offset: 0, length: Self.guessedByteCount * 4)
  }

  /// Adds bytes that start at `offset` in the file. They need not be exactly the `missing` ones.
  ///
  /// Throws `badMedia` with the byte if there is no valid `sidx`, or if the bytes contain none of the missing
  /// ones.
  package mutating func add(_ bytes: [UInt8], at offset: Int64) throws(ReelError) {
    do throws(ReelError) {
      guard let wanted = missing else { return }
      guard offset >= 0, offset <= Int64.max - Int64(bytes.count) else {
        throw ReelError(.badMedia, "the index lies beyond 63 bits")
      }
      chunkByteCount += bytes.count
      guard chunkByteCount <= limits.byteCount else {
        throw ReelError(.badMedia, "the index is larger than the limit of \(limits.byteCount) bytes")
      }
      if let indexRange = reference.indexRange, visited.isEmpty, cues == nil, CueIndex.begins(bytes) {
        let initialization = reference.initialization.flatMap { $0.url == reference.url ? $0.byteRange : nil }
        cues = CueIndex(at: indexRange, initialization: initialization)
      }
      if cues != nil {
        try addCues(bytes, at: offset)
        return
      }
      let isFirst = visited.isEmpty
      chunks.append(Chunk(offset: offset, bytes: bytes))
      if isFirst {
        // Referenced boxes are searched in these bytes from their beginning.
        chunks = [chunks[chunks.count - 1]]
        pending = [Pending(offset: offset, byteCount: nil, depth: 1)]
      }
      try readOn()
      guard missing == wanted else { return }
      if let cut {
        throw ReelError(
          .badMedia, "the sidx has \(cut.byteCount) bytes, of which \(cut.available) are there",
          place: .byte(wanted.offset))
      }
      throw ReelError(.badMedia, "the sidx ends too early", place: .byte(wanted.offset))
    } catch {
      throw error.located(at: reference.url.manifestLocation)
    }
  }

  /// Returns the segments on the presentation's timeline. If the period's length is known, only those that
  /// overlap it.
  ///
  /// Throws `badMedia` as long as bytes are missing.
  package func segments() throws(ReelError) -> SegmentList {
    guard missing == nil else {
      throw ReelError(
        .badMedia, "the index is not whole yet", at: reference.url.manifestLocation,
        place: missing.map { .byte($0.offset) })
    }
    let (reference, entries) = (reference, entries)
    let offset =
      reference.timestampOffset ?? entries.first.map { reference.start - $0.start } ?? reference.start
    let initialization =
      reference.initialization
      ?? impliedInitialization.map {
        InitializationReference(
          url: reference.url, byteRange: $0, alternateURLs: reference.alternateURLs)
      }
    var (first, last) = (0, entries.count)
    if let duration = reference.duration {
      let end = reference.start + duration
      while last > 1, entries[last - 1].start + offset >= end { last -= 1 }
      while first < last - 1, entries[first].end + offset <= reference.start { first += 1 }
    }
    let chosen = first
    let end = last > 0 ? entries[last - 1].end + offset : reference.start
    return SegmentList(count: last - first, end: end) { index in
      let entry = entries[chosen + index]
      return SegmentReference(
        number: Int64(chosen + index) + 1, url: reference.url,
        byteRange: ByteRange(offset: entry.offset, length: entry.byteCount), start: entry.start + offset,
        duration: entry.length, initialization: initialization, discontinuity: reference.discontinuity,
        timestampOffset: reference.timestampOffset, alternateURLs: reference.alternateURLs)
    }
  }

  // MARK: - Private

  /// A run of the file's bytes.
  private struct Chunk: Sendable {
    var offset: Int64
    var bytes: [UInt8]
  }

  /// A `sidx` to be read, or a segment after one.
  private struct Pending: Sendable {
    var offset: Int64
    /// The size of everything that it refers to; nil if unknown.
    var byteCount: Int64?
    var depth: Int
    /// Nil for a `sidx`.
    var entry: Entry?
  }

  /// A segment.
  struct Entry: Sendable {
    var offset: Int64
    /// Nil if it extends to the end of the file.
    var byteCount: Int64?
    var ticks: Int64
    var duration: Int64
    var timescale: Int64

    /// On the media's timeline.
    var start: MediaTime { MediaTime(ticks: ticks, timescale: timescale) }
    var length: MediaTime { MediaTime(ticks: duration, timescale: timescale) }
    var end: MediaTime { MediaTime(ticks: ticks + duration, timescale: timescale) }
  }

  private mutating func addCues(_ bytes: [UInt8], at offset: Int64) throws(ReelError) {
    guard var index = cues else { return }
    try index.add(bytes, at: offset, limit: limits.segments)
    (cues, missing) = (index, index.missing)
    guard missing == nil else { return }
    entries = try index.segments()
    impliedInitialization = entries.first.map { ByteRange(offset: 0, length: $0.offset) }
  }

  /// Reads the available boxes, in the order of the presentation, and sets `missing`.
  private mutating func readOn() throws(ReelError) {
    while let next = pending.last {
      if let entry = next.entry {
        guard entries.count < limits.segments else {
          throw ReelError(.badMedia, "more than \(limits.segments) segments", place: .byte(next.offset))
        }
        entries.append(entry)
        pending.removeLast()
      } else if try !read(next) {
        return
      }
    }
    missing = nil
    chunks = []
  }

  /// Replaces the last pending `sidx` with the entries that it lists; false if bytes are missing.
  private mutating func read(_ next: Pending) throws(ReelError) -> Bool {
    cut = nil
    let length = min(next.byteCount ?? Self.guessedByteCount, Self.guessedByteCount)
    let chunk = chunks.first { $0.offset <= next.offset && next.offset - $0.offset < $0.bytes.count }
    guard let chunk else {
      guard !visited.isEmpty else { throw Self.noIndex(next.offset) }
      missing = ByteRange(offset: next.offset, length: max(length, 8))
      return false
    }
    let start = Int(next.offset - chunk.offset)
    switch try SegmentIndexBox.find(
      in: chunk.bytes, from: start, at: chunk.offset, isNested: !visited.isEmpty)
    {
    case .none(let offset):
      let isCut = chunk.bytes.count - start < 16 && Int64(chunk.bytes.count - start) < length
      guard !visited.isEmpty, isCut else { throw Self.noIndex(offset) }
      missing = ByteRange(offset: next.offset, length: length)
      return false
    case .cut(let offset, let byteCount, let available):
      guard byteCount != 0, byteCount <= Self.boxByteLimit else {
        throw ReelError(.badMedia, "a sidx of \(byteCount) bytes", place: .byte(offset))
      }
      cut = (byteCount, available)
      missing = ByteRange(offset: offset, length: Int64(byteCount))
      if visited.isEmpty {
        // The MPD's range has cut the box off; request exactly this box.
        pending = [Pending(offset: offset, byteCount: Int64(byteCount), depth: 1)]
      }
      return false
    case .found(let box, let body, let movieEnd):
      try add(
        SegmentIndexBox(chunk.bytes, in: body, at: chunk.offset), at: chunk.offset + Int64(box.lowerBound),
        next)
      if impliedInitialization == nil {
        let end = max(chunk.offset + Int64(box.lowerBound), movieEnd ?? 0)
        impliedInitialization = ByteRange(
          offset: 0, length: end > 0 ? end : chunk.offset + Int64(box.upperBound))
      }
      return true
    }
  }

  private mutating func add(
    _ box: SegmentIndexBox, at offset: Int64, _ parent: Pending
  ) throws(ReelError) {
    guard visited.insert(offset).inserted else {
      throw ReelError(.badMedia, "the sidx boxes lead to the same one twice", place: .byte(offset))
    }
    guard visited.count <= Self.boxLimit else {
      throw ReelError(.badMedia, "more than \(Self.boxLimit) sidx boxes", place: .byte(offset))
    }
    guard parent.depth <= Self.depthLimit else {
      throw ReelError(
        .badMedia, "sidx boxes nested more than \(Self.depthLimit) deep", place: .byte(offset))
    }
    pending.removeLast()
    for (index, item) in box.references.enumerated().reversed() {
      guard item.isIndex else {
        let entry = Entry(
          offset: item.offset, byteCount: item.byteCount, ticks: item.start, duration: item.duration,
          timescale: box.timescale)
        pending.append(Pending(offset: item.offset, byteCount: nil, depth: 0, entry: entry))
        continue
      }
      // An index that ends with a reference to another one is a chain, as long as the file. That is not depth.
      let isChain = index > 0 && index == box.references.count - 1
      pending.append(
        Pending(
          offset: item.offset, byteCount: item.byteCount, depth: parent.depth + (isChain ? 0 : 1)))
    }
  }

  private static func noIndex(_ offset: Int64) -> ReelError {
    ReelError(.badMedia, "no sidx where the segment list is expected", place: .byte(offset))
  }
}

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
    var fields = BoxFields(bytes[range], of: "the sidx", at: offset)
    let (version, _) = try fields.versionAndFlags()
    try fields.skip(4)
    timescale = Int64(try fields.integer(4))
    guard timescale > 0 else {
      throw ReelError(.badMedia, "the sidx has a timescale of 0", place: fields.place)
    }
    let earliest = try fields.number(version == 0 ? 4 : 8)
    let firstOffset = try fields.number(version == 0 ? 4 : 8)
    let count = try fields.integer(4) & 0xFFFF
    let boxEnd = offset &+ Int64(range.upperBound)
    guard var start = Int64(exactly: earliest), let distance = Int64(exactly: firstOffset) else {
      throw ReelError(.badMedia, "the sidx has numbers beyond 63 bits", place: fields.place)
    }
    var (position, overflow) = boxEnd.addingReportingOverflow(distance)
    var references: [Reference] = []
    references.reserveCapacity(min(count, range.count / 12))
    for _ in 0..<count {
      let head = try fields.number(4)
      let duration = Int64(try fields.integer(4))
      try fields.skip(4)
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
