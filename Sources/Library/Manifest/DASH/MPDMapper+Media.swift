import Foundation
import ReelCore

extension MPDMapper {
  /// The location of a Representation's segments and, for a live presentation, how much earlier than its end each is
  /// available; nil for 0.
  typealias LocatedMedia = (media: Rung.Media, availabilityTimeOffset: MediaTime?)

  /// The context of one Representation.
  struct MediaContext {
    var set: SetContext
    var bases: BaseURLSet
    var path: String

    var period: PeriodContext { self.set.period }
  }

  /// Returns the segments of a Representation. Throws if they can't be determined.
  mutating func media(
    _ representation: MPD.Representation, mimeType: String?, path: String, in set: SetContext
  ) throws(ReelError) -> LocatedMedia {
    do throws(ReelError) {
      let context = MediaContext(
        set: set,
        bases: try set.bases.applying(
          representation.baseURLs, path: path, budget: &baseBudget, warnings: &warnings),
        path: path)
      let information = representation.segments.inheriting(from: set.segments)
      if let template = information.template {
        try template.common.check()
        let list = try segments(template, representation, in: context)
        return located(.segments(list), template.common.base, in: context)
      }
      if let list = information.list, list.href != Self.nothing {
        try list.common.check()
        let segments = try segments(list, in: context)
        return located(.segments(segments), list.common.base, in: context)
      }
      guard information.base != nil || set.hasBaseURL || !representation.baseURLs.isEmpty else {
        throw ReelError(
          .badManifest,
          "the Representation does not say where its segments are (no SegmentTemplate, SegmentList,"
            + " SegmentBase or BaseURL)")
      }
      if let error = information.base?.malformed.first() { throw error }
      return located(
        try file(information.base, mimeType: mimeType, in: context), information.base, in: context)
    } catch {
      var placed = explained(error)
      placed.place = placed.place ?? .element(path)
      throw placed
    }
  }

  // MARK: - Private

  private mutating func located(
    _ media: Rung.Media, _ base: MPD.SegmentBase?, in context: MediaContext
  ) -> LocatedMedia {
    guard mpd.type == .dynamic else { return (media, nil) }
    let offset = availabilityTimeOffset(base, in: context)
    let time = offset.time ?? MediaTime(value: .max, timescale: 1)
    return (media, time == .zero ? nil : time)
  }

  /// Returns the sum of the offsets in the BaseURL elements and the segment information (ISO/IEC 23009-1
  /// §5.3.9.5.3).
  private mutating func availabilityTimeOffset(
    _ base: MPD.SegmentBase?, in context: MediaContext
  ) -> AvailabilityTimeOffset {
    guard let text = base?.availabilityTimeOffset else { return context.bases.availabilityTimeOffset }
    guard let offset = AvailabilityTimeOffset(text) else {
      warnings.add(
        "@availabilityTimeOffset '\(text.excerpt)' is not a number: ignored",
        place: .element(context.path))
      return context.bases.availabilityTimeOffset
    }
    return context.bases.availabilityTimeOffset + offset
  }

  /// Counts a URL that was made for a Representation, or none. Throws `badManifest` if all URLs together are
  /// too long, because many elements may share a long BaseURL.
  private mutating func spend(_ url: URL?) throws(ReelError) {
    baseBudget.bytes -= url?.absoluteString.utf8.count ?? 0
    guard baseBudget.bytes >= 0 else {
      throw ReelError(.badManifest, "the URLs of all representations are too long together")
    }
  }

  /// Returns a file whose segments a `sidx` lists, or a text file that is one segment.
  private func file(
    _ segmentBase: MPD.SegmentBase?, mimeType: String?, in context: MediaContext
  ) throws(ReelError) -> Rung.Media {
    let (period, bases) = (context.period, context.bases)
    if context.set.kind == .text || context.set.kind == .image, segmentBase?.indexRange == nil,
      mimeType?.hasSuffix("/mp4") != true
    {
      return .segments(
        SegmentList([
          SegmentReference(
            number: 1, url: bases.preferred.base, start: period.start, duration: period.duration ?? .zero,
            discontinuity: period.index, alternateURLs: bases.alternates.map(\.base))
        ]))
    }
    let timescale = segmentBase?.timescale ?? 1
    let offset =
      period.start - MediaTime(ticks: segmentBase?.presentationTimeOffset ?? 0, timescale: timescale)
    // An index in a separate file is not read: the media file is read from its start instead.
    let index = segmentBase?.representationIndex
    let indexRange = index.flatMap { $0.sourceURL == nil ? $0.range : nil } ?? segmentBase?.indexRange
    return .index(
      SegmentIndexReference(
        url: bases.preferred.base, indexRange: indexRange,
        initialization: try initialization(segmentBase?.initialization, bases), start: period.start,
        duration: period.duration, timestampOffset: offset, discontinuity: period.index,
        alternateURLs: bases.alternates.map(\.base)))
  }

  private mutating func segments(
    _ template: MPD.SegmentTemplate, _ representation: MPD.Representation, in context: MediaContext
  ) throws(ReelError) -> SegmentList {
    guard let text = template.media else {
      throw ReelError(.badManifest, "the SegmentTemplate has no @media")
    }
    try spend(nil)
    let bases = context.bases
    let media = try SegmentURLTemplate(
      text, representationID: representation.id, bandwidth: representation.bandwidth)
    let timing = try timing(template.common, hasParts: media.usesSubNumber, available: nil, in: context)
    var initialization = try initialization(template.common.base.initialization, bases)
    if let text = template.initialization {
      let template = try SegmentURLTemplate(
        text, representationID: representation.id, bandwidth: representation.bandwidth)
      guard !template.isPerSegment, !template.usesSubNumber else {
        throw ReelError(.badManifest, "the template '\(text.excerpt)' of an initialization names a segment")
      }
      initialization = try self.initialization(
        template.text(number: 0, time: 0, subNumber: 0), range: nil, bases)
    }
    let first = timing.count > 0 ? timing[0] : nil
    try spend(initialization?.url)
    try spend(
      bases.preferred.resolve(
        media.text(
          number: first?.number ?? 0, time: first?.segmentStart ?? 0, subNumber: first?.subNumber ?? 1)))
    return list(timing, template.common, initialization, in: context) { slot in
      (media.text(number: slot.number, time: slot.segmentStart, subNumber: slot.subNumber), nil)
    }
  }

  private mutating func segments(
    _ list: MPD.SegmentList, in context: MediaContext
  ) throws(ReelError) -> SegmentList {
    try checkLink(list.href, of: "SegmentList", isEmpty: list.urls.isEmpty, path: context.path)
    guard !list.urls.isEmpty || mpd.type == .dynamic else {
      throw ReelError(.badManifest, "the SegmentList has no SegmentURL")
    }
    try check(list.urls, context.bases.preferred)
    var common = list.common
    if let passed = passedTicks(of: list, in: context) {
      common.earliestPresentationTimeDelta = (common.earliestPresentationTimeDelta ?? 0) &+ passed
    }
    let timing = try timing(common, hasParts: false, available: list.urls.count, in: context)
    let (urls, firstNumber) = (list.urls.withEnds, list.common.startNumber ?? 1)
    var reference = list.common.base.initialization
    if reference?.sourceURL == nil, reference?.range == nil, let first = urls.first, first.media == nil,
      let length = first.mediaRange?.offset, length > 0
    {
      // In the file of the segments, it precedes them.
      reference?.range = ByteRange(offset: 0, length: length)
    }
    let initialization = try initialization(reference, context.bases)
    return self.list(timing, common, initialization, in: context) { slot in
      let index = Int(clamping: slot.number &- firstNumber)
      guard urls.indices.contains(index) else { return ("", nil) }
      return (urls[index].media ?? "", urls[index].mediaRange)
    }
  }

  /// Returns how much later than its period a live list begins, in ticks, if it has lost its first segments and says so by
  /// its @startNumber alone; nil if it begins with the period. The clock decides: the newest segment of a list ends about now.
  private func passedTicks(of list: MPD.SegmentList, in context: MediaContext) -> Int64? {
    guard let window, list.common.timeline == nil, let duration = list.common.duration,
      let number = list.common.startNumber, number > 1
    else { return nil }
    let (passed, overflow) = duration.multipliedReportingOverflow(by: number - 1)
    let (length, tooLong) = duration.multipliedReportingOverflow(by: Int64(list.urls.count))
    guard !overflow, !tooLong else { return nil }
    let timescale = list.common.base.timescale ?? 1
    // FFmpeg moves the start of the period along with the list.
    let moved = context.period.start - MediaTime(ticks: passed, timescale: timescale)
    guard abs(moved.seconds) > MediaTime(ticks: duration, timescale: timescale).seconds / 2 else {
      return nil
    }
    let now = window.now - context.period.start
    let end = MediaTime(ticks: length, timescale: timescale)
    let later = end + MediaTime(ticks: passed, timescale: timescale)
    return abs((later - now).seconds) < abs((end - now).seconds) ? passed : nil
  }

  /// Returns the times of the segments. Throws if they can't be determined, or if there are none and none
  /// will follow.
  private mutating func timing(
    _ common: MPD.MultipleSegmentBase, hasParts: Bool, available: Int?, in context: MediaContext
  ) throws(ReelError) -> SegmentTiming {
    let (period, timescale) = (context.period, common.base.timescale ?? 1)
    let offset = availabilityTimeOffset(common.base, in: context)
    var frame = SegmentTiming.Frame(
      timescale: timescale, presentationTimeOffset: common.base.presentationTimeOffset ?? 0,
      earliestPresentationTimeDelta: common.earliestPresentationTimeDelta ?? 0,
      startNumber: common.startNumber ?? 1, endNumber: common.endNumber, periodDuration: period.duration,
      isLive: mpd.type == .dynamic,
      window: window?.frame(
        periodStart: period.start, periodDuration: period.duration, offset: offset,
        isListed: common.timeline != nil || available != nil),
      hasParts: hasParts, limit: limits.segments)
    if let available, common.timeline != nil {
      let (last, overflow) = frame.startNumber.addingReportingOverflow(Int64(available) - 1)
      frame.endNumber = min(frame.endNumber ?? .max, overflow ? .max : last)
    }
    var timing = try compiled(common, frame, available: available)
    hasSegments = hasSegments || timing.count > 0
    let origin = period.start - MediaTime(ticks: frame.presentationTimeOffset, timescale: timescale)
    if let ticks = timing.latestEnd {
      let end = origin + MediaTime(ticks: ticks, timescale: timescale)
      latestEnd = max(latestEnd ?? end, end)
    }
    if let ticks = timing.listedEnd {
      let end = origin + MediaTime(ticks: ticks, timescale: timescale) - (offset.time ?? .zero)
      listedEnd = max(listedEnd ?? end, end)
    }
    if timing.omittedCount > 0 {
      warnings.add(
        "more than \(limits.segments) segments: the oldest \(timing.omittedCount) are left out",
        place: .element(context.path))
    }
    if timing.count == 0, window == nil, let timeline = common.timeline,
      let unbound = try SegmentTiming(unbound: timeline.entries, frame: frame)
    {
      timing = unbound
      warnings.add(
        "the SegmentTimeline lies outside of the period: treated as it is", place: .element(context.path))
    }
    guard timing.count > 0 || mpd.type == .dynamic else {
      throw ReelError(.badManifest, "the Representation has no segments in its period")
    }
    longestSegment = max(
      longestSegment, MediaTime(ticks: timing.longestDuration, timescale: timescale))
    return timing
  }

  /// Returns a compiled timeline. Representations that inherit their timeline share the array of its entries,
  /// so its address identifies it: one timeline is compiled once, however many use it.
  private mutating func compiled(
    _ common: MPD.MultipleSegmentBase, _ frame: SegmentTiming.Frame, available: Int?
  ) throws(ReelError) -> SegmentTiming {
    guard let entries = common.timeline?.entries else {
      if let available, available == 0 { return SegmentTiming() }
      return try SegmentTiming(duration: common.duration, available: available, frame: frame)
    }
    let key = TimingKey(
      entries: entries.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }, frame: frame)
    if let known = timings[key] { return known }
    // Each Representation may interpret a long timeline in its own way, so the total is limited.
    compiledEntries += entries.count
    guard compiledEntries / 4 <= limits.timelineEntries else {
      throw ReelError(.badManifest, "the timelines of all representations have too many entries")
    }
    let timing = try SegmentTiming(entries, frame: frame)
    timings[key] = timing
    return timing
  }

  private func list(
    _ timing: SegmentTiming, _ common: MPD.MultipleSegmentBase, _ initialization: InitializationReference?,
    in context: MediaContext,
    location: @escaping @Sendable (SegmentTiming.Slot) -> (reference: String, range: ByteRange?)
  ) -> SegmentList {
    let (period, bases) = (context.period, context.bases)
    let timescale = common.base.timescale ?? 1
    let offset =
      period.start - MediaTime(ticks: common.base.presentationTimeOffset ?? 0, timescale: timescale)
    guard timing.count > 0 else {
      return SegmentList(count: 0, end: period.start) { _ in
        SegmentReference(number: 0, url: bases.preferred.base, start: period.start, duration: .zero)
      }
    }
    // If the segments have one nominal length, the last is cut at the end of the period.
    let periodEnd = common.timeline == nil ? period.duration.map { period.start + $0 } : nil
    let last = timing.count - 1
    @Sendable func time(_ slot: SegmentTiming.Slot, _ index: Int) -> (start: MediaTime, duration: MediaTime) {
      let start = MediaTime(ticks: slot.start, timescale: timescale) + offset
      let duration = MediaTime(ticks: slot.duration, timescale: timescale)
      guard index == last, let periodEnd, start < periodEnd, start + duration > periodEnd else {
        return (start, duration)
      }
      return (start, periodEnd - start)
    }
    let (lastStart, lastDuration) = time(timing[last], last)
    return SegmentList(
      count: timing.count, end: lastStart + lastDuration, commonInitialization: initialization,
      holes: timing.holes
    ) { index in
      let slot = timing[index]
      let (start, duration) = time(slot, index)
      let (reference, range) = location(slot)
      let url = bases.preferred.url(reference)
      return SegmentReference(
        number: slot.number, url: url, byteRange: range, start: start, duration: duration,
        initialization: initialization, discontinuity: period.index, timestampOffset: offset,
        alternateURLs: bases.alternateURLs(of: reference, besides: url))
    }
  }

  private func initialization(
    _ reference: MPD.URLReference?, _ bases: BaseURLSet
  ) throws(ReelError) -> InitializationReference? {
    guard let reference, reference.sourceURL != nil || reference.range != nil else { return nil }
    return try initialization(reference.sourceURL ?? "", range: reference.range, bases)
  }

  private func initialization(
    _ reference: String, range: ByteRange?, _ bases: BaseURLSet
  ) throws(ReelError) -> InitializationReference {
    let url = try bases.preferred.resolve(reference)
    return InitializationReference(
      url: url, byteRange: range, alternateURLs: bases.alternateURLs(of: reference, besides: url))
  }

  /// Checks each URL of a list once.
  private mutating func check(
    _ urls: [MPD.SegmentList.SegmentURL], _ resolver: URLResolver
  ) throws(ReelError) {
    let address = urls.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
    guard checkedLists.insert(address).inserted else { return }
    for url in urls {
      guard let media = url.media else { continue }
      if media.utf8.count <= limits.urlByteCount, URLResolver.isPlain(Array(media.utf8)[...]) { continue }
      _ = try resolver.resolve(media)
    }
  }
}

extension [MPD.SegmentList.SegmentURL] {
  /// The same, but ranges without an end end before the next one of the same file.
  fileprivate var withEnds: [Element] {
    guard contains(where: { $0.mediaRange != nil && $0.mediaRange?.length == nil }) else { return self }
    var urls = self
    for (index, url) in dropLast().enumerated() {
      guard let range = url.mediaRange, range.length == nil, let next = self[index + 1].mediaRange,
        self[index + 1].media == url.media, next.offset > range.offset
      else { continue }
      urls[index].mediaRange = ByteRange(offset: range.offset, length: next.offset - range.offset)
    }
    return urls
  }
}

/// How much earlier than its end a segment is available: `@availabilityTimeOffset`, a number of seconds or
/// `INF` (ISO/IEC 23009-1 §5.3.9.5.3).
package struct AvailabilityTimeOffset: Sendable, Hashable {
  /// Nil for an infinite one.
  private(set) var time: MediaTime?

  static let zero = AvailabilityTimeOffset(time: .zero)

  private init(time: MediaTime?) { self.time = time }

  /// Nil for text that is not a number.
  package init?(_ text: String) {
    let isNegative = text.hasPrefix("-")
    if let value = ExactSeconds(text.dropFirst(isNegative ? 1 : 0)) {
      time = isNegative ? .zero - value.time : value.time
    } else if text == "INF" || text == "+INF" {
      time = nil
    } else if let value = Double(text), value.isFinite {
      time = MediaTime(seconds: value, timescale: 1_000_000)
    } else {
      return nil
    }
  }

  /// The offsets of all levels add up.
  static func + (left: AvailabilityTimeOffset, right: AvailabilityTimeOffset) -> AvailabilityTimeOffset {
    guard let first = left.time, let second = right.time else { return AvailabilityTimeOffset(time: nil) }
    return AvailabilityTimeOffset(time: first + second)
  }
}

/// The available part of a live presentation at a time, on the presentation's timeline, whose zero is
/// @availabilityStartTime (ISO/IEC 23009-1 §5.3.9.5.3).
struct LiveWindow: Sendable {
  /// The current time.
  let now: MediaTime
  /// The end of the presentation, if the MPD states it.
  let end: MediaTime?
  /// @timeShiftBufferDepth.
  let depth: MediaTime?
  /// The end of the time-shift buffer: now, or the end of the presentation.
  private var edge: MediaTime
  private var keepsListed = false

  /// Nil for an MPD that is static, or whose @availabilityStartTime is missing or no date.
  init?(_ mpd: MPD, now: WallTime) {
    guard mpd.type == .dynamic, let start = mpd.availabilityStartTime.flatMap({ WallTime(iso8601: $0) })
    else { return nil }
    self.now = now - start
    let last = mpd.periods.last
    let ends = [
      mpd.availabilityEndTime.flatMap { WallTime(iso8601: $0) }.map { $0 - start },
      mpd.mediaPresentationDuration,
      last?.start.flatMap { start in last?.duration.map { start + $0 } },
    ]
    end = ends.compactMap { $0 }.filter { $0 > .zero }.min()
    depth = mpd.timeShiftBufferDepth
    edge = min(self.now, end ?? self.now)
  }

  /// The start of the time-shift buffer.
  var start: MediaTime? { depth.map { edge - $0 } }

  /// Returns true for a presentation that has not begun and lists all of its segments in advance.
  ///
  /// - Parameter time: The end of the last listed segment.
  func isAnnouncement(endingAt time: MediaTime) -> Bool {
    guard now < .zero, let end else { return false }
    return time >= end - MediaTime(value: 1, timescale: 1)
  }

  /// Returns the available part of a period. `isListed` is true if the MPD lists its segments one by one. An
  /// infinite `offset` makes all segments available if the MPD states their number, and has no effect
  /// otherwise.
  func frame(
    periodStart: MediaTime, periodDuration: MediaTime?, offset: AvailabilityTimeOffset, isListed: Bool
  ) -> SegmentTiming.Frame.Window {
    var available = end
    if let time = offset.time ?? (end == nil && periodDuration == nil ? .zero : nil) {
      available = min(now + time, end ?? .distant)
    }
    let start = isListed && keepsListed ? nil : start
    return SegmentTiming.Frame.Window(
      end: available.map { $0 - periodStart }, start: start.map { $0 - periodStart })
  }

  /// The same for an MPD that has not been renewed since `end`: the time-shift buffer is counted back from
  /// there, and individually listed segments count regardless of their age.
  func ending(at end: MediaTime) -> LiveWindow {
    var window = self
    window.edge = min(window.edge, end)
    window.keepsListed = true
    return window
  }
}

extension MediaTime {
  /// Later than any other.
  fileprivate static let distant = MediaTime(value: .max, timescale: 1)
}

/// The URLs that references of an element are relative to, by falling preference (ISO/IEC 23009-1 §5.6.4, §5.6.5).
struct BaseURLSet: Sendable {
  /// The number of URLs that are kept: each costs a URL for each requested segment, and a client gives up
  /// earlier.
  static let limit = 8
  /// The limit of URLs for all elements of an MPD together: each takes microseconds, and an MPD may have a
  /// hundred thousand elements.
  static let totalLimit = 50_000
  /// The limit of the length of all of them together, in bytes.
  static let byteLimit = 64 << 20

  /// The limits for all base URLs of an MPD.
  struct Budget: Sendable {
    var alternates = BaseURLSet.totalLimit
    var bytes = BaseURLSet.byteLimit
  }

  let preferred: URLResolver
  /// Other locations of the same bytes, in case the preferred one fails.
  private(set) var alternates: [URLResolver] = []
  /// The sum of the offsets of the BaseURL elements that lead to the preferred one (§5.3.9.5.3).
  private(set) var availabilityTimeOffset = AvailabilityTimeOffset.zero

  init(_ url: URL, limit: Int) {
    preferred = URLResolver(base: url, limit: limit)
  }

  private init(
    _ preferred: URLResolver, alternates: [URLResolver], availabilityTimeOffset: AvailabilityTimeOffset
  ) {
    self.preferred = preferred
    self.alternates = alternates
    self.availabilityTimeOffset = availabilityTimeOffset
  }

  /// Applies the BaseURL elements of one level: combines each URL with each element, so that a level of
  /// relative ones multiplies the set and a level of absolute ones replaces it. Empty elements are ignored.
  ///
  /// An invalid URL is ignored too, with a warning. Throws `badManifest` if no URL is left, or if all URLs of
  /// the MPD together exceed the budget, which is counted down.
  func applying(
    _ elements: [MPD.BaseURL], path: String, budget: inout Budget, warnings: inout WarningLog
  ) throws(ReelError) -> BaseURLSet {
    let elements = Self.inOrder(elements)
    guard let first = elements.first else { return self }
    var (urls, seen, failure): ([URL], Set<String>, ReelError?) = ([], [], nil)
    for resolver in [preferred] + alternates {
      for element in elements where urls.count < Self.limit && (urls.isEmpty || budget.alternates > 0) {
        budget.alternates -= urls.isEmpty ? 0 : 1
        do throws(ReelError) {
          let url = try resolver.resolve(element.reference, place: .element(path))
          let text = url.absoluteString
          budget.bytes -= text.utf8.count
          if seen.insert(text).inserted { urls.append(url) }
        } catch {
          if failure == nil { failure = error }
        }
      }
    }
    guard budget.bytes >= 0 else {
      throw ReelError(
        .badManifest, "the BaseURLs of all elements are too long together", place: .element(path))
    }
    if let failure {
      guard !urls.isEmpty else { throw failure }
      warnings.add(failure)
    }
    var offset = AvailabilityTimeOffset.zero
    if let text = first.availabilityTimeOffset {
      if let stated = AvailabilityTimeOffset(text) {
        offset = stated
      } else {
        warnings.add(
          "@availabilityTimeOffset '\(text.excerpt)' of a BaseURL is not a number: ignored",
          place: .element(path))
      }
    }
    let resolvers = urls.map { URLResolver(base: $0, limit: preferred.limit) }
    return BaseURLSet(
      resolvers[0], alternates: Array(resolvers.dropFirst()),
      availabilityTimeOffset: availabilityTimeOffset + offset)
  }

  /// Returns the URLs of a reference that `preferred` has resolved to `url`, at the alternates. An absolute
  /// reference has none.
  func alternateURLs(of reference: String, besides url: URL) -> [URL] {
    if alternates.isEmpty { return [] }
    var urls: [URL] = []
    for resolver in alternates {
      let alternate = resolver.url(reference)
      if alternate != url, !urls.contains(alternate) { urls.append(alternate) }
    }
    return urls
  }

  // MARK: - Private

  /// By priority and weight if stated (ETSI TS 103 285 §10.8.2.1), or else in the order of the MPD. Weights are
  /// meant for random choice; here the heaviest comes first, so that the result is always the same.
  private static func inOrder(_ elements: [MPD.BaseURL]) -> [MPD.BaseURL] {
    let elements = elements.filter { !$0.reference.isEmpty }
    guard elements.contains(where: { $0.priority != nil || $0.weight != nil }) else { return elements }
    // The standard library does not promise that its sort is stable.
    return elements.enumerated().sorted { left, right in
      let (first, second) = (left.element, right.element)
      let priorities = (first.priority ?? 1, second.priority ?? 1)
      if priorities.0 != priorities.1 { return priorities.0 < priorities.1 }
      let weights = (first.weight ?? 1, second.weight ?? 1)
      if weights.0 != weights.1 { return weights.0 > weights.1 }
      return left.offset < right.offset
    }.map(\.element)
  }
}
