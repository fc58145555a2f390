internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Finds the bytes of a recorded start that its first frame does not need.
package enum StartStructure {
  /// The most bytes of a segment or a manifest that are looked at.
  private static let byteLimit: Int64 = 8 << 20

  /// Adds what the structure of the file, or of the first segment and the manifests, says.
  ///
  /// Call it once `facts` has the URL, the format, the start and the rungs.
  package static func describe(_ facts: inout StreamFacts, from recording: StartRecording) async throws {
    guard let url = facts.url, facts.start != nil else { return }
    guard facts.presentation != nil else {
      if facts.format == ContainerFormat.mp4.rawValue {
        // The size is known with the first bytes.
        _ = try await recording.bytes(in: ByteRange(offset: 0, length: 16), of: url)
        facts.file = try await FileStructure(of: url, in: recording).facts(
          byteCount: recording.byteCount(of: url))
      }
      return
    }
    var surplus: [StartSurplus] = []
    for manifest in recording.manifests {
      let count = min(recording.byteCount(of: manifest) ?? byteLimit, byteLimit)
      let range = ByteRange(offset: 0, length: count)
      if let found = try await found(.playlist, in: range, of: manifest, recording) { surplus.append(found) }
    }
    if let media = facts.start?.mediaURL, let end = facts.start?.firstFrameEnd, end > 0, end <= byteLimit {
      let range = ByteRange(offset: facts.startSegment?.byteRange?.offset ?? 0, length: end)
      if let found = try await found(.padding, in: range, of: media, recording) { surplus.append(found) }
    }
    if let initialization = facts.startSegment?.initialization {
      let url = initialization.url
      let length = initialization.byteRange?.length ?? recording.byteCount(of: url) ?? 0
      let range = ByteRange(
        offset: initialization.byteRange?.offset ?? 0, length: min(length, byteLimit))
      if let found = try await found(.padding, in: range, of: url, recording) { surplus.append(found) }
    }
    facts.start?.surplus = surplus
  }

  /// Returns the bytes of a kind in a range of a resource; nil if there are none.
  private static func found(
    _ kind: StartSurplus.Kind, in range: ByteRange, of url: URL, _ recording: StartRecording
  ) async throws -> StartSurplus? {
    let bytes = try await recording.bytes(in: range, of: url)
    let places = kind == .playlist ? surplus(in: bytes) : padding(in: bytes)
    let ranges = places.map { place in
      StartBytes(
        url: url.absoluteString,
        range: ByteRange(offset: range.offset + Int64(place.lowerBound), length: Int64(place.count)))
    }
    return ranges.isEmpty ? nil : StartSurplus(kind, ranges)
  }

  /// Returns the null packets of a transport stream (ISO/IEC 13818-1 §2.4.1), and the boxes of a segment that hold nothing.
  package static func padding(in bytes: [UInt8]) -> [Range<Int>] {
    for size in TransportPacket.sizes {
      let first = size == 192 ? 4 : 0
      guard bytes.count >= first + 3 * size,
        (0..<3).allSatisfy({ bytes[first + $0 * size] == TransportPacket.syncByte })
      else { continue }
      var ranges: [Range<Int>] = []
      for start in stride(from: first, through: bytes.count - size, by: size)
      where bytes[start + 1] & 0x1f == 0x1f && bytes[start + 2] == 0xff {
        ranges.append(start..<start + size)
      }
      return ranges.merged()
    }
    // The last box may not be whole.
    var ranges: [Range<Int>] = []
    var position = 0
    while let header = MP4BoxHeader(bytes[position...]), !header.isMalformed, let count = header.byteCount {
      let end = position + Int(min(count, UInt64(bytes.count - position)))
      if ["free", "skip"].contains(header.type) { ranges.append(position..<end) }
      guard end < bytes.count else { break }
      position = end
    }
    return ranges
  }

  /// The beginnings of tags that describe events, which a start does not need.
  private static let eventTags = [
    "#EXT-X-DATERANGE:", "#EXT-X-SESSION-DATA:", "#EXT-X-CUE", "#EXT-OATCLS-SCTE35:", "#EXT-X-SCTE35:",
    "#EXT-X-ASSET:",
  ]

  /// Returns the parts of a playlist or an MPD that a start does not need: comments and white space around them, and
  /// descriptions of events (RFC 8216 §4.3.2.7, ISO/IEC 23009-1 §5.10).
  package static func surplus(in bytes: [UInt8]) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    if bytes.starts(with: "#EXTM3U".utf8) {
      var start = 0
      while start < bytes.count {
        let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
        let line = bytes[start..<end].drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d || $0 == 0x0a }
        let isComment = line.first == UInt8(ascii: "#") && !line.starts(with: "#EXT".utf8)
        if line.isEmpty || isComment || eventTags.contains(where: { line.starts(with: $0.utf8) }) {
          ranges.append(start..<end)
        }
        start = end
      }
      return ranges.merged()
    }
    var position = 0
    while let open = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
      position = open + 1
      for (begin, end) in [("<!--", "-->"), ("<EventStream ", "</EventStream>")]
      where bytes[open...].starts(with: begin.utf8) {
        position = bytes[open...].firstRange(of: Array(end.utf8))?.upperBound ?? bytes.count
        ranges.append(open..<position)
      }
    }
    return ranges.merged()
  }
}

extension StreamFacts {
  /// The rung that is started with; nil if it is not known.
  package var startRung: RungFacts? { startRungIndex.map { rungs[$0] } }

  /// The index of the rung that is started with; that of a media file's only one.
  var startRungIndex: Int? {
    guard presentation != nil else { return rungs.indices.first }
    return rungs.firstIndex {
      $0.kind == .video && start?.rung != nil && ($0.name == start?.rung || $0.declared?.id == start?.rung)
    }
      ?? rungs.firstIndex { rung in rung.segments.contains { $0.url == start?.mediaURL } }
  }

  var startSegment: SegmentReference? { startRung?.segments.first { $0.url == start?.mediaURL } }
}
