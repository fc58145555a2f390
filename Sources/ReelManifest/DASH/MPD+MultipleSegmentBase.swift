import ReelCore

extension MPD {
  /// What SegmentList and SegmentTemplate have in common (ISO/IEC 23009-1 §5.3.9.2.2, MultipleSegmentBaseType).
  public struct MultipleSegmentBase: Sendable {
    /// What they have in common with SegmentBase.
    public var base: SegmentBase
    /// @duration, in ticks.
    public var duration: Int64?
    /// @startNumber; 1 where it is missing.
    public var startNumber: Int64?
    /// @endNumber.
    public var endNumber: Int64?
    /// @eptDelta: how much later than the period the first segment starts, in ticks; may be below 0.
    public var earliestPresentationTimeDelta: Int64?
    /// SegmentTimeline.
    public var timeline: SegmentTimeline?

    /// Reads the attributes of the start tag.
    init(attributesOf reader: inout MPDReader) throws(ReelError) {
      base = try SegmentBase(attributesOf: &reader)
      duration = try reader.xml.natural("duration")
      startNumber = try reader.xml.natural("startNumber")
      endNumber = try reader.xml.natural("endNumber")
      earliestPresentationTimeDelta = try reader.xml.integer("eptDelta")
    }

    /// Reads the child element that the reader is at, and consumes it; false where it is none of these.
    mutating func read(_ child: String, _ reader: inout MPDReader) throws(ReelError) -> Bool {
      if child == "SegmentTimeline" {
        timeline = try SegmentTimeline(&reader)
        return true
      }
      return try base.read(child, &reader)
    }

    func inheriting(from parent: MultipleSegmentBase?) -> MultipleSegmentBase {
      guard let parent else { return self }
      var merged = self
      merged.base = base.inheriting(from: parent.base)
      // A timeline of its own replaces the parent's duration, and the other way round.
      if duration == nil, timeline == nil {
        merged.duration = parent.duration
        merged.timeline = parent.timeline
      }
      merged.startNumber = startNumber ?? parent.startNumber
      merged.endNumber = endNumber ?? parent.endNumber
      merged.earliestPresentationTimeDelta =
        earliestPresentationTimeDelta ?? parent.earliestPresentationTimeDelta
      return merged
    }
  }
}
