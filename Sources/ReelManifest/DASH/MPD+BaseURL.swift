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
    /// @availabilityTimeComplete.
    public var availabilityTimeComplete: Bool?
    /// @dvb:priority: the lowest is preferred; 1 where it is missing (ETSI TS 103 285 §10.8.2.1).
    public var priority: Int64?
    /// @dvb:weight: of those of one priority, the heaviest is preferred; 1 where it is missing.
    public var weight: Int64?

    init(_ reader: inout MPDReader) throws(ReelError) {
      serviceLocation = reader.xml.string("serviceLocation")
      byteRange = reader.xml.string("byteRange")
      availabilityTimeOffset = reader.xml.string("availabilityTimeOffset")
      availabilityTimeComplete = reader.xml.boolean("availabilityTimeComplete")
      priority = reader.xml.value(anyPrefix: "priority", "a whole number") { $0.wholeNumber }
      weight = reader.xml.value(anyPrefix: "weight", "a whole number") { $0.wholeNumber }
      reference = try reader.xml.text()
    }
  }
}
