extension MediaPlaylist {
  /// EXT-X-SKIP (draft-pantos-hls-rfc8216bis §4.4.5.2): what an update leaves out, for it was told before.
  public struct Skip: Sendable, Hashable {
    /// SKIPPED-SEGMENTS.
    public var segmentCount: Int64
    /// RECENTLY-REMOVED-DATERANGES: the ID of each date range that is gone.
    public var removedDateRanges: [String]
  }
}
