import ReelCore

/// When the segments of a Representation start, in runs of equal length: as small as the MPD says it, whatever the
/// number of segments.
struct SegmentTiming: Sendable {
  /// Segments of equal length that follow each other without a gap.
  struct Run: Sendable, Hashable {
    /// The index of the first element of the run.
    var firstIndex: Int
    /// How many segments there are; each has `partCount` elements.
    var segmentCount: Int64
    var partCount: Int64
    /// The number of the first segment.
    var number: Int64
    /// Media time of the first segment, in ticks.
    var start: Int64
    /// In ticks.
    var duration: Int64
  }

  /// One segment, or one part of one.
  struct Slot: Sendable, Hashable {
    var number: Int64
    /// From 1 on.
    var subNumber: Int64
    /// Media time of the whole segment, in ticks: what `$Time$` stands for.
    var segmentStart: Int64
    /// Media time, in ticks.
    var start: Int64
    /// In ticks.
    var duration: Int64
  }

  /// What the numbers of a manifest are to be understood with.
  struct Frame: Sendable, Hashable {
    /// Ticks per second; at least 1.
    var timescale: Int64
    /// The media time at which the period starts, in ticks.
    var presentationTimeOffset: Int64
    var startNumber: Int64
    var endNumber: Int64?
    var periodDuration: MediaTime?
    /// True where the elements are parts of segments (`$SubNumber$`).
    var hasParts = false
    /// How many elements there may be.
    var limit: Int
  }

  private(set) var runs: [Run] = []
  private(set) var count = 0

  /// Segments as a SegmentTimeline lists them (ISO/IEC 23009-1 §5.3.9.6), those outside of the period left out.
  ///
  /// Throws `badManifest` for what can't be counted, is more than the limit, or leads beyond 63 bits.
  init(_ entries: [MPD.SegmentTimeline.Entry], frame: Frame) throws(ReelError) {
    let periodEnd = try frame.periodEnd()
    var (next, number): (Int64, Int64) = (0, frame.startNumber)
    for (index, entry) in entries.enumerated() {
      let start = entry.start ?? next
      number = entry.number ?? number
      let following = index + 1 < entries.count ? entries[index + 1].start : nil
      let segmentCount = try Self.segmentCount(entry, start: start, until: following ?? periodEnd)
      let (length, tooLong) = segmentCount.multipliedReportingOverflow(by: entry.duration)
      let (end, tooLate) = start.addingReportingOverflow(length)
      let (nextNumber, tooMany) = number.addingReportingOverflow(segmentCount)
      guard !tooLong, !tooLate, !tooMany else {
        throw ReelError(.badManifest, "the SegmentTimeline leads beyond 63 bits")
      }
      let passed = start < frame.presentationTimeOffset ? frame.presentationTimeOffset &- start : 0
      let first = max(0, min(segmentCount, passed / entry.duration))
      var last = segmentCount
      if let periodEnd { last = min(last, Self.ceiling(periodEnd, from: start, by: entry.duration)) }
      if let endNumber = frame.endNumber { last = min(last, Self.count(from: number, through: endNumber)) }
      if last > first {
        try append(
          Run(
            firstIndex: count, segmentCount: last - first, partCount: frame.hasParts ? entry.partCount : 1,
            number: number + first, start: start + first * entry.duration, duration: entry.duration),
          limit: frame.limit)
      }
      (next, number) = (end, nextNumber)
    }
  }

  /// Segments of one `duration` (ISO/IEC 23009-1 §5.3.9.5.3): as many as fill the period, or as the numbers or
  /// `available` allow. Where `duration` is nil, one segment that fills the period.
  ///
  /// Throws `badManifest` where nothing tells how many there are, or there are more than the limit.
  init(duration: Int64?, available: Int?, frame: Frame) throws(ReelError) {
    guard duration != 0 else { throw ReelError(.badManifest, "@duration is 0") }
    if duration == nil, let available, available > 1 {
      throw ReelError(
        .badManifest,
        "no computable segment times: \(available) segments, and neither @duration nor a SegmentTimeline")
    }
    let periodTicks = try frame.periodTicks()
    guard let step = duration ?? periodTicks else {
      throw ReelError(
        .badManifest, "no computable segment count: neither a segment's length nor the period's is known")
    }
    var counts: [Int64] = []
    if let available { counts.append(Int64(available)) }
    if let endNumber = frame.endNumber {
      counts.append(Self.count(from: frame.startNumber, through: endNumber))
    }
    if duration == nil {
      counts.append(1)
    } else if let count = frame.segmentCount(duration: step) {
      counts.append(count)
    }
    guard let segmentCount = counts.min() else {
      throw ReelError(
        .badManifest, "no computable segment count: neither the period's duration nor @endNumber is known",
        advice: "give MPD@mediaPresentationDuration or Period@duration")
    }
    guard segmentCount > 0 else { return }
    let (_, tooMany) = frame.startNumber.addingReportingOverflow(segmentCount)
    let (length, tooLong) = step.multipliedReportingOverflow(by: segmentCount)
    let (_, tooLate) = frame.presentationTimeOffset.addingReportingOverflow(length)
    guard !tooMany, !tooLong, !tooLate else {
      throw ReelError(.badManifest, "the segments lead beyond 63 bits")
    }
    try append(
      Run(
        firstIndex: 0, segmentCount: segmentCount, partCount: 1, number: frame.startNumber,
        start: frame.presentationTimeOffset, duration: step),
      limit: frame.limit)
  }

  /// The element at `index`, from 0 up to `count`.
  subscript(index: Int) -> Slot {
    var (low, high) = (0, runs.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if runs[middle].firstIndex > index { high = middle } else { low = middle }
    }
    let run = runs[low]
    let element = Int64(index - run.firstIndex)
    let (segment, part) = element.quotientAndRemainder(dividingBy: run.partCount)
    let segmentStart = run.start + segment * run.duration
    let partStart = Self.share(run.duration, part, of: run.partCount)
    return Slot(
      number: run.number + segment, subNumber: part + 1, segmentStart: segmentStart,
      start: segmentStart + partStart,
      duration: Self.share(run.duration, part + 1, of: run.partCount) - partStart)
  }

  // MARK: - Private

  private mutating func append(_ run: Run, limit: Int) throws(ReelError) {
    let (elements, overflow) = run.segmentCount.multipliedReportingOverflow(by: run.partCount)
    guard !overflow, elements <= Int64(limit - count) else {
      throw ReelError(.badManifest, "more than \(limit) segments")
    }
    count += Int(elements)
    if let last = runs.last, last.duration == run.duration, last.partCount == run.partCount,
      last.number + last.segmentCount == run.number,
      last.start + last.segmentCount * last.duration == run.start
    {
      runs[runs.count - 1].segmentCount += run.segmentCount
    } else {
      runs.append(run)
    }
  }

  /// `duration` × `part` / `count`, rounded down; `part` is at most `count`.
  private static func share(_ duration: Int64, _ part: Int64, of count: Int64) -> Int64 {
    if part == 0 { return 0 }
    if part == count { return duration }
    return Int64(clamping: Int128(duration) * Int128(part) / Int128(count))
  }

  private static func segmentCount(
    _ entry: MPD.SegmentTimeline.Entry, start: Int64, until end: Int64?
  ) throws(ReelError) -> Int64 {
    if entry.repeatCount >= 0 { return entry.repeatCount == .max ? .max : entry.repeatCount + 1 }
    guard let end else {
      throw ReelError(
        .badManifest,
        "no computable segment count: S@r is below 0, and neither a next S@t nor the period ends it")
    }
    return ceiling(end, from: start, by: entry.duration)
  }

  /// How many numbers there are from `first` through `last`; none where that is lower.
  private static func count(from first: Int64, through last: Int64) -> Int64 {
    Int64(clamping: max(0, Int128(last) - Int128(first) + 1))
  }

  /// How many steps from `start` on begin before `end`.
  private static func ceiling(_ end: Int64, from start: Int64, by step: Int64) -> Int64 {
    guard end > start else { return 0 }
    let distance = Int128(end) - Int128(start)
    return Int64(clamping: (distance + Int128(step) - 1) / Int128(step))
  }
}

extension SegmentTiming.Frame {
  /// The period's length in ticks, rounded up; nil where it is not known.
  fileprivate func periodTicks() throws(ReelError) -> Int64? {
    guard let periodDuration else { return nil }
    let product = Int128(periodDuration.value) * Int128(timescale)
    let scale = Int128(periodDuration.timescale)
    guard let ticks = Int64(exactly: (product + scale - 1) / scale) else {
      throw ReelError(.badManifest, "the period ends beyond 63 bits of its timescale")
    }
    return ticks
  }

  /// The media time at which the period ends, in ticks.
  fileprivate func periodEnd() throws(ReelError) -> Int64? {
    guard let ticks = try periodTicks() else { return nil }
    let (end, overflow) = presentationTimeOffset.addingReportingOverflow(ticks)
    return overflow ? .max : end
  }

  /// How many segments of `duration` ticks the period holds, the last maybe shorter. What is left over below a
  /// millisecond is the rounding of the period's length, and makes no segment.
  fileprivate func segmentCount(duration: Int64) -> Int64? {
    guard let periodDuration else { return nil }
    let ticks = Int128(periodDuration.value) * Int128(timescale)
    let step = Int128(duration) * Int128(periodDuration.timescale)
    let (whole, rest) = ticks.quotientAndRemainder(dividingBy: step)
    let millisecond = Int128(timescale) * Int128(periodDuration.timescale) / 1000
    let hasRest = whole == 0 ? rest > 0 : rest >= max(millisecond, 1)
    return Int64(clamping: hasRest ? whole + 1 : whole)
  }
}
