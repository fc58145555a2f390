public import Foundation
public import ReelCore

/// What HLS, DASH and a plain media file have in common: everything below a manifest works on this alone.
public struct Presentation: Sendable {
  /// The kind of manifest that it came from.
  public var format: ManifestFormat
  /// How it is followed, where more segments may come; nil for one that is complete, and for an HLS multivariant
  /// playlist, whose media playlists tell.
  package var live: LiveTiming?
  /// The whole length, where the manifest tells; nil for a live presentation, and for an HLS multivariant playlist,
  /// whose media playlists tell.
  public var duration: MediaTime?
  /// In order of their start. HLS has one; its discontinuities stand in the segments.
  public var periods: [Period]
  /// What was odd about the manifest and passed over, in the order in which it stands there.
  public var warnings: [ReelError]
  /// HLS: the variables that the media playlists may import (draft-pantos-hls-rfc8216bis §4.4.2.3).
  public var variables: [String: String]
  /// Where playback is to start: from the beginning, or from the end where it is negative (EXT-X-START, RFC 8216
  /// §4.3.5.2).
  public var startOffset: MediaTime?

  /// True where more segments may come.
  public var isLive: Bool { live != nil }

  package init(
    format: ManifestFormat, live: LiveTiming? = nil, duration: MediaTime?, periods: [Period],
    warnings: [ReelError] = [], variables: [String: String] = [:], startOffset: MediaTime? = nil
  ) {
    self.format = format
    self.live = live
    self.duration = duration
    self.periods = periods
    self.warnings = warnings
    self.variables = variables
    self.startOffset = startOffset
  }
}

/// A stretch of the timeline with its own set of tracks (ISO/IEC 23009-1 §5.3.2).
public struct Period: Sendable {
  public var id: String?
  /// On the presentation's timeline.
  public var start: MediaTime
  public var duration: MediaTime?
  public var trackGroups: [TrackGroup]
  /// Why video of this period was left out; nil if none was.
  public var videoFailure: ReelError?

  public init(
    id: String?, start: MediaTime, duration: MediaTime?, trackGroups: [TrackGroup],
    videoFailure: ReelError? = nil
  ) {
    self.id = id
    self.start = start
    self.duration = duration
    self.trackGroups = trackGroups
    self.videoFailure = videoFailure
  }
}

/// Rungs that show the same content: an AdaptationSet, the variants of a multivariant playlist, or the renditions
/// of one name in an HLS group.
public struct TrackGroup: Sendable {
  public enum Kind: String, Sendable {
    /// Frames, with or without sound muxed in. Also what can't be told without opening it.
    case video
    case audio
    case text
    /// Thumbnails and the like: never played.
    case image
  }

  public var id: String?
  public var kind: Kind
  /// RFC 5646, as the manifest writes it.
  public var language: String?
  public var label: String?
  /// DASH roles and HLS characteristics.
  public var roles: [String]
  public var isDefault: Bool
  /// Never empty.
  public var rungs: [Rung]
  /// Why the group can't be played: the name of an essential property, or of the scheme that whole segments are
  /// encrypted with. Nil if it can.
  public var unplayableReason: String?

  public init(
    id: String?, kind: Kind, language: String?, label: String?, roles: [String], isDefault: Bool,
    rungs: [Rung],
    unplayableReason: String? = nil
  ) {
    self.id = id
    self.kind = kind
    self.language = language
    self.label = label
    self.roles = roles
    self.isDefault = isDefault
    self.rungs = rungs
    self.unplayableReason = unplayableReason
  }
}

/// One quality of a track group: an HLS variant or rendition, or a DASH Representation.
public struct Rung: Sendable {
  /// Where its segments stand.
  package enum Media: Sendable {
    /// They are known.
    case segments(SegmentList)
    /// An HLS media playlist has to be read first.
    case playlist(URL)
    /// A `sidx` has to be read first (ISO/IEC 14496-12 §8.16.3).
    case index(SegmentIndexReference)
  }

  public var id: String
  /// Peak bit rate (HLS BANDWIDTH, DASH @bandwidth).
  public var bitsPerSecond: Int?
  public var averageBitsPerSecond: Int?
  /// RFC 6381 strings; empty where the manifest has none.
  public var codecs: [String]
  public var size: PixelSize?
  public var frameRate: Rational?
  public var sampleAspectRatio: Rational?
  /// HLS VIDEO-RANGE or what DASH's CICP properties say: `SDR`, `PQ`, `HLG`.
  public var videoRange: String?
  public var channels: String?
  /// HLS: the GROUP-ID of the audio that goes with this variant; nil where sound is muxed in or there is none.
  public var audioGroup: String?
  /// The media type of its segments where the manifest names one, as `video/mp4`.
  public var mimeType: String?
  /// DASH, live: how much earlier than its end a segment can be had (ISO/IEC 23009-1 §5.3.9.5.3).
  public var availabilityTimeOffset: MediaTime?
  /// HLS: other URLs of the same playlist, by falling preference (redundant variants, RFC 8216 §6.2.4).
  public var alternateURLs: [URL]
  /// True where the manifest says that each segment can be decoded without others (EXT-X-INDEPENDENT-SEGMENTS, RFC
  /// 8216 §4.3.5.1; @startWithSAP of 1 or 2, ISO/IEC 23009-1 §5.3.7.2, or a profile that demands it).
  public var hasIndependentSegments: Bool
  /// DASH: the encryption of the samples, as far as the manifest states it; nil if they are in the clear.
  package var protection: ContentProtection?
  package var media: Media

  package init(
    id: String, bitsPerSecond: Int?, averageBitsPerSecond: Int? = nil, codecs: [String] = [],
    size: PixelSize? = nil, frameRate: Rational? = nil, sampleAspectRatio: Rational? = nil,
    videoRange: String? = nil, channels: String? = nil, audioGroup: String? = nil, mimeType: String? = nil,
    availabilityTimeOffset: MediaTime? = nil, alternateURLs: [URL] = [],
    hasIndependentSegments: Bool = false, protection: ContentProtection? = nil, media: Media
  ) {
    self.id = id
    self.bitsPerSecond = bitsPerSecond
    self.averageBitsPerSecond = averageBitsPerSecond
    self.codecs = codecs
    self.size = size
    self.frameRate = frameRate
    self.sampleAspectRatio = sampleAspectRatio
    self.videoRange = videoRange
    self.channels = channels
    self.audioGroup = audioGroup
    self.mimeType = mimeType
    self.availabilityTimeOffset = availabilityTimeOffset
    self.alternateURLs = alternateURLs
    self.hasIndependentSegments = hasIndependentSegments
    self.protection = protection
    self.media = media
  }
}

/// A single-file Representation whose segments a `sidx` lists (ISO/IEC 23009-1 §5.3.9.2, SegmentBase).
package struct SegmentIndexReference: Sendable, Hashable {
  package var url: URL
  /// Where the `sidx` stands; nil where the MPD does not tell, and the file must be read from its start.
  package var indexRange: ByteRange?
  /// Where the initialization stands; nil where the MPD does not tell.
  package var initialization: InitializationReference?
  /// Start of the period on the presentation's timeline.
  package var start: MediaTime
  package var duration: MediaTime?
  /// What is added to a media timestamp to get presentation time.
  package var timestampOffset: MediaTime?
  /// The `discontinuity` of its segments.
  package var discontinuity: Int
  /// The same bytes elsewhere, by falling preference (several BaseURLs, ISO/IEC 23009-1 §5.6.5).
  package var alternateURLs: [URL]

  package init(
    url: URL, indexRange: ByteRange?, initialization: InitializationReference?, start: MediaTime,
    duration: MediaTime?, timestampOffset: MediaTime?, discontinuity: Int = 0, alternateURLs: [URL] = []
  ) {
    self.url = url
    self.indexRange = indexRange
    self.initialization = initialization
    self.start = start
    self.duration = duration
    self.timestampOffset = timestampOffset
    self.discontinuity = discontinuity
    self.alternateURLs = alternateURLs
  }
}

/// Bytes that come before the first segment: an EXT-X-MAP or an initialization segment.
package struct InitializationReference: Sendable, Hashable {
  package var url: URL
  package var byteRange: ByteRange?
  package var encryption: SegmentEncryption?
  /// The same bytes elsewhere, by falling preference (several BaseURLs, ISO/IEC 23009-1 §5.6.5).
  package var alternateURLs: [URL]

  package init(
    url: URL, byteRange: ByteRange? = nil, encryption: SegmentEncryption? = nil, alternateURLs: [URL] = []
  ) {
    self.url = url
    self.byteRange = byteRange
    self.encryption = encryption
    self.alternateURLs = alternateURLs
  }
}

/// How a segment or its samples are encrypted (RFC 8216 §4.3.2.4).
package struct SegmentEncryption: Sendable, Hashable {
  /// `AES-128`, `SAMPLE-AES`, `SAMPLE-AES-CTR`, or a DRM's name.
  package var method: String
  package var keyURL: URL?
  package var keyFormat: String?
  /// 16 bytes: the stated IV, or the one that follows from the media sequence number.
  package var initializationVector: [UInt8]?
  /// True if each sample is encrypted separately; false if the segment is encrypted as a whole.
  package var encryptsSamples: Bool
  /// The names of the DRM systems that provide the key; empty if `keyURL` gives the key itself (KEYFORMAT
  /// `identity`).
  package var systems: [String]

  /// - Parameters:
  ///   - encryptsSamples: Nil to derive it from `method`.
  ///   - systems: Nil for none, or for `method` if that is the name of a DRM system.
  package init(
    method: String, keyURL: URL?, keyFormat: String?, initializationVector: [UInt8]?,
    encryptsSamples: Bool? = nil, systems: [String]? = nil
  ) {
    self.method = method
    self.keyURL = keyURL
    self.keyFormat = keyFormat
    self.initializationVector = initializationVector
    self.encryptsSamples = encryptsSamples ?? method.hasPrefix("SAMPLE-AES")
    self.systems = systems ?? (keyFormat ?? "identity" == "identity" ? [] : [method])
  }
}

/// One segment: where its bytes are, and what stretch of the presentation they hold.
package struct SegmentReference: Sendable {
  /// HLS media sequence number or DASH segment number.
  package var number: Int64
  package var url: URL
  package var byteRange: ByteRange?
  /// On the presentation's timeline, as the manifest tells.
  package var start: MediaTime
  package var duration: MediaTime
  package var initialization: InitializationReference?
  package var encryption: SegmentEncryption?
  /// Segments of one run share a number; a new number means new timestamps, and maybe a new codec.
  package var discontinuity: Int
  /// Named in the manifest but known not to be there (EXT-X-GAP).
  package var isGap: Bool
  /// What is added to a media timestamp to get presentation time; nil where the manifest does not tell (HLS), and
  /// the first timestamp of a segment stands for its `start`.
  package var timestampOffset: MediaTime?
  /// The wall-clock time of its beginning, where the manifest states it for this very segment
  /// (EXT-X-PROGRAM-DATE-TIME, RFC 8216 §4.3.2.6).
  package var programDateTime: WallTime?
  /// The same bytes elsewhere, by falling preference (several BaseURLs, ISO/IEC 23009-1 §5.6.5).
  package var alternateURLs: [URL]

  package init(
    number: Int64, url: URL, byteRange: ByteRange? = nil, start: MediaTime, duration: MediaTime,
    initialization: InitializationReference? = nil, encryption: SegmentEncryption? = nil,
    discontinuity: Int = 0, isGap: Bool = false, timestampOffset: MediaTime? = nil,
    programDateTime: WallTime? = nil, alternateURLs: [URL] = []
  ) {
    self.number = number
    self.url = url
    self.byteRange = byteRange
    self.start = start
    self.duration = duration
    self.initialization = initialization
    self.encryption = encryption
    self.discontinuity = discontinuity
    self.isGap = isGap
    self.timestampOffset = timestampOffset
    self.programDateTime = programDateTime
    self.alternateURLs = alternateURLs
  }
}
