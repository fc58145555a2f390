package import ReelCore

extension MPD {
  /// SegmentBase, and what SegmentList and SegmentTemplate have in common with it (ISO/IEC 23009-1 §5.3.9.2).
  package struct SegmentBase: Sendable {
    /// @timescale, in ticks per second; 1 if it is missing.
    package var timescale: Int64?
    /// @presentationTimeOffset, in ticks; 0 if it is missing.
    package var presentationTimeOffset: Int64?
    /// @indexRange.
    package var indexRange: ByteRange?
    /// @availabilityTimeOffset, as it is written (a number of seconds, or `INF`).
    package var availabilityTimeOffset: String?
    /// Initialization.
    package var initialization: URLReference?
    /// RepresentationIndex.
    package var representationIndex: URLReference?
    /// The values of these that can't be read.
    var malformed = MalformedValues()

    /// Reads the element, and consumes it.
    init(_ reader: inout MPDReader) throws(ReelError) {
      self.init(attributesOf: &reader)
      while let child = try reader.xml.nextChild() {
        if try !read(child, &reader) { try reader.xml.skip() }
      }
    }

    /// Reads the attributes of the start tag.
    init(attributesOf reader: inout MPDReader) {
      timescale = malformed.counting("timescale", &reader)
      presentationTimeOffset = malformed.integer("presentationTimeOffset", &reader)
      indexRange = malformed.byteRange("indexRange", &reader)
      availabilityTimeOffset = reader.xml.string("availabilityTimeOffset")
    }

    /// Reads and consumes the child element at the reader's position; false for any other element.
    mutating func read(_ child: String, _ reader: inout MPDReader) throws(ReelError) -> Bool {
      switch child {
      case "Initialization", "Initialisation":
        initialization = try URLReference(&reader, "Initialization", &malformed)
      case "RepresentationIndex": representationIndex = try URLReference(&reader, child, &malformed)
      default: return false
      }
      return true
    }

    func inheriting(from parent: SegmentBase?) -> SegmentBase {
      guard let parent else { return self }
      var merged = self
      merged.timescale = timescale ?? parent.timescale
      merged.presentationTimeOffset = presentationTimeOffset ?? parent.presentationTimeOffset
      merged.indexRange = indexRange ?? parent.indexRange
      merged.availabilityTimeOffset = availabilityTimeOffset ?? parent.availabilityTimeOffset
      merged.initialization = initialization ?? parent.initialization
      merged.representationIndex = representationIndex ?? parent.representationIndex
      merged.malformed.inherit(parent.malformed) { name in
        switch name {
        case "timescale": timescale != nil
        case "presentationTimeOffset": presentationTimeOffset != nil
        case "indexRange": indexRange != nil
        case "Initialization": initialization != nil
        case "RepresentationIndex": representationIndex != nil
        default: false
        }
      }
      return merged
    }
  }
}
