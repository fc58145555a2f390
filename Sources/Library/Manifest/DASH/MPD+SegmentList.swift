package import ReelCore

extension MPD {
  /// SegmentList (ISO/IEC 23009-1 §5.3.9.3).
  package struct SegmentList: Sendable {
    /// A SegmentURL element.
    package struct SegmentURL: Sendable, Hashable {
      /// @media; nil stands for the BaseURL.
      package var media: String?
      /// @mediaRange.
      package var mediaRange: ByteRange?
    }

    /// The part in common with SegmentTemplate.
    package var common: MultipleSegmentBase
    /// SegmentURL elements, in order.
    package var urls: [SegmentURL] = []
    /// @xlink:href: the location of the element's content (§5.5).
    package var href: String?

    init(_ reader: inout MPDReader) throws(ReelError) {
      common = MultipleSegmentBase(attributesOf: &reader)
      href = reader.xml.string(anyPrefix: "href")
      while let child = try reader.xml.nextChild() {
        if child == "SegmentURL" {
          try reader.countTimelineEntry()
          let range = common.malformed.value(of: child, &reader) { xml throws(ReelError) in
            try xml.byteRange("mediaRange")
          }
          urls.append(SegmentURL(media: reader.xml.string("media"), mediaRange: range))
          try reader.xml.skip()
        } else if try !common.read(child, &reader) {
          try reader.xml.skip()
        }
      }
    }

    func inheriting(from parent: SegmentList?) -> SegmentList {
      guard let parent else { return self }
      var merged = self
      merged.common = common.inheriting(from: parent.common, hasURLs: !urls.isEmpty)
      if urls.isEmpty { merged.urls = parent.urls }
      return merged
    }
  }
}
