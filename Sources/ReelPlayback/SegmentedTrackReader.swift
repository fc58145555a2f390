internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The video track of a presentation: one rung of each period, its segments run by run.
///
/// A run is what can be demuxed as one container: segments with the same initialization and no discontinuity between
/// them. Each run has a demuxer and a decoder of its own.
final class SegmentedTrackReader: VideoTrackReader {
  /// The rung that is read of the first period.
  let rung: Rung

  private let presentation: Presentation
  private let resolver: SourceResolver
  private let context: TrackContext
  private let selector: RungSelector
  /// The track by period, made when it is reached.
  private var tracks: [Int: Track] = [:]
  private var periodIndex = 0
  /// The segment that the next run begins with.
  private var segmentIndex = 0
  private var run: Run?
  private var finishedTiming = PictureReader.Timing()
  private var finishedDamage = 0

  private struct Track {
    let segments: SegmentList
    let rung: Rung
    /// The whole file is one segment although an index would cut it: good for the first picture only.
    let isWholeFile: Bool
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

  /// - Parameter firstSegments: those of the first period's rung, where its playlist has been read: it is not read again.
  init(
    _ presentation: Presentation, firstSegments: SegmentList?, resolver: SourceResolver, context: TrackContext
  ) throws(ReelError) {
    self.presentation = presentation
    self.resolver = resolver
    self.context = context
    selector = RungSelector(
      bandwidthCap: context.configuration.bandwidthCap, maximumHeight: context.configuration.maximumHeight)
    guard let first = presentation.periods.first else {
      throw ReelError(.badManifest, "the presentation has no period", at: context.name)
    }
    do {
      rung = try selector.videoRung(in: first)
    } catch {
      throw error.located(at: context.name)
    }
    if let firstSegments, !firstSegments.isEmpty, case .playlist = rung.media {
      tracks[0] = Track(segments: firstSegments, rung: rung, isWholeFile: false)
    }
  }

  var picture: PictureReader? { run?.reader }
  var timing: PictureReader.Timing { run.map { finishedTiming + $0.reader.timing } ?? finishedTiming }
  var damagedCount: Int { finishedDamage + (run?.reader.damagedCount ?? 0) }

  func firstPicture() throws -> TimedPicture? { try read { try $0.firstPicture() } }

  func nextPicture() throws -> TimedPicture? { try read { try $0.nextPicture() } }

  func seek(to time: MediaTime) throws {
    closeRun()
    periodIndex = presentation.periods.lastIndex { $0.start <= time } ?? 0
    let track = try track(periodIndex, needsSegments: true)
    segmentIndex = track.segments.index(at: time) ?? 0
  }

  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool {
    if time < position { return true }
    guard let run, let track = tracks[periodIndex], !track.isWholeFile else {
      return time - position > MediaTime(value: 2, timescale: 1)
    }
    if let next = presentation.periods.dropFirst(periodIndex + 1).first, next.start <= time { return true }
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

  /// The open run, or the next one; nil at the end of the last period.
  private func openRun() throws -> Run? {
    if let run { return run }
    while periodIndex < presentation.periods.count {
      let track = try track(periodIndex, needsSegments: false)
      while segmentIndex < track.segments.count, track.segments[segmentIndex].isGap { segmentIndex += 1 }
      guard segmentIndex < track.segments.count else {
        periodIndex += 1
        segmentIndex = 0
        continue
      }
      let run = try makeRun(track)
      self.run = run
      return run
    }
    return nil
  }

  private func makeRun(_ track: Track) throws -> Run {
    let segment = track.segments[segmentIndex]
    let feed = SegmentFeed(
      segments: track.segments, from: segmentIndex, readsAhead: context.readsAhead, fetcher: context.fetcher,
      headers: context.configuration.headers, scope: context.scope, recorder: context.recorder)
    do {
      let start = ContinuousClock.now
      let head = try feed.peek(SourceSniffer.byteCount / 4)
      finishedTiming.source += ContinuousClock.now - start
      guard case .media(let format) = SourceSniffer.kind(of: head) else {
        let what =
          if case .other(let description) = SourceSniffer.kind(of: head) { description } else { "a manifest" }
        throw ReelError(.badMedia, "the segment is not media: \(what)")
      }
      let reader = try PictureReader(
        source: feed, format: format, options: context.options(isSeekable: false), name: context.name,
        logger: context.logger)
      return Run(feed: feed, reader: reader, offset: segment.timestampOffset, start: segment.start)
    } catch let error as ReelError {
      throw error.located(at: (feed.currentURL ?? segment.url).reelName)
    }
  }

  private func track(_ index: Int, needsSegments: Bool) throws -> Track {
    if let track = tracks[index], !(needsSegments && track.isWholeFile) { return track }
    let period = presentation.periods[index]
    let rung: Rung
    do {
      rung = try index == 0 ? self.rung : selector.videoRung(in: period)
    } catch {
      throw error.located(at: context.name)
    }
    let made: Track
    if case .index(let reference) = rung.media, !needsSegments || reference.indexRange == nil {
      // Read from its start, the file brings its own initialization: one request instead of three.
      made = Track(
        segments: SegmentList([resolver.wholeFile(reference)]), rung: rung,
        isWholeFile: reference.indexRange != nil)
    } else {
      let (resolver, variables) = (resolver, presentation.variables)
      let segments = try BlockingThread.wait(scope: context.scope) {
        try await resolver.segments(of: rung, variables: variables)
      }
      guard !segments.isEmpty else { throw ReelError(.badManifest, "no segments to play", at: context.name) }
      made = Track(segments: segments, rung: rung, isWholeFile: false)
    }
    tracks[index] = made
    return made
  }
}
