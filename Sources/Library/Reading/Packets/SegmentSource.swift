internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelSources

/// Decides which segment of a presentation's video, or of one audio rendition, begins the next span, and what
/// follows a failure (`Recovery`).
///
/// Before each span a rung is chosen (`RungController`), and its segments are found (`RungOpener`). The next span
/// continues at the position where the last one ended, with any rung.
///
/// Used by its reader, and by the tasks of this type's asynchronous methods while the reader waits for them.
final class SegmentSource: @unchecked Sendable {
  // Sendable: its reader starts one task at a time, and does nothing else with it before that has ended.

  /// A rung in a period.
  struct Key: Hashable {
    let period: Int
    let rung: String
  }

  /// A segment of a rung.
  struct Place {
    let key: Key
    let track: RungTrack
    /// The rungs of the period.
    let ladder: [Rung]
    var index: Int
    var segment: SegmentReference
    /// True if media before it is missing: a gap, or a segment that was skipped.
    var followsGap = false
  }

  /// The position at which reading continues.
  private enum Position {
    /// The start of a period, or of playback, which a playlist may place elsewhere (EXT-X-START) if it is not `exact`.
    case start(exact: Bool)
    case time(MediaTime)
    /// After a segment of a rung.
    case after(Key, index: Int, end: MediaTime)
    case segment(Key, index: Int)
  }

  let role: ReaderRole
  let controller: RungController
  let offsets: TimestampOffsets
  let opener: RungOpener
  /// The scope with which reading ends. Its end cancels the task of an asynchronous method.
  var scope: LoadScope
  /// The time spent waiting for indexes that are part of the transfer of their media.
  private(set) var indexWait = Duration.zero
  /// The rung that was opened last, with its segments, even if none of them could be read.
  private(set) var opened: RungTrack?
  /// The time from which segments are not read.
  var endTime: MediaTime?
  /// Where a playlist let reading begin (EXT-X-START); nil if it began elsewhere.
  private(set) var beginning: StartOffset?

  private let resolved: ResolvedPresentation
  /// The periods that have the media to read. The others are skipped.
  private let periods: [Period]
  private let context: TrackContext
  private let isAlone: Bool
  /// True if reading begins where a playlist lets playback begin.
  private let beginsByDefault: Bool
  private let log: ReadingLog
  private var tracks: [Key: RungTrack]
  private var position: Position
  private var periodIndex = 0
  private var followsGap = false
  /// The rungs in which a gap was found since media was read or skipped.
  private var triedForGap: Set<String> = []
  private var leftOutInARow = 0
  private var leftOutCount = 0
  /// The reason why the first of these segments was skipped; nil once something was read.
  private var leftOut: ReelError?
  private var hasRead = false
  /// The end of the last listed segment that was read, left out or marked as a gap, since the last seek; nil for a live
  /// track.
  private var listEnd: MediaTime?
  /// The end of the last listed segment that was read; nil for a live track.
  private(set) var readEnd: MediaTime?

  /// A gap between the segments of two periods that is due to rounded times, or to tracks of different lengths.
  private static let gapTolerance = MediaTime(value: 3, timescale: 10)

  /// The distance from which a seek is worthwhile while the segments are not known: they are rarely shorter.
  private static let worthwhileDistance = MediaTime(value: 2, timescale: 1)

  init(
    _ resolved: ResolvedPresentation, role: ReaderRole, manifests: ManifestLoader, context: TrackContext,
    controller: RungController, offsets: TimestampOffsets, isAlone: Bool, beginsByDefault: Bool,
    keys: KeyStore, log: @escaping ReadingLog, scope: LoadScope, shared: SharedTracks?
  ) {
    tracks = shared?.tracks ?? [:]
    opened = shared?.opened
    self.resolved = resolved
    periods = resolved.presentation.periods(carrying: role)
    self.role = role
    opener = RungOpener(
      resolved: resolved, manifests: manifests, role: role, context: context, location: controller.location,
      offsets: offsets, keys: keys, initializations: shared?.initializations ?? InitializationStore(),
      log: log)
    self.context = context
    self.controller = controller
    self.offsets = offsets
    self.isAlone = isAlone
    self.beginsByDefault = beginsByDefault
    position = .start(exact: !beginsByDefault)
    self.log = log
    self.scope = scope
  }

  /// The tracks with which other readers of the same presentation can avoid reading the same playlists and
  /// initializations.
  var shared: SharedTracks {
    SharedTracks(
      tracks: tracks, opened: opened, initializations: opener.initializations, offsets: offsets,
      keys: opener.keys)
  }

  /// The number of segments that could not be loaded, or had left the live window.
  var missedCount: Int { leftOutCount + tracks.values.reduce(0) { $0 + $1.supply.missedCount } }

  /// The fault of media that has ended without anything to read; nil for none.
  var endFault: ReelError? { hasRead ? nil : leftOut }

  // MARK: The next segment

  /// Goes to a position on the item's own timeline; nil for the start of playback.
  ///
  /// - Parameter isAgain: True if the item has been read to its end, and loops: it then begins with its first segment.
  func seek(to time: MediaTime?, isAgain: Bool) {
    beginning = nil
    triedForGap = []
    endTime = nil
    listEnd = nil
    readEnd = nil
    followsGap = false
    leftOutInARow = 0
    leftOut = nil
    position = time.map(Position.time) ?? .start(exact: isAgain || !beginsByDefault)
    periodIndex = 0
    if let time, !resolved.presentation.isLive { periodIndex = periods.lastIndex { $0.start <= time } ?? 0 }
  }

  /// Returns the segment that begins the next span, after waiting for it if it has not appeared yet; nil at the end
  /// of the last period, and at `endTime`.
  func next() async throws -> Place? {
    while periodIndex < periodCount {
      if scope.isCancelled { throw CancellationError() }
      let ladder = try ladder(of: periodIndex)
      guard let rung = controller.choose(among: ladder, segmentDuration: nil) else {
        throw ReelError(.unsupported, "no playable rung is left", at: context.name)
      }
      let key = Key(period: periodIndex, rung: rung.id)
      let track: RungTrack
      do {
        track = try await self.track(key, rung, among: ladder)
      } catch let error as ReelError {
        try recover(from: error, opening: rung, among: ladder)
        continue
      }
      switch try await find(in: track, key, ladder) {
      case .place(let place):
        // The times of a list that is rounded say too little.
        if let endTime, place.segment.middle > endTime, track.supply.precision != .rounded { return nil }
        return place
      case .elsewhere: continue
      case .end:
        periodIndex += 1
        position = .start(exact: true)
      }
    }
    return nil
  }

  /// Continues after a span.
  ///
  /// - Parameters:
  ///   - place: The start of the span.
  ///   - nextIndex: The segment after the last one that was read to its end.
  ///   - hasPackets: False if the span turned out to have no media.
  func leave(_ place: Place, before nextIndex: Int, hasPackets: Bool) {
    if nextIndex <= place.index, !hasPackets {
      skip(place)
    } else if let last = place.track.supply[nextIndex - 1] {
      position = .after(place.key, index: nextIndex - 1, end: last.start + last.duration)
      if place.track.supply.timing == nil {
        (listEnd, readEnd) = (last.range.upperBound, last.range.upperBound)
      }
    } else {
      position = .segment(place.key, index: nextIndex)
    }
  }

  /// Continues with the segment after a place.
  func skip(_ place: Place) { position = .segment(place.key, index: place.index + 1) }

  /// Continues with another segment of the same rung.
  func go(to index: Int, in place: Place) { position = .segment(place.key, index: index) }

  /// Continues with the next period, since the rest of this one's media is after its end.
  func endPeriod(of place: Place, at end: MediaTime) {
    (listEnd, readEnd) = (end, end)
    position = .start(exact: true)
    periodIndex = place.key.period + 1
  }

  /// Returns the cut of the media of a place at the bounds of its period; nil if it has none.
  func cut(of place: Place) -> PeriodCut? {
    periods.indices.contains(place.key.period) ? PeriodCut(place, in: periods[place.key.period]) : nil
  }

  /// Records that media was read.
  func recordSuccess() {
    followsGap = false
    triedForGap = []
    leftOutInARow = 0
    leftOut = nil
    hasRead = true
    controller.recordSuccess()
  }

  /// Returns false if a segment, or the part of the timeline before it, should come from a rung other than that of
  /// `place`.
  func stays(at place: Place, for segment: SegmentReference) -> Bool {
    let supply = place.track.supply
    if let index = supply.index(at: segment.start), let last = supply[index - 1]?.range.upperBound,
      segment.start - last > Self.gapTolerance,
      !others(than: place.track.rung, among: place.ladder, for: Hole(after: last)).isEmpty
    {
      return false
    }
    return controller.staysAt(
      place.track.rung, among: place.ladder, segmentDuration: .seconds(segment.duration.seconds))
  }

  // MARK: The timeline

  /// Returns the segment where the timestamps of a place begin. Nil if that is the place itself, and if the manifest states
  /// where the timestamps are.
  func origin(of place: Place) -> Place? {
    guard place.track.supply.timing == nil, place.segment.timestampOffset == nil,
      !place.track.rung.holdsKeyFramesOnly
    else { return nil }
    return available(in: firstIndex(like: place)..<place.index, of: place)
  }

  /// Returns the first available segment after one and before another.
  func following(_ place: Place, before end: Place) -> Place? {
    available(in: place.index + 1..<end.index, of: end)
  }

  /// Returns the segment just before one; nil if it is not available, or the origin.
  func preceding(_ place: Place, after origin: Place) -> Place? {
    place.index - 1 > origin.index ? available(in: place.index - 1..<place.index, of: place) : nil
  }

  /// Returns how far from its place in the list a segment may be, because durations are rounded.
  func possibleDrift(at place: Place) -> MediaTime {
    guard place.track.supply.precision != .exact else { return .zero }
    return MediaTime(value: Int64(place.index - firstIndex(like: place)), timescale: 2)
  }

  /// Returns the index of the first segment with the same timestamps.
  private func firstIndex(like place: Place) -> Int {
    (0..<place.index).bisect { place.track.supply[$0]?.discontinuity == place.segment.discontinuity }
  }

  private func available(in indexes: Range<Int>, of place: Place) -> Place? {
    for index in indexes {
      guard let segment = place.track.supply[index], !segment.isGap else { continue }
      return Place(key: place.key, track: place.track, ladder: place.ladder, index: index, segment: segment)
    }
    return nil
  }

  /// Opens the container of a place, of whose bytes `head` are the first.
  func openContainer(
    of stream: SegmentStream, _ head: [UInt8], at place: Place
  ) throws -> (container: ContainerReader, options: ContainerReader.Options) {
    let (rung, segment) = (place.track.rung, place.segment)
    guard case .media(let format) = SourceSniffer.kind(of: head) else {
      let name = (stream.part(at: 0)?.url ?? segment.url).reelName
      guard case .other(let what, _) = SourceSniffer.kind(of: head) else {
        throw ReelError(
          .badMedia, "the segment is not media: a manifest", at: name,
          advice: "if the source is a list of sources, use --input, or reel feed")
      }
      throw ReelError(
        .badMedia, "the segment is not media: \(what)", at: name,
        advice: segment.encryption == nil ? nil : "it was decrypted, but the key may be wrong")
    }
    if format == .mp4 {
      if let initialization = segment.initialization, opener.initializations[initialization]?.isEmpty == true
      {
        throw ReelError(.badMedia, "the initialization segment is empty", at: initialization.url.reelName)
      }
      stream.rememberFragments()
    }
    var options = ContainerReader.Options()
    options.isSeekable = false
    options.audioLanguages = context.configuration.audioLanguages
    options.clock = context.recorder.clock
    options.keys = stream.keys(opener.keys, protection: rung.protection, context: context)
    switch role {
    case .main(let wantsAudio): (options.wantsVideo, options.wantsAudio) = (true, wantsAudio)
    case .audio: (options.wantsVideo, options.wantsAudio) = (false, true)
    }
    let container = try ContainerReader(
      source: stream, format: format, options: options, name: context.name, logger: context.logger)
    return (container, options)
  }

  // MARK: Failures

  /// Decides where to continue after a failure; throws it if there is nothing left to try.
  ///
  /// - Parameters:
  ///   - index: The segment that failed.
  ///   - place: The start of its span.
  func recover(from error: ReelError, at index: Int, of place: Place) throws {
    let rung = place.track.rung
    // An error that is thrown is reported by its receiver.
    var outcome: ErrorLogEntry.Outcome?
    defer { log(.failure(error, rung: rung.id, outcome: outcome)) }
    let segment = place.track.supply[index]
    let alternates = rung.alternateURLs.isEmpty ? segment?.alternateURLs ?? [] : rung.alternateURLs
    let locationCount = 1 + alternates.count
    var situation = Recovery.Situation(leftOutInARow: leftOutInARow)
    situation.hasOtherRung = controller.hasOther(than: rung, among: place.ladder)
    situation.hasOtherLocation = controller.hasOtherLocation(of: locationCount)
    position = .segment(place.key, index: index)
    switch Recovery.after(error, in: situation) {
    case .otherRung:
      controller.avoid(rung)
      outcome = .otherRung
    case .otherLocation:
      controller.goToNextLocation(of: locationCount)
      if !rung.alternateURLs.isEmpty { tracks = [:] }
      outcome = .otherLocation
    case .leaveOut:
      controller.forgive()
      guard let segment else { throw leftOut ?? error }
      leftOutInARow += 1
      leftOutCount += 1
      leftOut = leftOut ?? error
      followsGap = true
      position = .after(place.key, index: index, end: segment.range.upperBound)
      if place.track.supply.timing == nil { listEnd = segment.range.upperBound }
      outcome = .lost(MediaLoss(kind: role.kind, reason: .missing, range: segment.range))
      log(.passedOver(error, start: segment.start, duration: segment.duration))
    case .fail:
      controller.forgive()
      throw leftOut ?? error
    }
  }

  /// Goes on after a rung's playlist or index could not be loaded: another rung's may be available.
  private func recover(from error: ReelError, opening rung: Rung, among ladder: [Rung]) throws {
    let situation = Recovery.Situation(hasOtherRung: controller.hasOther(than: rung, among: ladder))
    guard case .otherRung = Recovery.after(error, in: situation) else {
      controller.forgive()
      log(.failure(error, rung: rung.id, outcome: nil))
      throw error
    }
    controller.avoid(rung)
    log(.failure(error, rung: rung.id, outcome: .otherRung))
  }

  // MARK: Positions

  /// Returns true if a seek to `time` is cheaper than reading on from `current`.
  ///
  /// - Parameter place: The start of the open span; nil for none.
  func isSeekWorthwhile(to time: MediaTime, from current: MediaTime, in place: Place?) -> Bool {
    if time < current { return true }
    guard let place else { return time - current > Self.worthwhileDistance }
    if periodIndex + 1 < periodCount, periods[periodIndex + 1].start <= time { return true }
    let supply = place.track.supply
    guard let wanted = supply.index(at: time), let current = supply.index(at: current) else { return false }
    return wanted > max(current, place.index)
  }

  /// Returns the positions of the key frames at the starts of the known segments of all periods. Opens rungs, but
  /// changes no position.
  func allKeyFramePlaces() async throws -> [KeyFramePlace] {
    var places: [KeyFramePlace] = []
    let (here, index, first) = (position, periodIndex, opened)
    defer { (position, periodIndex, opened) = (here, index, first) }
    for period in 0..<periodCount {
      if scope.isCancelled { throw CancellationError() }
      if period != index { position = .time(periods[period].start) }
      periodIndex = period
      let ladder = try ladder(of: period)
      guard let rung = controller.choose(among: ladder, segmentDuration: nil) else { continue }
      let supply = try await track(Key(period: period, rung: rung.id), rung, among: ladder).supply
      for index in supply.knownIndexes {
        guard let segment = supply[index] else { continue }
        if segment.isGap, others(than: rung, among: ladder, for: Hole(segment)).isEmpty { continue }
        places.append(KeyFramePlace(segment))
      }
    }
    return places
  }

  // MARK: - Private

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
    guard context.configuration.usesIFramePlaylists, case .main = role else { return [] }
    return resolved.presentation.keyFrameRungs(in: period, besides: ladder)
  }

  private func track(_ key: Key, _ rung: Rung, among ladder: [Rung]) async throws -> RungTrack {
    let track = if let known = tracks[key] { known } else { try await open(rung, among: ladder) }
    tracks[key] = track
    opened = track
    return track
  }

  private func open(_ rung: Rung, among ladder: [Rung]) async throws -> RungTrack {
    guard case .start = position else {
      return try await opener.open(rung, among: ladder, fromStart: false)
    }
    let clock = context.recorder.clock
    let start = clock.now
    defer { if case .index = rung.media { indexWait += clock.now - start } }
    return try await opener.open(rung, among: ladder, fromStart: true)
  }

  private enum Found {
    case place(Place)
    /// Try another rung or location.
    case elsewhere
    case end
  }

  /// Returns the next segment that is not a gap, after waiting for it if it has not appeared yet. A gap is read from
  /// another rung if possible, and reported otherwise.
  private func find(in track: RungTrack, _ key: Key, _ ladder: [Rung]) async throws -> Found {
    let supply = track.supply
    if case .start(exact: false) = position, let start = Self.beginning(of: track) {
      beginning = start
      position = .time(start.time)
    }
    // Nobody may have looked for segments of this track for a while.
    if let time = wantedTime(in: key) { try await supply.update(for: time) }
    var index = firstIndex(in: supply, key)
    if let hole = hole(before: index, of: supply), lookElsewhere(for: hole, track.rung, ladder) {
      return .elsewhere
    }
    while true {
      switch supply.peek(at: index) {
      case .end: return .end
      case .element(let segment) where segment.isGap:
        if lookElsewhere(for: Hole(segment), track.rung, ladder) {
          position = .after(key, index: index - 1, end: segment.start)
          return .elsewhere
        }
        followsGap = true
        if supply.timing == nil { listEnd = segment.range.upperBound }
        log(
          .hole(
            ReelError(.badManifest, "the manifest marks segments as missing", at: context.name),
            rung: key.rung, MediaLoss(kind: role.kind, reason: .missing, range: segment.range)))
        triedForGap = []
        // The next segment may come from any rung again.
        position = .after(key, index: index, end: segment.range.upperBound)
        return .elsewhere
      case .element(let segment):
        recordGap(before: segment, rung: key.rung)
        return .place(
          Place(
            key: key, track: track, ladder: ladder, index: index, segment: segment, followsGap: followsGap))
      case .wait:
        let hasAbsences = supply.reference?.hasAbsences ?? false
        if hasAbsences, let live = supply.reference { log(.absence(live)) }
        guard let found = try await supply.segment(from: index)?.index else { return .end }
        if found > index {
          followsGap = true
          if supply.reference?.hasAbsences != true {
            log(
              .hole(
                ReelError(
                  .network, "segments left the live window before they were fetched", at: context.name),
                rung: key.rung, MediaLoss(kind: role.kind, reason: .missing, range: nil)))
          }
        }
        index = found
      }
    }
  }

  /// Returns the position at which a playlist lets playback begin: that time itself, or the start of its segment.
  private static func beginning(of track: RungTrack) -> StartOffset? {
    guard var start = track.startOffset, let range = track.supply.range else { return nil }
    start.time = start.position(in: range)
    guard let index = track.supply.index(at: start.time), let segment = track.supply[index] else {
      return nil
    }
    if !start.isPrecise { start.time = segment.start }
    return start
  }

  // MARK: Gaps of one rung

  /// A part of the timeline that a rung lacks by its own list, and others may have.
  private struct Hole {
    /// A time within it.
    let time: MediaTime
    /// True for a segment that is marked as a gap (EXT-X-GAP), false for a part without a segment (SegmentTimeline).
    var isMarked = false
    /// The end of the segments read before it; nil after a seek.
    var readEnd: MediaTime?

    init(_ segment: SegmentReference) { (time, isMarked) = (segment.middle, true) }

    init(at time: MediaTime) { self.time = time }

    init(after end: MediaTime) { (time, readEnd) = (end + SegmentSource.gapTolerance, end) }
  }

  /// Returns the part without a segment before the one at `index`, or after the last one, where reading continues; nil if
  /// there is none.
  private func hole(before index: Int, of supply: SegmentSupply) -> Hole? {
    let end = supply[index - 1]?.range.upperBound
    var start: MediaTime
    switch position {
    case .start:
      guard !resolved.presentation.isLive else { return nil }
      start = periods[periodIndex].start
    case .time(let time):
      guard let segment = supply[index] else { return nil }
      if segment.start - time > Self.gapTolerance { return Hole(at: time) }
      // The segment begins before the time, and may end before it.
      guard time - segment.range.upperBound > Self.gapTolerance else { return nil }
      return supply[index + 1] == nil && supply.timing != nil ? nil : Hole(at: time)
    case .after(_, _, let time): start = time
    case .segment(let key, let index):
      guard let time = tracks[key]?.supply[index]?.start else { return nil }
      start = time
    }
    start = max(start, end ?? start)
    guard let next = supply[index]?.start else { return supply.timing == nil ? Hole(after: start) : nil }
    return next - start > Self.gapTolerance ? Hole(after: start) : nil
  }

  /// Goes on with another rung or location if one may have what a rung lacks. Returns false if there is none.
  private func lookElsewhere(for hole: Hole, _ rung: Rung, _ ladder: [Rung]) -> Bool {
    let locationCount = 1 + rung.alternateURLs.count
    let outcome: ErrorLogEntry.Outcome
    triedForGap.insert(rung.id)
    if others(than: rung, among: ladder, for: hole).contains(where: controller.take) {
      outcome = .otherRung
    } else if hole.isMarked, !followsGap, controller.hasOtherLocation(of: locationCount) {
      controller.goToNextLocation(of: locationCount)
      tracks = [:]
      triedForGap = []
      outcome = .otherLocation
    } else {
      return false
    }
    log(
      .failure(
        ReelError(
          .badManifest,
          "the manifest has no segment of this rung at \(hole.time.seconds.formatted(places: 3)) s",
          at: context.name),
        rung: rung.id, outcome: outcome))
    return true
  }

  /// Returns the other rungs that may have what a rung lacks, in order of preference: the next lower one first.
  private func others(than rung: Rung, among ladder: [Rung], for hole: Hole) -> [Rung] {
    if !resolved.presentation.isLive, let length = periods[periodIndex].duration,
      hole.time >= periods[periodIndex].start + length
    {
      return []
    }
    let rate = rung.ladderBitsPerSecond
    let others = ladder.filter { $0.id != rung.id && !triedForGap.contains($0.id) && fills($0, hole) }
      .sorted { $0.ladderBitsPerSecond < $1.ladderBitsPerSecond }
    return others.filter { $0.ladderBitsPerSecond <= rate }.reversed()
      + others.filter { $0.ladderBitsPerSecond > rate }
  }

  private func fills(_ rung: Rung, _ hole: Hole) -> Bool {
    var supply = tracks[Key(period: periodIndex, rung: rung.id)]?.supply
    if supply == nil, case .segments(let list) = rung.media { supply = .list(list) }
    // The list of that rung has to be read first.
    guard let supply else { return hole.isMarked }
    guard let segment = supply.index(at: hole.time).flatMap({ supply[$0] }) else { return false }
    if segment.range.upperBound <= hole.time, resolved.presentation.isLive || supply.timing != nil {
      return hole.isMarked
    }
    // A segment that was read in part would be read twice.
    let isNew = hole.readEnd.map { segment.start >= $0 - Self.gapTolerance } ?? true
    return !segment.isGap && segment.range.contains(hole.time) && isNew
  }

  // MARK: Positions of reading

  /// Returns the time at which reading continues; nil if that is at a certain segment of the rung.
  private func wantedTime(in key: Key) -> MediaTime? {
    switch position {
    case .start, .after(key, _, _), .segment(key, _): nil
    case .time(let time), .after(_, _, let time): time
    case .segment(let other, let index): tracks[other]?.supply[index]?.start
    }
  }

  /// Reports a part of the timeline between two periods for which no period has a segment. A part for which none has this
  /// kind of media by design is no loss.
  private func recordGap(before segment: SegmentReference, rung: String) {
    guard let end = listEnd, segment.start - end > Self.gapTolerance else { return }
    listEnd = segment.start
    let middle = MediaTime(seconds: (end.seconds + segment.start.seconds) / 2)
    guard !resolved.presentation.absences(of: role).contains(where: { $0.contains(middle) }) else { return }
    followsGap = true
    let range = end..<segment.start
    log(
      .hole(
        ReelError(.badManifest, "no period has a segment \(range.words)", at: context.name), rung: rung,
        MediaLoss(kind: role.kind, reason: .missing, range: range)))
  }

  private func firstIndex(in supply: SegmentSupply, _ key: Key) -> Int {
    switch position {
    case .start: isAlone ? supply.firstIndex : supply.joiningIndex
    case .segment(key, let index): index
    case .after(key, let index, _): index + 1
    case .time(let time): supply.index(at: time) ?? supply.firstIndex
    case .after(_, _, let end): index(in: supply, at: end)
    case .segment(let other, let index):
      if let segment = tracks[other]?.supply[index] {
        self.index(in: supply, at: segment.start)
      } else {
        supply.firstIndex
      }
    }
  }

  /// Returns the index of the segment that begins at `time`, or contains it. Ends of segments are rounded.
  private func index(in supply: SegmentSupply, at time: MediaTime) -> Int {
    guard let index = supply.index(at: time), let segment = supply[index] else {
      return supply.knownIndexes.upperBound
    }
    let end = segment.start + segment.duration
    return end - time < MediaTime(seconds: segment.duration.seconds / 10) ? index + 1 : index
  }
}

/// State that readers of one presentation share.
package struct SharedTracks: Sendable {
  fileprivate let tracks: [SegmentSource.Key: RungTrack]
  fileprivate let opened: RungTrack?
  fileprivate let initializations: InitializationStore
  let offsets: TimestampOffsets
  let keys: KeyStore
}

extension KeyFramePlace {
  /// The key frame at the start of a segment. Starts are rounded, so a seek goes to the middle.
  init(_ segment: SegmentReference) { self.init(time: segment.start, seekTime: segment.middle) }
}
