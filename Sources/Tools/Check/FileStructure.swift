package import Foundation
package import ReelCore

/// Reads the structure of an MP4 or QuickTime file: where its index is, and what stands before the end of its first frame.
///
/// Only the headers of boxes and the index are read (ISO/IEC 14496-12 §4.2, §8).
package struct FileStructure: Sendable {
  /// Reads bytes of the file: fewer only at its end.
  private let read: @Sendable (ByteRange) async throws -> [UInt8]

  /// The most boxes of the file that are looked at.
  private static let boxLimit = 256
  /// The largest index that is read.
  private static let indexLimit: Int64 = 64 << 20
  /// The most samples of a track that are looked at.
  private static let sampleLimit = 200_000

  /// - Parameter read: Reads bytes of the file: fewer only at its end.
  package init(reading read: @escaping @Sendable (ByteRange) async throws -> [UInt8]) { self.read = read }

  /// A file whose bytes a recorded start has, or can fetch.
  package init(of url: URL, in recording: StartRecording) {
    self.init { try await recording.bytes(in: $0, of: url) }
  }

  /// Returns what the boxes say; nil if it is no MP4, or its index can't be found or read.
  ///
  /// - Parameter byteCount: The size of the file, if it is known.
  package func facts(byteCount: Int64?) async throws -> FileFacts? {
    var facts = FileFacts()
    facts.byteCount = byteCount
    var boxes: [(type: FourCC, range: Range<Int64>, bodyStart: Int64)] = []
    var position: Int64 = 0
    var movie: [UInt8]?
    while boxes.count < Self.boxLimit, position < byteCount ?? .max {
      let head = try await read(ByteRange(offset: position, length: 16))
      guard let header = MP4BoxHeader(head[...]), !header.isMalformed else { break }
      let end: Int64
      if let count = header.byteCount {
        guard count < 1 << 50 else { break }
        end = min(position + Int64(count), byteCount ?? .max)
      } else {
        end = byteCount ?? .max
      }
      boxes.append((header.type, position..<end, position + Int64(header.headerByteCount)))
      if header.type == "moof" || header.type == "sidx" { facts.isFragmented = true }
      if header.type == "moov" {
        guard end - position <= Self.indexLimit else { return nil }
        facts.index = ByteRange(offset: position, length: end - position)
        facts.isIndexLast = boxes.contains { $0.type == "mdat" }
        let bytes = try await read(ByteRange(offset: position, length: end - position))
        guard bytes.count == end - position else { return nil }
        movie = bytes
        if facts.isIndexLast || facts.isFragmented { break }
      }
      // What follows the media does not matter.
      if header.type == "mdat", movie != nil || byteCount == nil { break }
      if header.type == "moof", movie != nil { break }
      position = end
    }
    guard let movie, let index = facts.index else { return nil }
    let tracks = Self.tracks(in: movie)
    if !MP4Box.all(["moov", "mvex"], in: movie[...]).isEmpty { facts.isFragmented = true }
    guard !facts.isFragmented else {
      facts.isIndexLast = false
      return facts
    }
    guard let video = tracks.first(where: { $0.isVideo && $0.isEnabled }) ?? tracks.first(where: \.isVideo),
      let start = video.start
    else { return facts }
    describe(start, of: video, tracks, boxes, movie, index, in: &facts)
    return facts
  }

  // MARK: - Private

  /// Finds what stands before the end of the first frame and is not needed for it.
  private func describe(
    _ start: MP4Track.Start, of video: MP4Track, _ tracks: [MP4Track],
    _ boxes: [(type: FourCC, range: Range<Int64>, bodyStart: Int64)], _ movie: [UInt8], _ index: ByteRange,
    in facts: inout FileFacts
  ) {
    let shown = video.samples[start.shown].range
    let key = video.samples[start.key].range
    let end = shown.upperBound
    let first = min(key.lowerBound, shown.lowerBound)
    facts.firstSample = ByteRange(offset: first, length: end - first)
    facts.hiddenSampleCount = start.shown - start.key
    facts.samples = tracks.flatMap { $0.samples.map { (time: $0.time, byteCount: Int64($0.range.count)) } }
      .sorted { $0.time < $1.time }
    func add(_ kind: FileSurplus.Kind, _ ranges: [Range<Int64>]) {
      let joined = ranges.merged()
      guard !joined.isEmpty else { return }
      facts.surplus.append(
        FileSurplus(kind, joined.map { ByteRange(offset: $0.lowerBound, length: Int64($0.count)) }))
    }
    var padding = boxes.filter { box in
      box.range.lowerBound < end && !Self.neededTypes.contains(box.type)
    }.map { $0.range.lowerBound..<min($0.range.upperBound, end) }
    // Bytes of the media that belong to no sample.
    let samples = tracks.flatMap { track in track.samples.map(\.range).filter { $0.lowerBound < end } }
      .merged()
    for media in boxes where media.type == "mdat" && media.bodyStart < end {
      var position = media.bodyStart
      for range in samples where range.upperBound > position && range.lowerBound < media.range.upperBound {
        if range.lowerBound > position { padding.append(position..<range.lowerBound) }
        position = max(position, range.upperBound)
      }
    }
    add(.padding, padding)
    var early: [Range<Int64>] = []
    var hidden: [Range<Int64>] = []
    for track in tracks where track.id != video.id {
      for sample in track.samples where sample.range.lowerBound < end {
        if sample.time >= Self.normalLead {
          early.append(sample.range)
        } else if sample.time + sample.duration <= -Self.normalLead {
          hidden.append(sample.range)
        }
      }
    }
    add(.interleaving, early)
    // The first key frame stands for the one that the mended file begins with.
    hidden += video.samples[..<start.shown].enumerated().filter {
      $0.offset != start.key && $0.element.time < -MP4Track.tolerance
    }.map(\.element.range)
    if start.shown > start.key || start.key > 0 {
      // The index describes the hidden samples too.
      let share = Double(start.shown) / Double(video.samples.count)
      let end = index.offset + (index.length ?? 0)
      add(.edit, hidden + [end - Int64(Double(index.length ?? 0) * share)..<end])
    }
    let metadata = Self.metadata(in: movie).map {
      index.offset + Int64($0.lowerBound)..<index.offset + Int64($0.upperBound)
    }
    add(.moov, metadata)
  }

  /// How far audio may normally be ahead of the first frame, in seconds.
  private static let normalLead = 0.5
  /// The boxes of a file that a player reads, or that hold media.
  private static let neededTypes: Set<FourCC> = [
    "ftyp", "styp", "moov", "moof", "mdat", "sidx", "meta", "pdin",
  ]

  private static func tracks(in movie: [UInt8]) -> [MP4Track] {
    guard let root = MP4Box.all(in: movie[...]).first, root.type == "moov" else { return [] }
    let boxes = MP4Box.all(in: movie[root.body]).filter { $0.type == "trak" }
    return boxes.prefix(64).enumerated().compactMap { number, box in
      MP4Track(box, id: number, in: movie, limit: sampleLimit)
    }
  }

  /// The boxes of an index that no sample needs: metadata, covers, padding.
  private static func metadata(in movie: [UInt8]) -> [Range<Int>] {
    let types: Set<FourCC> = ["udta", "meta", "uuid", "free", "skip"]
    guard let root = MP4Box.all(in: movie[...]).first else { return [] }
    var found: [Range<Int>] = []
    for box in MP4Box.all(in: movie[root.body]) {
      if types.contains(box.type) { found.append(box.start..<box.end) }
      guard box.type == "trak" else { continue }
      for part in MP4Box.all(in: movie[box.body]) where types.contains(part.type) {
        found.append(part.start..<part.end)
      }
    }
    return found
  }
}

extension Array {
  /// Returns the ranges in order, those that touch each other as one, without empty ones.
  func merged<Bound: Comparable>() -> Self where Element == Range<Bound> {
    var merged: Self = []
    for range in sorted(by: { $0.lowerBound < $1.lowerBound }) where !range.isEmpty {
      if let last = merged.last, range.lowerBound <= last.upperBound {
        merged[merged.count - 1] = last.lowerBound..<Swift.max(last.upperBound, range.upperBound)
      } else {
        merged.append(range)
      }
    }
    return merged
  }
}

/// A track of an MP4 file, and its first samples in decoding order.
private struct MP4Track {
  struct Sample {
    var range: Range<Int64>
    /// The start in seconds after the beginning of the edit; negative for a sample that it hides.
    var time: Double
    var duration: Double
    var isKey: Bool
  }

  /// The indices of the first shown sample, and of the key frame that decoding begins at.
  struct Start {
    var shown: Int
    var key: Int
  }

  /// A rounded edit must not hide a frame.
  static let tolerance = 0.001

  let id: Int
  var isVideo = false
  var isEnabled = true
  var samples: [Sample] = []

  init?(_ track: MP4Box, id: Int, in movie: [UInt8], limit: Int) {
    self.id = id
    func child(_ type: FourCC, of box: MP4Box?) -> MP4Box? {
      box.flatMap { box in MP4Box.all(in: movie[box.body]).first { $0.type == type } }
    }
    if let header = child("tkhd", of: track) {
      isEnabled = movie[header.body].dropFirst(3).first.map { $0 & 1 == 1 } ?? true
    }
    let media = child("mdia", of: track)
    if let handler = child("hdlr", of: media) {
      isVideo = movie[handler.body].dropFirst(8).prefix(4).elementsEqual("vide".utf8)
    }
    guard let header = child("mdhd", of: media), let scale = Self.timescale(in: movie[header.body]),
      let tables = child("stbl", of: child("minf", of: media))
    else { return nil }
    let boxes = MP4Box.all(in: movie[tables.body])
    func table(_ types: FourCC...) -> (type: FourCC, fields: BigEndianReader)? {
      boxes.first { types.contains($0.type) }.map { ($0.type, BigEndianReader(movie[$0.body].dropFirst(4))) }
    }
    let list = child("elst", of: child("edts", of: track))
    let edit = list.map { Self.mediaTime(in: movie[$0.body]) / scale } ?? 0
    guard
      let ranges = Self.ranges(
        sizes: table("stsz")?.fields, runs: table("stsc")?.fields, chunks: table("stco", "co64"), limit: limit
      )
    else { return nil }
    var times = TableRuns(table("stts")?.fields)
    var shifts = TableRuns(table("ctts")?.fields)
    var keys = table("stss")?.fields
    var nextKey =
      keys == nil
      ? nil
      : {
        _ = keys?.number(4); return keys?.number(4)
      }()
    var time: Int64 = 0
    samples.reserveCapacity(ranges.count)
    for (index, range) in ranges.enumerated() {
      let duration = Int64(times.next() ?? 0)
      let shift = Int64(Int32(truncatingIfNeeded: shifts.next() ?? 0))
      var isKey = true
      if keys != nil {
        isKey = nextKey == UInt64(index + 1)
        if isKey { nextKey = keys?.number(4) }
      }
      samples.append(
        Sample(
          range: range, time: Double(time + shift) / scale - edit, duration: Double(duration) / scale,
          isKey: isKey))
      time += duration
    }
  }

  /// Nil if no sample is shown.
  var start: Start? {
    guard
      let earliest = samples.indices.filter({ samples[$0].time >= -Self.tolerance }).min(by: {
        samples[$0].time < samples[$1].time
      })
    else { return nil }
    let key = samples[...earliest].lastIndex { $0.isKey } ?? 0
    return Start(shown: earliest, key: key)
  }

  static func timescale(in body: ArraySlice<UInt8>) -> Double? {
    var fields = BigEndianReader(body)
    guard let flags = fields.number(4), fields.bytes(flags >> 24 == 1 ? 16 : 8) != nil,
      let scale = fields.number(4), scale > 0
    else { return nil }
    return Double(scale)
  }

  /// The media time of the first edit that is not empty, in the track's timescale.
  private static func mediaTime(in body: ArraySlice<UInt8>) -> Double {
    var fields = BigEndianReader(body)
    guard let flags = fields.number(4), let count = fields.number(4) else { return 0 }
    let width = flags >> 24 == 1 ? 8 : 4
    for _ in 0..<min(count, 64) {
      guard fields.number(width) != nil, let raw = fields.number(width), fields.number(4) != nil else {
        return 0
      }
      let time = width == 8 ? Int64(bitPattern: raw) : Int64(Int32(truncatingIfNeeded: raw))
      if time >= 0 { return Double(time) }
    }
    return 0
  }

  /// The places of the samples in decoding order; nil if the tables are not complete.
  private static func ranges(
    sizes: BigEndianReader?, runs: BigEndianReader?, chunks: (type: FourCC, fields: BigEndianReader)?,
    limit: Int
  ) -> [Range<Int64>]? {
    guard var sizes, var runs, let (type, table) = chunks, let uniform = sizes.number(4),
      let sampleCount = sizes.number(4),
      let runCount = runs.number(4)
    else { return nil }
    var chunks = table
    guard let chunkCount = chunks.number(4) else { return nil }
    let count = Int(min(sampleCount, UInt64(uniform > 0 ? limit : min(limit, sizes.rest.count / 4))))
    var ranges: [Range<Int64>] = []
    ranges.reserveCapacity(count)
    var run: (first: UInt64, count: UInt64) = (1, 0)
    var next: (first: UInt64, count: UInt64)?
    var runsLeft = runCount
    func readRun() -> (first: UInt64, count: UInt64)? {
      guard runsLeft > 0, let first = runs.number(4), let count = runs.number(4), runs.number(4) != nil else {
        return nil
      }
      runsLeft -= 1
      return (first, count)
    }
    guard let firstRun = readRun() else { return nil }
    run = firstRun
    next = readRun()
    var chunk: UInt64 = 1
    while ranges.count < count, chunk <= chunkCount, let offset = chunks.number(type == "co64" ? 8 : 4) {
      if let following = next, following.first <= chunk {
        run = following
        next = readRun()
      }
      var position = Int64(clamping: offset)
      for _ in 0..<min(run.count, UInt64(count - ranges.count)) {
        guard let size = uniform > 0 ? uniform : sizes.number(4), position <= .max - Int64(size) else {
          return nil
        }
        ranges.append(position..<position + Int64(size))
        position += Int64(size)
      }
      chunk += 1
    }
    return ranges
  }
}

/// The values of a table that lists runs of equal ones: `stts`, `ctts`.
private struct TableRuns {
  private var fields: BigEndianReader?
  private var left: UInt64 = 0
  private var value: UInt64 = 0

  init(_ fields: BigEndianReader?) {
    self.fields = fields
    _ = self.fields?.number(4)
  }

  /// Nil at the end of the table.
  mutating func next() -> UInt64? {
    while left == 0 {
      guard let count = fields?.number(4), let value = fields?.number(4) else { return nil }
      (left, self.value) = (count, value)
    }
    left -= 1
    return value
  }
}
