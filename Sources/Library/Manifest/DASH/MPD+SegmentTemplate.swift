import ReelCore

extension MPD {
  /// SegmentTemplate (ISO/IEC 23009-1 §5.3.9.4).
  package struct SegmentTemplate: Sendable {
    /// The part in common with SegmentList.
    package var common: MultipleSegmentBase
    /// @media.
    package var media: String?
    /// @initialization.
    package var initialization: String?

    init(_ reader: inout MPDReader) throws(ReelError) {
      common = MultipleSegmentBase(attributesOf: &reader)
      media = reader.xml.string("media")
      initialization = reader.xml.string("initialization")
      while let child = try reader.xml.nextChild() {
        if try !common.read(child, &reader) { try reader.xml.skip() }
      }
    }

    func inheriting(from parent: SegmentTemplate?) -> SegmentTemplate {
      guard let parent else { return self }
      var merged = self
      merged.common = common.inheriting(from: parent.common)
      merged.media = media ?? parent.media
      merged.initialization = initialization ?? parent.initialization
      return merged
    }
  }
}
