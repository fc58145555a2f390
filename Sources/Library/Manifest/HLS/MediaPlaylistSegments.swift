package import ReelCore

/// The segments of one rung's media playlist.
package struct MediaPlaylistSegments: Sendable {
  /// In order. Empty only if more may follow.
  package var segments: SegmentList
  /// How to follow the playlist if more segments may come: it has neither EXT-X-ENDLIST nor the type `VOD` (RFC
  /// 8216 §4.3.3.4, §4.3.3.5).
  package var live: LiveTiming?
  /// Each segment can be decoded on its own (RFC 8216 §4.3.5.1).
  package var hasIndependentSegments: Bool
  /// Where playback starts (EXT-X-START, RFC 8216 §4.3.5.2): from the beginning or, if negative, from the end.
  package var startOffset: MediaTime?
  /// Odd text that was ignored.
  package var warnings: [ReelError]

  /// True if more segments may follow.
  package var isLive: Bool { live != nil }
}
