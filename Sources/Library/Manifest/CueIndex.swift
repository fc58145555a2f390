import ReelCore

/// The index of a Matroska or WebM file, `Cues`, with the positions and times from the beginning of the file
/// (RFC 9559 §5.1.2, §5.1.5).
///
/// It does no input: as long as `missing` names a range, `add` those bytes of the file. A segment begins at
/// each cluster in the index, for the track of its first entry. Throws `badMedia` for an unreadable index.
struct CueIndex: Sendable {
  /// The next bytes that are needed; nil when the index is complete.
  private(set) var missing: ByteRange?

  private let head: ByteRange
  private var points: [Point] = []
  /// The position of the `Cues` in the file.
  private var place: Range<Int64> = 0..<0
  private var file: File?

  /// A cluster that the index names: its time, and its position in the content of the file's `Segment`.
  private struct Point: Sendable {
    var time: Int64
    var position: Int64
  }

  /// The relevant data of the beginning of the file.
  private struct File: Sendable {
    /// The start of the content of the `Segment`, and its end if that is known.
    var start: Int64
    var end: Int64?
    /// Nanoseconds per tick.
    var scale: Int64 = 1_000_000
    /// In ticks.
    var duration: Int64?
  }

  /// How much of the file's beginning to request if the MPD does not state where the initialization is.
  private static let headByteCount: Int64 = 4 << 10
  private static let byteLimit: Int64 = 1 << 20

  /// Returns true if the bytes are those of a `Cues` element.
  static func begins(_ bytes: [UInt8]) -> Bool { EBMLHeader(bytes[...])?.id == EBMLHeader.ID.cues }

  /// - Parameters:
  ///   - index: Where the `Cues` are expected.
  ///   - initialization: The initialization segment of the same file, if the MPD states its position.
  init(at index: ByteRange, initialization: ByteRange?) {
    missing = index
    let stated = initialization.flatMap { range in
      range.offset == 0 && (range.length ?? .max) <= Self.byteLimit ? range : nil
    }
    head = stated ?? ByteRange(offset: 0, length: Self.headByteCount)
  }

  /// Adds the bytes of `missing`, or more of them.
  mutating func add(_ bytes: [UInt8], at offset: Int64, limit: Int) throws(ReelError) {
    guard points.isEmpty else {
      file = try Self.file(bytes[...], at: offset)
      missing = nil
      return
    }
    guard let header = EBMLHeader(bytes[...]), header.id == EBMLHeader.ID.cues,
      let size = header.contentByteCount, size <= Self.byteLimit
    else {
      throw ReelError(.badMedia, "the Cues can't be read", place: .byte(offset))
    }
    let content = bytes[...].dropFirst(header.headerByteCount).prefix(Int(size))
    let byteCount = Int64(header.headerByteCount) + size
    guard content.count == Int(size) else {
      let range = ByteRange(offset: offset, length: byteCount)
      // The MPD's range has cut the element off.
      guard missing != range else {
        throw ReelError(.badMedia, "the Cues are cut off", place: .byte(offset + Int64(bytes.count)))
      }
      missing = range
      return
    }
    points = Self.points(content)
    place = offset..<(offset + byteCount)
    guard !points.isEmpty else {
      throw ReelError(.badMedia, "the Cues name no clusters", place: .byte(offset))
    }
    guard points.count <= limit else {
      throw ReelError(.badMedia, "more than \(limit) segments", place: .byte(offset))
    }
    missing = head
  }

  /// Returns the segments in order. Throws `badMedia` for positions or times beyond 63 bits.
  func segments() throws(ReelError) -> [SegmentIndexReader.Entry] {
    guard let file else { return [] }
    // Ticks that are no whole part of a second become nanoseconds.
    let isWhole = 1_000_000_000 % file.scale == 0
    let (scale, timescale) = isWhole ? (1, 1_000_000_000 / file.scale) : (file.scale, 1_000_000_000)
    var segments: [SegmentIndexReader.Entry] = []
    for (index, point) in points.enumerated() {
      let (offset, isFar) = file.start.addingReportingOverflow(point.position)
      let next = index + 1 < points.count ? points[index + 1] : nil
      let end =
        next.map { Int64(clamping: UInt64(file.start) + UInt64($0.position)) } ?? end(of: file, after: offset)
      let last = points[max(0, index - 1)].time
      // The last segment lasts to the end of the file, or as long as the one before it.
      let until =
        next?.time ?? file.duration.flatMap { $0 > point.time ? $0 : nil } ?? point.time + (point.time - last)
      let (start, isLate) = point.time.multipliedReportingOverflow(by: scale)
      let (duration, isLong) = (until - point.time).multipliedReportingOverflow(by: scale)
      guard !isFar, !isLate, !isLong, end.map({ $0 > offset }) ?? true else {
        throw ReelError(.badMedia, "the Cues exceed 63 bits", place: .byte(place.lowerBound))
      }
      segments.append(
        SegmentIndexReader.Entry(
          offset: offset, byteCount: end.map { $0 - offset }, ticks: start, duration: duration,
          timescale: timescale))
    }
    return segments
  }

  // MARK: - Private

  /// Returns the end of a last cluster.
  private func end(of file: File, after offset: Int64) -> Int64? {
    place.lowerBound > offset ? place.lowerBound : file.end
  }

  /// Returns the clusters in order, each once. Later ones with an earlier time are left out.
  private static func points(_ cues: ArraySlice<UInt8>) -> [Point] {
    var track: UInt64?
    var points: [Point] = []
    for (header, content) in EBMLHeader.elements(of: cues) where header.id == EBMLHeader.ID.cuePoint {
      let parts = EBMLHeader.elements(of: content)
      guard let time = parts.number(EBMLHeader.ID.cueTime) else { continue }
      for (header, content) in parts where header.id == EBMLHeader.ID.cueTrackPositions {
        let position = EBMLHeader.elements(of: content)
        guard let number = position.number(EBMLHeader.ID.cueTrack),
          let cluster = position.number(EBMLHeader.ID.cueClusterPosition)
        else { continue }
        track = track ?? number
        // Half of the range of 63 bits, so that sums do not overflow.
        guard number == track, time < 1 << 62, cluster < 1 << 62 else { continue }
        points.append(Point(time: Int64(time), position: Int64(cluster)))
      }
    }
    points.sort { ($0.position, $0.time) < ($1.position, $1.time) }
    return points.reduce(into: []) { chosen, point in
      if let last = chosen.last, point.position == last.position || point.time <= last.time { return }
      chosen.append(point)
    }
  }

  private static func file(_ bytes: ArraySlice<UInt8>, at offset: Int64) throws(ReelError) -> File {
    let elements = EBMLHeader.elements(of: bytes)
    guard offset == 0, elements.first?.header.id == EBMLHeader.ID.ebml,
      let segment = elements.first(where: { $0.header.id == EBMLHeader.ID.segment })
    else {
      throw ReelError(.badMedia, "no Segment at the beginning of the file", place: .byte(offset))
    }
    let start = Int64(segment.content.startIndex)
    var file = File(start: start, end: segment.header.contentByteCount.map { start + $0 })
    for (header, content) in EBMLHeader.elements(of: segment.content) where header.id == EBMLHeader.ID.info {
      let parts = EBMLHeader.elements(of: content)
      if let scale = parts.number(EBMLHeader.ID.timestampScale), (1...1_000_000_000).contains(scale) {
        file.scale = Int64(scale)
      }
      file.duration = parts.real(EBMLHeader.ID.duration).flatMap { Int64(exactly: $0.rounded(.up)) }
    }
    return file
  }
}

extension [(header: EBMLHeader, content: ArraySlice<UInt8>)] {
  /// Returns the value of the first unsigned integer with this id.
  fileprivate func number(_ id: UInt64) -> UInt64? {
    first { $0.header.id == id && $0.content.count <= 8 }?.content.bigEndianNumber
  }

  /// Returns the value of the first floating-point number with this id.
  fileprivate func real(_ id: UInt64) -> Double? {
    guard let content = first(where: { $0.header.id == id })?.content else { return nil }
    switch content.count {
    case 4: return Double(Float(bitPattern: UInt32(truncatingIfNeeded: content.bigEndianNumber)))
    case 8: return Double(bitPattern: content.bigEndianNumber)
    default: return nil
    }
  }
}
