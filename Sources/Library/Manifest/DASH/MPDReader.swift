import ReelCore

/// The reader for the elements of one MPD: the XML, and the counts of limited items.
struct MPDReader {
  var xml: XMLReader
  private let limits: ManifestLimits
  private var tracks = 0
  private var timelineEntries = 0

  init(_ bytes: [UInt8], limits: ManifestLimits) {
    xml = XMLReader(bytes, limits: limits)
    self.limits = limits
  }

  /// Counts a Period, AdaptationSet or Representation. Throws `badManifest` above the limit.
  mutating func countTrack() throws(ReelError) {
    tracks += 1
    guard tracks <= limits.tracks else {
      throw xml.error("more than \(limits.tracks) periods, adaptation sets and representations")
    }
  }

  /// Counts an `S` or SegmentURL. Throws `badManifest` above the limit.
  mutating func countTimelineEntry() throws(ReelError) {
    timelineEntries += 1
    guard timelineEntries <= limits.timelineEntries else {
      throw xml.error("more than \(limits.timelineEntries) timeline entries")
    }
  }
}

/// Elements that are hardly used. Their values are checked all the same: each unreadable one causes a
/// warning. Each method consumes the element.
extension MPDReader {
  /// EventStream (ISO/IEC 23009-1 §5.10.2).
  mutating func checkEventStream() throws(ReelError) {
    _ = xml.positive("timescale")
    xml.checkWhole("presentationTimeOffset")
    while let child = try xml.nextChild() {
      if child == "Event" {
        xml.checkWhole("presentationTime")
        xml.checkWhole("duration")
      }
      try xml.skip()
    }
  }

  /// ProducerReferenceTime (ISO/IEC 23009-1 §5.12).
  mutating func checkProducerReferenceTime() throws(ReelError) {
    xml.checkWhole("presentationTime")
    try xml.skip()
  }

  /// PatchLocation (ISO/IEC 23009-1 §5.15).
  mutating func checkPatchLocation() throws(ReelError) {
    _ = xml.value("ttl", "a duration") { XMLDuration($0) }
    try xml.skip()
  }

  /// ServiceDescription (ISO/IEC 23009-1 Annex K): @target of its first Latency element.
  mutating func latencyTarget() throws(ReelError) -> MediaTime? {
    var (target, hasLatency): (MediaTime?, Bool) = (nil, false)
    while let child = try xml.nextChild() {
      if child == "Latency", !hasLatency {
        hasLatency = true
        target = milliseconds("target")
        _ = milliseconds("min")
        _ = milliseconds("max")
      }
      try xml.skip()
    }
    return target
  }

  // MARK: - Private

  private mutating func milliseconds(_ name: StaticString) -> MediaTime? {
    xml.value(name, "a whole number of 0 or more") { text in
      text.wholeNumber.flatMap { $0 >= 0 ? MediaTime(value: $0, timescale: 1000) : nil }
    }
  }
}
