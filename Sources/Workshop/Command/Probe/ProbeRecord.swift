import ReelCore
import ReelFFmpeg
import ReelLab
import ReelManifest
import ReelReading
import ReelSources

/// The JSON record of `reel probe` for a source.
struct ProbeRecord: SourceRecord {
  let source: String
  var kind: String?
  var live: Bool?
  var duration: Double?
  var periods: Int?
  var periodList: [JSONFields]?
  var rungs: [JSONFields]?
  var audio: [JSONFields]?
  var text: [JSONFields]?
  var images: [JSONFields]?
  var segments: JSONFields?
  var streams: [JSONFields]?
  var firstFrame: JSONFields?
  var startup: StartupReport?
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
      let chosen = description.chosenPlace
      periods = presentation.periods.count
      periodList = presentation.periods.map(Self.period)
      rungs = presentation.rungs(of: .video).enumerated().map { Self.rung($1, isChosen: $0 == chosen) }
      audio = presentation.rungs(of: .audio).map(Self.rendition)
      text = presentation.rungs(of: .text).map(Self.rendition)
      let images = presentation.rungs(of: .image).compactMap(Self.images)
      if !images.isEmpty { self.images = images }
    }
    if description.presentation != nil || !description.warnings.isEmpty { warnings = description.warnings }
    segments = description.segments.map { segments in
      [
        "count": segments.count, "shortest_duration": segments.shortest.rounded(places: 6),
        "longest_duration": segments.longest.rounded(places: 6),
        "total_duration": segments.total.rounded(places: 6), "discontinuities": segments.discontinuityCount,
      ]
    }
    streams = description.streams.map { stream in
      [
        "index": stream.index, "codec_type": stream.kind.rawValue, "codec_name": stream.codecName,
        "codec_tag": stream.codecTag, "width": stream.size?.width, "height": stream.size?.height,
        "avg_frame_rate": stream.averageFrameRate?.description, "channels": stream.channelCount,
        "sample_rate": stream.sampleRate, "language": stream.language, "default": stream.isDefault,
      ]
    }
    firstFrame = description.firstFrame.map(Self.frame)
    startup = description.startup
    error = description.failure.map(ErrorRecord.init)
  }

  // MARK: - Private

  private static func period(_ period: Period) -> JSONFields {
    [
      "id": period.id, "start": period.start.roundedSeconds,
      "duration": period.duration?.roundedSeconds, "media": period.mediaKinds,
      // The reason why the period's video was left out.
      "video_error": period.videoFailure?.description,
    ]
  }

  private static func rung(_ found: Presentation.FoundRung, isChosen: Bool) -> JSONFields {
    let (rung, group) = (found.rung, found.group)
    return [
      "id": rung.id, "period": found.period, "bandwidth": rung.bitsPerSecond,
      "average_bandwidth": rung.averageBitsPerSecond, "codecs": rung.codecText, "width": rung.size?.width,
      "height": rung.size?.height, "frame_rate": rung.frameRate?.description, "video_range": rung.videoRange,
      "chosen": isChosen, "unplayable": group.unplayableReason, "protection": rung.protection?.fields,
    ]
  }

  private static func rendition(_ found: Presentation.FoundRung) -> JSONFields {
    let (rung, group) = (found.rung, found.group)
    return [
      "id": rung.id, "period": found.period, "language": group.language, "label": group.label,
      "default": group.isDefault, "roles": group.roles, "codecs": rung.codecText, "channels": rung.channels,
      "bandwidth": rung.bitsPerSecond, "unplayable": group.unplayableReason,
      "protection": rung.protection?.fields,
    ]
  }

  /// Width and height are those of a tile. Nil for a rung without images.
  private static func images(_ found: Presentation.FoundRung) -> JSONFields? {
    let rung = found.rung
    guard let tiles = rung.tiles else { return nil }
    let layout = rung.tileLayout
    return [
      "id": rung.id, "period": found.period, "bandwidth": rung.bitsPerSecond, "codecs": rung.codecText,
      "mime_type": rung.mimeType, "width": tiles.size?.width, "height": tiles.size?.height,
      "columns": layout?.columns, "rows": layout?.rows, "unplayable": found.group.unplayableReason,
    ]
  }

  private static func frame(_ frame: SourceDescription.FirstFrame) -> JSONFields {
    [
      "bytes": frame.byteCount, "codec_name": frame.codec, "profile": frame.profile,
      "level": frame.levelText, "pix_fmt": frame.pixelFormat, "bit_depth": frame.color.bitDepth,
      "width": frame.size.width, "height": frame.size.height, "display_width": frame.displaySize.width,
      "display_height": frame.displaySize.height, "sample_aspect_ratio": frame.sampleAspectRatio?.ratioText,
      "frame_rate": frame.frameRate?.description, "color_space": frame.color.matrix,
      "color_primaries": frame.color.primaries, "color_transfer": frame.color.transfer,
      "color_range": frame.color.isFullRange ? "pc" : "tv", "matrix_used": frame.color.assumedMatrix,
      "hdr": frame.color.isHDR, "rotation": frame.rotation, "mirrored": frame.isMirrored,
      "interlaced": frame.isInterlaced, "damaged": frame.isDamaged, "reorder_depth": frame.reorderDepth,
      "gop": frame.gopText, "time": frame.time.rounded(places: 6),
      "pts_time": frame.presentationTime?.rounded(places: 6), "md5": frame.md5,
    ]
  }
}

extension Presentation {
  typealias FoundRung = (period: Int, group: TrackGroup, rung: Rung)

  /// The rungs of one kind of media, in all periods.
  func rungs(of kind: TrackGroup.Kind) -> [FoundRung] {
    periods.enumerated().flatMap { index, period in
      period.trackGroups.filter { $0.kind == kind }.flatMap { group in
        group.rungs.map { (index, group, $0) }
      }
    }
  }
}

extension SourceDescription {
  /// The place of the chosen rung among those of video.
  var chosenPlace: Int? {
    presentation?.rungs(of: .video).firstIndex { period, _, rung in
      period == chosenPeriod ?? 0 && rung.id == chosenRung?.id
        && rung.bitsPerSecond == chosenRung?.bitsPerSecond
    }
  }

  /// The warnings of the manifest, and the faults of its media.
  var warnings: [String] {
    (presentation?.warnings.map(\.description) ?? []) + faults.map(\.description)
  }
}

extension Period {
  var mediaKinds: [String] { Set(trackGroups.map(\.kind.rawValue)).sorted() }
}

extension Rung {
  /// The division of its images into tiles; nil if it is unknown. That of a multivariant playlist is, because its
  /// playlists are not read.
  var tileLayout: (columns: Int, rows: Int)? {
    guard let tiles, tiles.fault == nil else { return nil }
    if case .playlist = media { return nil }
    return (tiles.columns, tiles.rows)
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
