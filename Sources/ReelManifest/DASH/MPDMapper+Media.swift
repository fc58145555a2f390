import Foundation
import ReelCore

extension MPDMapper {
  /// Where the segments of a Representation stand. Throws where that can't be told.
  mutating func media(
    _ representation: MPD.Representation, mimeType: String?, path: String, in context: SetContext
  ) throws(ReelError) -> Rung.Media {
    do throws(ReelError) {
      let resolver = try base(representation.baseURLs, context.resolver, path: path)
      let information = representation.segments.inheriting(from: context.segments)
      if let template = information.template {
        return .segments(try segments(template, representation, resolver, in: context))
      }
      if let list = information.list { return .segments(try segments(list, resolver, in: context)) }
      guard information.base != nil || context.hasBaseURL || !representation.baseURLs.isEmpty else {
        throw ReelError(
          .badManifest,
          "the Representation says nowhere where its segments are (no SegmentTemplate, SegmentList,"
            + " SegmentBase or BaseURL)")
      }
      return try file(information.base, mimeType: mimeType, resolver, in: context)
    } catch {
      var placed = error
      placed.place = error.place ?? .element(path)
      throw placed
    }
  }

  // MARK: - Private

  /// A file whose segments a `sidx` lists, or a text file that is one segment.
  private func file(
    _ segmentBase: MPD.SegmentBase?, mimeType: String?, _ resolver: URLResolver, in context: SetContext
  ) throws(ReelError) -> Rung.Media {
    let period = context.period
    if context.kind == .text || context.kind == .image, segmentBase?.indexRange == nil,
      mimeType?.hasSuffix("/mp4") != true
    {
      return .segments(
        SegmentList([
          SegmentReference(
            number: 1, url: resolver.base, start: period.start, duration: period.duration ?? .zero,
            discontinuity: period.index)
        ]))
    }
    let timescale = segmentBase?.timescale ?? 1
    let offset =
      period.start - MediaTime(ticks: segmentBase?.presentationTimeOffset ?? 0, timescale: timescale)
    return .index(
      SegmentIndexReference(
        url: resolver.base, indexRange: segmentBase?.indexRange,
        initialization: try initialization(segmentBase?.initialization, resolver), start: period.start,
        duration: period.duration, timestampOffset: offset, discontinuity: period.index))
  }

  private mutating func segments(
    _ template: MPD.SegmentTemplate, _ representation: MPD.Representation, _ resolver: URLResolver,
    in context: SetContext
  ) throws(ReelError) -> SegmentList {
    guard let text = template.media else {
      throw ReelError(.badManifest, "the SegmentTemplate has no @media")
    }
    let media = try SegmentURLTemplate(
      text, representationID: representation.id, bandwidth: representation.bandwidth)
    let timing = try timing(template.common, hasParts: media.usesSubNumber, available: nil, in: context)
    var initialization = try initialization(template.common.base.initialization, resolver)
    if let text = template.initialization {
      let template = try SegmentURLTemplate(
        text, representationID: representation.id, bandwidth: representation.bandwidth)
      guard !template.isPerSegment, !template.usesSubNumber else {
        throw ReelError(.badManifest, "the template '\(text.excerpt)' of an initialization names a segment")
      }
      let reference = template.text(number: 0, time: 0, subNumber: 0)
      initialization = InitializationReference(url: try resolver.resolve(reference))
    }
    let first = timing[0]
    _ = try resolver.resolve(
      media.text(number: first.number, time: first.segmentStart, subNumber: first.subNumber))
    return list(timing, template.common, initialization, in: context) { slot in
      (resolver.url(media.text(number: slot.number, time: slot.segmentStart, subNumber: slot.subNumber)), nil)
    }
  }

  private mutating func segments(
    _ list: MPD.SegmentList, _ resolver: URLResolver, in context: SetContext
  ) throws(ReelError) -> SegmentList {
    guard !list.urls.isEmpty else {
      if let href = list.href {
        throw ReelError(
          .unsupported,
          "the SegmentList stands in another file (xlink:href '\(href.excerpt)'), which is not read")
      }
      throw ReelError(.badManifest, "the SegmentList has no SegmentURL")
    }
    try check(list.urls, resolver)
    let timing = try timing(list.common, hasParts: false, available: list.urls.count, in: context)
    let initialization = try initialization(list.common.base.initialization, resolver)
    let (urls, firstNumber) = (list.urls, list.common.startNumber ?? 1)
    return self.list(timing, list.common, initialization, in: context) { slot in
      let index = Int(clamping: slot.number &- firstNumber)
      guard urls.indices.contains(index) else { return (resolver.base, nil) }
      return (resolver.url(urls[index].media ?? ""), urls[index].mediaRange)
    }
  }

  /// When the segments start. Throws where that can't be told, or there are none.
  private mutating func timing(
    _ common: MPD.MultipleSegmentBase, hasParts: Bool, available: Int?, in context: SetContext
  ) throws(ReelError) -> SegmentTiming {
    var frame = SegmentTiming.Frame(
      timescale: common.base.timescale ?? 1, presentationTimeOffset: common.base.presentationTimeOffset ?? 0,
      startNumber: common.startNumber ?? 1, endNumber: common.endNumber,
      periodDuration: context.period.duration, hasParts: hasParts, limit: limits.segments)
    let timing: SegmentTiming
    if let timeline = common.timeline {
      if let available {
        let (last, overflow) = frame.startNumber.addingReportingOverflow(Int64(available) - 1)
        frame.endNumber = min(frame.endNumber ?? .max, overflow ? .max : last)
      }
      timing = try compiled(timeline.entries, frame)
    } else {
      if mpd.type == .dynamic, context.period.duration == nil, available == nil, common.endNumber == nil {
        throw ReelError(
          .unsupported, "a live MPD that numbers its segments by the clock is not played yet",
          advice: "use one with a SegmentTimeline")
      }
      timing = try SegmentTiming(duration: common.duration, available: available, frame: frame)
    }
    guard timing.count > 0 else {
      throw ReelError(.badManifest, "the Representation has no segments in its period")
    }
    return timing
  }

  /// A compiled timeline. Representations that inherit theirs share the array of its entries, so that its address
  /// tells: one timeline is compiled once, however many use it.
  private mutating func compiled(
    _ entries: [MPD.SegmentTimeline.Entry], _ frame: SegmentTiming.Frame
  ) throws(ReelError) -> SegmentTiming {
    let key = TimingKey(
      entries: entries.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }, frame: frame)
    if let known = timings[key] { return known }
    // Each representation may understand one long timeline in another way: what that adds up to is bounded.
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
    in context: SetContext,
    location: @escaping @Sendable (SegmentTiming.Slot) -> (url: URL, range: ByteRange?)
  ) -> SegmentList {
    let period = context.period
    let timescale = common.base.timescale ?? 1
    let offset =
      period.start - MediaTime(ticks: common.base.presentationTimeOffset ?? 0, timescale: timescale)
    // Segments of one nominal length fill the period: the last is cut where the period ends.
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
    return SegmentList(count: timing.count, end: lastStart + lastDuration) { index in
      let slot = timing[index]
      let (start, duration) = time(slot, index)
      let (url, range) = location(slot)
      return SegmentReference(
        number: slot.number, url: url, byteRange: range, start: start, duration: duration,
        initialization: initialization, discontinuity: period.index, timestampOffset: offset)
    }
  }

  private func initialization(
    _ reference: MPD.URLReference?, _ resolver: URLResolver
  ) throws(ReelError) -> InitializationReference? {
    guard let reference else { return nil }
    return InitializationReference(
      url: try resolver.resolve(reference.sourceURL ?? ""), byteRange: reference.range)
  }

  /// Looks at each URL of a list once.
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
