public import ReelCore

extension MPD {
  /// PatchLocation (ISO/IEC 23009-1 §5.15): where what changes of the MPD can be had. Kept, not followed.
  public struct PatchLocation: Sendable, Hashable {
    /// The URL as it is written.
    public var reference: String
    /// @ttl: how long after @publishTime a patch can be had; nil where it is missing or no number.
    public var timeToLive: MediaTime?

    init(_ reader: inout MPDReader) throws(ReelError) {
      timeToLive = reader.xml.value("ttl", "a length of time") { XMLDuration($0)?.time }
      reference = try reader.xml.text()
    }
  }
}
