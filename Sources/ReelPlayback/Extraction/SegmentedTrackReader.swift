internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The video track of a presentation: one rung of each period that has video, its segments run by run.
///
/// A run is what can be demuxed as one container: segments with the same initialization and no discontinuity between
/// them. Each run has a demuxer and a decoder of its own.
///
/// A live presentation is one endless track, over all its periods; it begins at its distance from the edge.
final class SegmentedTrackReader: VideoTrackReader {
  /// The rung read in the first period that has video.
  private(set) var rung: Rung

  private let presentation: Presentation
  /// The periods that have video.
  private let periods: [Period]
  private let live: LiveTrack
  private let resolver: SourceResolver
  private let context: TrackContext
  private let selector: RungSelector
  private let keys: KeyStore
  private let location = ServiceLocation()
  /// The track by period, made when it is reached.
  private var tracks: [Int: Track] = [:]
  private var periodIndex = 0
  /// The segment that the next run begins with; nil for the one that the track begins with.
  private var segmentIndex: Int?
  private var run: Run?
  private var finishedTiming = PictureReader.Timing()
  private var finishedDamage = 0

  private struct Track {
    let segments: any SegmentSupply
    let loader: SegmentLoader
    /// The whole file is one segment although an index would cut it: good for the first picture only.
    let isWholeFile: Bool
    let isLive: Bool
    /// What the manifest states about the encryption of its samples.
    let protection: ContentProtection?
  }

  private final class Run {
    let feed: SegmentFeed
    let reader: PictureReader
    /// Added to media time to get presentation time; nil before an HLS run's first picture.
    var offset: MediaTime?
    let start: MediaTime

    init(feed: SegmentFeed, reader: PictureReader, offset: MediaTime?, start: MediaTime) {
      self.feed = feed
      self.reader = reader
      self.offset = offset
      self.start = start
    }
  }

  /// - Parameter first: The rung to read first and its segments, if its playlist has already been read.
  init(
    _ resolved: ResolvedPresentation, first known: (rung: Rung, segments: RungSegments)?,
    resolver: SourceResolver, context: TrackContext
  ) throws(ReelError) {
    presentation = resolved.presentation
    self.resolver = resolver
    self.context = context
    keys = KeyStore(fetcher: context.fetcher, headers: context.configuration.headers)
    selector = RungSelector(context.configuration)
    periods = presentation.periods(carrying: .main(wantsAudio: false))
    guard let first = periods.first else {
      throw ReelError(.badManifest, "the presentation has no period", at: context.name)
    }
    do {
      if let known { rung = known.rung } else { rung = try selector.videoRung(in: first) }
    } catch {
      throw error.located(at: context.name)
    }
    live = LiveTrack(resolved, resolver: resolver, role: .main(wantsAudio: false)) {
      [selector] period throws(ReelError) in
      try selector.videoRung(in: period)
    }
    if let known, case .playlist = rung.media {
      tracks[0] = track(known.segments, of: rung)
    }
  }

  var picture: PictureReader? { run?.reader }
  var timing: PictureReader.Timing { run.map { finishedTiming + $0.reader.timing } ?? finishedTiming }
  var missedSegmentCount: Int { tracks.values.reduce(0) { $0 + $1.segments.missedCount } }
  var damagedCount: Int { finishedDamage + (run?.reader.damagedCount ?? 0) }

  func firstPicture() throws -> TimedPicture? { try read { try $0.firstPicture() } }

  func nextPicture() throws -> TimedPicture? { try read { try $0.nextPicture() } }

  func seek(to time: MediaTime) throws {
    closeRun()
    periodIndex = presentation.isLive ? 0 : periods.lastIndex { $0.start <= time } ?? 0
    let track = try track(periodIndex, needsSegments: true)
    segmentIndex = track.segments.index(at: time) ?? 0
  }

  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool {
    if time < position { return true }
    guard let run, let track = tracks[periodIndex], !track.isWholeFile else {
      return time - position > MediaTime(value: 2, timescale: 1)
    }
    if periodIndex + 1 < periodCount, periods[periodIndex + 1].start <= time { return true }
    guard let wanted = track.segments.index(at: time), let current = track.segments.index(at: position) else {
      return false
    }
    return wanted > max(current, run.feed.firstIndex)
  }

  // MARK: - Private

  private func read(_ next: (PictureReader) throws -> Frame?) throws -> TimedPicture? {
    while let run = try openRun() {
      do {
        // A run's first picture decides how its timestamps lie on the timeline.
        if let frame = try next(run.reader) { return timed(frame, in: run) }
      } catch let error as ReelError {
        throw error.located(at: (run.feed.currentURL?.reelName ?? context.name))
      }
      let next = run.feed.nextIndex
      closeRun()
      segmentIndex = next
    }
    return nil
  }

  private func timed(_ frame: consuming Frame, in run: Run) -> TimedPicture {
    let stream = run.reader.stream
    let media = stream.time(ticks: frame.presentationTicks ?? 0)
    let offset = run.offset ?? run.start - media
    run.offset = offset
    return TimedPicture(frame: frame, time: media + offset, stream: stream, frameRate: run.reader.frameRate)
  }

  private func closeRun() {
    guard let run else { return }
    finishedTiming = finishedTiming + run.reader.timing
    finishedDamage += run.reader.damagedCount
    self.run = nil
  }

  private var periodCount: Int { presentation.isLive ? 1 : periods.count }

  /// The open run, or the next one; nil at the end of the last period.
  private func openRun() throws -> Run? {
    if let run { return run }
    while periodIndex < periodCount {
      let track = try track(periodIndex, needsSegments: false)
      guard let (index, segment) = try segment(of: track, from: segmentIndex ?? track.segments.firstIndex)
      else {
        periodIndex += 1
        segmentIndex = nil
        continue
      }
      segmentIndex = index
      if let run = try makeRun(track, from: index, segment) {
        self.run = run
        return run
      }
    }
    return nil
  }

  /// The first segment from `index` on that is no gap, waited for where it is still to come; nil for none.
  private func segment(of track: Track, from index: Int) throws -> (Int, SegmentReference)? {
    var index = index
    while true {
      switch track.segments.peek(at: index) {
      case .ended: return nil
      case .segment(let segment) where segment.isGap: index += 1
      case .segment(let segment): return (index, segment)
      case .awaited:
        let (supply, wanted) = (track.segments, index)
        let found = try BlockingThread.wait(scope: context.scope) {
          try await supply.segment(from: wanted)?.index
        }
        guard let found else { return nil }
        index = found
      }
    }
  }

  /// The run that begins with `segment`; nil where it was passed over, and the next is to be tried.
  private func makeRun(_ track: Track, from index: Int, _ segment: SegmentReference) throws -> Run? {
    let feed = SegmentFeed(
      track.loader, from: index, readsAhead: context.readsAhead, scope: context.scope,
      recorder: context.recorder)
    do {
      let start = context.recorder.clock.now
      let head = try feed.peek(SourceSniffer.byteCount / 4)
      finishedTiming.source += context.recorder.clock.now - start
      if head.isEmpty, track.isLive {
        segmentIndex = max(feed.nextIndex, index + 1)
        return nil
      }
      guard case .media(let format) = SourceSniffer.kind(of: head) else {
        let what =
          if case .other(let description) = SourceSniffer.kind(of: head) { description } else { "a manifest" }
        throw ReelError(
          .badMedia, "the segment is not media: \(what)",
          advice: segment.encryption == nil ? nil : "it was decrypted, but the key may be wrong")
      }
      let reader = try PictureReader(
        source: feed, format: format,
        options: context.options(
          isSeekable: false, keys: feed.keys(keys, protection: track.protection, context: context)),
        name: context.name, logger: context.logger)
      return Run(feed: feed, reader: reader, offset: segment.timestampOffset, start: segment.start)
    } catch let error as ReelError {
      throw error.located(at: (feed.currentURL ?? segment.url).reelName)
    }
  }

  private func track(_ index: Int, needsSegments: Bool) throws -> Track {
    if let track = tracks[index], !(needsSegments && track.isWholeFile) { return track }
    let made = try makeTrack(index, needsSegments: needsSegments)
    tracks[index] = made
    return made
  }

  private func makeTrack(_ index: Int, needsSegments: Bool) throws -> Track {
    if presentation.isLive {
      return track(try live.segments(), of: self.rung, isLive: true)
    }
    let candidates: [Rung]
    do {
      candidates = try selector.candidates(in: periods[index])
    } catch {
      throw error.located(at: context.name)
    }
    if case .index(let reference)? = candidates.first?.media, !needsSegments || reference.indexRange == nil {
      // Read from its start, the file brings its own initialization: one request instead of three.
      return track(
        ListedSegments(list: SegmentList([resolver.wholeFile(reference)])), of: rung,
        isWholeFile: reference.indexRange != nil)
    }
    let (resolver, variables) = (resolver, presentation.variables)
    let (rung, found) = try BlockingThread.wait(scope: context.scope) {
      try await resolver.segments(ofFirst: candidates, variables: variables)
    }
    if index == 0 { self.rung = rung }
    guard !found.list.isEmpty || found.live != nil else {
      throw ReelError(.badManifest, "no segments to play", at: context.name)
    }
    return track(found, of: rung)
  }

  private func track(_ found: RungSegments, of rung: Rung) -> Track {
    if let segments = live.segments(found, of: rung) { return track(segments, of: rung, isLive: true) }
    return track(ListedSegments(list: found.list), of: rung)
  }

  private func track(
    _ segments: any SegmentSupply, of rung: Rung, isWholeFile: Bool = false, isLive: Bool = false
  ) -> Track {
    let loader = SegmentLoader(
      supply: segments, fetcher: context.fetcher, headers: context.configuration.headers, keys: keys,
      location: location, recorder: context.recorder)
    return Track(
      segments: segments, loader: loader, isWholeFile: isWholeFile, isLive: isLive,
      protection: rung.protection)
  }
}
