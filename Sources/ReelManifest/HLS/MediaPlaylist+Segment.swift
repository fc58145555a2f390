public import ReelCore

extension MediaPlaylist {
  /// A media segment (RFC 8216 §4.3.2) with all that applies to it.
  public struct Segment: Sendable {
    /// The media sequence number.
    public let sequenceNumber: Int64
    /// The URL as the playlist writes it, with variables put in.
    public let reference: String
    /// What follows the duration in EXTINF (RFC 8216 §4.3.2.1); empty where nothing does.
    public let title: String
    /// The sum of the durations before it.
    public let start: MediaTime
    /// EXTINF.
    public let duration: MediaTime
    /// EXT-X-BYTERANGE, with its implied offset (RFC 8216 §4.3.2.2).
    public let byteRange: ByteRange?
    /// The EXT-X-MAP in force (RFC 8216 §4.3.2.5).
    public let map: Map?
    /// The EXT-X-KEY tags in force, one for each KEYFORMAT (RFC 8216 §4.3.2.4); none where it is not encrypted.
    public let keys: [Key]
    /// The discontinuity sequence number (RFC 8216 §4.3.3.3).
    public let discontinuity: Int
    /// EXT-X-GAP (draft-pantos-hls-rfc8216bis §4.4.4.7).
    public let isGap: Bool
    /// EXT-X-PROGRAM-DATE-TIME of this very segment, as the playlist writes it (RFC 8216 §4.3.2.6).
    public let programDateTime: String?
    /// EXT-X-BITRATE, in kbit/s; nil for a segment that is a byte range (draft-pantos-hls-rfc8216bis §4.4.4.8).
    public let kilobitsPerSecond: Int?
  }
}
