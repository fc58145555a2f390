import ReelCore

extension MPD {
  /// EventStream (ISO/IEC 23009-1 §5.10.2): events of one scheme in a Period. Kept, not acted upon.
  public struct EventStream: Sendable {
    /// Event (§5.10.2.2).
    public struct Event: Sendable, Hashable {
      /// @id.
      public var id: String?
      /// @presentationTime, in ticks; 0 where it is missing.
      public var presentationTime: Int64
      /// @duration, in ticks; nil where it is not known.
      public var duration: Int64?
      /// @contentEncoding: `base64`, or nil.
      public var contentEncoding: String?
      /// @messageData, or what stands inside of the element, as it is written.
      public var message: String
    }

    /// @schemeIdUri.
    public var scheme: String
    /// @value.
    public var value: String?
    /// @timescale, in ticks per second; 1 where it is missing.
    public var timescale: Int64
    /// @presentationTimeOffset, in ticks: what the start of the Period is on the events' timeline.
    public var presentationTimeOffset: Int64
    /// @xlink:href: where the element is really to be found (§5.5). It is not read.
    public var href: String?
    /// Event elements, in order.
    public var events: [Event] = []

    init(_ reader: inout MPDReader) throws(ReelError) {
      scheme = reader.xml.string("schemeIdUri") ?? ""
      value = reader.xml.string("value")
      timescale = reader.xml.positive("timescale") ?? 1
      presentationTimeOffset =
        reader.xml.value("presentationTimeOffset", "a whole number") { $0.wholeNumber } ?? 0
      href = reader.xml.string(anyPrefix: "href")
      while let child = try reader.xml.nextChild() {
        if child == "Event" { events.append(try Event(&reader)) } else { try reader.xml.skip() }
      }
    }
  }
}

extension MPD.EventStream.Event {
  fileprivate init(_ reader: inout MPDReader) throws(ReelError) {
    id = reader.xml.string("id")
    presentationTime = reader.xml.value("presentationTime", "a whole number") { $0.wholeNumber } ?? 0
    duration = reader.xml.value("duration", "a whole number") { $0.wholeNumber }
    contentEncoding = reader.xml.string("contentEncoding")
    let attribute = reader.xml.string("messageData")
    let content = try reader.xml.content()
    message = attribute ?? content
  }
}
