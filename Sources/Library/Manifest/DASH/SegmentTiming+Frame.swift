import ReelCore

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
    /// How many elements there may be.
    var limit: Int
  }
}

extension SegmentTiming.Frame {
  /// The period's length in ticks, rounded up; nil if it is not known.
  func periodTicks() throws(ReelError) -> Int64? {
    guard let periodDuration else { return nil }
    let product = Int128(periodDuration.value) * Int128(timescale)
    let scale = Int128(periodDuration.timescale)
    guard let ticks = Int64(exactly: (product + scale - 1) / scale) else {
      throw ReelError(.badManifest, "the period ends beyond 63 bits of its timescale")
    }
    return ticks
  }

  /// The media time at which the period ends, in ticks.
  func periodEnd() throws(ReelError) -> Int64? {
    guard let ticks = try periodTicks() else { return nil }
    let (end, overflow) = presentationTimeOffset.addingReportingOverflow(ticks)
    return overflow ? .max : end
  }

  /// The media time of the first of equally long segments, in ticks.
  func firstStart() throws(ReelError) -> Int64 {
    let (start, overflow) = presentationTimeOffset.addingReportingOverflow(earliestPresentationTimeDelta)
    guard !overflow else { throw ReelError(.badManifest, "the segment times exceed 63 bits") }
    return start
  }

  /// The number of segments of `duration` ticks in the period, of which the last may be shorter. A rest of less
  /// than a millisecond is a rounding error of the period's length, and not a segment.
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

  /// The number of available segments of `duration` ticks, each available at its end; nil for all.
  func availableCount(duration: Int64) -> Int64? {
    guard let end = boundingEnd else { return nil }
    return Int64(clamping: max(0, Self.quotient(of: distance(to: end), by: duration, at: end.timescale)))
  }

  /// How many segments of `duration` ticks have come to their end when the window begins.
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

  /// Why segments can't be counted if neither numbers nor times limit them.
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

  /// From the first segment to a time of the period, in units of 1 / (timescale × the time's timescale) s.
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
