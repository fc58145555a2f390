package import Foundation
package import HTTPTypes
package import ReelCore
package import ReelFFmpeg
package import ReelManifest
package import ReelRules

/// What was measured of a source. Findings are made of these facts alone, so the same facts give the same findings.
package struct StreamFacts: Sendable {
  /// `hls`, `dash`, or the container of a media file.
  package var format = ""
  /// The URL of the manifest or file, after redirects.
  package var url: URL?
  package var isLive = false
  /// The duration in seconds; nil if unknown.
  package var duration: Double?
  /// The presentation as the manifest describes it; nil for a media file.
  package var presentation: Presentation?
  /// The rungs and renditions, in the manifest's order; a media file is one rung.
  package var rungs: [RungFacts] = []
  /// What the structure of a media file says; nil for a manifest, and for containers other than MP4.
  package var file: FileFacts?
  /// The violations of a standard in the manifests, each with its URL and line.
  package var violations: [RuleViolation] = []
  /// All requests, in the order in which they were sent.
  package var requests: [RequestFacts] = []
  /// The first frame, and what was read for it; nil if there was none.
  package var start: StartFacts?
  /// Why there was no first frame.
  package var startFailure: ReelError?
  /// What was seen of a live presentation over time; nil if it was not watched.
  package var live: LiveFacts?
  package var notChecked: [NotChecked] = []

  package init() {}
}

package struct NotChecked: Sendable, Hashable {
  /// The id of the finding that was not looked for; nil for all of a rung.
  package var id: FindingID?
  /// The name of the rung; nil for the whole source.
  package var rung: String?
  /// The reason, as a clause without a full stop.
  package var reason: String
  /// Why a rung, a track of it, or a part of the manifest was not judged; nil for other checks.
  package var unjudged: Unjudged?

  package init(_ id: FindingID?, rung: String? = nil, _ reason: String) {
    self.id = id
    self.rung = rung
    self.reason = reason
  }

  /// A check for which there was no time.
  init(late id: FindingID, _ reason: String) {
    self.init(id, reason)
    unjudged = Unjudged(.time, "\(id.rawValue): \(reason)")
  }

  package init(_ unjudged: Unjudged, rung: String? = nil) {
    self.init(nil, rung: rung, unjudged.reason)
    self.unjudged = unjudged
  }
}

/// One rung or rendition, read alone.
package struct RungFacts: Sendable {
  /// How far a rung was read, or why it was not.
  package enum Status: Sendable, Hashable {
    /// Its samples have not all been read.
    case unread
    /// All of its samples were read and decoded.
    case read
    /// Its segments are not known, because its playlist or index can't be read.
    case unlisted(ReelError)
    /// Reading ended before all of its samples were read, for this reason. What was read counts.
    case cutOff(String)
    /// It can't be judged although that is no fault of it, such as without its key.
    case excused(Unjudged)
    /// It was left out, as `--rungs` says.
    case skipped
  }

  /// The name in reports: `720p`, `english`, or the id. Unique within the source.
  package var name: String
  package var kind: TrackGroup.Kind
  /// Its indices in the presentation: period, group, rung.
  package var place = (period: 0, group: 0, rung: 0)
  /// The rung as the manifest states it; nil for a media file.
  package var declared: Rung?
  package var language: String?
  /// The URL of its playlist or file; nil if it has none of its own.
  package var url: URL?
  package var status = Status.unread
  /// The segments as they are listed; of a very long list a part.
  package var segments = SegmentList([])
  /// The number of listed segments that are not in `segments`, because there are too many.
  package var omittedCount = 0
  /// The part of the timeline that its period covers, in seconds. A player shows nothing of it outside (ISO/IEC 23009-1
  /// §5.3.2.1).
  package var span = 0...Double.infinity
  /// The size of each segment in bytes; nil where unknown. As long as `segments`.
  package var sizes: [Int64?] = []
  /// What was measured of the segments that were read, by their index in `segments`.
  package var samples: [Int: SegmentFacts] = [:]
  /// The pictures and the sound of runs of neighbouring samples, in order.
  package var content: [ContentFacts] = []
  /// HLS: true if its playlist is of a version that has durations in whole seconds.
  package var roundsDurations = false
  /// True if the manifest states that its segments begin where those of its group do.
  package var claimsAlignment = false
  /// The sample that is being fetched.
  var pending: PendingSegment?

  /// True if it can't be judged although that is no fault of it.
  package var isExcused: Bool { if case .excused = status { true } else { false } }

  /// True if its segments are not known.
  package var isUnlisted: Bool { if case .unlisted = status { true } else { false } }

  /// The part of the timeline in seconds that a segment is shown in, as the manifest states it. It is empty if all of the
  /// segment lies outside the period.
  package func shownRange(of segment: SegmentReference) -> ClosedRange<Double> {
    shownRange(from: segment.start.seconds, lasting: segment.duration.seconds)
  }

  /// The same of a segment with this start and duration in seconds.
  func shownRange(from start: Double, lasting duration: Double) -> ClosedRange<Double> {
    start.clamped(to: span)...(start + max(0, duration)).clamped(to: span)
  }

  /// The part of the timeline in seconds from its first segment to the end of its last one; nil without segments.
  package var shownRange: ClosedRange<Double>? {
    guard let first = segments.first, let last = segments.last else { return nil }
    let start = shownRange(of: first).lowerBound
    return start...max(start, shownRange(of: last).upperBound)
  }
}

/// One segment, read alone.
package struct SegmentFacts: Sendable {
  /// The index in the list of its rung, from 0.
  package var index: Int
  /// Why it could not be read.
  package var failure: SegmentFailure?
  /// The number of bytes that arrived.
  package var byteCount: Int64 = 0
  /// The time until it was there, with its key and its initialization, in seconds; nil if it never was.
  var fetchTime: Double?
  /// The number of bytes that the answer, a byte range or a box promises; nil if nothing does.
  package var promisedByteCount: Int64?
  /// The reason why it counts as cut off; nil if it is whole.
  package var truncation: String?
  /// The error that ended reading before the end of the segment; nil without one.
  package var readingFault: ReelError?
  /// True if only its beginning was read, on purpose.
  package var isPartial = false
  /// False for packed audio without the time of its first sample (RFC 8216 §3.4). It begins at its place in the list.
  package var hasTimestamps = true
  package var video: TrackFacts?
  package var audio: TrackFacts?
}

extension Comparable {
  /// The value, or the bound of the range that it is beyond.
  func clamped(to range: ClosedRange<Self>) -> Self { min(max(self, range.lowerBound), range.upperBound) }
}

/// A segment that is being fetched.
struct PendingSegment: Sendable {
  let index: Int
  /// What is fetched: its key, its initialization, or the segment.
  var part: SegmentFailure.Part
  /// The time of the clock at which this began.
  var began: Duration
  /// The bytes of the segment that have arrived.
  var byteCount = 0
}

/// Why a segment, an initialization or a key could not be read.
package struct SegmentFailure: Sendable, Hashable {
  package enum Part: Sendable, Hashable {
    case segment
    case initialization
    case key
  }

  package enum Reason: Sendable, Hashable {
    /// The server refused it, or did not answer.
    case status
    /// It has no bytes.
    case empty
    /// It is something else, such as an HTML page.
    case notMedia
    /// It is media, but can't be read.
    case broken
    /// It is media that Reel does not decode, such as an encrypted one without a key. No fault of the stream.
    case unsupported
  }

  package var part: Part
  package var reason: Reason
  package var error: ReelError
  /// The time that was spent on it, in seconds; nil if unknown.
  package var waited: Double?

  /// True if no server delivered it in time, or none could be reached.
  package var isUnanswered: Bool { TransportFindings.isUnanswered(error) }

  package init(_ part: Part, _ reason: Reason, _ error: ReelError) {
    self.part = part
    self.reason = reason
    self.error = error
  }
}

/// One track of one segment, by the timestamps of its container.
package struct TrackFacts: Sendable {
  /// The stream as the container states it.
  package var stream: StreamInfo
  /// The start and the end of each sample in seconds of the container's timeline, in presentation order. Samples that
  /// an edit list leaves out are not in it.
  package var samples: [SampleFacts] = []
  /// The number of samples before the first shown one that an edit list leaves out.
  package var hiddenSampleCount = 0
  /// The decoding time of the first sample, and the end of the last one in decoding order, in seconds. Durations belong
  /// to that order: with a variable frame rate, the last sample that is shown may have that of another.
  package var decodingStart: Double?
  package var decodingEnd: Double?
  /// The position after the first sample, from the beginning of the initialization; nil if it is not known.
  package var firstEnd: Int64?
  /// Video: how decoding can start at the first sample.
  package var entry: OpeningPicture.Entry?
  /// Video: true if the first sample, or the container, has the parameter sets that it needs.
  package var hasParameterSets = true
  /// Video: the number of pictures after the first that are shown before it, and need pictures of the segment before.
  package var leadingCount = 0
  /// The index in decoding order of the first sample that decoding can start at; nil without one.
  package var firstEntryIndex: Int?
  /// When that sample is shown, in seconds. Samples before it may be leading ones of an open GOP.
  package var firstEntryTime: Double?
  /// The codec as manifests state it (RFC 6381); nil if it is not known.
  package var codecString: String?
  /// The bytes of the samples.
  package var byteCount: Int64 = 0

  /// The start of the first sample in presentation order.
  package var start: Double? { samples.first?.start }
  /// The end of the last sample.
  package var end: Double? { samples.map(\.end).max() }
}

/// A sample of a track, in seconds of the container's timeline.
package struct SampleFacts: Sendable, Hashable {
  package var start: Double
  package var end: Double
  package var byteCount: Int
  package var isKey: Bool
}

/// The decoded pictures and sound of a run of neighbouring segments of one rung.
package struct ContentFacts: Sendable {
  /// The indices of the segments in the list.
  package var segments: Range<Int>
  /// The decoded frames, in presentation order.
  package var frames: [FrameFacts] = []
  /// The parts from whose units no frame could be decoded.
  package var undecodable: [UndecodableFacts] = []
  /// The audio, in order.
  package var sound: [SoundFacts] = []
  /// The audio decoder's profile; nil without any.
  package var audioProfile: String?
  /// The number of packets of audio that could not be decoded, and their duration in seconds. The first packet may need one
  /// before it, and is left out.
  package var rejectedAudioCount = 0
  package var rejectedAudioDuration = 0.0
  /// The indices of their segments.
  package var rejectedAudioSegments: Set<Int> = []
  /// The video decoder's profile and level.
  package var profile: String?
  package var level: Int?
  /// Why it could not be decoded.
  package var failure: ReelError?
}

/// Units from which no frame could be decoded.
package struct UndecodableFacts: Sendable {
  /// The start in seconds on the presentation's timeline, as far as the manifest states it.
  package var time: Double
  package var duration: Double
  package var unitCount: Int
  /// The index of the first one's segment in the list of the rung.
  package var segment: Int
}

/// A decoded frame, reduced to what is compared.
package struct FrameFacts: Sendable {
  /// The start in seconds on the presentation's timeline, as far as the manifest states it.
  package var time: Double
  package var duration: Double
  /// The index of its segment in the list of the rung.
  package var segment: Int
  /// True if a reference was missing, or an error was concealed.
  package var isDamaged: Bool
  /// The share of luma samples under a tenth.
  package var darkShare: Float
  /// The largest change of a luma sample since the frame before, from 0 to 1; 1 for the first.
  package var change: Float
  /// The luma, reduced to few samples, from 0 to 255, row by row.
  package var luma: [UInt8]
  /// The size of `luma`.
  package var lumaSize: PixelSize
  /// The stored size of the frame, and the upright one with square pixels.
  package var size: PixelSize
  package var presentationSize: PixelSize
  /// The largest luma sample, from 0 to 1.
  package var brightest: Float = 0
  /// True if it consists of two fields.
  package var isInterlaced = false
}

/// A tenth of a second of sound.
package struct SoundFacts: Sendable, Hashable {
  /// The start in seconds on the presentation's timeline.
  package var time: Double
  package var duration: Double
  /// The largest sample, from 0 to 1.
  package var peak: Float
}

/// The structure of an MP4 file.
package struct FileFacts: Sendable {
  package var byteCount: Int64?
  /// The range of the `moov` box.
  package var index: ByteRange?
  /// True if the index comes after the media.
  package var isIndexLast = false
  package var isFragmented = false
  /// The range of bytes of the first video sample that is shown, and of those that must be decoded before it.
  package var firstSample: ByteRange?
  /// The bytes before the end of the first shown sample that it does not need: other tracks, padding.
  package var surplus: [FileSurplus] = []
  /// The number of samples that an edit list hides before the first shown one.
  package var hiddenSampleCount = 0
  /// The samples of all tracks in order of time: when each is due, in seconds, and its size.
  package var samples: [(time: Double, byteCount: Int64)] = []
}

/// Bytes that stand before the end of the first frame and that it does not need.
package struct FileSurplus: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable {
    /// `free`, `skip`, `uuid` and other boxes that no player reads.
    case padding
    /// Samples of other tracks, far ahead of the first frame.
    case interleaving
    /// Samples that an edit list hides.
    case edit
    /// An index much larger than its samples need.
    case moov
  }

  package var kind: Kind
  package var ranges: [ByteRange]

  package init(_ kind: Kind, _ ranges: [ByteRange]) {
    self.kind = kind
    self.ranges = ranges
  }

  package var byteCount: Int64 { ranges.reduce(0) { $0 + ($1.length ?? 0) } }
}

/// Bytes of a manifest or a segment that a start reads and does not need.
package struct StartSurplus: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable {
    /// Null packets of a transport stream, and boxes that no player reads.
    case padding
    /// Comments and white space of a manifest.
    case playlist
  }

  package var kind: Kind
  package var ranges: [StartBytes]

  package init(_ kind: Kind, _ ranges: [StartBytes]) {
    self.kind = kind
    self.ranges = ranges
  }

  package var byteCount: Int64 { ranges.reduce(0) { $0 + ($1.range.length ?? 0) } }
}

package struct RequestFacts: Sendable {
  package var url: URL
  package var purpose: FetchPurpose
  package var method: HTTPRequest.Method
  package var range: ByteRange?
  /// The time from the beginning of the check to the request.
  package var began: Duration
  /// The measurements of the transfer; nil while it runs, or if it failed before an answer.
  package var metrics: RequestMetrics?
  /// The URL of the answer, after redirects.
  package var answerURL: URL?
  package var contentType: String?
  /// The header fields of the answer, in order; empty for files.
  package var fields: HTTPFields = [:]
  /// The size of the body as the answer states it.
  package var statedByteCount: Int64?
  /// The number of bytes of the body that arrived.
  package var receivedByteCount: Int64 = 0
  package var failedAttempts: [ReelError] = []
  /// The numbers of bytes after which the body broke off, and went on with another request.
  package var breaks: [Int64] = []
  /// The error in which it ended.
  package var failure: ReelError?
  /// The time from the beginning of the check to the end of the transfer; nil while it runs.
  package var ended: Duration?
  /// True if the whole body arrived. False for a transfer that the reader ended early.
  package var isComplete = false
}

/// The start of the source as a player opens it.
package struct StartFacts: Sendable {
  /// The name of the rung that was opened.
  package var rung: String?
  /// The URL of the first segment, or of the file.
  package var mediaURL: URL?
  /// The position in the first segment, or in the file, of the end of the first frame.
  package var firstFrameEnd: Int64?
  package var codec: VideoCodec?
  package var pixelCount = 0
  /// The time between frames, in seconds, and the number of frames by which they are reordered.
  package var frameDuration = 1.0 / 30
  package var reorderDepth = 0
  /// The bytes of manifests and of the first segment, before the end of the first frame, that it does not need.
  package var surplus: [StartSurplus] = []
}

/// A live presentation, watched for some time.
package struct LiveFacts: Sendable {
  /// One reading of a playlist or MPD.
  package struct Reading: Sendable, Hashable {
    /// The time since the watch began, in seconds.
    package var time: Double
    /// The number of the last segment.
    package var lastNumber: Int64?
    /// The end of the last segment on the timeline.
    package var end: Double
    /// The value of Age; nil if there is none.
    package var age: Double?
    /// The `max-age` of Cache-Control; nil if there is none.
    package var maxAge: Double?
    /// Why the playlist or MPD could not be read this time; the other values are then those of the reading before.
    package var failure: ReelError?
    /// True if the newest segment that should be there by the clock is not (DASH); nil if segments do not follow from
    /// the clock, or were not asked for.
    package var lacksNewest: Bool?
  }

  /// The readings of each rung's playlist, by the name of the rung.
  package var readings: [String: [Reading]] = [:]
  /// EXT-X-TARGETDURATION, or the longest segment of an MPD, in seconds.
  package var targetDuration: Double = 0
  /// How long it was watched, in seconds.
  package var duration: Double = 0
  /// DASH: `@minimumUpdatePeriod` in seconds; nil without one.
  package var updatePeriod: Double?
  /// True if the presentation ended while it was watched.
  package var hasEnded = false
}
