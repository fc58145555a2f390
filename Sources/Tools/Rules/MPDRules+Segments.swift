import ReelCore
import ReelManifest

extension MPDRules {
  /// A SegmentBase, SegmentList or SegmentTemplate, which is consumed (§5.3.9).
  mutating func segments(_ kind: String, _ inherited: inout Inherited) throws(ReelError) {
    if inherited.segments.contains(where: { $0 != kind }) {
      report(
        "\(kind) where there is a SegmentBase, SegmentList or SegmentTemplate of another kind", "§5.3.9.1")
    }
    inherited.segments.insert(kind)
    naturals(
      [
        "timescale", "presentationTimeOffset", "presentationDuration", "duration", "startNumber", "endNumber",
      ],
      "§5.3.9.2.2")
    integer("eptDelta", "§5.3.9.2.2")
    if xml.string("timescale")?.integer == 0 { report("@timescale is 0", "§5.3.9.2.2") }
    if xml.string("duration")?.integer == 0 { report("@duration is 0", "§5.3.9.2.2") }
    ranges(["indexRange"], "§5.3.9.2.2")
    if xml.string("indexRangeExact") != nil, xml.string("indexRange") == nil {
      report("@indexRangeExact without @indexRange", "§5.3.9.2.2")
    }
    if let text = xml.string("availabilityTimeOffset"), AvailabilityTimeOffset(text) == nil {
      report("@availabilityTimeOffset '\(text.excerpt)' is not an xs:double", "§5.3.9.2.2")
    }
    let hasDuration = xml.string("duration") != nil
    if kind == "SegmentBase", hasDuration { report("SegmentBase has a @duration", "§5.3.9.2.2") }
    var usesTime = false
    if kind == "SegmentTemplate" { usesTime = templates(&inherited) }

    var (order, hasTimeline, urls) = (ElementOrder(.segments), false, 0)
    while let child = try nextChild(of: kind, &order) {
      switch child {
      case "SegmentTimeline":
        hasTimeline = true
        if hasDuration { report("both @duration and SegmentTimeline", "§5.3.9.2.1") }
        try timeline()
      case "SegmentURL":
        urls += 1
        ranges(["mediaRange", "indexRange"], "§5.3.9.3.2")
        try xml.skip()
      case "Initialization", "RepresentationIndex", "BitstreamSwitching":
        ranges(["range"], "§5.3.9.2.2")
        try xml.skip()
      default: try xml.skip()
      }
    }
    if hasTimeline || hasDuration {
      inherited.hasTimeline = hasTimeline
      inherited.hasDuration = hasDuration
    }
    if usesTime, !inherited.hasTimeline, !inherited.hasDuration {
      report("$Time$ without a SegmentTimeline", "§5.3.9.4.4", path: "\(inherited.path)/\(kind)")
    }
    if kind == "SegmentList", urls > 1, !inherited.hasTimeline, !inherited.hasDuration {
      report(
        "several segments, and neither @duration nor a SegmentTimeline", "§5.3.9.2.1",
        path: "\(inherited.path)/\(kind)")
    }
  }

  // MARK: - Private

  /// The templates of a SegmentTemplate; true if one contains the time of a segment.
  private mutating func templates(_ inherited: inout Inherited) -> Bool {
    var usesTime = false
    for name: StaticString in ["media", "index", "initialization", "bitstreamSwitching"] {
      guard let text = xml.string(name) else { continue }
      do throws(ReelError) {
        // A missing @id or @bandwidth is reported elsewhere.
        let template = try SegmentURLTemplate(text, representationID: "", bandwidth: 0)
        let isCommon = name.description == "initialization" || name.description == "bitstreamSwitching"
        if isCommon, template.isPerSegment || template.usesSubNumber {
          report("@\(name) names a segment ($Number$, $Time$ or $SubNumber$)", "§5.3.9.4.2")
        }
        if template.usesNumber, template.usesTime {
          report("@\(name) has both $Number$ and $Time$", "§5.3.9.4.4")
        }
        if text.contains("$RepresentationID%") {
          report("@\(name) has a format for $RepresentationID$", "§5.3.9.4.4")
        }
        if name.description == "media" {
          inherited.hasMedia = true
          usesTime = template.usesTime
        }
      } catch {
        if name.description == "media" { inherited.hasMedia = true }
        report("@\(name): \(error.reason)", "§5.3.9.4.4")
      }
    }
    return usesTime
  }

  private mutating func timeline() throws(ReelError) {
    var (next, isEndless): (UInt64?, Bool) = (0, false)
    while let child = try xml.nextChild() {
      guard child == "S", isOwn else {
        try xml.skip()
        continue
      }
      naturals(["t", "n", "d", "k"], "§5.3.9.6.2")
      let repeatCount = xml.string("r") ?? "0"
      if repeatCount.integer == nil {
        report("@r '\(repeatCount.excerpt)' is not a whole number", "§5.3.9.6.2")
      }
      if xml.string("k")?.integer == 0 { report("@k is 0", "§5.3.9.6.2") }
      let start = xml.string("t").flatMap { UInt64($0) }
      if isEndless, start == nil { report("S has no @t, and the one before it @r below 0", "§5.3.9.6.2") }
      if let start, let next, start < next {
        report("S@t is \(start), before the end of the segments before it (\(next))", "§5.3.9.6.2")
      }
      let count = repeatCount.integer ?? 0
      isEndless = count < 0
      if let length = xml.string("d").flatMap({ UInt64($0) }), length > 0 {
        let (product, tooLong) = length.multipliedReportingOverflow(by: UInt64(max(count, 0)) + 1)
        let (end, tooLate) = (start ?? next ?? 0).addingReportingOverflow(product)
        if tooLong || tooLate { report("the segments of an S end beyond 64 bits", "§5.3.9.6.2") }
        next = isEndless || tooLong || tooLate ? start : end
      } else if xml.string("d") == nil {
        report("S has no @d", "§5.3.9.6.2")
      } else if xml.string("d") == "0" {
        report("S@d is 0", "§5.3.9.6.2")
      }
      try xml.skip()
    }
  }
}
