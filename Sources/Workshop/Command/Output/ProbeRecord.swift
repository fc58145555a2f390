import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelPlayback

/// The JSON record of `reel probe` for a source.
struct ProbeRecord: SourceRecord {
  struct Rung: Encodable {
    let id: String
    let period: Int
    let bandwidth: Int?
    let averageBandwidth: Int?
    let codecs: String?
    let width: Int?
    let height: Int?
    let frameRate: String?
    let videoRange: String?
    let chosen: Bool
    let unplayable: String?
    let protection: ProtectionRecord?
  }

  struct Rendition: Encodable {
    let id: String
    let period: Int
    let language: String?
    let label: String?
    let `default`: Bool
    let roles: [String]
    let codecs: String?
    let channels: String?
    let bandwidth: Int?
    let unplayable: String?
    let protection: ProtectionRecord?
  }

  /// A rung with images.
  struct Images: Encodable {
    let id: String
    let period: Int
    let bandwidth: Int?
    let codecs: String?
    let mimeType: String?
    /// The width of a tile.
    let width: Int?
    let height: Int?
    /// The number of columns of an image.
    let columns: Int?
    let rows: Int?
    let unplayable: String?
  }

  struct Segments: Encodable {
    let count: Int
    let shortestDuration: Double
    let longestDuration: Double
    let totalDuration: Double
    let discontinuities: Int
  }

  struct Stream: Encodable {
    let index: Int
    let codecType: String
    let codecName: String
    let codecTag: String?
    let width: Int?
    let height: Int?
    let avgFrameRate: String?
    let channels: Int?
    let sampleRate: Int?
    let language: String?
    let `default`: Bool
  }

  struct Frame: Encodable {
    let bytes: Int64?
    let codecName: String
    let profile: String?
    let level: String?
    let pixFmt: String
    let bitDepth: Int
    let width: Int
    let height: Int
    let displayWidth: Int
    let displayHeight: Int
    let sampleAspectRatio: String?
    let frameRate: String?
    let colorSpace: String?
    let colorPrimaries: String?
    let colorTransfer: String?
    let colorRange: String
    let matrixUsed: String
    let hdr: Bool
    let rotation: Int
    let mirrored: Bool
    let interlaced: Bool
    let damaged: Bool
    let reorderDepth: Int
    let gop: String?
    let time: Double
    let ptsTime: Double?
    let md5: String
  }

  struct Period: Encodable {
    let id: String?
    let start: Double
    let duration: Double?
    /// The kinds of tracks in the period.
    let media: [String]
    /// The reason why the period's video was left out.
    let videoError: String?
  }

  let source: String
  var kind: String?
  var live: Bool?
  var duration: Double?
  var periods: Int?
  var periodList: [Period]?
  var rungs: [Rung]?
  var audio: [Rendition]?
  var text: [Rendition]?
  var images: [Images]?
  var segments: Segments?
  var streams: [Stream]?
  var firstFrame: Frame?
  var startup: StartupRecord?
  var warnings: [String]?
  var error: ErrorRecord?

  init(source: String, error: ReelError) {
    self.source = source
    self.error = ErrorRecord(error)
  }

  init(source: String, _ description: SourceDescription) {
    self.source = source
    kind = description.kind
    live = description.isLive
    duration = description.duration?.rounded(places: 6)
    if let presentation = description.presentation {
      periods = presentation.periods.count
      periodList = presentation.periods.map(Self.period)
      rungs = Self.rungs(
        of: presentation, chosen: description.chosenRung, in: description.chosenPeriod ?? 0)
      audio = Self.renditions(of: presentation, kind: .audio)
      text = Self.renditions(of: presentation, kind: .text)
      images = Self.images(of: presentation)
    }
    let told =
      (description.presentation?.warnings.map(\.description) ?? []) + description.faults.map(\.description)
    if description.presentation != nil || !told.isEmpty { warnings = told }
    segments = description.segments.map {
      Segments(
        count: $0.count, shortestDuration: $0.shortest.rounded(places: 6),
        longestDuration: $0.longest.rounded(places: 6),
        totalDuration: $0.total.rounded(places: 6), discontinuities: $0.discontinuityCount)
    }
    streams = description.streams.map {
      Stream(
        index: $0.index, codecType: $0.kind.rawValue, codecName: $0.codecName, codecTag: $0.codecTag,
        width: $0.size?.width, height: $0.size?.height, avgFrameRate: $0.averageFrameRate?.description,
        channels: $0.channelCount, sampleRate: $0.sampleRate, language: $0.language, default: $0.isDefault)
    }
    firstFrame = description.firstFrame.map(Self.frame)
    startup = StartupRecord(description.startup)
    error = description.failure.map(ErrorRecord.init)
  }

  // MARK: - Private

  private static func period(_ period: ReelManifest.Period) -> Period {
    var media: [String] = []
    for group in period.trackGroups where !media.contains(group.kind.rawValue) {
      media.append(group.kind.rawValue)
    }
    return Period(
      id: period.id, start: period.start.seconds.rounded(places: 6),
      duration: period.duration?.seconds.rounded(places: 6), media: media.sorted(),
      videoError: period.videoFailure?.description)
  }

  private static func rungs(
    of presentation: Presentation, chosen: ReelManifest.Rung?, in chosenPeriod: Int
  ) -> [Rung] {
    var isFirst = true
    return presentation.periods.enumerated().flatMap { index, period in
      period.trackGroups.filter { $0.kind == .video }.flatMap { group in
        group.rungs.map { rung in
          let isChosen =
            isFirst && index == chosenPeriod && rung.id == chosen?.id
            && rung.bitsPerSecond == chosen?.bitsPerSecond
          if isChosen { isFirst = false }
          return Rung(
            id: rung.id, period: index, bandwidth: rung.bitsPerSecond,
            averageBandwidth: rung.averageBitsPerSecond,
            codecs: joined(rung.codecs), width: rung.size?.width, height: rung.size?.height,
            frameRate: rung.frameRate?.description, videoRange: rung.videoRange, chosen: isChosen,
            unplayable: group.unplayableReason, protection: rung.protection.map(ProtectionRecord.init))
        }
      }
    }
  }

  private static func renditions(of presentation: Presentation, kind: TrackGroup.Kind) -> [Rendition] {
    presentation.periods.enumerated().flatMap { index, period in
      period.trackGroups.filter { $0.kind == kind }.flatMap { group in
        group.rungs.map { rung in
          Rendition(
            id: rung.id, period: index, language: group.language, label: group.label,
            default: group.isDefault,
            roles: group.roles, codecs: joined(rung.codecs), channels: rung.channels,
            bandwidth: rung.bitsPerSecond,
            unplayable: group.unplayableReason, protection: rung.protection.map(ProtectionRecord.init))
        }
      }
    }
  }

  /// Returns the rungs with images. In a multivariant playlist, their layout is unknown, because their playlists
  /// are not read.
  private static func images(of presentation: Presentation) -> [Images]? {
    let images = presentation.periods.enumerated().flatMap { index, period in
      period.trackGroups.filter { $0.kind == .image }.flatMap { group in
        group.rungs.compactMap { rung -> Images? in
          guard let tiles = rung.tiles else { return nil }
          var isLayoutKnown = tiles.fault == nil
          if case .playlist = rung.media { isLayoutKnown = false }
          return Images(
            id: rung.id, period: index, bandwidth: rung.bitsPerSecond, codecs: joined(rung.codecs),
            mimeType: rung.mimeType, width: tiles.size?.width, height: tiles.size?.height,
            columns: isLayoutKnown ? tiles.columns : nil, rows: isLayoutKnown ? tiles.rows : nil,
            unplayable: group.unplayableReason)
        }
      }
    }
    return images.isEmpty ? nil : images
  }

  private static func joined(_ codecs: [String]) -> String? {
    codecs.isEmpty ? nil : codecs.joined(separator: ",")
  }

  private static func frame(_ frame: SourceDescription.FirstFrame) -> Frame {
    Frame(
      bytes: frame.byteCount, codecName: frame.codec, profile: frame.profile, level: frame.levelText,
      pixFmt: frame.pixelFormat, bitDepth: frame.color.bitDepth, width: frame.size.width,
      height: frame.size.height, displayWidth: frame.displaySize.width,
      displayHeight: frame.displaySize.height,
      sampleAspectRatio: frame.sampleAspectRatio.map { "\($0.numerator):\($0.denominator)" },
      frameRate: frame.frameRate?.description, colorSpace: frame.color.matrix,
      colorPrimaries: frame.color.primaries, colorTransfer: frame.color.transfer,
      colorRange: frame.color.isFullRange ? "pc" : "tv", matrixUsed: frame.color.assumedMatrix,
      hdr: frame.color.isHDR, rotation: frame.rotation, mirrored: frame.isMirrored,
      interlaced: frame.isInterlaced, damaged: frame.isDamaged, reorderDepth: frame.reorderDepth,
      gop: frame.gopText, time: frame.time.rounded(places: 6),
      ptsTime: frame.presentationTime?.rounded(places: 6),
      md5: frame.md5)
  }
}

extension SourceDescription.FirstFrame {
  /// The level in the usual notation: `3.1`.
  var levelText: String? {
    guard let level else { return nil }
    switch codec {
    case "h264": return level == 9 ? "1b" : (Double(level) / 10).formatted(places: 1)
    case "hevc": return (Double(level) / 30).formatted(places: 1)
    default: return String(level)
    }
  }

  /// The type of the first group of pictures: `closed`, `open`, or `none` if the stream does not start
  /// cleanly.
  var gopText: String? {
    switch entry {
    case .idr: "closed"
    case .openGOP: "open"
    case .some(.none): "none"
    case nil: nil
    }
  }
}
