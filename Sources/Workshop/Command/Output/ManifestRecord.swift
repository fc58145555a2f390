import Foundation
import ReelCore
import ReelManifest
import ReelPlayback

/// The record of `reel manifest --output json` for a source: its `Presentation`.
struct ManifestRecord: Encodable {
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

  /// How the images of a rung are divided.
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
  var format: String?
  var live: Bool?
  var liveTiming: Live?
  var duration: Double?
  var startOffset: Double?
  var periods: [Period]?
  var warnings: [String]?
  var error: ErrorRecord?

  init(source: String, error: ReelError) {
    self.source = source
    self.error = ErrorRecord(error)
  }

  /// - Parameter segments: The rungs' segments are appended to it in the order of the rungs.
  init(source: String, _ loaded: LoadedManifest, segments: inout [PrintedSegments]) {
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

  /// The number of segments printed per rung, and per live rung. A manifest of a few lines may name a million.
  private static let segmentLimit = 100_000
  private static let liveSegmentLimit = SegmentRecord.liveLimit

  private static func rung(
    _ rung: ReelManifest.Rung, isLive: Bool, error: ReelError?, segments: inout [PrintedSegments]
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
      segments.append(chosen)
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
      segmentCount: count, segments: printed.map { _ in [] })
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
