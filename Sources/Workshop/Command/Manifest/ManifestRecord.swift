import Foundation
import ReelCore
import ReelLab
import ReelManifest
import ReelSources

/// The record of `reel manifest --output json` for a source: its `Presentation`.
struct ManifestRecord: SourceRecord {
  let source: String
  var url: String?
  /// The same in results files, whose `url` is that of the list.
  var manifestUrl: String?
  var format: String?
  var live: Bool?
  var liveTiming: JSONFields?
  var duration: Double?
  var startOffset: Double?
  var periods: [JSONFields]?
  var warnings: [String]?
  var error: ErrorRecord?

  init(source: String, error: ReelError) {
    self.source = source
    self.error = ErrorRecord(error)
  }

  /// - Parameter segments: The rungs' segments are appended to it in the order of the rungs; nil leaves them out.
  init(source: String, _ loaded: LoadedManifest, segments: inout [PrintedSegments]?) {
    self.source = source
    let presentation = loaded.presentation
    url = loaded.url.absoluteString
    format = presentation.format.rawValue
    live = presentation.isLive
    liveTiming = presentation.live.map(Self.live)
    duration = presentation.duration?.seconds
    startOffset = presentation.startOffset?.time.seconds
    warnings = presentation.warnings.map(\.description)
    var failures: [[Int]: ReelError] = [:]
    for failure in loaded.failures {
      failures[[failure.periodIndex, failure.groupIndex, failure.rungIndex]] = failure.error
    }
    periods = presentation.periods.enumerated().map { period, value in
      [
        "id": value.id, "start": value.start.seconds, "duration": value.duration?.seconds,
        "track_groups": value.trackGroups.enumerated().map { group, value -> JSONFields in
          [
            "id": value.id, "kind": value.kind.rawValue, "language": value.language, "label": value.label,
            "roles": value.roles, "default": value.isDefault, "unplayable": value.unplayableReason,
            "rungs": value.rungs.enumerated().map { rung, value in
              Self.rung(
                value, isLive: presentation.isLive, error: failures[[period, group, rung]],
                segments: &segments)
            },
          ]
        },
      ]
    }
  }

  // MARK: - Private

  private static func live(_ live: LiveTiming) -> JSONFields {
    let (reload, seconds): (String, Double?) =
      switch live.reload {
      case .never: ("never", nil)
      case .after(let period): ("after", period.seconds)
      case .targetDuration(let target): ("target_duration", target.seconds)
      }
    return [
      "reload": reload, "reload_seconds": seconds, "delay": live.delay.seconds,
      "time_shift_buffer_depth": live.timeShiftBufferDepth?.seconds,
      "availability_start": live.availabilityStart?.description,
      "availability_end": live.availabilityEnd?.description,
      "locations": live.locations.map(\.absoluteString),
      "clock_sources": live.clockSources.map { source in
        switch source {
        case .direct(let time): "direct \(time)"
        case .httpHead(let url): "http-head \(url.absoluteString)"
        case .httpBody(let url): "http-iso \(url.absoluteString)"
        }
      },
    ]
  }

  /// The number of segments printed per rung, and per live rung. A manifest of a few lines may describe a
  /// million.
  private static let segmentLimit = 100_000
  private static let liveSegmentLimit = SegmentRecord.liveLimit

  private static func rung(
    _ rung: Rung, isLive: Bool, error: ReelError?, segments: inout [PrintedSegments]?
  ) -> JSONFields {
    var (playlist, index): (String?, JSONFields?) = (nil, nil)
    var (duration, count, printed): (Double?, Int?, PrintedSegments?) = (nil, nil, nil)
    switch rung.media {
    case .playlist(let url): playlist = url.absoluteString
    case .index(let reference):
      index = [
        "url": reference.url.absoluteString, "byte_offset": reference.indexRange?.offset,
        "byte_length": reference.indexRange?.length,
      ]
    case .segments(let list):
      count = list.count
      let wanted = isLive ? list.suffix(liveSegmentLimit) : list.prefix(segmentLimit)
      let chosen = PrintedSegments(wanted, of: list)
      segments?.append(chosen)
      printed = chosen
      duration = list.first.map { (list.end - $0.start).seconds }
    }
    let hasSegments = segments != nil && printed != nil
    return [
      "id": rung.id, "bandwidth": rung.bitsPerSecond, "average_bandwidth": rung.averageBitsPerSecond,
      "codecs": rung.codecText, "mime_type": rung.mimeType,
      "width": rung.size?.width, "height": rung.size?.height, "frame_rate": rung.frameRate?.description,
      "sample_aspect_ratio": rung.sampleAspectRatio?.ratioText,
      "video_range": rung.videoRange, "channels": rung.channels, "audio_group": rung.audioGroup,
      "tiles": rung.tiles.map(tiles), "protection": rung.protection?.fields,
      "playlist": playlist, "alternate_playlists": texts(rung.alternateURLs), "index": index,
      "error": error.map(ErrorRecord.init), "duration": duration,
      "initializations": printed.flatMap { printed in
        printed.initializations.isEmpty ? nil : printed.initializations.map(initialization)
      }, "segment_count": count, "segments": hasSegments ? PrintedSegments.Placeholder() : nil,
    ]
  }

  /// The division of a rung's images.
  private static func tiles(_ tiles: ImageTiles) -> JSONFields {
    [
      "columns": tiles.fault == nil ? tiles.columns : nil, "rows": tiles.fault == nil ? tiles.rows : nil,
      "width": tiles.size?.width, "height": tiles.size?.height, "duration": tiles.duration?.seconds,
    ]
  }

  private static func initialization(_ reference: InitializationReference) -> JSONFields {
    [
      "url": reference.url.absoluteString, "byte_offset": reference.byteRange?.offset,
      "byte_length": reference.byteRange?.length,
      "encryption": reference.encryption.map(EncryptionRecord.init),
      "alternate_urls": texts(reference.alternateURLs),
    ]
  }

  private static func texts(_ urls: [URL]) -> [String]? { urls.isEmpty ? nil : urls.map(\.absoluteString) }
}

/// A segment as JSON. Because there may be very many, they are written one by one (`PrintedSegments.print`).
struct SegmentRecord {
  private let segment: SegmentReference
  /// The index in the rung's list of initializations.
  private let initialization: Int?
  private let url: String
  private let alternateURLs: [String]
  private let encryption: EncryptionRecord?

  /// The number of segments printed for a live rung.
  static let liveLimit = 10_000

  init(_ segment: SegmentReference, initialization: Int?) {
    self.segment = segment
    self.initialization = initialization
    url = segment.url.absoluteString
    alternateURLs = segment.alternateURLs.map(\.absoluteString)
    encryption = segment.encryption.map(EncryptionRecord.init)
  }

  /// The approximate length of its text.
  var byteCount: Int {
    100 + url.utf8.count + (encryption?.keyUrl?.utf8.count ?? 0)
      + alternateURLs.reduce(0) { $0 + $1.utf8.count }
  }

  /// Writes the record in the form of `JSONLine`: keys in snake_case and alphabetical order, without keys
  /// that have no value.
  func write(to text: inout JSONText) {
    text.object { text in
      if !alternateURLs.isEmpty { text.field("alternate_urls", alternateURLs) }
      text.field("byte_length", segment.byteRange?.length)
      text.field("byte_offset", segment.byteRange?.offset)
      text.field("discontinuity", Int64(segment.discontinuity))
      text.field("duration", segment.duration.seconds)
      if let encryption {
        text.key("encryption")
        encryption.write(to: &text)
      }
      if segment.isGap { text.field("gap", true) }
      text.field("initialization", initialization.map(Int64.init))
      text.field("number", segment.number)
      text.field("program_date_time", segment.programDateTime?.description)
      text.field("start", segment.start.seconds)
      text.field("url", url)
    }
  }
}

/// The encryption of a segment, as JSON.
struct EncryptionRecord: Encodable, Sendable {
  let method: String
  let keyUrl: String?
  let keyFormat: String?
  let iv: String?

  init(_ encryption: SegmentEncryption) {
    method = encryption.method
    // A data: URL contains the key itself.
    keyUrl = encryption.keyURL.map { $0.scheme?.lowercased() == "data" ? "data:" : $0.absoluteString }
    keyFormat = encryption.keyFormat
    iv = encryption.initializationVector.map { bytes in
      "0x" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
  }

  fileprivate func write(to text: inout JSONText) {
    text.object { text in
      text.field("iv", iv)
      text.field("key_format", keyFormat)
      text.field("key_url", keyUrl)
      text.field("method", method)
    }
  }
}

/// The segments of a rung to print as JSON. Each one is created only when it is written, so memory does not
/// grow with their number.
struct PrintedSegments {
  /// The empty value of a record's field `segments`, which is replaced by the segments when the record is printed.
  typealias Placeholder = [Int]

  /// The initializations, which segments refer to by index.
  let initializations: [InitializationReference]
  private let indexes: [InitializationReference: Int]
  private let segments: SegmentList.SubSequence
  private let total: Int

  /// - Parameter segments: The part of `list` to print.
  init(_ segments: SegmentList.SubSequence, of list: SegmentList) {
    var known: [InitializationReference] = []
    var indexes: [InitializationReference: Int] = [:]
    let record = { (reference: InitializationReference) in
      guard indexes[reference] == nil else { return }
      indexes[reference] = known.count
      known.append(reference)
    }
    if let common = list.commonInitialization, !segments.isEmpty {
      record(common)
    } else {
      for segment in segments { segment.initialization.map(record) }
    }
    initializations = known
    self.indexes = indexes
    self.segments = segments
    total = list.count
  }

  /// Prints `record` with the lists of segments in its `segments` fields. If some of a list are left out, a
  /// field `segments_omitted` after it states their number. The last segments are left out, or the oldest
  /// ones of a live rung.
  static func print(_ record: some Encodable, with lists: [PrintedSegments]) throws(ReelError) {
    // Quotes inside strings are escaped, so this text occurs only as a placeholder.
    let placeholder = "\"segments\":[]"
    let parts = try JSONLine.string(record).components(separatedBy: placeholder)
    guard parts.count == lists.count + 1 else {
      throw ReelError(.internalFault, "a result has \(parts.count - 1) lists of segments, not \(lists.count)")
    }
    var text = JSONText()
    var budget = byteBudget
    for (part, list) in zip(parts, lists) {
      text.append(part)
      try list.write(to: &text, budget: &budget)
    }
    text.append(parts[lists.count])
    text.append("\n")
    try Console.write(text.bytes)
  }

  // MARK: - Private

  /// The maximum size of the text of all rungs' segments.
  private static let byteBudget = 32 << 20
  private static let pieceSize = 64 << 10

  /// - Parameter budget: The number of bytes that may still be written. Segments beyond it are left out.
  private func write(to text: inout JSONText, budget: inout Int) throws(ReelError) {
    text.append("\"segments\":[")
    var count = 0
    for segment in segments {
      guard budget > 0 else { break }
      if count > 0 { text.append(",") }
      count += 1
      let record = SegmentRecord(segment, initialization: segment.initialization.flatMap { indexes[$0] })
      record.write(to: &text)
      budget -= record.byteCount
      if text.bytes.count >= Self.pieceSize {
        try Console.write(text.bytes)
        text.removeAll()
      }
    }
    text.append("]")
    if count < total { text.append(",\"segments_omitted\":\(total - count)") }
  }
}
