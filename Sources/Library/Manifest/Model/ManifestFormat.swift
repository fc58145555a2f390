/// A manifest format that Reel reads.
public enum ManifestFormat: String, Sendable {
  /// HTTP Live Streaming (RFC 8216).
  case hls
  /// MPEG-DASH (ISO/IEC 23009-1).
  case dash
}
