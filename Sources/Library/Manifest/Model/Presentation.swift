package import Foundation
public import ReelCore

/// The content of a manifest, in the same form for HLS and DASH: periods, track groups, rungs and their segments.
public struct Presentation: Sendable {
  /// The format of the manifest.
  public var format: ManifestFormat
  /// The timing of a live presentation. Nil for a complete presentation, and for an HLS multivariant playlist, whose
  /// media playlists state it.
  package var live: LiveTiming?
  /// The duration. Nil if the manifest does not state it, for a live presentation, and for an HLS multivariant
  /// playlist, whose media playlists state it.
  public var duration: MediaTime?
  /// The periods, in order of their start. HLS has one; its segments carry the discontinuities.
  public var periods: [Period]
  /// Problems in the manifest that Reel tolerated, in manifest order.
  public var warnings: [ReelError]
  /// HLS: the variables that media playlists may import, by name (draft-pantos-hls-rfc8216bis §4.4.2.3).
  package var variables: [String: String]
  /// HLS: the position at which playback begins by default; nil if the playlist states none.
  package var startOffset: StartOffset?

  /// DASH: what a player buffers for rungs to play at their bit rates (`@minBufferTime`, ISO/IEC 23009-1 §5.3.1.2); nil if
  /// not stated.
  package var minBufferTime: MediaTime?

  /// HLS: the playlists of I-frames (EXT-X-I-FRAME-STREAM-INF, RFC 8216 §4.3.4.3), which are never played.
  package var iFrameRungs: [Rung] = []

  /// True for a live presentation, which may gain further segments. False for an HLS multivariant playlist, whose media
  /// playlists decide it.
  public var isLive: Bool { live != nil }

  package init(
    format: ManifestFormat, live: LiveTiming? = nil, duration: MediaTime?, periods: [Period],
    warnings: [ReelError] = [], variables: [String: String] = [:], startOffset: StartOffset? = nil
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

/// The position at which playback begins unless the viewer chooses one (EXT-X-START, RFC 8216 §4.3.5.2).
package struct StartOffset: Sendable, Hashable {
  /// From the beginning or, if negative, from the end.
  package var time: MediaTime
  /// True to begin with the frame at that time, false to begin with its segment.
  package var isPrecise: Bool

  package init(_ time: MediaTime, isPrecise: Bool = false) {
    (self.time, self.isPrecise) = (time, isPrecise)
  }

  /// Returns the position in a playlist with this timeline. An offset beyond its duration is its last moment, or its
  /// beginning.
  package func position(in range: Range<MediaTime>) -> MediaTime {
    let place = (time < .zero ? range.upperBound : range.lowerBound) + time
    return max(range.lowerBound, min(place, range.upperBound - MediaTime(value: 1, timescale: 1_000_000)))
  }
}

/// A part of the timeline with its own set of tracks (ISO/IEC 23009-1 §5.3.2).
public struct Period: Sendable {
  /// DASH: the `@id` of the period.
  public var id: String?
  /// The start on the presentation's timeline.
  public var start: MediaTime
  /// The duration; nil if unknown.
  public var duration: MediaTime?
  /// The track groups, in manifest order.
  public var trackGroups: [TrackGroup]
  /// The error of the first video rung that was left out; nil if none was.
  package var videoFailure: ReelError?

  /// Creates a period.
  package init(
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

/// Rungs with the same content: an AdaptationSet, the variants of a multivariant playlist, or an HLS rendition.
public struct TrackGroup: Sendable {
  /// The kind of a track group.
  public enum Kind: String, Sendable {
    /// Video, with or without muxed audio. Also media of unknown kind, until it is opened.
    case video
    /// Audio alone.
    case audio
    /// Subtitles or captions.
    case text
    /// Thumbnails and timed metadata, which are never played.
    case image
  }

  /// The `@id` of an AdaptationSet or the GROUP-ID of an HLS rendition; nil for HLS variants.
  public var id: String?
  /// The kind of the tracks.
  public var kind: Kind
  /// The language as the manifest states it, an RFC 5646 tag; nil if it does not.
  public var language: String?
  /// The name to show to a user: the DASH label, or the NAME of an HLS rendition.
  public var label: String?
  /// The values of DASH roles, or HLS characteristics and `forced`.
  public var roles: [String]
  /// True if the manifest marks the group as the default: the DASH role `main`, or DEFAULT=YES in HLS. Also true for
  /// the main group of HLS variants.
  public var isDefault: Bool
  /// The rungs, in manifest order. Never empty.
  public var rungs: [Rung]
  /// The reason why the group can't be played, such as an unknown essential property or `trick mode`; nil if it can.
  package var unplayableReason: String?
  /// DASH: true if the group is for trick mode, and could be played otherwise (DASH-IF IOP §3.2.9).
  package var isTrickMode = false
  /// DASH: true if the manifest states that the segments of all rungs begin at the same times.
  package var hasAlignedSegments = false
  /// True if audio may be chosen without being asked for: AUTOSELECT=YES or DEFAULT=YES in HLS; in DASH, any role but one
  /// that adds to the main content, such as a commentary.
  package var isAutoselected = true

  /// Creates a group. `rungs` must not be empty.
  package init(
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
  /// The location of the segments.
  package enum Media: Sendable {
    /// The segments are known.
    case segments(SegmentList)
    /// An HLS media playlist must be read first.
    case playlist(URL)
    /// A `sidx` must be read first (ISO/IEC 14496-12 §8.16.3).
    case index(SegmentIndexReference)
  }

  /// The identifier: the DASH `@id` or the index of the Representation, the index of an HLS variant, or the stable id
  /// or name of an HLS rendition.
  public var id: String
  /// The peak bit rate (HLS BANDWIDTH, DASH `@bandwidth`); nil if not stated.
  public var bitsPerSecond: Int?
  /// HLS: the average bit rate (AVERAGE-BANDWIDTH); nil if not stated.
  package var averageBitsPerSecond: Int?
  /// The codecs, as RFC 6381 strings; empty if not stated.
  public var codecs: [String]
  /// The size of the video; nil if not stated.
  public var size: PixelSize?
  /// The number of frames per second; nil if not stated.
  public var frameRate: Rational?
  /// DASH: the ratio of pixel width to pixel height; nil if not stated.
  package var sampleAspectRatio: Rational?
  /// `SDR`, `PQ` or `HLG`, from HLS VIDEO-RANGE or the DASH transfer characteristics; nil if not stated.
  public var videoRange: String?
  /// HLS CHANNELS as stated, or the number of channels in DASH; nil if not stated.
  package var channels: String?
  /// HLS: the GROUP-ID of the audio of this variant that has playlists of its own; nil if there is none.
  package var audioGroup: String?
  /// The audio in the segments of a rung of video; nil if the manifest states none.
  package var ownAudio: OwnAudio?
  /// DASH: the media type of the segments, such as `video/mp4`; nil if not stated.
  package var mimeType: String?
  /// DASH, live: how long before its end a segment becomes available (ISO/IEC 23009-1 §5.3.9.5.3); nil for none.
  package var availabilityTimeOffset: MediaTime?
  /// HLS: other URLs of the same playlist, in order of preference: redundant variants (RFC 8216 §6.2.4) and other
  /// pathways.
  package var alternateURLs: [URL] = []
  /// True if the manifest states that each segment can be decoded without others: EXT-X-INDEPENDENT-SEGMENTS (RFC 8216
  /// §4.3.5.1), `@startWithSAP` of 1 or 2 (ISO/IEC 23009-1 §5.3.7.2), or a profile that demands it.
  package var hasIndependentSegments: Bool
  /// DASH: the type of the stream access points that segments begin with (`@startWithSAP`, ISO/IEC 23009-1 §5.3.7.2);
  /// nil if not stated.
  package var startWithSAP: Int?
  /// DASH: the encryption of the samples as the manifest states it; nil if it states none.
  package var protection: ContentProtection?
  package var media: Media
  /// True if each segment is one key frame (EXT-X-I-FRAMES-ONLY, RFC 8216 §4.3.3.6), or few frames for trick
  /// mode (DASH).
  package var holdsKeyFramesOnly = false
  /// The division of the segments of an image track into tiles; nil for anything but images. An HLS playlist
  /// may state another division for each segment (`SegmentReference.tiles`).
  package var tiles: ImageTiles?

  package init(
    id: String, bitsPerSecond: Int?, averageBitsPerSecond: Int? = nil, codecs: [String] = [],
    size: PixelSize? = nil, frameRate: Rational? = nil, sampleAspectRatio: Rational? = nil,
    videoRange: String? = nil, channels: String? = nil, audioGroup: String? = nil, mimeType: String? = nil,
    availabilityTimeOffset: MediaTime? = nil, hasIndependentSegments: Bool = false,
    protection: ContentProtection? = nil, media: Media
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
    self.hasIndependentSegments = hasIndependentSegments
    self.protection = protection
    self.media = media
  }
}

/// The audio in the segments of a rung of video: an HLS rendition without a URI (RFC 8216 §4.3.4.2.1), the audio of an HLS
/// variant without a group, or a DASH Representation with video and audio.
package struct OwnAudio: Sendable, Hashable {
  /// Its renditions, as the manifest describes them.
  package var renditions: [AudioAttributes]
  /// True if no audio with segments of its own belongs to the rung: an HLS variant without a group of audio.
  package var isAlone: Bool

  package init(_ renditions: [AudioAttributes], isAlone: Bool) {
    (self.renditions, self.isAlone) = (renditions, isAlone)
  }
}

/// The attributes by which audio is chosen; those of a `TrackGroup`.
package struct AudioAttributes: Sendable, Hashable {
  package var language: String?
  package var roles: [String] = []
  package var isDefault = false
  package var isAutoselected = true
}

extension TrackGroup {
  package var audioAttributes: AudioAttributes {
    AudioAttributes(language: language, roles: roles, isDefault: isDefault, isAutoselected: isAutoselected)
  }
}

/// A single-file Representation whose index lists the segments (SegmentBase, ISO/IEC 23009-1 §5.3.9.2): `sidx`, or the
/// `Cues` of WebM.
package struct SegmentIndexReference: Sendable, Hashable {
  package var url: URL
  /// The position of the index; nil if the MPD does not state it, and the file must be read from its start.
  package var indexRange: ByteRange?
  /// The initialization segment; nil if the MPD does not state its position.
  package var initialization: InitializationReference?
  /// The start of the period on the presentation's timeline.
  package var start: MediaTime
  package var duration: MediaTime?
  /// The offset from media timestamps to presentation time.
  package var timestampOffset: MediaTime?
  /// The `discontinuity` of the segments.
  package var discontinuity: Int
  /// Other URLs of the same bytes, in order of preference (several BaseURLs, ISO/IEC 23009-1 §5.6.5).
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

/// The bytes that precede the first segment: an EXT-X-MAP or an initialization segment.
package struct InitializationReference: Sendable, Hashable {
  package var url: URL
  package var byteRange: ByteRange?
  package var encryption: SegmentEncryption?
  /// Other URLs of the same bytes, in order of preference (several BaseURLs, ISO/IEC 23009-1 §5.6.5).
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

/// The encryption of a segment or its samples (RFC 8216 §4.3.2.4).
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
  /// The same key for each DRM system, also if `keyURL` gives the key itself.
  package var systemKeys: [Key]

  /// The key of segments for a DRM system: an EXT-X-KEY with a KEYFORMAT other than `identity`.
  package struct Key: Sendable, Hashable {
    /// METHOD.
    package var method: String
    /// URI, whose form the system defines: often `skd:` or `data:`.
    package var uri: String
    /// KEYFORMAT.
    package var keyFormat: String
    /// KEYFORMATVERSIONS.
    package var keyFormatVersions: String?
    /// KEYID, which no standard has: the id of the key.
    package var keyID: KeyID?
    /// IV: 16 bytes.
    package var initializationVector: [UInt8]?

    package init(
      method: String, uri: String, keyFormat: String, keyFormatVersions: String? = nil, keyID: KeyID? = nil,
      initializationVector: [UInt8]? = nil
    ) {
      self.method = method
      self.uri = uri
      self.keyFormat = keyFormat
      self.keyFormatVersions = keyFormatVersions
      self.keyID = keyID
      self.initializationVector = initializationVector
    }
  }

  /// - Parameters:
  ///   - encryptsSamples: Nil to derive it from `method`.
  ///   - systems: Nil for none, or for `method` if that is the name of a DRM system.
  package init(
    method: String, keyURL: URL?, keyFormat: String?, initializationVector: [UInt8]?,
    encryptsSamples: Bool? = nil, systems: [String]? = nil, systemKeys: [Key] = []
  ) {
    self.method = method
    self.keyURL = keyURL
    self.keyFormat = keyFormat
    self.initializationVector = initializationVector
    self.encryptsSamples = encryptsSamples ?? method.hasPrefix("SAMPLE-AES")
    self.systems = systems ?? (keyFormat ?? "identity" == "identity" ? [] : [method])
    self.systemKeys = systemKeys
  }
}

/// A segment: the location of its bytes, and its place on the presentation's timeline.
package struct SegmentReference: Sendable {
  /// HLS media sequence number or DASH segment number.
  package var number: Int64
  package var url: URL
  package var byteRange: ByteRange?
  /// The start on the presentation's timeline, as the manifest states it.
  package var start: MediaTime
  package var duration: MediaTime
  package var initialization: InitializationReference?
  package var encryption: SegmentEncryption?
  /// A number that consecutive segments share. A new number means new timestamps, and possibly a new codec.
  package var discontinuity: Int
  /// True if the segment is listed but not available (EXT-X-GAP).
  package var isGap: Bool
  /// The offset from media timestamps to presentation time. Nil if the manifest does not state it (HLS): then the first
  /// timestamp of a segment corresponds to its `start`.
  package var timestampOffset: MediaTime?
  /// The wall-clock time of the start, if the manifest states it for this segment
  /// (EXT-X-PROGRAM-DATE-TIME, RFC 8216 §4.3.2.6).
  package var programDateTime: WallTime?
  /// Other URLs of the same bytes, in order of preference (several BaseURLs, ISO/IEC 23009-1 §5.6.5).
  package var alternateURLs: [URL]
  /// HLS: the tiles of an image (EXT-X-TILES); nil if the playlist states none.
  package var tiles: ImageTiles?

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

  /// The middle of the segment. Starts are rounded, so a seek to a start may land in the segment before it.
  package var middle: MediaTime { start + duration.half }
}

/// The division of the segments of an image track into tiles: rows from top to bottom, each from left to
/// right.
package struct ImageTiles: Sendable, Hashable {
  package var columns = 1
  package var rows = 1
  /// The size of a tile as the manifest states it; nil if it does not.
  package var size: PixelSize?
  /// The display time of a tile; nil for an equal part of its segment's duration.
  package var duration: MediaTime?
  /// The reason why the layout can't be used; nil if it can. Otherwise, columns and rows are meaningless, and
  /// the images have no stills.
  package private(set) var fault: String?

  /// The maximum number of columns, and of rows, of a segment.
  static let sideLimit = 1000

  package init(columns: Int = 1, rows: Int = 1, size: PixelSize? = nil, duration: MediaTime? = nil) {
    (self.columns, self.rows, self.size, self.duration) = (columns, rows, size, duration)
  }

  /// The tiles of a layout as manifests write it: `10x5`. Any other text, and more than 1000 columns or rows,
  /// is a `fault`.
  ///
  /// - Parameter text: Nil if the manifest states none where it has to.
  init(layout text: String?) {
    guard let text, !text.trimmed.isEmpty else {
      fault = "the tile layout is missing"
      return
    }
    guard let layout = PixelSize(resolution: text), max(layout.width, layout.height) <= Self.sideLimit else {
      let most = "\(Self.sideLimit)x\(Self.sideLimit)"
      fault = "the tile layout '\(text.excerpt)' is not from 1x1 to \(most)"
      return
    }
    (columns, rows) = (layout.width, layout.height)
  }

  /// The number of tiles of a whole segment.
  package var count: Int { columns * rows }
}

/// The kind of media that an RFC 6381 codecs string names.
package enum CodecFamily: Sendable {
  case video
  case audio
  case text
  case unknown

  package init(_ codec: String) {
    switch codec.split(separator: ".").first?.lowercased() ?? "" {
    case "avc1", "avc2", "avc3", "avc4", "hvc1", "hev1", "hvc2", "hev2", "dvh1", "dvhe", "dva1", "dvav",
      "dav1",
      "vvc1", "vvi1", "av01", "vp8", "vp08", "vp9", "vp09", "vp10", "mp4v", "mp2v", "s263", "theora", "evc1",
      "lvc1", "apv1", "svc1", "mvc1", "mvc2", "lhv1", "lhe1", "mjpg":
      self = .video
    case "mp4a":
      self = .audio
    case "ac-3", "ec-3", "ac-4", "mp3", "opus", "flac", "fl", "alac", "vorbis", "dtsc", "dtse", "dtsh",
      "dtsl",
      "dtsx", "dtsy", "mha1", "mha2", "mhm1", "mhm2", "sawb", "sawp", "samr", "iamf", "ipcm", "fpcm", "lpcm",
      "pcm", "ulaw", "alaw", "mlpa":
      self = .audio
    case "wvtt", "stpp", "stxt", "tx3g", "ttml", "sbtt":
      self = .text
    default:
      self = .unknown
    }
  }
}

/// A manifest format that Reel reads.
public enum ManifestFormat: String, Sendable {
  /// HTTP Live Streaming (RFC 8216).
  case hls
  /// MPEG-DASH (ISO/IEC 23009-1).
  case dash
}
