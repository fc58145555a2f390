public import ReelCore

extension MPD {
  /// ServiceDescription (ISO/IEC 23009-1 Annex K): how the service wants to be played.
  public struct ServiceDescription: Sendable, Hashable {
    /// Latency (§K.4.2.2): how far behind the live edge to play.
    public struct Latency: Sendable, Hashable {
      /// @target.
      public var target: MediaTime?
      /// @min.
      public var minimum: MediaTime?
      /// @max.
      public var maximum: MediaTime?
      /// @referenceId: the ProducerReferenceTime that it is measured by.
      public var referenceID: String?
    }

    /// @id.
    public var id: String?
    /// Scope elements: those it holds for; empty for all.
    public var scopes: [Descriptor] = []
    /// The first Latency element.
    public var latency: Latency?
    /// @min of the first PlaybackRate element, as it is written.
    public var minimumPlaybackRate: String?
    /// @max of the first PlaybackRate element, as it is written.
    public var maximumPlaybackRate: String?

    init(_ reader: inout MPDReader) throws(ReelError) {
      id = reader.xml.string("id")
      while let child = try reader.xml.nextChild() {
        switch child {
        case "Scope": scopes.append(try Descriptor(&reader))
        case "Latency":
          if latency == nil {
            latency = Latency(
              target: Self.milliseconds(&reader.xml, "target"),
              minimum: Self.milliseconds(&reader.xml, "min"), maximum: Self.milliseconds(&reader.xml, "max"),
              referenceID: reader.xml.string("referenceId"))
          }
          try reader.xml.skip()
        case "PlaybackRate":
          minimumPlaybackRate = minimumPlaybackRate ?? reader.xml.string("min")
          maximumPlaybackRate = maximumPlaybackRate ?? reader.xml.string("max")
          try reader.xml.skip()
        default: try reader.xml.skip()
        }
      }
    }

    // MARK: - Private

    private static func milliseconds(_ xml: inout XMLReader, _ name: StaticString) -> MediaTime? {
      xml.value(name, "a whole number from 0 on") { text in
        text.wholeNumber.flatMap { $0 >= 0 ? MediaTime(value: $0, timescale: 1000) : nil }
      }
    }
  }
}
