package import ReelCore

/// What `check` can find. The raw values are a contract: scripts compare them.
package enum FindingID: String, Sendable, Hashable, CaseIterable, Codable {
  case unreachable
  case segmentMissing = "segment-missing"
  case rungDead = "rung-dead"
  case decodeError = "decode-error"
  case segmentTruncated = "segment-truncated"
  case black
  case silent
  case frozen
  case segmentNotIndependent = "segment-not-independent"
  case timestampBreak = "timestamp-break"
  case trackMissing = "track-missing"
  case rungContentDiffers = "rung-content-differs"
  case segmentDurationMismatch = "segment-duration-mismatch"
  case bandwidthMismatch = "bandwidth-mismatch"
  case moovLast = "moov-last"
  case startBytes = "start-bytes"
  case firstRungHeavy = "first-rung-heavy"
  case rungTooHeavy = "rung-too-heavy"
  case ttfbSlow = "ttfb-slow"
  case redirects
  case noKeepAlive = "no-keep-alive"
  case noRanges = "no-ranges"
  case responseHeaders = "response-headers"
  case codecsMismatch = "codecs-mismatch"
  case resolutionMismatch = "resolution-mismatch"
  case frameRateMismatch = "frame-rate-mismatch"
  case aspectDiffers = "aspect-differs"
  case rungsNotAligned = "rungs-not-aligned"
  case avOffset = "av-offset"
  case manifestInvalid = "manifest-invalid"
  case liveStale = "live-stale"
  case notChecked = "not-checked"
}

/// What a finding means for a viewer.
package enum FindingLevel: String, Sendable, Hashable, Comparable, CaseIterable, Codable {
  /// A rule that costs no viewer of this stream anything. It never fails a gate.
  case note
  /// The stream plays, but late, with stalls, or wrongly in some players.
  case warning
  /// The media can't be seen or heard as it is meant.
  case error

  package static func < (left: Self, right: Self) -> Bool {
    let order = allCases
    return (order.firstIndex(of: left) ?? 0) < (order.firstIndex(of: right) ?? 0)
  }
}

/// A fault of a stream: where it is, the measurements that show it, what it costs a viewer, and how to mend it.
package struct Finding: Sendable {
  /// How a summary names the place of a finding.
  package enum Naming: Sendable {
    case none
    /// It names the rung.
    case rung
    /// It names the segments or the line.
    case segment
    /// It begins with the segments.
    case segmentFirst
  }

  /// What was found.
  package let id: FindingID
  /// The kind within the id, such as `gap` of `timestamp-break`; nil for an id without kinds.
  package let kind: String?
  /// The severity.
  package var level: FindingLevel
  /// The name of the rung or rendition; nil for the whole source.
  package var rung: String?
  /// The position of the segment in its list, counted from 1; nil for none.
  package var segment: Int?
  /// The URL or path of the resource; nil for that of the source.
  package var url: String?
  /// The line of a manifest, counted from 1.
  package var line: Int?
  /// The offset of a byte in the resource.
  package var byte: Int64?
  /// The part of the timeline in seconds, if it has one: for the stills of a report.
  package var time: ClosedRange<Double>?
  /// A clause without a full stop that says what was measured, as in `0.8 s without sound that the playlist does not
  /// declare`.
  package var summary: String
  /// What of the place the summary names itself.
  package var naming = Naming.none
  /// The measurements, in order, by names in snake case with their units.
  package var evidence: [(name: String, value: EvidenceValue)] = []
  /// What it costs a viewer; empty if that is nothing, or not known.
  package var costs: [FindingCost] = []
  /// An imperative without a full stop.
  package var fix: String
  /// True if the resource is no manifest at all, such as a page in place of a playlist.
  package var isNoManifest = false
  /// The reason of a waiver, which makes it a known one that fails nothing; nil for none.
  package var waiver: String?
  /// Frames that show the fault; empty unless stills were requested.
  package var stills: [CheckStill] = []
  /// The change of the recorded start that measures the cost; nil if the start does not show it.
  package var change: StartChange?

  package init(
    _ id: FindingID, _ kind: String? = nil, _ level: FindingLevel, rung: String? = nil, segment: Int? = nil,
    url: String? = nil, _ summary: String, fix: String
  ) {
    self.id = id
    self.kind = kind
    self.level = level
    self.rung = rung
    self.segment = segment
    self.url = url
    self.summary = summary
    self.fix = fix
  }

  /// The id and the kind: `timestamp-break/gap`, `moov-last`.
  package var name: String { kind.map { "\(id.rawValue)/\($0)" } ?? id.rawValue }
}

extension [Finding] {
  /// The number of those of a level that are not waived.
  package func count(_ level: FindingLevel) -> Int { count { $0.level == level && $0.waiver == nil } }
}

/// A picture that shows what a finding says.
package struct CheckStill: Sendable {
  /// The name of the rung; nil for a media file.
  package var rung: String?
  /// The time on the presentation's timeline, in seconds.
  package var time: Double
  package var jpeg: [UInt8]
}

/// A measurement of a finding.
package enum EvidenceValue: Sendable, Hashable {
  case number(Double)
  case text(String)
  case flag(Bool)

  package static func integer(_ value: some BinaryInteger) -> Self { .number(Double(value)) }

  /// A time in whole milliseconds.
  package static func milliseconds(_ seconds: Double) -> Self { .number((seconds * 1000).rounded()) }
}

/// What a finding costs a viewer.
package struct FindingCost: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable {
    /// The first frame comes later by this much.
    case start
    /// Playback stalls this long in all, until the end or for 10 minutes of media.
    case stall
    /// This much media is never shown or heard.
    case lost
    /// A change of rung takes longer by this much.
    case `switch`
  }

  /// The player that pays.
  package enum Player: Sendable, Hashable {
    /// Reel, which uses bytes as they come: the least that a fault costs.
    case reel
    /// A player that loads whole segments, one after the other, as hls.js, Shaka and dash.js do.
    case whole
    /// That of a model, by its name.
    case model(String)

    package var name: String {
      switch self {
      case .reel: "reel"
      case .whole: "whole"
      case .model(let name): name
      }
    }
  }

  package var kind: Kind
  /// The name of the link; nil for a cost that does not depend on it.
  package var link: String?
  /// Nil for a cost that is the same for all players.
  package var player: Player?
  /// The cost in milliseconds, as if nothing else were mended.
  package var milliseconds: Double
  /// The cost once all findings with a larger saving are mended; nil if it was not measured.
  package var inTurnMilliseconds: Double?

  package init(
    _ kind: Kind, _ milliseconds: Double, link: String? = nil, player: Player? = nil,
    inTurn: Double? = nil
  ) {
    self.kind = kind
    self.link = link
    self.player = player
    self.milliseconds = milliseconds
    inTurnMilliseconds = inTurn
  }

  /// A cost that is the same for all players, in whole milliseconds.
  package init(_ kind: Kind, seconds: Double) { self.init(kind, (seconds * 1000).rounded()) }
}

/// A change of a recorded start: the one thing that mending a finding would change.
package enum StartChange: Sendable, Hashable {
  /// These byte ranges of resources cost nothing, and this many frames before the first shown one need no decoding.
  case free([StartBytes], hiddenFrameCount: Int = 0)
  /// These byte ranges of an MP4 file, which no needed sample is in, are not there.
  case remove([StartBytes])
  /// The last bytes of a file are moved to its beginning: the index before the media.
  case moveToFront(url: String, ByteRange)
  /// Redirects are not there: requests go to their last URLs.
  case dropRedirects
  /// Servers answer requests for these purposes without a wait.
  case dropWaits(Set<FetchPurpose>)
  /// Connections are kept.
  case dropHandshakes
  /// Ranges are served, so that only the parts that are needed arrive.
  case serveRanges(url: String)
  /// A manifest has this text instead.
  case rewrite(url: String, text: [UInt8])
}

/// A range of bytes of a resource.
package struct StartBytes: Sendable, Hashable {
  package var url: String
  package var range: ByteRange
}
