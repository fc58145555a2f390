public import ReelCore

/// What the media playlist of one rung tells.
public struct MediaPlaylistSegments: Sendable {
  /// In order. Empty only where more may come.
  public var segments: SegmentList
  /// How it is followed where more segments may come: neither EXT-X-ENDLIST nor the type `VOD` (RFC 8216 §4.3.3.4,
  /// §4.3.3.5).
  public var live: LiveTiming?
  /// The longest that a segment lasts, in whole seconds; nil where the playlist does not say, though it must
  /// (RFC 8216 §4.3.3.1).
  public var targetDuration: MediaTime?
  /// Each segment is one I-frame (RFC 8216 §4.3.3.6).
  public var isIFramesOnly: Bool
  /// Each segment can be decoded by itself (RFC 8216 §4.3.5.1).
  public var hasIndependentSegments: Bool
  /// Where playback is to start (EXT-X-START, RFC 8216 §4.3.5.2): from the beginning, or from the end where it is
  /// negative.
  public var startOffset: MediaTime?
  /// The number of the first segment that is listed: EXT-X-MEDIA-SEQUENCE (RFC 8216 §4.3.3.2) and, in an update
  /// that leaves segments out, `skippedSegmentCount`.
  public var mediaSequence: Int64
  /// The `discontinuity` that the first segment has, or would have had before the first EXT-X-DISCONTINUITY
  /// (RFC 8216 §4.3.3.3).
  public var discontinuitySequence: Int
  /// Segments are only ever added: EXT-X-PLAYLIST-TYPE is `EVENT` (RFC 8216 §4.3.3.5).
  public var isEvent: Bool
  /// What the server offers to those that follow the playlist (draft-pantos-hls-rfc8216bis §4.4.3.8).
  public var serverControl: MediaPlaylist.ServerControl?
  /// The longest that a part lasts (draft-pantos-hls-rfc8216bis §4.4.3.7); nil without parts.
  public var partTarget: MediaTime?
  /// How many segments EXT-X-SKIP left out before the first (draft-pantos-hls-rfc8216bis §4.4.5.2); 0 for a whole
  /// playlist. Their durations are not in `start` of those that follow.
  public var skippedSegmentCount: Int64
  /// What was odd about the playlist and passed over.
  public var warnings: [ReelError]

  /// True where more segments may come.
  public var isLive: Bool { live != nil }

  public init(
    segments: SegmentList, live: LiveTiming? = nil, targetDuration: MediaTime? = nil,
    isIFramesOnly: Bool = false,
    hasIndependentSegments: Bool = false, startOffset: MediaTime? = nil, mediaSequence: Int64 = 0,
    discontinuitySequence: Int = 0, isEvent: Bool = false,
    serverControl: MediaPlaylist.ServerControl? = nil, partTarget: MediaTime? = nil,
    skippedSegmentCount: Int64 = 0, warnings: [ReelError] = []
  ) {
    self.segments = segments
    self.live = live
    self.targetDuration = targetDuration
    self.isIFramesOnly = isIFramesOnly
    self.hasIndependentSegments = hasIndependentSegments
    self.startOffset = startOffset
    self.mediaSequence = mediaSequence
    self.discontinuitySequence = discontinuitySequence
    self.isEvent = isEvent
    self.serverControl = serverControl
    self.partTarget = partTarget
    self.skippedSegmentCount = skippedSegmentCount
    self.warnings = warnings
  }
}
