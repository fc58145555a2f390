package import ReelCore

/// What the media playlist of one rung tells.
package struct MediaPlaylistSegments: Sendable {
  /// In order. Empty only where more may come.
  package var segments: SegmentList
  /// How it is followed where more segments may come: neither EXT-X-ENDLIST nor the type `VOD` (RFC 8216 §4.3.3.4,
  /// §4.3.3.5).
  package var live: LiveTiming?
  /// Each segment can be decoded by itself (RFC 8216 §4.3.5.1).
  package var hasIndependentSegments: Bool
  /// Where playback is to start (EXT-X-START, RFC 8216 §4.3.5.2): from the beginning, or from the end where it is
  /// negative.
  package var startOffset: MediaTime?
  /// What was odd about the playlist and passed over.
  package var warnings: [ReelError]

  /// True where more segments may come.
  package var isLive: Bool { live != nil }
}
