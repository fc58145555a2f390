extension MediaPlaylist {
  /// EXT-X-RENDITION-REPORT (draft-pantos-hls-rfc8216bis §4.4.5.4): how far another rendition's playlist has come.
  public struct RenditionReport: Sendable, Hashable {
    /// URI.
    public var reference: String
    /// LAST-MSN: the media sequence number of its last segment, one that is not whole included.
    public var lastSequenceNumber: Int64?
    /// LAST-PART: the index of the last part of that segment.
    public var lastPart: Int?

    /// Nil where URI is missing.
    init?(_ reader: inout AttributeReader) {
      guard let reference = reader["URI"] else { return nil }
      self.reference = reference
      lastSequenceNumber = reader.integer("LAST-MSN", in: 0...Int64.max).map(Int64.init)
      lastPart = reader.integer("LAST-PART", in: 0...Int64.max)
    }
  }
}
