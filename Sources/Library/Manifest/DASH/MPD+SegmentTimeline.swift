import ReelCore

extension MPD {
  /// SegmentTimeline (ISO/IEC 23009-1 §5.3.9.6).
  package struct SegmentTimeline: Sendable, Hashable {
    /// An `S` element.
    package struct Entry: Sendable, Hashable {
      /// @t: when the first segment starts, in ticks; nil if it follows the entry before.
      package var start: Int64?
      /// @d: how long each segment lasts, in ticks; at least 1.
      package var duration: Int64
      /// @r: how many segments follow the first; below 0: as many as there is room for.
      package var repeatCount: Int64
      /// @n: the number of the first segment.
      package var number: Int64?
      /// @k: how many parts each segment has; at least 1.
      package var partCount: Int64
    }

    /// The entries, in order.
    package var entries: [Entry] = []

    /// Reads the entries up to the first unreadable one. If not even the first entry can be read, the error is added
    /// to `malformed`.
    init(_ reader: inout MPDReader, _ malformed: inout MalformedValues) throws(ReelError) {
      var isWhole = true
      while let child = try reader.xml.nextChild() {
        if child == "S", isWhole {
          try reader.countTimelineEntry()
          do throws(ReelError) {
            entries.append(try Self.entry(&reader.xml))
          } catch {
            isWhole = false
            if entries.isEmpty {
              malformed.add(error, of: "SegmentTimeline", &reader)
            } else {
              reader.xml.warn("\(error.reason): the SegmentTimeline ends before it")
            }
          }
        }
        try reader.xml.skip()
      }
    }

    // MARK: - Private

    private static func entry(_ xml: inout XMLReader) throws(ReelError) -> Entry {
      guard let duration = try xml.natural("d"), duration > 0 else {
        throw xml.malformed("S has no @d above 0")
      }
      return Entry(
        start: try xml.natural("t"), duration: duration, repeatCount: try xml.integer("r") ?? 0,
        number: try xml.natural("n"), partCount: try xml.counting("k") ?? 1)
    }
  }
}
