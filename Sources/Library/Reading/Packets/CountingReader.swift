package import ReelCore
package import ReelManifest
package import ReelSources

/// Loads a presentation's video, or one audio rendition, segment by segment, and counts the bytes instead of
/// demuxing them.
///
/// It decides like a `SegmentReader`, and sends the same requests in the same order: for playlists,
/// initializations, keys and segments. It needs no thread. While nobody calls `next()`, transfers are held back, as
/// by a full buffer.
///
/// It takes times from the manifest: rounded durations of a list are not corrected, and after a seek no segment is
/// requested that only tells when the timestamps begin. It does not find what only the samples show: damage within
/// them, missing frames, keys that the manifest does not name.
///
/// Used by one task at a time.
package final class CountingReader: @unchecked Sendable {
  // Sendable: one task uses it at a time, and each has ended before the next one begins.
  private let source: SegmentSource
  private let context: TrackContext
  private let log: ReadingLog
  private var span: Span?

  /// The known properties of the presentation and of the segments that are loaded. `video` and `audio` stay nil.
  package private(set) var streams = ReaderStreams()

  /// The segments of one rung that are loaded one after the other.
  private struct Span {
    let place: SegmentSource.Place
    let stream: SegmentStream
    let cut: PeriodCut?
    var hasMedia = false
  }

  /// Loads nothing yet. The parameters are those of `ResolvedSource.packetReader`.
  ///
  /// Throws `ReelError` if the source is a media file.
  package init(
    _ source: OpenSource, for role: ReaderRole, controller: RungController, offsets: TimestampOffsets,
    log: @escaping ReadingLog, scope: LoadScope
  ) throws(ReelError) {
    let resolved = try source.presentation
    self.source = SegmentSource(
      resolved, role: role, manifests: source.manifests, context: source.context, controller: controller,
      offsets: offsets, isAlone: false, beginsByDefault: true,
      keys: KeyStore(fetcher: source.context.fetcher, runtime: scope.runtime), log: log, scope: scope,
      shared: nil)
    context = source.context
    self.log = log
    streams.duration = resolved.presentation.duration
    streams.live = resolved.presentation.live
  }

  /// The fault of media that has ended without anything to load; nil for none.
  package var endFault: ReelError? { source.endFault }

  /// The number of segments that could not be loaded, or had left the live window.
  package var missedSegmentCount: Int { source.missedCount }

  /// Ends the transfers, and goes to the segment at a time.
  ///
  /// - Parameters:
  ///   - time: The position on the item's own timeline; nil for the start of playback.
  ///   - isAgain: True if the item has been loaded to its end, and loops: it then begins with its first segment.
  ///   - scope: Its end ends the transfers from here on.
  package func seek(to time: MediaTime?, isAgain: Bool = false, scope: LoadScope) {
    span = nil
    streams.beginning = nil
    source.scope = scope
    source.seek(to: time, isAgain: isAgain)
  }

  /// Waits for more media; nil at the end of the presentation. Sends requests, retries and switches rungs as
  /// needed.
  ///
  /// Throws `ReelError` if there is nothing left to try, and `CancellationError` if the task is cancelled or the
  /// scope has ended.
  package func next() async throws -> LoadedMedia? {
    while true {
      if span == nil { span = try await openSpan() }
      guard let span else { return nil }
      let failure: ReelError
      do {
        if let arrival = try await span.stream.arrival() { return try await media(of: arrival, in: span) }
        guard let error = span.stream.failure else {
          leave(span)
          continue
        }
        failure = error
      } catch let error as ReelError {
        failure = error
      }
      self.span = nil
      let name = (span.stream.lastURL ?? span.place.segment.url).reelName
      try source.recover(from: failure.located(at: name), at: span.stream.nextIndex, of: span.place)
    }
  }

  // MARK: - Private

  /// Requests the segment that begins the next span; nil at the end of the last period.
  private func openSpan() async throws -> Span? {
    guard let place = try await source.scope.perform({ [source] in try await source.next() }) else {
      return nil
    }
    if streams.duration == nil { streams.duration = place.track.supply.end }
    if streams.beginning == nil { streams.beginning = source.beginning }
    if case .main = source.role { log(.rung(place.track.rung)) }
    log(.segment(duration: place.segment.duration))
    let stream = SegmentStream(
      place.track, from: place.index, place.segment, readsAhead: context.readsAhead, scope: source.scope,
      options: SegmentDownload.Options(capacity: context.configuration.pipeCapacity)
    ) { [source] segment in source.stays(at: place, for: segment) }
    return Span(place: place, stream: stream, cut: source.cut(of: place))
  }

  /// Continues after a span that was loaded to its end.
  private func leave(_ span: Span) {
    self.span = nil
    // A live track may have skipped the only segment.
    guard span.hasMedia else { return source.skip(span.place) }
    source.leave(span.place, before: span.stream.nextIndex, hasPackets: true)
  }

  private func media(of arrival: SegmentStream.Arrival, in span: Span) async throws -> LoadedMedia {
    let (segment, supply) = (arrival.segment, span.place.track.supply)
    // A demuxer asks for the key of samples, first the provider.
    if context.configuration.keyProvider == nil, let encryption = segment.encryption,
      encryption.encryptsSamples, encryption.systems.isEmpty, let url = encryption.keyURL
    {
      _ = try await source.scope.perform { [keys = source.opener.keys] in
        try await keys.key(at: url, of: segment.url.reelName)
      }
    }
    if !span.hasMedia {
      self.span?.hasMedia = true
      source.recordSuccess()
      streams.rung = span.place.track.rung
      streams.live = supply.timing
      streams.liveSegments = supply.reference
    }
    let media = LoadedMedia(
      rung: span.place.track.rung, range: segment.range, share: arrival.share, byteCount: arrival.byteCount,
      hasFirstFrame: arrival.hasFirstFrame,
      followsGap: span.place.followsGap && arrival.index == span.place.index)
    if let cut = span.cut, let end = cut.end, cut.isExceeded(by: media.end) {
      self.span = nil
      source.endPeriod(of: span.place, at: end)
    }
    return media
  }
}

/// The part of a segment that has been loaded so far.
package struct LoadedMedia: Sendable {
  package let rung: Rung
  /// The place of the whole segment on the item's own timeline, as the manifest states it.
  package let range: Range<MediaTime>
  /// How much of the segment has been loaded, from 0 to 1: in proportion to its bytes if their number is known, or
  /// else estimated from the bit rate. 1 at the end of the segment.
  package let share: Double
  /// The number of bytes of the segment that have arrived since the last media.
  package let byteCount: Int
  /// True once the first frame of the segment is complete.
  package let hasFirstFrame: Bool
  /// True if media before the segment is missing: a gap, or a segment that was skipped.
  package let followsGap: Bool

  /// True at the end of the segment, with which no bytes come.
  package var isWhole: Bool { byteCount == 0 }

  /// The time up to which the segment is loaded.
  package var end: MediaTime {
    share < 1
      ? range.lowerBound + MediaTime(seconds: (range.upperBound - range.lowerBound).seconds * share)
      : range.upperBound
  }
}
