import ReelCore

extension MPD {
  /// AdaptationSet (ISO/IEC 23009-1 §5.3.3).
  package struct AdaptationSet: Sendable {
    /// @id.
    package var id: String?
    /// @lang.
    package var language: String?
    /// @contentType, or the type of its ContentComponent elements if they agree, or if one is video.
    package var contentType: String?
    /// @xlink:href: the location of the element's content (§5.5).
    package var href: String?
    /// Inherited by Representations.
    package var common: CommonAttributes
    /// Role elements (§5.8.4.2).
    package var roles: [Descriptor] = []
    /// The first Label (§5.3.10).
    package var label: String?
    /// BaseURL elements (§5.6), in order.
    package var baseURLs: [BaseURL] = []
    /// SegmentBase, SegmentList or SegmentTemplate (§5.3.9).
    package var segments = SegmentInformation()
    /// Representation elements, in order (§5.3.5).
    package var representations: [Representation] = []

    init(_ reader: inout MPDReader) throws(ReelError) {
      try reader.countTrack()
      id = reader.xml.string("id")
      language = reader.xml.string("lang")
      contentType = reader.xml.string("contentType")?.lowercased()
      reader.xml.checkWhole("selectionPriority")
      href = reader.xml.string(anyPrefix: "href")
      common = CommonAttributes(&reader)
      while let child = try reader.xml.nextChild() {
        switch child {
        case "Role": roles.append(try Descriptor(&reader))
        case "Label":
          let text = try reader.xml.text()
          if label == nil, !text.isEmpty { label = text }
        case "BaseURL": baseURLs.append(try BaseURL(&reader))
        case "ContentComponent": try readContentComponent(&reader)
        case "Representation": representations.append(try Representation(&reader))
        default:
          if try common.read(child, &reader) { continue }
          if try segments.read(child, &reader) { continue }
          try reader.xml.skip()
        }
      }
    }

    // MARK: - Private

    private mutating func readContentComponent(_ reader: inout MPDReader) throws(ReelError) {
      let type = reader.xml.string("contentType")?.lowercased()
      language = language ?? reader.xml.string("lang")
      if contentType == nil || type == "video" { contentType = type ?? contentType }
      try reader.xml.skip()
    }
  }
}
