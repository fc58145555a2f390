internal import Foundation
internal import ReelCore

/// A recorded MP4 file as it would be without some of its bytes, or with its index before the media, as
/// `ffmpeg -movflags +faststart` writes it. The offsets in its index and the size of `mdat` apply to the new file.
///
/// ```
///  recorded  | ftyp | free | mdat: gap, samples | moov |
///  new       | ftyp | moov | mdat: samples |
/// ```
struct RewrittenFile: Sendable {
  private enum Content {
    case bytes([UInt8])
    /// From an offset in the recorded file on.
    case file(Int64)
  }

  private let url: URL
  /// The parts of the new file, in order. The last one is open-ended if the size is not known.
  private var pieces: [(range: Range<Int64>, content: Content)] = []
  /// The range of the index in the recorded file.
  private var index: Range<Int64> = 0..<0

  /// The largest index that is rewritten.
  private static let indexLimit: Int64 = 64 << 20
  /// The most boxes that are looked at.
  private static let boxLimit = 256

  /// Nil if it can't be rewritten: it has no index, or one that is too large or compressed.
  ///
  /// - Parameter removed: The bytes that are left out, in order and without overlaps.
  init?(_ url: URL, removing removed: [Range<Int64>], movesIndex: Bool, in recording: StartRecording)
    async throws
  {
    self.url = url
    _ = try await recording.bytes(in: ByteRange(offset: 0, length: 16), of: url)
    let size = recording.byteCount(of: url) ?? .max
    // The boxes up to the index and the media.
    var boxes: [(type: FourCC, range: Range<Int64>, head: [UInt8])] = []
    var position: Int64 = 0
    while position < size, boxes.count < Self.boxLimit {
      let bytes = try await recording.bytes(in: ByteRange(offset: position, length: 16), of: url)
      guard let header = MP4BoxHeader(bytes[...]), !header.isMalformed else { break }
      let end = header.byteCount.map { position + Int64(min($0, 1 << 50)) } ?? size
      boxes.append((header.type, position..<end, Array(bytes.prefix(header.headerByteCount))))
      position = end
      if boxes.contains(where: { $0.type == "moov" }), header.type == "mdat" { break }
    }
    guard let movie = boxes.first(where: { $0.type == "moov" }), movie.range.count <= Self.indexLimit else {
      return nil
    }
    index = movie.range
    var bytes = try await recording.bytes(
      in: ByteRange(offset: index.lowerBound, length: Int64(index.count)), of: url)
    guard bytes.count == index.count else { return nil }
    // The parts in their order, without places yet.
    var parts: [(range: Range<Int64>, head: [UInt8]?)] = []
    for box in boxes where box.range != index {
      let inside = removed.reduce(0) { $0 + Int64($1.clamped(to: box.range).count) }
      var kept = [box.range]
      if inside == box.range.count { continue }
      for range in removed { kept = kept.flatMap { Self.subtract(range, from: $0) } }
      if inside > 0 {
        // The header is rewritten.
        guard let first = kept.first, first.lowerBound == box.range.lowerBound, first.count >= box.head.count
        else {
          return nil
        }
        parts.append(
          (
            first.lowerBound..<first.lowerBound + Int64(box.head.count),
            Self.head(box.head, byteCount: Int64(box.range.count) - inside)
          ))
        kept[0] = first.lowerBound + Int64(box.head.count)..<first.upperBound
      }
      parts += kept.map { ($0, nil) }
    }
    if position < size { parts.append((position..<size, nil)) }
    let place: Int
    if movesIndex {
      place = boxes.first?.type == "ftyp" ? 1 : 0
    } else {
      place = parts.firstIndex { $0.range.lowerBound >= index.lowerBound } ?? parts.count
    }
    var start: Int64 = 0
    for (number, part) in parts.enumerated() {
      if number == place { append(.bytes(bytes), Int64(index.count), at: &start) }
      if let head = part.head {
        append(.bytes(head), Int64(head.count), at: &start)
      } else {
        append(.file(part.range.lowerBound), Int64(part.range.count), at: &start)
      }
    }
    if place >= parts.count { append(.bytes(bytes), Int64(index.count), at: &start) }
    let moved = self
    guard Self.rewriteOffsets(in: &bytes, { moved.place(of: $0) }) else { return nil }
    for number in pieces.indices {
      if case .bytes(let old) = pieces[number].content, old.count == bytes.count {
        pieces[number].content = .bytes(bytes)
      }
    }
  }

  /// Returns where bytes of the recorded file are in the new one.
  func places(of range: Range<Int64>) -> [Range<Int64>] {
    var found = pieces.compactMap { piece -> Range<Int64>? in
      guard case .file(let offset) = piece.content else { return nil }
      let part = range.clamped(to: offset..<offset + Int64(piece.range.count))
      let shift = piece.range.lowerBound - offset
      return part.isEmpty ? nil : part.lowerBound + shift..<part.upperBound + shift
    }
    let part = range.clamped(to: index)
    if !part.isEmpty, let new = indexStart {
      found.append(new + part.lowerBound - index.lowerBound..<new + part.upperBound - index.lowerBound)
    }
    return found
  }

  /// Answers a request for the file.
  func answer(to request: FetchRequest, in recording: StartRecording) async throws -> FetchResponse {
    var answer = try await recording.answer(to: request.again())
    let range = answer.supportsRanges ? request.range : nil
    let size = answer.resourceByteCount == nil ? nil : self.pieces.last?.range.upperBound
    let offset = range?.offset ?? 0
    if let size, offset > 0, offset >= size {
      throw ReelError(
        .server, "the range is outside of the resource", at: request.url.absoluteString, status: 416)
    }
    let end = [range?.end, size].compactMap { $0 }.min()
    let position = Locked(offset)
    let (url, pieces) = (request.url, pieces)
    answer.bodyOffset = offset
    answer.bodyByteCount = end.map { $0 - offset }
    answer.resourceByteCount = size
    answer.body = FetchBody {
      let start = position.withLock { $0 }
      guard start < end ?? .max, let piece = pieces.first(where: { $0.range.contains(start) }) else {
        return nil
      }
      let count = min(piece.range.upperBound, end ?? .max, start + (64 << 10)) - start
      let chunk: [UInt8]
      switch piece.content {
      case .bytes(let bytes):
        let first = Int(start - piece.range.lowerBound)
        chunk = Array(bytes[first..<first + Int(count)])
      case .file(let offset):
        chunk = try await recording.bytes(
          in: ByteRange(offset: offset + start - piece.range.lowerBound, length: count), of: url)
      }
      position.withLock { $0 = start + Int64(chunk.count) }
      return chunk.isEmpty ? nil : chunk
    }
    return answer
  }

  // MARK: - Private

  private var indexStart: Int64? {
    pieces.first { piece in
      if case .bytes(let bytes) = piece.content { bytes.count == index.count } else { false }
    }?.range.lowerBound
  }

  private mutating func append(_ content: Content, _ count: Int64, at start: inout Int64) {
    guard count > 0 else { return }
    let end = count > .max - start ? .max : start + count
    pieces.append((start..<end, content))
    start = end
  }

  /// The place in the new file of a byte of the recorded one, or of the next one that is left.
  private func place(of offset: Int64) -> Int64 {
    var next: (distance: Int64, place: Int64)?
    for piece in pieces {
      guard case .file(let first) = piece.content else { continue }
      if offset >= first, offset - first < piece.range.count {
        return piece.range.lowerBound + offset - first
      }
      if first > offset, first - offset < next?.distance ?? .max {
        next = (first - offset, piece.range.lowerBound)
      }
    }
    return next?.place ?? offset
  }

  private static func subtract(_ hole: Range<Int64>, from range: Range<Int64>) -> [Range<Int64>] {
    guard hole.overlaps(range) else { return [range] }
    return [
      range.lowerBound..<max(range.lowerBound, hole.lowerBound),
      min(range.upperBound, hole.upperBound)..<range.upperBound,
    ]
    .filter { !$0.isEmpty }
  }

  /// Returns the header of a box with another size.
  private static func head(_ head: [UInt8], byteCount: Int64) -> [UInt8] {
    var head = head
    let isLong = head.count == 16
    // A box up to the end of the file stays one.
    guard isLong || head.prefix(4).contains(where: { $0 != 0 }) else { return head }
    for place in 0..<(isLong ? 8 : 4) {
      let shift = Int64(8 * ((isLong ? 7 : 3) - place))
      head[(isLong ? 8 : 0) + place] = UInt8(truncatingIfNeeded: byteCount >> shift)
    }
    return head
  }

  /// Replaces the offsets of chunks (ISO/IEC 14496-12 §8.7.5). False if there are none, or one does not fit.
  private static func rewriteOffsets(in bytes: inout [UInt8], _ place: (Int64) -> Int64) -> Bool {
    var hasTables = false
    for table in MP4Box.all(["moov", "trak", "mdia", "minf", "stbl"], in: bytes[...]) {
      for box in MP4Box.all(in: bytes[table.body]) where box.type == "stco" || box.type == "co64" {
        let width = box.type == "co64" ? 8 : 4
        var fields = BigEndianReader(bytes[box.body])
        guard fields.number(4) != nil, let count = fields.number(4), count <= UInt64(box.body.count / width)
        else {
          return false
        }
        hasTables = true
        for _ in 0..<count {
          let start = fields.rest.startIndex
          guard let old = fields.number(width) else { return false }
          let new = UInt64(clamping: place(Int64(clamping: old)))
          guard width == 8 || new <= UInt64(UInt32.max) else { return false }
          for byte in 0..<width {
            bytes[start + byte] = UInt8(truncatingIfNeeded: new >> UInt64(8 * (width - 1 - byte)))
          }
        }
      }
    }
    return hasTables
  }
}
