public import ReelCore

/// A multivariant playlist (RFC 8216 §4.3.4, where it is called a master playlist).
public struct MultivariantPlaylist: Sendable {
  /// EXT-X-VERSION (RFC 8216 §4.3.1.2).
  public internal(set) var version: Int?
  /// EXT-X-INDEPENDENT-SEGMENTS (RFC 8216 §4.3.5.1).
  public internal(set) var hasIndependentSegments = false
  /// EXT-X-START (RFC 8216 §4.3.5.2).
  public internal(set) var start: StartPoint?
  /// Each EXT-X-STREAM-INF, in order (RFC 8216 §4.3.4.2).
  public internal(set) var variants: [Variant] = []
  /// Each EXT-X-I-FRAME-STREAM-INF, in order (RFC 8216 §4.3.4.3).
  public internal(set) var iFrameVariants: [Variant] = []
  /// Each EXT-X-MEDIA, in order (RFC 8216 §4.3.4.1).
  public internal(set) var renditions: [Rendition] = []
  /// Each EXT-X-SESSION-DATA, in order (RFC 8216 §4.3.4.4).
  public internal(set) var sessionData: [SessionData] = []
  /// Each EXT-X-SESSION-KEY, in order (RFC 8216 §4.3.4.5).
  public internal(set) var sessionKeys: [MediaPlaylist.Key] = []
  /// EXT-X-CONTENT-STEERING (draft-pantos-hls-rfc8216bis §4.4.6.6).
  public internal(set) var contentSteering: ContentSteering?
  /// What EXT-X-DEFINE defines (draft-pantos-hls-rfc8216bis §4.4.2.3), for media playlists to import.
  public internal(set) var variables: [String: String] = [:]
  /// What was odd about the playlist and passed over.
  public internal(set) var warnings: [ReelError] = []
}
