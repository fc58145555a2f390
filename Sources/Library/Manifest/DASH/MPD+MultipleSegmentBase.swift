import ReelCore

extension MPD {
  /// The attributes and elements common to SegmentList and SegmentTemplate (ISO/IEC 23009-1 §5.3.9.2.2,
  /// MultipleSegmentBaseType).
  package struct MultipleSegmentBase: Sendable {
    /// Those in common with SegmentBase.
    package var base: SegmentBase
    /// @duration, in ticks.
    package var duration: Int64?
    /// @startNumber; 1 if it is missing.
    package var startNumber: Int64?
    /// @endNumber.
    package var endNumber: Int64?
    /// @eptDelta: how much later than the period the first segment starts, in ticks; may be below 0.
    package var earliestPresentationTimeDelta: Int64?
    /// SegmentTimeline.
    package var timeline: SegmentTimeline?
    /// The values of these, and of a SegmentList's SegmentURL elements, that can't be read.
    var malformed = MalformedValues()

    /// Reads the attributes of the start tag.
    init(attributesOf reader: inout MPDReader) {
      base = SegmentBase(attributesOf: &reader)
      duration = malformed.natural("duration", &reader)
      startNumber = malformed.natural("startNumber", &reader)
      endNumber = malformed.natural("endNumber", &reader)
      earliestPresentationTimeDelta = malformed.integer("eptDelta", &reader)
    }

    /// Throws `badManifest` if a value that is needed to find the segments can't be read.
    func check() throws(ReelError) {
      let error = malformed.first() ?? base.malformed.first(except: ["indexRange", "RepresentationIndex"])
      if let error { throw error }
    }

    /// Reads and consumes the child element at the reader's position; false for any other element.
    mutating func read(_ child: String, _ reader: inout MPDReader) throws(ReelError) -> Bool {
      if child == "SegmentTimeline" {
        timeline = try SegmentTimeline(&reader, &malformed)
        return true
      }
      return try base.read(child, &reader)
    }

    /// - Parameter hasURLs: True for a SegmentList that has its own SegmentURL elements.
    func inheriting(from parent: MultipleSegmentBase?, hasURLs: Bool = false) -> MultipleSegmentBase {
      guard let parent else { return self }
      var merged = self
      merged.base = base.inheriting(from: parent.base)
      // An element's own timeline replaces the parent's duration, and vice versa.
      if duration == nil, timeline == nil {
        merged.duration = parent.duration
        merged.timeline = parent.timeline
      }
      merged.startNumber = startNumber ?? parent.startNumber
      merged.endNumber = endNumber ?? parent.endNumber
      merged.earliestPresentationTimeDelta =
        earliestPresentationTimeDelta ?? parent.earliestPresentationTimeDelta
      merged.malformed.inherit(parent.malformed) { name in
        switch name {
        case "duration", "SegmentTimeline": duration != nil || timeline != nil
        case "startNumber": startNumber != nil
        case "endNumber": endNumber != nil
        case "eptDelta": earliestPresentationTimeDelta != nil
        case "SegmentURL": hasURLs
        default: false
        }
      }
      return merged
    }
  }
}
