import ReelCore

extension MPD {
  /// The one of SegmentBase, SegmentList and SegmentTemplate that an element has (ISO/IEC 23009-1 §5.3.9.1).
  package struct SegmentInformation: Sendable {
    package var base: SegmentBase?
    package var list: SegmentList?
    package var template: SegmentTemplate?

    init() {}

    /// True if there is none.
    package var isEmpty: Bool { base == nil && list == nil && template == nil }

    /// Reads and consumes the child element at the reader's position; false for any other element.
    mutating func read(_ child: String, _ reader: inout MPDReader) throws(ReelError) -> Bool {
      switch child {
      case "SegmentBase": base = try SegmentBase(&reader)
      case "SegmentList": list = try SegmentList(&reader)
      case "SegmentTemplate": template = try SegmentTemplate(&reader)
      default: return false
      }
      return true
    }

    /// The segment information of an element inside `parent`: of its own kind, or else of the parent's kind,
    /// completed from the parent (§5.3.9.1).
    func inheriting(from parent: SegmentInformation) -> SegmentInformation {
      if isEmpty { return parent }
      var merged = self
      merged.base = base.map { $0.inheriting(from: parent.base) }
      merged.list = list.map { $0.inheriting(from: parent.list) }
      merged.template = template.map { $0.inheriting(from: parent.template) }
      return merged
    }
  }
}
