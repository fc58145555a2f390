import ReelCore

/// Elements of which nothing or little is used. Their values are checked all the same: there is a warning for each that
/// can't be read. Each method consumes the element.
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
