import Foundation
import ReelCore
import ReelLab
import ReelManifest
import ReelPlayback

/// The record of `reel manifest --output json` for a source: its `Presentation`.
struct ManifestRecord: SourceRecord {
  struct Live: Encodable {
    let reload: String
    let reloadSeconds: Double?
    let delay: Double
    let timeShiftBufferDepth: Double?
    let availabilityStart: String?
    let availabilityEnd: String?
    let locations: [String]
    let clockSources: [String]
  }

  struct Period: Encodable {
    let id: String?
    let start: Double
    let duration: Double?
    let trackGroups: [TrackGroup]
  }

  struct TrackGroup: Encodable {
    let id: String?
    let kind: String
    let language: String?
    let label: String?
    let roles: [String]
    let `default`: Bool
    let unplayable: String?
    let rungs: [Rung]
  }

  struct Rung: Encodable {
    let id: String
    let bandwidth: Int?
    let averageBandwidth: Int?
    let codecs: String?
    let mimeType: String?
    let width: Int?
    let height: Int?
    let frameRate: String?
    let sampleAspectRatio: String?
    let videoRange: String?
    let channels: String?
    let audioGroup: String?
    let tiles: Tiles?
    let protection: ProtectionRecord?
    let playlist: String?
    let alternatePlaylists: [String]?
    let index: Index?
    let error: ErrorRecord?
    let duration: Double?
    let initializations: [Initialization]?
    let segmentCount: Int?
    let segments: PrintedSegments.Placeholder?
  }

  /// The division of a rung's images.
  struct Tiles: Encodable {
    let columns: Int?
    let rows: Int?
    let width: Int?
    let height: Int?
    let duration: Double?

    init(_ tiles: ImageTiles) {
      columns = tiles.fault == nil ? tiles.columns : nil
      rows = tiles.fault == nil ? tiles.rows : nil
      width = tiles.size?.width
      height = tiles.size?.height
      duration = tiles.duration?.seconds
    }
  }

  /// The byte range of a segment index that was not read.
  struct Index: Encodable {
    let url: String
    let byteOffset: Int64?
    let byteLength: Int64?
  }

  struct Initialization: Encodable {
    let url: String
    let byteOffset: Int64?
    let byteLength: Int64?
    let encryption: EncryptionRecord?
    let alternateUrls: [String]?
  }

  let source: String
  var url: String?
  /// The same in results files, whose `url` is that of the list.
  var manifestUrl: String?
  var format: String?
  var live: Bool?
  var liveTiming: Live?
  var duration: Double?
  var startOffset: Double?
  var periods: [Period]?
  var warnings: [String]?
  /// In results files, with `--strict`.
  var violations: Int?
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
    startOffset = presentation.startOffset?.seconds
    warnings = presentation.warnings.map(\.description)
    var failures: [[Int]: ReelError] = [:]
    for failure in loaded.failures {
      failures[[failure.periodIndex, failure.groupIndex, failure.rungIndex]] = failure.error
    }
    periods = presentation.periods.enumerated().map { period, value in
      Period(
        id: value.id, start: value.start.seconds, duration: value.duration?.seconds,
        trackGroups: value.trackGroups.enumerated().map { group, value in
          TrackGroup(
            id: value.id, kind: value.kind.rawValue, language: value.language, label: value.label,
            roles: value.roles, default: value.isDefault, unplayable: value.unplayableReason,
            rungs: value.rungs.enumerated().map { rung, value in
              Self.rung(
                value, isLive: presentation.isLive, error: failures[[period, group, rung]],
                segments: &segments)
            })
        })
    }
  }

  // MARK: - Private

  private static func live(_ live: LiveTiming) -> Live {
    let (reload, seconds): (String, Double?) =
      switch live.reload {
      case .never: ("never", nil)
      case .after(let period): ("after", period.seconds)
      case .targetDuration(let target): ("target_duration", target.seconds)
      }
    return Live(
      reload: reload, reloadSeconds: seconds, delay: live.delay.seconds,
      timeShiftBufferDepth: live.timeShiftBufferDepth?.seconds,
      availabilityStart: live.availabilityStart?.description,
      availabilityEnd: live.availabilityEnd?.description, locations: live.locations.map(\.absoluteString),
      clockSources: live.clockSources.map { source in
        switch source {
        case .direct(let time): "direct \(time)"
        case .httpHead(let url): "http-head \(url.absoluteString)"
        case .httpBody(let url): "http-iso \(url.absoluteString)"
        }
      })
  }

  /// The number of segments printed per rung, and per live rung. A manifest of a few lines may describe a
  /// million.
  private static let segmentLimit = 100_000
  private static let liveSegmentLimit = SegmentRecord.liveLimit

  private static func rung(
    _ rung: ReelManifest.Rung, isLive: Bool, error: ReelError?, segments: inout [PrintedSegments]?
  ) -> Rung {
    var (playlist, index): (String?, Index?) = (nil, nil)
    var (duration, count, printed): (Double?, Int?, PrintedSegments?) = (nil, nil, nil)
    switch rung.media {
    case .playlist(let url): playlist = url.absoluteString
    case .index(let reference):
      index = Index(
        url: reference.url.absoluteString, byteOffset: reference.indexRange?.offset,
        byteLength: reference.indexRange?.length)
    case .segments(let list):
      count = list.count
      let wanted = isLive ? list.suffix(liveSegmentLimit) : list.prefix(segmentLimit)
      let chosen = PrintedSegments(wanted, of: list, withInitializations: true)
      segments?.append(chosen)
      printed = chosen
      duration = list.first.map { (list.end - $0.start).seconds }
    }
    return Rung(
      id: rung.id, bandwidth: rung.bitsPerSecond, averageBandwidth: rung.averageBitsPerSecond,
      codecs: rung.codecs.isEmpty ? nil : rung.codecs.joined(separator: ","), mimeType: rung.mimeType,
      width: rung.size?.width, height: rung.size?.height, frameRate: rung.frameRate?.description,
      sampleAspectRatio: rung.sampleAspectRatio.map { "\($0.numerator):\($0.denominator)" },
      videoRange: rung.videoRange, channels: rung.channels, audioGroup: rung.audioGroup,
      tiles: rung.tiles.map(Tiles.init), protection: rung.protection.map(ProtectionRecord.init),
      playlist: playlist,
      alternatePlaylists: rung.alternateURLs.isEmpty ? nil : rung.alternateURLs.map(\.absoluteString),
      index: index, error: error.map(ErrorRecord.init), duration: duration,
      initializations: printed.flatMap { printed in
        printed.initializations.isEmpty ? nil : printed.initializations.map(Initialization.init)
      },
      segmentCount: count, segments: segments == nil || printed == nil ? nil : [])
  }
}

extension ManifestRecord.Initialization {
  fileprivate init(_ reference: InitializationReference) {
    url = reference.url.absoluteString
    byteOffset = reference.byteRange?.offset
    byteLength = reference.byteRange?.length
    encryption = reference.encryption.map(EncryptionRecord.init)
    alternateUrls =
      reference.alternateURLs.isEmpty ? nil : reference.alternateURLs.map(\.absoluteString)
  }
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
struct EncryptionRecord: Encodable {
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

  /// - Parameters:
  ///   - segments: The part of `list` to print.
  ///   - withInitializations: True to print the initializations as well.
  init(_ segments: SegmentList.SubSequence, of list: SegmentList, withInitializations: Bool) {
    var known: [InitializationReference] = []
    var indexes: [InitializationReference: Int] = [:]
    let record = { (reference: InitializationReference) in
      guard indexes[reference] == nil else { return }
      indexes[reference] = known.count
      known.append(reference)
    }
    if withInitializations, let common = list.commonInitialization, !segments.isEmpty {
      record(common)
    } else if withInitializations {
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

/// A line of `reel manifest --follow`.
struct LiveUpdateRecord: Encodable {
  let time: String
  /// The origin of the update: the manifest, or the clock alone.
  let from: String
  let change: String
  let missed: Int?
  let windowStart: Double
  let windowEnd: Double
  let distanceFromClock: Double?
  let ended: Bool
  let segments: PrintedSegments.Placeholder = []

  init(_ update: LiveUpdate) {
    time = update.time.description
    from = update.isReading ? "manifest" : "clock"
    var missed: Int?
    switch update.change {
    case nil: change = "opened"
    case .grew: change = "grew"
    case .unchanged: change = "unchanged"
    case .steppedBack: change = "stepped_back"
    case .jumped(let count):
      change = "jumped"
      missed = count
    case .restarted: change = "restarted"
    }
    self.missed = missed
    windowStart = update.windowStart.seconds
    windowEnd = update.windowEnd.seconds
    distanceFromClock = update.distanceFromClock?.seconds
    ended = update.hasEnded
  }
}

/// The encryption of samples as stated in a manifest, as JSON.
struct ProtectionRecord: Encodable {
  let schemes: [String]
  let keyIds: [String]

  init(_ protection: ContentProtection) {
    schemes = protection.schemes
    keyIds = protection.keyIDs.map(\.description)
  }
}
