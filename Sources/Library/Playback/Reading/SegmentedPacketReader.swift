internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Reads the packets of a presentation's video, or of one audio rendition, span by span.
///
/// A span can be demuxed as one container: segments of one rung with the same initialization and no
/// discontinuity. Before each segment a rung is chosen (`RungController`). A change of rung begins a new span
/// with the segment at the position where the last one ended.
///
/// After a failure the reader tries, in this order: another rung, avoiding the failed one for a while; another
/// location (BaseURL, redundant variant); then, if the failure is final, it skips the segment, and the media
/// after it follows a gap. The third skipped segment in a row is an error.
final class SegmentedPacketReader: PacketReader {
  private let resolved: ResolvedPresentation
  /// The periods that have the media to read. The reader skips the others.
  private let periods: [Period]
  private let opener: RungOpener
  private let context: TrackContext
  private let role: ReaderRole
  private let controller: RungController
  private let offsets: TimestampOffsets
  private let isAlone: Bool
  private let log: any ReadingLog
  private var scope: LoadScope
  private var tracks: [TrackKey: RungTrack] = [:]
  private var place = Place.start
  private var periodIndex = 0
  private var span: SegmentSpan?
  private var loop = LoopIteration()
  private var dropsAudio = false
  private var followsGap = false
  private var passedOverInARow = 0
  private var passedOverCount = 0
  /// The reason why the first of these segments was skipped; nil once something was read.
  private var passedOver: ReelError?
  private var hasRead = false
  /// The time from which segments are not read.
  private var endTime: MediaTime?
  private(set) var segmentURL: URL?
  private var planned: PlannedSegments?

  private typealias TrackKey = SegmentSpan.Key

  /// The position at which reading continues.
  private enum Place {
    /// The start of playback.
    case start
    case time(MediaTime)
    /// After a segment of a rung.
    case after(TrackKey, index: Int, end: MediaTime)
    case segment(TrackKey, index: Int)
  }

  /// The distance from which a seek is worthwhile while the segments are not known: they are rarely shorter.
  private static let worthwhileDistance = MediaTime(value: 2, timescale: 1)

  init(
    _ resolved: ResolvedPresentation, role: ReaderRole, resolver: SourceResolver, context: TrackContext,
    controller: RungController, offsets: TimestampOffsets, isAlone: Bool, keys: KeyStore, log: any ReadingLog,
    scope: LoadScope, shared: SharedTracks? = nil
  ) {
    tracks = shared?.tracks ?? [:]
    opened = shared?.opened
    self.resolved = resolved
    periods = resolved.presentation.periods(carrying: role)
    self.role = role
    opener = RungOpener(
      resolved: resolved, resolver: resolver, role: role, context: context, location: controller.location,
      offsets: offsets, keys: keys, initializations: shared?.initializations ?? InitializationStore(),
      log: log)
    self.context = context
    self.controller = controller
    self.offsets = offsets
    self.isAlone = isAlone
    self.log = log
    self.scope = scope
    streams.duration = resolved.presentation.duration
    streams.live = resolved.presentation.live
  }

  private(set) var streams = ReaderStreams()
  var waits: ReaderWaits {
    var waits = finishedWaits
    if let container = span?.container { waits.media += container.sourceWait }
    return waits
  }
  /// The waiting times of closed containers.
  private var finishedWaits = ReaderWaits()

  func prepare() throws { if span == nil { _ = try openSpan() } }

  func next() throws -> ReadUnit {
    while true {
      guard let span = try span ?? openSpan() else { return .end }
      let failure: (error: ReelError, index: Int)
      do {
        let container = try span.awakeContainer(dropsAudio: dropsAudio, context: context)
        while let unit = try read(span, container) {
          if !span.hasPackets {
            span.hasPackets = true
            passedOverInARow = 0
            passedOver = nil
            hasRead = true
            controller.recordSuccess()
          }
          return unit
        }
        guard let error = span.feed.failure else {
          closeSpan()
          continue
        }
        failure = (error.located(at: context.name), span.feed.nextIndex)
      } catch let error as ReelError {
        if span.feed.hasFailed {
          failure = (error.located(at: context.name), span.feed.nextIndex)
        } else {
          // A failure of the demuxer is in the bytes that it has read, not in those loaded ahead.
          let part = span.feed.part(at: span.position - 1)
          failure = (
            error.located(at: part?.url.reelName ?? context.name), part?.index ?? span.feed.nextIndex
          )
        }
      }
      try recover(from: failure.error, at: failure.index, in: span)
    }
  }

  func seek(to time: MediaTime?, loop: LoopIteration, scope: LoadScope) throws {
    self.scope = scope
    self.loop = loop
    endTime = nil
    finishedWaits.media += span?.container?.sourceWait ?? .zero
    span = nil
    followsGap = false
    passedOverInARow = 0
    passedOver = nil
    if let time {
      place = .time(time)
      periodIndex =
        resolved.presentation.isLive ? 0 : periods.lastIndex { $0.start <= time } ?? 0
    } else {
      place = .start
      periodIndex = 0
    }
  }

  func end(before time: MediaTime) { endTime = time }

  /// Requests the segments in parallel, if their transfers end by themselves after the key frame.
  func plan(_ places: [KeyFramePlace]) {
    guard context.configuration.reading.endsTransfers, let span, span.feed.hasFoundKeyFrame,
      span.track.supply.live == nil
    else { return }
    var indexes: [Int] = []
    for index in places.compactMap({ span.track.supply.index(at: $0.seekTime) }) where index != indexes.last {
      indexes.append(index)
    }
    planned = PlannedSegments(key: span.key, track: span.track, indexes: indexes)
    // The rest of its transfer would take a share of the network.
    finishedWaits.media += span.container?.sourceWait ?? .zero
    self.span = nil
    place = .segment(span.key, index: span.firstIndex + 1)
    beginPlanned()
  }

  func setDropsAudio(_ drops: Bool) {
    dropsAudio = drops
    span?.container?.setDropsAudio(drops)
  }

  func rest() -> Bool {
    guard let span, let waited = span.rest() else { return false }
    finishedWaits.media += waited
    return true
  }

  var endFault: ReelError? { hasRead ? nil : passedOver }

  /// The rung that was opened last, with its segments, even if none of them could be read.
  private(set) var opened: RungTrack?

  /// The number of segments that could not be loaded, or had left the live window.
  var missedSegmentCount: Int { passedOverCount + tracks.values.reduce(0) { $0 + $1.supply.missedCount } }

  var containerStreams: [StreamInfo] { span?.container?.streams ?? [] }
  var position: Int64 { span?.position ?? 0 }

  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool {
    if time < position { return true }
    guard let span else { return time - position > Self.worthwhileDistance }
    if periodIndex + 1 < periodCount, periods[periodIndex + 1].start <= time { return true }
    guard let wanted = span.track.supply.index(at: time),
      let current = span.track.supply.index(at: position)
    else { return false }
    return wanted > max(current, span.firstIndex)
  }

  func keyFramePlaces(until isEnough: (KeyFramePlace) -> Bool) -> [KeyFramePlace]? {
    guard let supply = opened?.supply else { return nil }
    var places: [KeyFramePlace] = []
    var index = (span?.firstIndex ?? supply.firstIndex) + 1
    while case .segment(let segment) = supply.peek(at: index) {
      index += 1
      if segment.isGap { continue }
      // Starts are rounded, so seek to the middle.
      let middle = MediaTime(seconds: segment.duration.seconds / 2)
      let place = KeyFramePlace(time: segment.start, seekTime: segment.start + middle)
      places.append(place)
      if isEnough(place) { break }
    }
    return places
  }

  func allKeyFramePlaces() throws -> [KeyFramePlace]? {
    var places: [KeyFramePlace] = []
    let (here, index, first) = (place, periodIndex, opened)
    defer { (place, periodIndex, opened) = (here, index, first) }
    for period in 0..<periodCount {
      if scope.isCancelled { throw CancellationError() }
      if period != index { place = .time(periods[period].start) }
      periodIndex = period
      guard let rung = controller.choose(among: try ladder(of: period), segmentDuration: nil) else {
        continue
      }
      let supply = try track(SegmentSpan.Key(period: period, rung: rung.id), rung: rung).supply
      for index in supply.knownIndexes {
        guard case .segment(let segment) = supply.peek(at: index), !segment.isGap else { continue }
        // Starts are rounded, so seek to the middle.
        let middle = MediaTime(seconds: segment.duration.seconds / 2)
        places.append(KeyFramePlace(time: segment.start, seekTime: segment.start + middle))
      }
    }
    return places
  }

  /// The tracks with which other readers of the same presentation can avoid reading the same playlists and
  /// initializations.
  var shared: SharedTracks {
    SharedTracks(
      tracks: tracks, opened: opened, initializations: opener.initializations,
      offsets: offsets, keys: opener.keys)
  }

  // MARK: - Private

  private var wantsVideo: Bool { if case .main = role { true } else { false } }

  private func read(
    _ span: SegmentSpan, _ container: ContainerReader
  ) throws -> ReadUnit? {
    while true {
      let unit = try container.next()
      if container.takeDamage() != nil { span.mapper.recordDamage() }
      defer { recordHole(in: span) }
      if streams.audio?.index != container.audio?.index { streams.audio = container.audio }
      switch unit {
      case .video(let box):
        if let packet = try span.mapper.stamped(box, .video) { return .packet(packet, .video) }
      case .audio(let box):
        if let packet = try span.mapper.stamped(box, .audio) { return .packet(packet, .audio) }
      case .programChanged:
        streams.video = container.video
        streams.audio = container.audio
        span.mapper.begin(container)
      case .end:
        return nil
      }
    }
  }

  /// Reports media that is missing before the last packet, unless its segment is known to be damaged.
  private func recordHole(in span: SegmentSpan) {
    guard let hole = span.mapper.takeHole() else { return }
    let (kind, supply) = (hole.kind == .video ? PlayerItem.Track.Kind.video : .audio, span.track.supply)
    let (start, length) = (hole.range.lowerBound, hole.range.upperBound - hole.range.lowerBound)
    let middle = start + MediaTime(seconds: length.seconds / 2)
    var cause: (index: Int, segment: SegmentReference)?
    if let index = supply.index(at: middle), case .segment(let segment) = supply.peek(at: index),
      middle < segment.start + segment.duration
    {
      cause = (index, segment)
    }
    guard let cause else {
      let error = ReelError(.badManifest, "there is no segment \(hole.range.words)", at: context.name)
      return log.recordHole(
        error, rung: span.track.rung.id, MediaLoss(kind: kind, reason: .missing, range: hole.range))
    }
    // A frame may stay on show for long within a segment. If a segment lacks its end, the next frame is in
    // the next one.
    guard !span.feed.isDamaged(cause.index),
      hole.followsDamage || endsSegment(hole.range.upperBound, of: supply)
    else { return }
    let error = ReelError(
      .badMedia, "the segment has no \(kind.rawValue) \(hole.range.words)", at: cause.segment.url.reelName)
    log.recordHole(
      error, rung: span.track.rung.id, MediaLoss(kind: kind, reason: .damaged, range: hole.range))
  }

  /// Returns true if a segment ends at `time`, apart from leading frames.
  private func endsSegment(_ time: MediaTime, of supply: any SegmentSupply) -> Bool {
    let tolerance = MediaTime(value: 1, timescale: 5)
    guard let index = supply.index(at: time - tolerance), case .segment(let segment) = supply.peek(at: index)
    else {
      return false
    }
    return segment.start + segment.duration <= time + tolerance
  }

  /// Ends the span. The next one begins where this one stopped.
  private func closeSpan() {
    guard let span else { return }
    let next = span.feed.nextIndex
    finishedWaits.media += span.container?.sourceWait ?? .zero
    self.span = nil
    if next <= span.firstIndex, !span.hasPackets {
      place = .segment(span.key, index: span.firstIndex + 1)
    } else if case .segment(let last) = span.track.supply.peek(at: next - 1) {
      place = .after(span.key, index: next - 1, end: last.start + last.duration)
    } else {
      place = .segment(span.key, index: next)
    }
  }

  /// Decides where to continue after a failure; throws it if there is nothing left to try.
  private func recover(from error: ReelError, at index: Int, in span: SegmentSpan) throws {
    finishedWaits.media += span.container?.sourceWait ?? .zero
    self.span = nil
    try recover(from: error, at: index, of: span.key, rung: span.track.rung)
  }

  private func recover(from error: ReelError, at index: Int, of key: TrackKey, rung: Rung) throws {
    // An error that is thrown is reported by its receiver.
    var outcome: ErrorLogEntry.Outcome?
    defer { log.recordFailure(error, rung: rung.id, outcome: outcome) }
    let locationCount = locationCount(key, index)
    var situation = Recovery.Situation(leftOutInARow: passedOverInARow)
    situation.hasOtherRung = controller.hasOther(than: rung, among: try ladder(of: periodIndex))
    situation.hasOtherLocation = controller.hasOtherLocation(of: locationCount)
    place = .segment(key, index: index)
    switch Recovery.after(error, in: situation) {
    case .otherRung:
      controller.avoid(rung)
      outcome = .otherRung
    case .otherLocation:
      controller.goToNextLocation(of: locationCount)
      if rung.alternateURLs.count > 0 { tracks = [:] }
      outcome = .otherLocation
    case .leaveOut:
      controller.forgive()
      guard case .segment(let segment)? = tracks[key]?.supply.peek(at: index) else {
        throw passedOver ?? error
      }
      outcome = .lost(leaveOut(segment, after: error))
      place = .after(key, index: index, end: segment.range.upperBound)
    case .fail, .again:
      controller.forgive()
      throw passedOver ?? error
    }
  }

  private func leaveOut(_ segment: SegmentReference, after error: ReelError) -> MediaLoss {
    passedOverInARow += 1
    passedOverCount += 1
    passedOver = passedOver ?? error
    followsGap = true
    log.recordPassedOver(error, start: segment.start, duration: segment.duration)
    return MediaLoss(kind: wantsVideo ? .video : .audio, reason: .missing, range: segment.range)
  }

  /// Returns the number of locations of a segment.
  private func locationCount(_ key: TrackKey, _ index: Int) -> Int {
    guard let track = tracks[key] else { return 1 }
    if !track.rung.alternateURLs.isEmpty { return 1 + track.rung.alternateURLs.count }
    guard case .segment(let segment) = track.supply.peek(at: index) else { return 1 }
    return 1 + segment.alternateURLs.count
  }

  private var periodCount: Int { resolved.presentation.isLive ? 1 : periods.count }

  private func ladder(of period: Int) throws -> [Rung] {
    // The ladder of a live presentation is that of its newest period.
    let period = resolved.presentation.isLive ? periods.last : periods[period]
    guard let period else {
      throw ReelError(.badManifest, "the presentation has no period", at: context.name)
    }
    do {
      let ladder = try RungMatcher.ladder(of: period, role: role, configuration: context.configuration)
      return ladder + keyFrameRungs(in: period, besides: ladder)
    } catch {
      // Rungs that are only for trick mode can't be played, but have stills.
      let others = error.kind == .unsupported ? keyFrameRungs(in: period, besides: []) : []
      guard others.isEmpty else { return others }
      throw error.located(at: context.name)
    }
  }

  /// Returns the playlists of I-frames, and the rungs for trick mode, that may be read.
  private func keyFrameRungs(in period: Period, besides ladder: [Rung]) -> [Rung] {
    guard context.configuration.usesIFramePlaylists, wantsVideo else { return [] }
    return resolved.presentation.keyFrameRungs(in: period, besides: ladder)
  }

  private func beginPlanned() {
    planned?.begin { key, track, index in
      try? makeFeed(key, track, from: index, .end, scope: context.scope)
    }
  }

  /// Returns the transfer of a planned segment; nil if there is none, in which case the plan is abandoned.
  private func takePlanned(_ key: TrackKey, _ index: Int) -> SegmentFeed? {
    guard planned?.key == key, let feed = planned?.take(index) else {
      planned = nil
      return nil
    }
    feed.end(with: scope)
    beginPlanned()
    return feed
  }

  private func makeFeed(
    _ key: TrackKey, _ track: RungTrack, from index: Int, _ keyFrameAction: SegmentLoader.KeyFrameAction,
    scope: LoadScope
  ) throws -> SegmentFeed {
    let (controller, rung, supply) = (controller, track.rung, track.supply)
    let ladder = try ladder(of: key.period)
    let endsWithSegment = context.configuration.reading != .everything
    return SegmentFeed(
      track.loader, from: index, readsAhead: context.readsAhead, scope: scope, recorder: context.recorder,
      capacity: context.configuration.pipeCapacity, endsAtFailures: true, keyFrameAction: keyFrameAction
    ) { next in
      if endsWithSegment { return false }
      var duration: Duration?
      if case .segment(let segment) = supply.peek(at: next) { duration = .seconds(segment.duration.seconds) }
      return controller.staysAt(rung, among: ladder, segmentDuration: duration)
    }
  }

  /// Opens the next span; nil at the end of the last period.
  private func openSpan() throws -> SegmentSpan? {
    while periodIndex < periodCount {
      if scope.isCancelled { throw CancellationError() }
      let ladder = try ladder(of: periodIndex)
      guard let rung = controller.choose(among: ladder, segmentDuration: nil) else {
        throw ReelError(.unsupported, "no playable rung is left", at: context.name)
      }
      let key = TrackKey(period: periodIndex, rung: rung.id)
      do {
        let track = try track(key, rung: rung)
        guard let found = try segment(of: track, key: key) else {
          periodIndex += 1
          place = .start
          continue
        }
        // Starts are rounded.
        let middle = found.segment.start + MediaTime(seconds: found.segment.duration.seconds / 2)
        if let endTime, middle > endTime { return nil }
        segmentURL = found.segment.url
        do {
          if let span = try makeSpan(key, track, from: found.index, found.segment) {
            self.span = span
            streams.video = span.container?.video
            streams.audio = span.container?.audio
            streams.areAllKnown = span.container?.format.announcesStreamsFirst ?? false
            streams.rung = rung
            streams.live = track.supply.live
            return span
          }
          place = .segment(key, index: found.index + 1)
        } catch let error as ReelError {
          try recover(
            from: error.located(at: found.segment.url.reelName), at: found.index, of: key, rung: rung)
        }
      } catch let error as ReelError where tracks[key] == nil {
        // The rung's playlist or index is unavailable; another rung's may be available.
        let situation = Recovery.Situation(hasOtherRung: controller.hasOther(than: rung, among: ladder))
        guard case .otherRung = Recovery.after(error, in: situation) else {
          controller.forgive()
          log.recordFailure(error, rung: rung.id, outcome: nil)
          throw error
        }
        controller.avoid(rung)
        log.recordFailure(error, rung: rung.id, outcome: .otherRung)
      }
    }
    return nil
  }

  /// Returns the next segment that is not a gap, after waiting for it if it has not appeared yet; nil after
  /// the last one.
  private func segment(of track: RungTrack, key: TrackKey) throws -> (index: Int, segment: SegmentReference)?
  {
    var index = firstIndex(in: track, key: key)
    while true {
      switch track.supply.peek(at: index) {
      case .ended: return nil
      case .segment(let segment) where segment.isGap:
        index += 1
        followsGap = true
        log.recordGap(start: segment.start, duration: segment.duration)
      case .segment(let segment): return (index, segment)
      case .awaited:
        let (supply, wanted) = (track.supply, index)
        if let live = supply as? LiveSegments, live.hasAbsences { log.recordAbsence(live) }
        let found = try BlockingThread.wait(scope: scope) { try await supply.segment(from: wanted)?.index }
        guard let found else { return nil }
        if found > wanted {
          followsGap = true
          if (supply as? LiveSegments)?.hasAbsences != true {
            log.recordHole(
              ReelError(.network, "segments left the live window before they were fetched", at: context.name),
              rung: key.rung, MediaLoss(kind: wantsVideo ? .video : .audio, reason: .missing, range: nil))
          }
        }
        index = found
      }
    }
  }

  private func firstIndex(in track: RungTrack, key: TrackKey) -> Int {
    let supply = track.supply
    switch place {
    case .start where isAlone: return supply.firstIndex
    case .start: return (supply as? LiveSegments)?.joiningIndex ?? supply.firstIndex
    case .segment(key, let index): return index
    case .after(key, let index, _): return index + 1
    case .time(let time): return supply.index(at: time) ?? supply.firstIndex
    case .after(_, _, let end): return index(in: supply, at: end)
    case .segment(let other, let index):
      guard case .segment(let segment)? = tracks[other]?.supply.peek(at: index) else {
        return supply.firstIndex
      }
      return self.index(in: supply, at: segment.start)
    }
  }

  /// Returns the index of the segment that begins at `time`, or contains it. Ends of segments are rounded.
  private func index(in supply: any SegmentSupply, at time: MediaTime) -> Int {
    guard let index = supply.index(at: time), case .segment(let segment) = supply.peek(at: index) else {
      return supply.knownIndexes.upperBound
    }
    let end = segment.start + segment.duration
    return end - time < MediaTime(seconds: segment.duration.seconds / 10) ? index + 1 : index
  }

  /// Creates the span that begins with `segment`; nil if a live track skipped it.
  private func makeSpan(
    _ key: TrackKey, _ track: RungTrack, from index: Int, _ segment: SegmentReference
  ) throws -> SegmentSpan? {
    let (supply, rung) = (track.supply, track.rung)
    if wantsVideo { log.recordRung(rung) }
    log.recordSegment(duration: segment.duration)
    let feed =
      try takePlanned(key, index)
      ?? makeFeed(
        key, track, from: index, context.configuration.reading.endsTransfers ? .wait : .readOn,
        scope: scope)
    let start = context.recorder.clock.now
    let head: [UInt8]
    do { head = try firstBytes(of: feed) } catch {
      // The initialization comes first.
      segmentURL = feed.lastURL ?? segmentURL
      throw error
    }
    finishedWaits.media += context.recorder.clock.now - start
    if head.isEmpty, supply.live != nil { return nil }
    guard case .media(let format) = SourceSniffer.kind(of: head) else {
      let what =
        if case .other(let description) = SourceSniffer.kind(of: head) { description } else { "a manifest" }
      throw ReelError(
        .badMedia, "the segment is not media: \(what)", at: (feed.part(at: 0)?.url ?? segment.url).reelName,
        advice: segment.encryption == nil ? nil : "it was decrypted, but the key may be wrong")
    }
    if format == .mp4 {
      if let initialization = segment.initialization, opener.initializations[initialization]?.isEmpty == true
      {
        throw ReelError(
          .badMedia, "the initialization segment is empty", at: initialization.url.reelName)
      }
      feed.rememberFragments()
    }
    var options = ContainerReader.Options()
    options.isSeekable = false
    options.wantsVideo = wantsVideo
    options.audioLanguages = context.configuration.audioLanguages
    options.clock = context.recorder.clock
    options.keys = feed.keys(opener.keys, protection: rung.protection, context: context)
    if case .main(let wantsAudio) = role {
      options.wantsAudio = wantsAudio
    } else {
      options.wantsAudio = true
    }
    let container = try ContainerReader(
      source: feed, format: format, options: options, name: context.name, logger: context.logger)
    container.setDropsAudio(dropsAudio)
    var placement = TimestampMapper.Placement(offset: offsets.offset(for: segment, period: key.period))
    placement.start = segment.start
    placement.isSegmented = true
    placement.isChecked = segment.timestampOffset == nil
    placement.rung = rung
    placement.switchCause = controller.lastSwitchCause
    placement.loop = loop
    placement.followsGap = followsGap
    followsGap = false
    return SegmentSpan(
      key: key, track: track, firstIndex: index, feed: feed, options: options, container: container,
      mapper: TimestampMapper(container, placement))
  }

  /// Returns enough bytes of a segment to detect its format. They stay in the feed.
  private func firstBytes(of feed: SegmentFeed) throws -> [UInt8] {
    var count = SourceSniffer.byteCount / 4
    var head = try feed.peek(count)
    while head.count == count, SourceSniffer.needsMore(head) {
      count *= 2
      head = try feed.peek(count)
    }
    return head
  }

  private func track(_ key: TrackKey, rung: Rung) throws -> RungTrack {
    let track = try tracks[key] ?? open(rung)
    tracks[key] = track
    opened = track
    return track
  }

  private func open(_ rung: Rung) throws -> RungTrack {
    let isAtStart = if case .start = place { true } else { false }
    let track = try opener.open(rung, fromStart: isAtStart, scope: scope, waits: &finishedWaits)
    if streams.duration == nil { streams.duration = (track.supply as? ListedSegments)?.list.end }
    return track
  }
}

/// What readers of one presentation can share.
package struct SharedTracks: Sendable {
  fileprivate let tracks: [SegmentSpan.Key: RungTrack]
  fileprivate let opened: RungTrack?
  fileprivate let initializations: InitializationStore
  let offsets: TimestampOffsets
  let keys: KeyStore
}

extension Range<MediaTime> {
  /// The start and end as text, for an error.
  var words: String {
    "from \(lowerBound.seconds.formatted(places: 3)) s to \(upperBound.seconds.formatted(places: 3)) s"
  }
}
