package import ReelCore

extension MPD {
  /// Period (ISO/IEC 23009-1 §5.3.2).
  package struct Period: Sendable {
    /// @id.
    package var id: String?
    /// @start.
    package var start: MediaTime?
    /// @duration.
    package var duration: MediaTime?
    /// @xlink:href: the location of the element's content (§5.5).
    package var href: String?
    /// BaseURL elements (§5.6), in order.
    package var baseURLs: [BaseURL] = []
    /// SegmentBase, SegmentList or SegmentTemplate (§5.3.9).
    package var segments = SegmentInformation()
    /// AdaptationSet elements, in order (§5.3.3).
    package var adaptationSets: [AdaptationSet] = []
    /// EssentialProperty elements.
    package var essentialProperties: [Descriptor] = []
    /// ContentProtection elements, which those of adaptation sets may refer to.
    package var contentProtections: [Descriptor] = []

    init(_ reader: inout MPDReader) throws(ReelError) {
      try reader.countTrack()
      id = reader.xml.string("id")
      start = reader.xml.duration("start")
      duration = reader.xml.duration("duration")
      href = reader.xml.string(anyPrefix: "href")
      while let child = try reader.xml.nextChild() {
        switch child {
        case "BaseURL": baseURLs.append(try BaseURL(&reader))
        case "AdaptationSet": adaptationSets.append(try AdaptationSet(&reader))
        case "EventStream": try reader.checkEventStream()
        case "ServiceDescription": _ = try reader.latencyTarget()
        case "EssentialProperty": essentialProperties.append(try Descriptor(&reader))
        case "ContentProtection": contentProtections.append(try Descriptor(&reader))
        default:
          if try !segments.read(child, &reader) { try reader.xml.skip() }
        }
      }
    }
  }
}
