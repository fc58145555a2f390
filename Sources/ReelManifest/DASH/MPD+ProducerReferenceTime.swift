import ReelCore

extension MPD {
  /// ProducerReferenceTime (ISO/IEC 23009-1 §5.12): which wall-clock time goes with which media time. Kept, not used.
  public struct ProducerReferenceTime: Sendable, Hashable {
    /// @id.
    public var id: String?
    /// @type: `encoder` where it is missing.
    public var type: String?
    /// @wallClockTime, as it is written: its form depends on the UTCTiming.
    public var wallClockTime: String?
    /// @presentationTime, in ticks of the Representation's timescale.
    public var presentationTime: Int64?
    /// @inband: the times stand in the segments too.
    public var isInband: Bool?
    /// UTCTiming.
    public var utcTiming: Descriptor?

    init(_ reader: inout MPDReader) throws(ReelError) {
      id = reader.xml.string("id")
      type = reader.xml.string("type")
      wallClockTime = reader.xml.string("wallClockTime")
      presentationTime = reader.xml.value("presentationTime", "a whole number") { $0.wholeNumber }
      isInband = reader.xml.boolean("inband")
      while let child = try reader.xml.nextChild() {
        if child == "UTCTiming", utcTiming == nil {
          utcTiming = try Descriptor(&reader)
        } else {
          try reader.xml.skip()
        }
      }
    }
  }
}
