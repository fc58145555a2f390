import ReelCore

/// The times of the segments of a Representation, in runs of equal length: as compact as in the MPD,
/// regardless of the number of segments.
struct SegmentTiming: Sendable {
  /// Segments of equal length that follow each other without a gap.
  struct Run: Sendable, Hashable {
    /// The index of the first element of the run.
    var firstIndex: Int
    /// The number of segments; each has `partCount` elements.
    var segmentCount: Int64
    var partCount: Int64
    /// The number of the first segment.
    var number: Int64
    /// Media time of the first segment, in ticks.
    var start: Int64
    /// In ticks.
    var duration: Int64

    var end: Int64 { start + segmentCount * duration }

    /// Drops the first `count` segments.
    fileprivate mutating func leaveOut(_ count: Int64) {
      segmentCount -= count
      number += count
      start += count * duration
    }
  }

  /// One segment, or one part of one.
  struct Slot: Sendable, Hashable {
    var number: Int64
    /// From 1 on.
    var subNumber: Int64
    /// The media time of the whole segment, in ticks: the value of `$Time$`.
    var segmentStart: Int64
    /// Media time, in ticks.
    var start: Int64
    /// In ticks.
    var duration: Int64
  }

  private(set) var runs: [Run] = []
  private(set) var count = 0
  /// The longest of the segments, in ticks; 0 if there are none.
  private(set) var longestDuration: Int64 = 0
  /// The end of the last available segment, in the window or before it, in ticks; nil if there is none.
  private(set) var latestEnd: Int64?
  /// The end of the last listed segment in ticks, whether or not it is available yet; nil if none is listed.
  private(set) var listedEnd: Int64?
  /// The indices of the elements that begin later than the ones before them end.
  private(set) var holes: [Int] = []
  /// The number of oldest segments left out because there are more than the limit.
  private(set) var omittedCount: Int64 = 0

  /// The segments of a SegmentTimeline (ISO/IEC 23009-1 §5.3.9.6) that lie in the period and are available at the given
  /// time. If there are more than the limit, the newest are kept.
  ///
  /// Throws `badManifest` for entries that can't be counted or exceed 63 bits.
  init(_ entries: [MPD.SegmentTimeline.Entry], frame: Frame) throws(ReelError) {
    let periodEnd = try frame.periodEnd()
    let (available, windowStart) = (frame.availableEnd, frame.windowStart)
    var (next, number): (Int64, Int64) = (0, frame.startNumber)
    var oldestRun = 0
    for (index, entry) in entries.enumerated() {
      let start = entry.start ?? next
      number = entry.number ?? Int64(clamping: Int128(number) + Int128(entry.absentCount))
      let following = index + 1 < entries.count ? entries[index + 1].start : nil
      let segmentCount = try Self.segmentCount(
        entry, start: start, until: following ?? periodEnd, available: available)
      let (length, tooLong) = segmentCount.multipliedReportingOverflow(by: entry.duration)
      let (end, tooLate) = start.addingReportingOverflow(length)
      let (nextNumber, tooMany) = number.addingReportingOverflow(segmentCount)
      guard !tooLong, !tooLate, !tooMany else {
        throw ReelError(.badManifest, "the SegmentTimeline exceeds 63 bits")
      }
      let passed = start < frame.presentationTimeOffset ? frame.presentationTimeOffset &- start : 0
      var first = max(0, min(segmentCount, passed / entry.duration))
      var last = segmentCount
      if let periodEnd { last = min(last, Self.ceiling(periodEnd, from: start, by: entry.duration)) }
      if let endNumber = frame.endNumber { last = min(last, Self.count(from: number, through: endNumber)) }
      // An open entry has at least one segment, and gets more as time passes.
      let isOpen = entry.repeatCount < 0
      let listed = isOpen ? (periodEnd.map { start < $0 } ?? true ? 1 : 0) : last
      if listed > first {
        let (end, overflow) = start.addingReportingOverflow(listed * entry.duration)
        if !overflow { listedEnd = max(listedEnd ?? end, end) }
      }
      if let available {
        let edge = isOpen ? available : frame.withTolerance(available)
        last = min(last, Self.whole(edge, from: start, by: entry.duration))
      }
      if last > first { latestEnd = start + last * entry.duration }
      // It is available until its end plus its length and the depth of the window (§5.3.9.5.3).
      if let windowStart {
        first = max(first, Self.whole(windowStart, from: start, by: entry.duration) - 1)
      }
      if last > first {
        let run = Run(
          firstIndex: 0, segmentCount: last - first, partCount: frame.hasParts ? entry.partCount : 1,
          number: number + first, start: start + first * entry.duration, duration: entry.duration)
        try append(newest: run, after: &oldestRun, limit: frame.limit)
      }
      (next, number) = (end, nextNumber)
    }
    runs.removeFirst(oldestRun)
    var index = 0
    for position in runs.indices {
      runs[position].firstIndex = index
      if position > 0, runs[position].start > runs[position - 1].end { holes.append(index) }
      index += Int(runs[position].segmentCount * runs[position].partCount)
    }
  }

  /// All segments of a SegmentTimeline that has none in its period: its times are not relative to the period's
  /// start, as if @presentationTimeOffset had been forgotten. Nil if it has none at all.
  init?(unbound entries: [MPD.SegmentTimeline.Entry], frame: Frame) throws(ReelError) {
    guard !entries.isEmpty, entries.allSatisfy({ $0.repeatCount >= 0 }) else { return nil }
    var frame = frame
    (frame.periodDuration, frame.presentationTimeOffset) = (nil, .min)
    try self.init(entries, frame: frame)
    if count == 0 { return nil }
  }

  /// Segments of one `duration` (ISO/IEC 23009-1 §5.3.9.5.3): as many as fill the period, or as the numbers,
  /// the `available` URLs or the clock allow, beginning with the first that reaches into the window. If
  /// `duration` is nil, one segment that fills the period.
  ///
  /// Throws `badManifest` if their number is unknown or exceeds the limit.
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
    if available != nil, let listed = counts.min(), listed > 0 {
      let (length, tooLong) = step.multipliedReportingOverflow(by: listed)
      let (end, tooLate) = try frame.firstStart().addingReportingOverflow(length)
      if !tooLong, !tooLate { listedEnd = end }
    }
    let clockCount = frame.availableCount(duration: step)
    if let clockCount { counts.append(clockCount) }
    guard let end = counts.min() else {
      throw ReelError(
        .badManifest, "no computable segment count: \(frame.whatIsMissing)", advice: frame.advice)
    }
    guard end > 0 else { return }
    let origin = try frame.firstStart()
    let (_, tooMany) = frame.startNumber.addingReportingOverflow(end)
    let (length, tooLong) = step.multipliedReportingOverflow(by: end)
    let (endTicks, tooLate) = origin.addingReportingOverflow(length)
    guard !tooMany, !tooLong, !tooLate else {
      throw ReelError(.badManifest, "the segment times exceed 63 bits")
    }
    latestEnd = endTicks
    // A window shorter than a segment holds the newest segment.
    var first = min(end == clockCount ? end - 1 : end, frame.passedCount(duration: step))
    // A list that grows with the clock keeps its newest segments.
    if frame.window != nil { first = max(first, end - Int64(frame.limit)) }
    guard end > first else { return }
    try append(
      Run(
        firstIndex: 0, segmentCount: end - first, partCount: 1, number: frame.startNumber + first,
        start: origin + first * step, duration: step),
      limit: frame.limit)
  }

  /// No segments.
  init() {}

  /// The element at `index`, from 0 up to `count`.
  subscript(index: Int) -> Slot {
    let run = runs[runs.indices.bisect { runs[$0].firstIndex > index } - 1]
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
    append(run)
  }

  /// Appends a run, and drops the oldest segments beyond `limit`. Runs before `oldestRun` have no segments left.
  private mutating func append(newest run: Run, after oldestRun: inout Int, limit: Int) throws(ReelError) {
    let most = Int64(limit) / run.partCount
    guard most > 0 else { throw ReelError(.badManifest, "more than \(limit) parts in a segment") }
    var run = run
    let excess = max(0, run.segmentCount - most)
    run.leaveOut(excess)
    omittedCount += excess
    append(run)
    while count > limit {
      let oldest = runs[oldestRun]
      let excess = (Int64(count - limit) + oldest.partCount - 1) / oldest.partCount
      let left = min(excess, oldest.segmentCount)
      runs[oldestRun].leaveOut(left)
      omittedCount += left
      count -= Int(left * oldest.partCount)
      if left == oldest.segmentCount { oldestRun += 1 }
    }
  }

  private mutating func append(_ run: Run) {
    count += Int(run.segmentCount * run.partCount)
    longestDuration = max(longestDuration, run.duration)
    if let last = runs.last, last.duration == run.duration, last.partCount == run.partCount,
      last.number + last.segmentCount == run.number,
      last.end == run.start
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
    _ entry: MPD.SegmentTimeline.Entry, start: Int64, until end: Int64?, available: Int64?
  ) throws(ReelError) -> Int64 {
    if entry.repeatCount >= 0 { return entry.repeatCount == .max ? .max : entry.repeatCount + 1 }
    guard let end else {
      if let available { return whole(available, from: start, by: entry.duration) }
      throw ReelError(
        .badManifest,
        "no computable segment count: S@r is below 0, and neither a next S@t, the period nor the clock ends it"
      )
    }
    return ceiling(end, from: start, by: entry.duration)
  }

  /// Returns the count of numbers from `first` through `last`; 0 if `last` is lower.
  private static func count(from first: Int64, through last: Int64) -> Int64 {
    Int64(clamping: max(0, Int128(last) - Int128(first) + 1))
  }

  /// Returns how many steps from `start` on begin before `end`.
  private static func ceiling(_ end: Int64, from start: Int64, by step: Int64) -> Int64 {
    guard end > start else { return 0 }
    let distance = Int128(end) - Int128(start)
    return Int64(clamping: (distance + Int128(step) - 1) / Int128(step))
  }

  /// Returns how many steps from `start` on end at or before `end`.
  private static func whole(_ end: Int64, from start: Int64, by step: Int64) -> Int64 {
    guard end > start else { return 0 }
    return Int64(clamping: (Int128(end) - Int128(start)) / Int128(step))
  }
}

extension SegmentTiming {
  /// The values that a manifest's numbers are relative to.
  struct Frame: Sendable, Hashable {
    /// The available part of a live presentation, counted from the start of the period. Both ends may be
    /// negative.
    struct Window: Sendable, Hashable {
      /// Segments that end later are not available yet; nil for no limit.
      var end: MediaTime?
      /// The start of the time-shift buffer; nil if it reaches back to the beginning.
      var start: MediaTime?
    }

    /// Ticks per second; at least 1.
    var timescale: Int64
    /// The media time at which the period starts, in ticks.
    var presentationTimeOffset: Int64
    /// How much later than the period the first of equally long segments starts, in ticks.
    var earliestPresentationTimeDelta: Int64 = 0
    var startNumber: Int64
    var endNumber: Int64?
    var periodDuration: MediaTime?
    /// True if more segments may follow.
    var isLive = false
    /// Nil if segments are not tied to the clock.
    var window: Window?
    /// True if the elements are parts of segments (`$SubNumber$`).
    var hasParts = false
    /// The maximum number of elements.
    var limit: Int
  }
}

extension SegmentTiming.Frame {
  /// Returns the period's length in ticks, rounded up; nil if it is not known.
  func periodTicks() throws(ReelError) -> Int64? {
    guard let periodDuration else { return nil }
    let product = Int128(periodDuration.value) * Int128(timescale)
    let scale = Int128(periodDuration.timescale)
    guard let ticks = Int64(exactly: (product + scale - 1) / scale) else {
      throw ReelError(.badManifest, "the period ends beyond 63 bits of its timescale")
    }
    return ticks
  }

  /// Returns the media time at which the period ends, in ticks.
  func periodEnd() throws(ReelError) -> Int64? {
    guard let ticks = try periodTicks() else { return nil }
    let (end, overflow) = presentationTimeOffset.addingReportingOverflow(ticks)
    return overflow ? .max : end
  }

  /// Returns the media time of the first of equally long segments, in ticks.
  func firstStart() throws(ReelError) -> Int64 {
    let (start, overflow) = presentationTimeOffset.addingReportingOverflow(earliestPresentationTimeDelta)
    guard !overflow else { throw ReelError(.badManifest, "the segment times exceed 63 bits") }
    return start
  }

  /// Returns the number of segments of `duration` ticks in the period, of which the last may be shorter. A
  /// rest of less than a millisecond is a rounding error of the period's length, and not a segment.
  func segmentCount(duration: Int64) -> Int64? {
    guard let periodDuration else { return nil }
    let delta = Int128(earliestPresentationTimeDelta) * Int128(periodDuration.timescale)
    let ticks = Int128(periodDuration.value) * Int128(timescale) - delta
    guard ticks > 0 else { return 0 }
    let step = Int128(duration) * Int128(periodDuration.timescale)
    let (whole, rest) = ticks.quotientAndRemainder(dividingBy: step)
    let millisecond = Int128(timescale) * Int128(periodDuration.timescale) / 1000
    let hasRest = whole == 0 ? rest > 0 : rest >= max(millisecond, 1)
    return Int64(clamping: hasRest ? whole + 1 : whole)
  }

  /// Returns the number of available segments of `duration` ticks, each available at its end; nil for all.
  func availableCount(duration: Int64) -> Int64? {
    guard let end = boundingEnd else { return nil }
    return Int64(clamping: max(0, Self.quotient(of: distance(to: end), by: duration, at: end.timescale)))
  }

  /// Returns how many segments of `duration` ticks have ended when the window begins.
  func passedCount(duration: Int64) -> Int64 {
    guard let start = window?.start else { return 0 }
    return Int64(clamping: max(0, Self.quotient(of: distance(to: start), by: duration, at: start.timescale)))
  }

  /// The media time up to which segments are available, in ticks, rounded down; nil for all.
  var availableEnd: Int64? {
    guard let end = boundingEnd else { return nil }
    let ticks = Self.floor(Int128(end.value) * Int128(timescale), Int128(end.timescale))
    return Int64(clamping: ticks + Int128(presentationTimeOffset))
  }

  /// `end` and 50 ms, in ticks. Audio and video do not end together, because their frames differ in length:
  /// writers that list segments one by one list both when the video is complete, although the audio may last a
  /// frame longer.
  func withTolerance(_ end: Int64) -> Int64 {
    let (sum, overflow) = end.addingReportingOverflow(timescale / 20)
    return overflow ? .max : sum
  }

  /// The media time at which the window begins, in ticks, rounded up; nil if it has no beginning.
  var windowStart: Int64? {
    guard let start = window?.start else { return nil }
    let ticks = -Self.floor(-Int128(start.value) * Int128(timescale), Int128(start.timescale))
    return Int64(clamping: ticks + Int128(presentationTimeOffset))
  }

  /// The reason why segments can't be counted if neither numbers nor times limit them.
  var whatIsMissing: String {
    isLive
      ? "a live MPD that numbers its segments by the clock has no @availabilityStartTime that can be read"
      : "neither the period's duration nor @endNumber is known"
  }

  /// The advice in errors.
  var advice: String {
    isLive ? "give MPD@availabilityStartTime" : "give MPD@mediaPresentationDuration or Period@duration"
  }

  // MARK: - Private

  /// The end of the window; nil if the period has ended before, so that all of its segments are available, of
  /// which the last may be shorter.
  private var boundingEnd: MediaTime? {
    guard let end = window?.end else { return nil }
    if let periodDuration, end >= periodDuration { return nil }
    return end
  }

  /// Returns the time from the first segment to a time of the period, in units of 1 / (timescale × the time's
  /// timescale) s.
  private func distance(to time: MediaTime) -> Int128 {
    Int128(time.value) * Int128(timescale) - Int128(earliestPresentationTimeDelta) * Int128(time.timescale)
  }

  private static func quotient(of distance: Int128, by duration: Int64, at timescale: Int32) -> Int128 {
    floor(distance, Int128(duration) * Int128(timescale))
  }

  private static func floor(_ value: Int128, _ divisor: Int128) -> Int128 {
    let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
