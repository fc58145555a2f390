public import ReelCore

extension MediaPlaylist {
  /// EXT-X-PART (draft-pantos-hls-rfc8216bis §4.4.4.9): a piece of a segment, to be had before the segment is whole.
  public struct Part: Sendable, Hashable {
    /// The index of the segment that it is a part of; `segmentCount` for one that is not listed yet.
    public var segment: Int
    /// URI.
    public var reference: String
    /// DURATION.
    public var duration: MediaTime
    /// BYTERANGE, with its implied offset.
    public var byteRange: ByteRange?
    /// INDEPENDENT: it can be decoded by itself.
    public var isIndependent: Bool
    /// GAP: it is not there.
    public var isGap: Bool

    /// Nil where URI or DURATION is missing or can't be read. `previous` is the part before it, which a byte range
    /// without an offset goes on from.
    init?(_ reader: inout AttributeReader, segment: Int, after previous: Part?) {
      guard let reference = reader["URI"], let duration = reader.length("DURATION") else { return nil }
      self.segment = segment
      self.reference = reference
      self.duration = duration
      isIndependent = reader.attributes.flag("INDEPENDENT")
      isGap = reader.attributes.flag("GAP")
      let isContinued = previous?.reference == reference
      byteRange = reader.value("BYTERANGE") { text in
        ByteRangeText(text)?.byteRange(implicitOffset: isContinued ? previous?.byteRange?.end ?? 0 : 0)
      }
    }
  }
}
