import Foundation
import ReelCore
import ReelManifest

/// Writes a media playlist of a track (RFC 8216 §4.3.2, §4.3.3).
struct MediaPlaylistWriter {
  let track: VirtualHLS.Track
  let targetDuration: Int64
  let reference: (VirtualHLS.Resource) -> String

  /// The playlist, with a line feed at its end.
  var text: String {
    var state = State(track: track, reference: reference)
    for (number, part) in track.parts.enumerated() {
      if part.isFiller {
        state.writeFiller(part, isFirst: number == 0)
      } else {
        state.write(part, isFirst: number == 0)
      }
    }
    var text = "#EXTM3U\n#EXT-X-VERSION:\(state.version)\n#EXT-X-TARGETDURATION:\(targetDuration)\n"
    text += "#EXT-X-PLAYLIST-TYPE:VOD\n"
    if track.hasIndependentSegments { text += "#EXT-X-INDEPENDENT-SEGMENTS\n" }
    text += state.text
    text += "#EXT-X-ENDLIST\n"
    return text
  }

  // MARK: - Private

  /// The lines so far, and what holds at their end.
  private struct State {
    let track: VirtualHLS.Track
    let reference: (VirtualHLS.Resource) -> String
    var text = ""
    /// RFC 8216 §7: 3 for fractions of seconds. 7 is what players expect with fragmented MP4.
    var version = 3
    private var discontinuity: Int?
    private var initialization: InitializationReference?
    private var encryption: SegmentEncryption?
    /// The file that the segment before is a part of.
    private var file: (url: URL, uri: String)?

    init(track: VirtualHLS.Track, reference: @escaping (VirtualHLS.Resource) -> String) {
      self.track = track
      self.reference = reference
    }

    mutating func write(_ part: VirtualHLS.Part, isFirst: Bool) {
      var isBeginning = !isFirst
      part.forEach { index, segment, nanoseconds in
        if isBeginning || (discontinuity != nil && discontinuity != segment.discontinuity) {
          text += "#EXT-X-DISCONTINUITY\n"
          initialization = nil
        }
        isBeginning = false
        discontinuity = segment.discontinuity
        write(segment, at: index, nanoseconds: nanoseconds)
      }
    }

    /// Segments that are not there, in the lengths of another track.
    mutating func writeFiller(_ part: VirtualHLS.Part, isFirst: Bool) {
      if !isFirst { text += "#EXT-X-DISCONTINUITY\n" }
      require(version: 8)
      // The next part has its own map. Without one here, a player might assume another container.
      if isFirst, let next = track.parts.first(where: { !$0.isFiller }), let segment = next.list.first,
        let map = segment.initialization, map.encryption == nil
      {
        write(map, of: segment, at: next.firstIndex)
      }
      let uri = track.filler.map(reference) ?? ""
      part.forEach { _, _, nanoseconds in
        text += "#EXT-X-GAP\n"
        writeLength(nanoseconds)
        text += uri + "\n"
      }
      discontinuity = nil
    }

    // MARK: - Private

    private mutating func write(_ segment: SegmentReference, at index: Int, nanoseconds: Int64) {
      if let map = segment.initialization, map != initialization {
        write(key: map.encryption, .initializationKey, at: index)
        write(map, of: segment, at: index)
      }
      write(key: segment.encryption, .key, at: index)
      if let time = segment.programDateTime { text += "#EXT-X-PROGRAM-DATE-TIME:\(time)\n" }
      // A range without an end can't be written, except for a gap, which is not requested.
      if segment.isGap || (segment.byteRange != nil && segment.byteRange?.length == nil) {
        require(version: 8)
        text += "#EXT-X-GAP\n"
      }
      writeLength(nanoseconds)
      guard let range = segment.byteRange, let length = range.length else {
        text += reference(track.media(of: segment, at: index)) + "\n"
        return
      }
      require(version: 4)
      text += "#EXT-X-BYTERANGE:\(length)@\(range.offset)\n\(fileURI(of: segment, at: index))\n"
    }

    private mutating func write(_ map: InitializationReference, of segment: SegmentReference, at index: Int) {
      require(version: 7)
      // If both are parts of one file, they share a name.
      let isInFile =
        map.url == segment.url && map.byteRange?.length != nil && segment.byteRange?.length != nil
      let uri =
        isInFile ? fileURI(of: segment, at: index) : reference(track.initialization(map, at: index))
      var attributes = AttributeListWriter(tag: "#EXT-X-MAP:")
      attributes.add("URI", quoted: uri)
      if let range = map.byteRange, let length = range.length {
        attributes.add("BYTERANGE", "\"\(length)@\(range.offset)\"")
      }
      text += attributes.text + "\n"
      initialization = map
    }

    /// The URI of the file that a segment is a part of: the previous one if it is the same file.
    private mutating func fileURI(of segment: SegmentReference, at index: Int) -> String {
      if let file, file.url == segment.url { return file.uri }
      let uri = reference(track.media(of: segment, at: index))
      file = (segment.url, uri)
      return uri
    }

    private mutating func write(
      key: SegmentEncryption?, _ kind: VirtualHLS.Resource.Kind, at index: Int
    ) {
      guard key != encryption else { return }
      encryption = key
      var attributes = AttributeListWriter(tag: "#EXT-X-KEY:")
      guard let key else {
        attributes.add("METHOD", "NONE")
        text += attributes.text + "\n"
        return
      }
      attributes.add("METHOD", VirtualHLSPlanner.keyMethods.contains(key.method) ? key.method : "SAMPLE-AES")
      if let resource = track.key(key, kind, at: index) {
        attributes.add("URI", quoted: reference(resource))
      } else if let url = key.keyURL {
        attributes.add("URI", quoted: url.absoluteString)
      }
      if let vector = key.initializationVector {
        let digits = vector.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        attributes.add("IV", "0x\(digits)")
      }
      if let format = key.keyFormat, format != "identity" {
        require(version: 5)
        attributes.add("KEYFORMAT", quoted: format)
      }
      text += attributes.text + "\n"
    }

    private mutating func writeLength(_ nanoseconds: Int64) {
      text += "#EXTINF:\(Self.seconds(nanoseconds)),\n"
    }

    private mutating func require(version: Int) { self.version = max(self.version, version) }

    /// Seconds with as many digits as necessary, at most 9.
    private static func seconds(_ nanoseconds: Int64) -> String {
      let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
      guard rest != 0 else { return "\(whole)" }
      var digits = String(rest)
      digits = String(repeating: "0", count: 9 - digits.utf8.count) + digits
      while digits.utf8.last == UInt8(ascii: "0") { digits.removeLast() }
      return "\(whole).\(digits)"
    }
  }
}
