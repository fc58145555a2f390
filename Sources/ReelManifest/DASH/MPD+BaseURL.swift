import ReelCore

extension MPD {
  /// BaseURL (ISO/IEC 23009-1 §5.6).
  public struct BaseURL: Sendable, Hashable {
    /// The URL as it is written.
    public var reference: String
    /// @serviceLocation.
    public var serviceLocation: String?
    /// @byteRange, a template for byte ranges in URLs.
    public var byteRange: String?
    /// @availabilityTimeOffset, as it is written (a number of seconds, or `INF`).
    public var availabilityTimeOffset: String?

    init(_ reader: inout MPDReader) throws(ReelError) {
      serviceLocation = reader.xml.string("serviceLocation")
      byteRange = reader.xml.string("byteRange")
      availabilityTimeOffset = reader.xml.string("availabilityTimeOffset")
      reference = try reader.xml.text()
    }
  }
}
