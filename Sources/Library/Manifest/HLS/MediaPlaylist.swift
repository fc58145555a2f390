package import ReelCore

/// A media playlist (RFC 8216 §4.3.3): the segments of one variant or rendition.
///
/// It keeps its text and, for each segment, positions in it. A segment is created when it is accessed. 50,000
/// segments take the text and 1.2 MB.
package struct MediaPlaylist: Sendable {
  /// EXT-X-TARGETDURATION (RFC 8216 §4.3.3.1).
  package internal(set) var targetDuration: MediaTime?
  /// EXT-X-MEDIA-SEQUENCE, with what EXT-X-SKIP left out: the number of the first segment that is listed (RFC 8216
  /// §4.3.3.2).
  package internal(set) var mediaSequence: Int64 = 0
  /// EXT-X-PLAYLIST-TYPE is `VOD` (RFC 8216 §4.3.3.5).
  package internal(set) var isVOD = false
  /// EXT-X-ENDLIST (RFC 8216 §4.3.3.4).
  package internal(set) var hasEndList = false
  /// EXT-X-INDEPENDENT-SEGMENTS (RFC 8216 §4.3.5.1).
  package internal(set) var hasIndependentSegments = false
  /// EXT-X-I-FRAMES-ONLY: each segment is one I-frame (RFC 8216 §4.3.3.6).
  package internal(set) var holdsIFramesOnly = false
  /// EXT-X-IMAGES-ONLY: each segment is an image (Image Media Playlist 0.4). Also true with an EXT-X-TILES alone.
  package internal(set) var holdsImagesOnly = false
  /// Each EXT-X-TILES that differs from the one before it, in order.
  package internal(set) var tiles: [ImageTiles] = []
  /// TIME-OFFSET of EXT-X-START (RFC 8216 §4.3.5.2): from the beginning or, if negative, from the end.
  package internal(set) var startOffset: MediaTime?
  /// Each EXT-X-MAP, in order (RFC 8216 §4.3.2.5).
  package internal(set) var maps: [Map] = []
  /// The keys that are in force together, a set for each change (RFC 8216 §4.3.2.4).
  package internal(set) var keySets: [[Key]] = []
  /// HOLD-BACK of EXT-X-SERVER-CONTROL: how far from the end playback is to begin, at the least
  /// (draft-pantos-hls-rfc8216bis §4.4.3.8).
  package internal(set) var holdBack: MediaTime?
  /// Odd text that was ignored.
  package internal(set) var warnings: [ReelError] = []

  let bytes: [UInt8]
  var records: [Record] = []
  var runs: [Run] = []
  /// One for each segment, or empty if no segment has one.
  var byteRanges: [ByteRange?] = []
  /// References with variables, and those of a segment in which variables are replaced.
  var substituted: [Int: String] = [:]
  /// Each EXT-X-PROGRAM-DATE-TIME, by rising index of its segment.
  var programDateTimes: [DateMark] = []
  /// The sum of all durations.
  var length = ExactSeconds.zero

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// The position of a segment in `bytes`, and its start time.
  struct Record: Sendable {
    var reference: UInt32
    var referenceCount: UInt32
    var run: UInt32
    /// Nanoseconds, rounded down.
    var start: Int64
  }

  /// The position in `bytes` of a segment's date.
  struct DateMark: Sendable {
    var segment: UInt32
    var position: UInt32
    var count: UInt32
  }

  /// The properties that a run of segments shares.
  struct Run: Sendable, Hashable {
    var map: Int?
    var keySet: Int?
    var discontinuity: Int
    var isGap: Bool
    var tiles: Int?
  }
}

// MARK: - Segments

extension MediaPlaylist {
  /// How many segments there are.
  package var segmentCount: Int { records.count }

  /// The sum of all durations.
  package var duration: MediaTime { timescale.time(nanoseconds: length.nanoseconds) }

  /// True if more segments may follow.
  package var isLive: Bool { !hasEndList && !isVOD }

  /// EXT-X-PROGRAM-DATE-TIME of this segment, if it is a valid date.
  func programDateTime(at index: Int) -> WallTime? {
    let after = programDateTimes.firstMark { $0.segment > index }
    guard after > 0, programDateTimes[after - 1].segment == index else { return nil }
    let mark = programDateTimes[after - 1]
    return WallTime(iso8601: bytes.text(in: Int(mark.position)..<Int(mark.position) + Int(mark.count)))
  }

  /// The URL of a segment as the playlist writes it, with variables put in.
  func reference(at index: Int) -> String {
    if let text = substituted[index] { return text }
    let record = records[index]
    return bytes.text(in: Int(record.reference)..<Int(record.reference) + Int(record.referenceCount))
  }

  /// The sum of the durations before `index`.
  func start(at index: Int) -> MediaTime {
    timescale.time(nanoseconds: index < records.count ? records[index].start : length.nanoseconds)
  }

  // MARK: - Private

  private var timescale: DecimalTimescale { DecimalTimescale(digits: length.digits) }
}

extension Array {
  /// The index of the first element that `isBeyond` is true for; `count` if it is for none. All behind it are
  /// beyond too.
  fileprivate func firstMark(_ isBeyond: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if isBeyond(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
