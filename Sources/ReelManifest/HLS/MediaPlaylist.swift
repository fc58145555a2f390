public import ReelCore

/// A media playlist (RFC 8216 §4.3.3): the segments of one variant or rendition.
///
/// It keeps the text that it was read from and, for each segment, where things stand in it; a segment is made when it
/// is asked for. 50,000 segments cost the text and 1.6 MB.
public struct MediaPlaylist: Sendable {
  /// EXT-X-PLAYLIST-TYPE (RFC 8216 §4.3.3.5).
  public enum PlaylistType: String, Sendable {
    case vod = "VOD"
    case event = "EVENT"
  }

  /// EXT-X-VERSION (RFC 8216 §4.3.1.2).
  public internal(set) var version: Int?
  /// EXT-X-TARGETDURATION (RFC 8216 §4.3.3.1).
  public internal(set) var targetDuration: MediaTime?
  /// EXT-X-MEDIA-SEQUENCE, with what EXT-X-SKIP left out: the number of the first segment that is listed (RFC 8216
  /// §4.3.3.2).
  public internal(set) var mediaSequence: Int64 = 0
  /// EXT-X-DISCONTINUITY-SEQUENCE (RFC 8216 §4.3.3.3).
  public internal(set) var discontinuitySequence = 0
  /// EXT-X-PLAYLIST-TYPE (RFC 8216 §4.3.3.5).
  public internal(set) var type: PlaylistType?
  /// EXT-X-ENDLIST (RFC 8216 §4.3.3.4).
  public internal(set) var hasEndList = false
  /// EXT-X-I-FRAMES-ONLY (RFC 8216 §4.3.3.6).
  public internal(set) var isIFramesOnly = false
  /// EXT-X-INDEPENDENT-SEGMENTS (RFC 8216 §4.3.5.1).
  public internal(set) var hasIndependentSegments = false
  /// EXT-X-START (RFC 8216 §4.3.5.2).
  public internal(set) var start: StartPoint?
  /// Each EXT-X-MAP, in order (RFC 8216 §4.3.2.5).
  public internal(set) var maps: [Map] = []
  /// The keys that are in force together, a set for each change (RFC 8216 §4.3.2.4).
  public internal(set) var keySets: [[Key]] = []
  /// PART-TARGET of EXT-X-PART-INF: the longest that a part lasts (draft-pantos-hls-rfc8216bis §4.4.3.7).
  public internal(set) var partTarget: MediaTime?
  /// EXT-X-SERVER-CONTROL (draft-pantos-hls-rfc8216bis §4.4.3.8).
  public internal(set) var serverControl: ServerControl?
  /// EXT-X-SKIP (draft-pantos-hls-rfc8216bis §4.4.5.2): what is left out before the first segment.
  public internal(set) var skip: Skip?
  /// Each EXT-X-PART, in order (draft-pantos-hls-rfc8216bis §4.4.4.9).
  public internal(set) var parts: [Part] = []
  /// Each EXT-X-PRELOAD-HINT, in order (draft-pantos-hls-rfc8216bis §4.4.5.3).
  public internal(set) var preloadHints: [PreloadHint] = []
  /// Each EXT-X-RENDITION-REPORT, in order (draft-pantos-hls-rfc8216bis §4.4.5.4).
  public internal(set) var renditionReports: [RenditionReport] = []
  /// Each EXT-X-DATERANGE, in order (RFC 8216 §4.3.2.7). Tags of one ID stand for one date range.
  public internal(set) var dateRanges: [DateRange] = []
  /// What was odd about the playlist and passed over.
  public internal(set) var warnings: [ReelError] = []

  let bytes: [UInt8]
  var records: [Record] = []
  var runs: [Run] = []
  /// One for each segment, or none at all where no segment has one.
  var byteRanges: [ByteRange?] = []
  /// References that hold variables, and those of a segment where they are replaced.
  var substituted: [Int: String] = [:]
  /// Each EXT-X-PROGRAM-DATE-TIME, by rising index of its segment.
  var programDateTimes: [DateMark] = []
  /// Each EXT-X-BITRATE that changes the rate, by rising index of the first segment that it applies to.
  var bitRates: [BitRateMark] = []
  /// The sum of all durations.
  var length = ExactSeconds.zero

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// Where a segment stands in `bytes`, and when it starts.
  struct Record: Sendable {
    var reference: UInt32
    var referenceCount: UInt32
    var title: UInt32
    var titleCount: UInt32
    var run: UInt32
    /// Nanoseconds, rounded down.
    var start: Int64
  }

  /// Where in `bytes` the date of a segment stands.
  struct DateMark: Sendable {
    var segment: UInt32
    var position: UInt32
    var count: UInt32
  }

  /// The rate of the segments from one on, in kbit/s; nil where none is stated any longer.
  struct BitRateMark: Sendable {
    var segment: UInt32
    var kilobitsPerSecond: Int?
  }

  /// What a run of segments has in common.
  struct Run: Sendable, Hashable {
    var map: Int?
    var keySet: Int?
    var discontinuity: Int
    var isGap: Bool
  }
}

// MARK: - Segments

extension MediaPlaylist {
  /// How many segments there are.
  public var segmentCount: Int { records.count }

  /// The sum of all durations.
  public var duration: MediaTime { timescale.time(nanoseconds: length.nanoseconds) }

  /// True where more segments may come.
  public var isLive: Bool { !hasEndList && type != .vod }

  /// The segment at `index`, from 0 up to `segmentCount`.
  public func segment(at index: Int) -> Segment {
    let record = records[index]
    let run = runs[Int(record.run)]
    let title = bytes.text(in: Int(record.title)..<Int(record.title) + Int(record.titleCount))
    return Segment(
      sequenceNumber: mediaSequence + Int64(index), reference: reference(at: index), title: title,
      start: start(at: index), duration: start(at: index + 1) - start(at: index),
      byteRange: byteRanges.isEmpty ? nil : byteRanges[index], map: run.map.map { maps[$0] },
      keys: run.keySet.map { keySets[$0] } ?? [], discontinuity: run.discontinuity, isGap: run.isGap,
      programDateTime: dateText(at: index), kilobitsPerSecond: kilobitsPerSecond(at: index))
  }

  /// The parts of the segment at `index`; those of the segment that is still to come at `segmentCount`.
  public func parts(ofSegment index: Int) -> ArraySlice<Part> {
    let first = parts.firstIndex { $0.segment >= index }
    let end = parts.firstIndex { $0.segment > index }
    return parts[(first ?? parts.count)..<(end ?? parts.count)]
  }

  /// EXT-X-PROGRAM-DATE-TIME of this very segment, where it is a date.
  func programDateTime(at index: Int) -> WallTime? {
    dateText(at: index).flatMap { WallTime(iso8601: $0) }
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

  private func dateText(at index: Int) -> String? {
    let after = programDateTimes.firstMark { $0.segment > index }
    guard after > 0, programDateTimes[after - 1].segment == index else { return nil }
    let mark = programDateTimes[after - 1]
    return bytes.text(in: Int(mark.position)..<Int(mark.position) + Int(mark.count))
  }

  private func kilobitsPerSecond(at index: Int) -> Int? {
    let after = bitRates.firstMark { $0.segment > index }
    // The rate is not that of a part of a file (draft-pantos-hls-rfc8216bis §4.4.4.8).
    guard after > 0, byteRanges.isEmpty || byteRanges[index] == nil else { return nil }
    return bitRates[after - 1].kilobitsPerSecond
  }

  private var timescale: DecimalTimescale { DecimalTimescale(digits: length.digits) }
}

extension Array {
  /// The index of the first element that `isBeyond` is true for; `count` where it is for none. All behind it are
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
