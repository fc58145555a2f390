internal import ReelCore

/// Packed audio without its ID3 tags: the demuxer gets audio frames alone.
///
/// In HLS, a segment of packed audio begins with an ID3 tag that has the time of its first sample, on the 33-bit clock
/// of MPEG-TS (RFC 8216 §3.4). Segments that are read as one stream have a tag wherever one begins. libavformat reads a
/// tag at the start of a file only, and not its time.
final class PackedAudioSource: ByteSource {
  /// A part of the stream that begins after a tag, or at the start.
  private struct Part {
    /// The offset of its first frame in the bytes without tags.
    var position: Int64
    /// The time of its first frame in 90 kHz; nil if the tag has none.
    var ticks: Int64?
    /// The size of the tag before it.
    var tagByteCount: Int
  }

  var byteCount: Int64? { nil }
  /// True if the source begins with a tag that has a time. Otherwise, times count from 0.
  private(set) var beginsWithTime = false

  /// The parts whose frames were not all taken, in order.
  private var parts = [Part(position: 0, ticks: 0, tagByteCount: 0)]
  /// The size of the tags before `parts`.
  private var takenTagByteCount = 0
  private let base: any ByteSource
  /// Bytes that were read, of which the demuxer has those before `given`.
  private var bytes: [UInt8] = []
  private var given = 0
  /// The number of bytes after `given` that belong to a tag.
  private var tagRest = 0
  private var givenCount: Int64 = 0
  private var hasEnded = false
  /// The buffer for reads of the source.
  private var chunk = [UInt8](repeating: 0, count: 8 << 10)

  /// The number of bytes of a tag that are searched for a time. Images come after it.
  private static let searchedByteCount = 64 << 10
  /// The number of parts to remember. A demuxer does not read far ahead.
  private static let partLimit = 1024

  init(_ base: any ByteSource) { self.base = base }

  /// Returns the offset in the source, tags included, of an offset in the bytes without them.
  func sourcePosition(of position: Int64) -> Int64 {
    let before = parts.prefix { $0.position <= position }
    return position + Int64(takenTagByteCount) + before.reduce(0) { $0 + Int64($1.tagByteCount) }
  }

  /// Returns the bytes at `position` up to the next tag, and the time in 90 kHz of the first frame, if a tag precedes it.
  func takePart(at position: Int64, of byteCount: Int) -> (byteCount: Int, ticks: Int64?) {
    var ticks: Int64?
    while let part = parts.first, part.position <= position {
      ticks = part.ticks ?? ticks
      takenTagByteCount += part.tagByteCount
      parts.removeFirst()
    }
    let next = parts.first.map { Int(clamping: $0.position - position) } ?? byteCount
    return (min(byteCount, next), ticks)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    while true {
      let count = min(tagRest, bytes.count - given)
      given += count
      tagRest -= count
      if tagRest > 0 {
        if hasEnded { return 0 }
        try readOn()
        continue
      }
      let rest = bytes[given...]
      let tag = ID3Tag.position(in: rest)
      let passed = tag ?? (hasEnded ? rest.endIndex : max(given, rest.endIndex - ID3Tag.headerByteCount))
      if passed > given {
        let count = min(buffer.count, passed - given)
        buffer.copyBytes(from: bytes[given..<given + count])
        given += count
        givenCount += Int64(count)
        return count
      }
      if tag != nil, let tag = ID3Tag(rest, searching: Self.searchedByteCount) {
        if givenCount == 0, tag.timestamp != nil { beginsWithTime = true }
        addPart(tag)
        tagRest = tag.byteCount
      } else if hasEnded {
        // Nothing is left, or the source ends inside a tag.
        return 0
      } else {
        try readOn()
      }
    }
  }

  private func addPart(_ tag: ID3Tag) {
    // Of tags in a row, the last time counts.
    if let last = parts.last, last.position == givenCount {
      parts[parts.count - 1].ticks = tag.timestamp ?? last.ticks
      parts[parts.count - 1].tagByteCount += tag.byteCount
      return
    }
    if parts.count >= Self.partLimit { takenTagByteCount += parts.removeFirst().tagByteCount }
    parts.append(Part(position: givenCount, ticks: tag.timestamp, tagByteCount: tag.byteCount))
  }

  private func readOn() throws {
    bytes.removeFirst(given)
    given = 0
    let count = try chunk.withUnsafeMutableBytes { try base.read(into: $0) }
    hasEnded = count == 0
    bytes.append(contentsOf: chunk[..<count])
  }
}

/// An ID3v2 tag (id3.org, "ID3 tag version 2.4.0 - Main Structure", §3).
package struct ID3Tag {
  /// The size of the tag in bytes, with its header and footer.
  package let byteCount: Int
  /// The time, in 90 kHz, of the frame that follows the tag (RFC 8216 §3.4); nil if the tag has none.
  let timestamp: Int64?

  package static let headerByteCount = 10
  private static let timestampOwner = Array("com.apple.streaming.transportStreamTimestamp".utf8) + [0]

  /// Reads the tag at the beginning of `bytes`; nil if there is none, or its first `searchedByteCount` bytes are not
  /// there.
  init?(_ bytes: ArraySlice<UInt8>, searching searchedByteCount: Int = .max) {
    guard let byteCount = Self.byteCount(bytes), min(byteCount, searchedByteCount) <= bytes.count else {
      return nil
    }
    self.byteCount = byteCount
    let content = bytes.prefix(min(byteCount, searchedByteCount))
    // The owner, and the timestamp as 8 bytes.
    timestamp = content.firstRange(of: Self.timestampOwner).flatMap { owner in
      let value = content[owner.upperBound...].prefix(8)
      return value.count == 8 ? value.reduce(0) { $0 << 8 | Int64($1) } & 0x1_ffff_ffff : nil
    }
  }

  /// Returns the size of the tag that begins with `bytes`; nil if none does.
  package static func byteCount(_ bytes: ArraySlice<UInt8>) -> Int? {
    let header = Array(bytes.prefix(headerByteCount))
    // The bytes of the size have seven bits each.
    guard header.count == headerByteCount, header.starts(with: "ID3".utf8),
      (2...4).contains(header[3]), header[4] < 0xff,
      header[6...].allSatisfy({ $0 < 0x80 })
    else { return nil }
    let hasFooter = header[5] & 0x10 != 0
    return headerByteCount * (hasFooter ? 2 : 1) + header[6...].reduce(0) { $0 << 7 | Int($1) }
  }

  /// Returns the index of the first tag in `bytes`; nil if no header of one is in them.
  static func position(in bytes: ArraySlice<UInt8>) -> Int? {
    var rest = bytes
    while let mark = rest.firstIndex(of: UInt8(ascii: "I")) {
      if byteCount(bytes[mark...]) != nil { return mark }
      rest = bytes[(mark + 1)...]
    }
    return nil
  }
}

/// Detects packed audio.
package enum PackedAudio {
  private static let codecs: [AudioCodec] = [.aac, .mp3, .ac3]

  /// Returns the format of packed audio that begins with `bytes`; nil if they are something else.
  package static func format(of bytes: [UInt8]) -> ContainerFormat? {
    var rest = bytes[...]
    while let byteCount = ID3Tag.byteCount(rest) { rest = rest.dropFirst(byteCount) }
    let hasTag = rest.count < bytes.count
    // Music files have tags with images, which are longer than the bytes that are examined.
    if rest.isEmpty { return hasTag ? .mp3 : nil }
    return rest.withUnsafeBytes { frames in
      // After a tag, the first frame may be damaged.
      let starts = hasTag ? 0..<frames.count : 0..<1
      return starts.lazy.compactMap { format(of: UnsafeRawBufferPointer(rebasing: frames[$0...])) }.first
    }
  }

  /// Returns the format of a frame that another frame or the end follows.
  private static func format(of bytes: UnsafeRawBufferPointer) -> ContainerFormat? {
    for codec in codecs {
      guard let header = AudioFrameHeader(codec: codec, bytes: bytes), header.byteCount <= bytes.count
      else { continue }
      let next = UnsafeRawBufferPointer(rebasing: bytes[header.byteCount...])
      let isFollowed =
        AudioFrameHeader(codec: codec, bytes: next)?.mayFollow(header)
        ?? (next.count < AudioFrameHeader.byteCount)
      guard isFollowed else { continue }
      switch codec {
      case .aac: return .aac
      // The version of the syntax (ETSI TS 102 366 §E.1.3.1.6).
      case .ac3: return bytes[5] >> 3 > 10 ? .eac3 : .ac3
      default: return .mp3
      }
    }
    return nil
  }
}
