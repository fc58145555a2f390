import ReelCore

extension MPD {
  /// SegmentTimeline (ISO/IEC 23009-1 §5.3.9.6).
  public struct SegmentTimeline: Sendable, Hashable {
    /// An `S` element.
    public struct Entry: Sendable, Hashable {
      /// @t: when the first segment starts, in ticks; nil where it follows the entry before.
      public var start: Int64?
      /// @d: how long each segment lasts, in ticks; at least 1.
      public var duration: Int64
      /// @r: how many segments follow the first; below 0: as many as there is room for.
      public var repeatCount: Int64
      /// @n: the number of the first segment.
      public var number: Int64?
      /// @k: how many parts each segment has; at least 1.
      public var partCount: Int64
    }

    /// The entries, in order.
    public var entries: [Entry] = []

    init(_ reader: inout MPDReader) throws(ReelError) {
      var isWhole = true
      while let child = try reader.xml.nextChild() {
        if child == "S", isWhole {
          try reader.countTimelineEntry()
          if let entry = try Self.entry(&reader) {
            entries.append(entry)
          } else if entries.isEmpty {
            throw reader.xml.error("S has no @d above 0")
          } else {
            reader.xml.warn("S has no @d above 0: the SegmentTimeline ends before it")
            isWhole = false
          }
        }
        try reader.xml.skip()
      }
    }

    // MARK: - Private

    /// Nil where the length is missing or 0.
    private static func entry(_ reader: inout MPDReader) throws(ReelError) -> Entry? {
      guard let duration = try reader.xml.natural("d"), duration > 0 else { return nil }
      let partCount = try reader.xml.natural("k") ?? 1
      guard partCount > 0 else { throw reader.xml.error("@k is 0") }
      return Entry(
        start: try reader.xml.natural("t"), duration: duration, repeatCount: try reader.xml.integer("r") ?? 0,
        number: try reader.xml.natural("n"), partCount: partCount)
    }
  }
}
