import ReelCore

extension MPD {
  /// BaseURL (ISO/IEC 23009-1 §5.6).
  package struct BaseURL: Sendable {
    /// The URL as it is written.
    package var reference: String
    /// @availabilityTimeOffset, as it is written (a number of seconds, or `INF`).
    package var availabilityTimeOffset: String?
    /// @dvb:priority: the lowest is preferred; 1 where it is missing (ETSI TS 103 285 §10.8.2.1).
    package var priority: Int64?
    /// @dvb:weight: of those of one priority, the heaviest is preferred; 1 where it is missing.
    package var weight: Int64?

    init(_ reader: inout MPDReader) throws(ReelError) {
      availabilityTimeOffset = reader.xml.string("availabilityTimeOffset")
      priority = reader.xml.value(anyPrefix: "priority", "a whole number") { $0.wholeNumber }
      weight = reader.xml.value(anyPrefix: "weight", "a whole number") { $0.wholeNumber }
      reference = try reader.xml.text()
    }
  }
}
