package import ReelCore

/// A multivariant playlist (RFC 8216 §4.3.4, which calls it a master playlist).
package struct MultivariantPlaylist: Sendable {
  /// EXT-X-INDEPENDENT-SEGMENTS (RFC 8216 §4.3.5.1).
  package internal(set) var hasIndependentSegments = false
  /// TIME-OFFSET of EXT-X-START (RFC 8216 §4.3.5.2): from the beginning or, if negative, from the end.
  package internal(set) var startOffset: MediaTime?
  /// Each EXT-X-STREAM-INF, in order (RFC 8216 §4.3.4.2).
  package internal(set) var variants: [Variant] = []
  /// Each EXT-X-I-FRAME-STREAM-INF, in order (RFC 8216 §4.3.4.3).
  package internal(set) var iFrameVariants: [Variant] = []
  /// Each EXT-X-IMAGE-STREAM-INF, in order (Image Media Playlist 0.4).
  package internal(set) var imageVariants: [Variant] = []
  /// Each EXT-X-MEDIA, in order (RFC 8216 §4.3.4.1).
  package internal(set) var renditions: [Rendition] = []
  /// The variables of EXT-X-DEFINE (draft-pantos-hls-rfc8216bis §4.4.2.3), for media playlists to import.
  package internal(set) var variables: [String: String] = [:]
  /// Odd text that was ignored.
  package internal(set) var warnings: [ReelError] = []
}
