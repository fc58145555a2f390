internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelSources

/// Reads the packets of a presentation's video, or of one audio rendition, span by span.
///
/// A span can be demuxed as one container: segments of one rung with the same initialization, no discontinuity and
/// no gap between them. `SegmentSource` decides where each span begins and what follows a failure, `SegmentStream`
/// brings its bytes.
final class SegmentReader: PacketReader {
  private let source: SegmentSource
  private let context: TrackContext
  private let log: ReadingLog
  private var span: Span?
  private var planned: Planned?
  private var loop = LoopIteration()
  /// The search for the segment at the time of a seek; nil once it was found.
  private var search: SegmentSearch?
  /// False for a key frame that is named by its segment: no other segment is fetched to find out its time.
  private var placesExactly = true
  private var dropsAudio = false
  /// The waiting times of closed containers.
  private var finishedWait = Duration.zero
  /// The time spent waiting for decisions: for playlists and indexes, and for segments that had not appeared yet.
  private var decisionWait = Duration.zero
  private var segmentURL: URL?
  private var spanNumber = 0
  /// The media that was read since the last seek.
  private var readMedia: [TrackKind: ReadMedia] = [:]
  /// The segment that reading has begun with since then; nil before it, after a failure or a gap, and for a live track.
  private var beginning: SegmentReference?
  private var hasBegun = false

  private(set) var streams = ReaderStreams()

  init(
    _ resolved: ResolvedPresentation, role: ReaderRole, manifests: ManifestLoader, context: TrackContext,
    controller: RungController, offsets: TimestampOffsets, isAlone: Bool, beginsByDefault: Bool,
    log: @escaping ReadingLog, scope: LoadScope, shared: SharedTracks? = nil
  ) {
    let keys = shared?.keys ?? KeyStore(fetcher: context.fetcher, runtime: scope.runtime)
    source = SegmentSource(
      resolved, role: role, manifests: manifests, context: context, controller: controller, offsets: offsets,
      isAlone: isAlone, beginsByDefault: beginsByDefault, keys: keys, log: log, scope: scope, shared: shared)
    self.context = context
    self.log = log
    streams.duration = resolved.presentation.duration
    streams.live = resolved.presentation.live
  }

  var waits: ReaderWaits {
    ReaderWaits(
      media: finishedWait + (span?.container?.sourceWait ?? .zero) + source.indexWait,
      manifests: decisionWait - source.indexWait)
  }

  var status: ReaderStatus {
    ReaderStatus(
      containerStreams: span?.container?.streams ?? [], position: span?.position ?? 0,
      segmentURL: segmentURL, track: source.opened, missedSegmentCount: source.missedCount)
  }

  var endFault: ReelError? { source.endFault }

  // MARK: Reading

  func prepare() throws { if span == nil { _ = try openSpan() } }

  func next() throws -> MediaPacket? {
    while true {
      guard let span = try span ?? openSpan() else { return nil }
      let failure: (error: ReelError, index: Int)
      do {
        let container = try span.awakeContainer(dropsAudio: dropsAudio, context: context)
        if let packet = try read(span, container) {
          if !span.hasPackets { source.recordSuccess() }
          span.hasPackets = true
          record(packet, of: span, container)
          return packet
        }
        if let end = span.cut?.end, span.cut?.isOver == true {
          close()
          source.endPeriod(of: span.place, at: end)
          continue
        }
        guard let error = span.stream.failure else {
          close()
          source.leave(span.place, before: span.stream.nextIndex, hasPackets: span.hasPackets)
          continue
        }
        failure = (error.located(at: context.name), span.stream.nextIndex)
      } catch let error as ReelError {
        // A failure of the demuxer is in the bytes that it has read, not in those loaded ahead.
        let part = span.stream.hasFailed ? nil : span.stream.part(at: span.position - 1)
        failure = (
          error.located(at: part?.url.reelName ?? context.name), part?.index ?? span.stream.nextIndex
        )
      }
      close()
      forgetBeginning()
      try source.recover(from: failure.error, at: failure.index, of: span.place)
    }
  }

  func seek(to time: MediaTime?, loop: LoopIteration, scope: LoadScope) throws {
    begin(at: time, loop: loop, scope: scope)
    search = time.map { SegmentSearch(target: $0) }
  }

  func seek(to place: KeyFramePlace, scope: LoadScope) throws {
    begin(at: place.seekTime, loop: LoopIteration(), scope: scope)
    placesExactly = false
    // A limit may end the wait before the segment is requested.
    if let supply = source.opened?.supply, let index = supply.index(at: place.seekTime) {
      segmentURL = supply[index]?.url
    }
  }

  func end(before time: MediaTime) { source.endTime = time }

  func setDropsAudio(_ drops: Bool) {
    dropsAudio = drops
    span?.container?.setDropsAudio(drops)
  }

  func rest() -> Bool {
    guard let span, let waited = span.rest() else { return false }
    finishedWait += waited
    return true
  }

  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool {
    source.isSeekWorthwhile(to: time, from: position, in: span?.place)
  }

  // MARK: Key frames

  func keyFramePlaces(until isEnough: (KeyFramePlace) -> Bool) -> [KeyFramePlace]? {
    guard let supply = source.opened?.supply else { return nil }
    var places: [KeyFramePlace] = []
    var index = (span?.place.index ?? supply.firstIndex) + 1
    while let segment = supply[index] {
      index += 1
      if segment.isGap { continue }
      places.append(KeyFramePlace(segment))
      if isEnough(places[places.count - 1]) { break }
    }
    return places
  }

  func allKeyFramePlaces() throws -> [KeyFramePlace]? { try decision { try await $0.allKeyFramePlaces() } }

  /// Requests the segments in parallel, if their transfers end by themselves after the key frame.
  func plan(_ places: [KeyFramePlace]) {
    guard context.configuration.reading.endsTransfers, let span, span.stream.hasFoundKeyFrame,
      span.place.track.supply.timing == nil
    else { return }
    planned = Planned(places, in: span.place)
    // The rest of its transfer would take a share of the network.
    close()
    source.skip(span.place)
    beginPlanned()
  }

  var sharedTracks: SharedTracks? { source.shared }

  // MARK: - Private

  private func read(_ span: Span, _ container: ContainerReader) throws -> MediaPacket? {
    while true {
      if let packet = span.cut?.next() { return packet }
      if span.cut?.isOver == true { return nil }
      let unit = try span.held.isEmpty ? container.next() : span.held.removeFirst()
      if let skipped = container.takeSkippedBytes() {
        span.mapper.recordDamage()
        if container.format == .mpegTS { recordDamagedEnd(of: span, skipped) }
      } else if container.takeDamage() != nil {
        span.mapper.recordDamage()
      }
      defer { recordHole(in: span) }
      if streams.audio?.index != container.audio?.index { streams.audio = container.audio }
      switch unit {
      case .video(let unit):
        if let packet = span.stamped(unit, .video) { return packet }
        recordLeftOut(unit, of: span, container)
      case .audio(let unit):
        if let packet = span.stamped(unit, .audio) { return packet }
        recordLeftOut(unit, of: span, container)
      case .programChanged:
        streams.video = container.video
        streams.audio = container.audio
        span.mapper.begin(container)
      case .end:
        span.cut?.finish()
        return span.cut?.next()
      }
    }
  }

  /// Records that the last bytes of a span are no media.
  private func recordDamagedEnd(of span: Span, _ words: String) {
    guard let part = span.stream.part(at: .max) else { return }
    log(
      .damage(
        ReelError(.badMedia, words, at: part.url.reelName), rung: span.place.track.rung.id,
        in: span.place.track.supply[part.index]?.range))
  }

  private func begin(at time: MediaTime?, loop: LoopIteration, scope: LoadScope) {
    source.scope = scope
    self.loop = loop
    close()
    segmentURL = nil
    readMedia = [:]
    forgetBeginning()
    search = nil
    streams.beginning = nil
    source.seek(to: time, isAgain: loop.iteration > 0)
  }

  private func close() {
    finishedWait += span?.container?.sourceWait ?? .zero
    for (kind, media) in readMedia where media.spanNumber == spanNumber {
      if let span, span.stream.isDamaged(media.index) { readMedia[kind]?.isDamaged = true }
    }
    span = nil
  }

  /// Opens the next span; nil at the end of the last period.
  private func openSpan() throws -> Span? {
    while let place = try decision({ try await $0.next() }) {
      if streams.duration == nil { streams.duration = place.track.supply.end }
      if streams.beginning == nil, let beginning = source.beginning {
        streams.beginning = beginning
        if beginning.isPrecise { search = SegmentSearch(target: beginning.time) }
      }
      segmentURL = place.segment.url
      do {
        if let span = try makeSpan(at: place) {
          if let index = try settle(span) {
            finishedWait += span.container?.sourceWait ?? .zero
            source.go(to: index, in: place)
            continue
          }
          self.span = span
          spanNumber += 1
          if !hasBegun, place.track.supply.timing == nil, !place.followsGap { beginning = place.segment }
          hasBegun = true
          streams.video = span.container?.video
          streams.audio = span.container?.audio
          streams.areAllKnown = span.container?.format.announcesStreamsFirst ?? false
          streams.rung = place.track.rung
          streams.live = place.track.supply.timing
          streams.liveSegments = place.track.supply.reference
          return span
        }
        source.skip(place)
      } catch let error as ReelError {
        forgetBeginning()
        try source.recover(from: error.located(at: place.segment.url.reelName), at: place.index, of: place)
      }
    }
    recordMissingEnd()
    return nil
  }

  /// Waits for a decision of the source. The wait is measured here, because this thread takes a moment to go on.
  private func decision<Result: Sendable>(
    _ make: @escaping @Sendable (SegmentSource) async throws -> Result
  ) throws -> Result {
    let start = context.recorder.clock.now
    defer { decisionWait += context.recorder.clock.now - start }
    return try BlockingThread.wait(scope: source.scope) { [source] in try await make(source) }
  }

  /// Creates the span that begins at `place`; nil if a live track skipped the segment.
  private func makeSpan(at place: SegmentSource.Place) throws -> Span? {
    let (rung, segment) = (place.track.rung, place.segment)
    if case .main = source.role { log(.rung(rung)) }
    log(.segment(duration: segment.duration))
    let stream = takePlanned(place) ?? makeStream(at: place, .wait, scope: source.scope)
    let start = context.recorder.clock.now
    let head: [UInt8]
    do { head = try stream.head() } catch {
      // The initialization comes first.
      segmentURL = stream.lastURL ?? segmentURL
      throw error
    }
    finishedWait += context.recorder.clock.now - start
    if head.isEmpty, place.track.supply.timing != nil { return nil }
    let (container, options) = try source.openContainer(of: stream, head, at: place)
    container.setDropsAudio(dropsAudio)
    var placement = TimestampMapper.Placement(
      offset: source.offsets.offset(for: segment, period: place.key.period))
    placement.start = segment.start
    placement.isSegmented = true
    placement.isChecked = segment.timestampOffset == nil
    placement.rung = rung
    placement.switchCause = source.controller.lastSwitchCause
    placement.loop = loop
    placement.followsGap = place.followsGap
    placement.drift = source.possibleDrift(at: place)
    return Span(
      place, stream: stream, options: options, container: container,
      mapper: TimestampMapper(container, placement), cut: source.cut(of: place))
  }

  // MARK: The timeline

  /// Finds out where the first segment of a span is on the timeline. Returns the index of another one that a seek needs
  /// instead; nil if this is the one.
  private func settle(_ span: Span) throws -> Int? {
    let place = span.place
    // What comes first may be missing.
    guard placesExactly, let container = span.container, container.hasTimestamps, !place.followsGap,
      let origin = source.origin(of: place)
    else {
      search = nil
      return nil
    }
    let offset = source.offsets.offset(for: place.segment, period: place.key.period)
    let isMain = container.video != nil
    if offset.isOpen(isMain: isMain), try !isExact(span, container, after: origin) {
      // Reading from the beginning would leave out a segment that can't be read.
      for first in [origin, source.following(origin, before: place)].compactMap(\.self) {
        guard let media = try firstTime(of: first, decodes: true) else { continue }
        offset.begin(media, at: first.segment.start, isMain: isMain)
        offset.settle(firstFrame: media)
        break
      }
    }
    guard place.track.supply.precision != .exact, var search, let offset = offset.knownValue,
      let media = try firstUnits(of: span, container, count: 1).first
    else {
      search = nil
      return nil
    }
    let index = search.next(
      after: place, at: media.time + offset, isMain: isMain, origin: origin,
      drift: source.possibleDrift(at: place))
    self.search = index == nil ? nil : search
    return index
  }

  /// Returns true if the list tells where a segment is: its durations are exact, and no frame is shown before its key
  /// frame.
  private func isExact(
    _ span: Span, _ container: ContainerReader, after origin: SegmentSource.Place
  ) throws -> Bool {
    let precision = span.place.track.supply.precision
    guard precision != .rounded else { return false }
    let units = try firstUnits(of: span, container, count: container.video == nil ? 1 : 2)
    guard let first = units.first, first.isKey, units.count < 2 || units[1].time > first.time else {
      return false
    }
    guard precision == .whole else { return true }
    // The segment before shows whether the durations are right.
    guard let before = source.preceding(span.place, after: origin),
      let time = try firstTime(of: before, decodes: false)
    else { return false }
    let difference = (first.time - time) - (span.place.segment.start - before.segment.start)
    return max(difference, .zero - difference) <= MediaTime(value: 1, timescale: 1000)
  }

  /// Returns the first units of a span's main stream, which are read later.
  private func firstUnits(
    of span: Span, _ container: ContainerReader, count: Int
  ) throws -> [(time: MediaTime, isKey: Bool)] {
    var units = span.held.compactMap { container.mainUnit($0) }
    while units.count < count {
      let unit = try container.next()
      span.held.append(unit)
      switch unit {
      case .programChanged, .end: return units
      case .video, .audio: if let main = container.mainUnit(unit) { units.append(main) }
      }
    }
    return units
  }

  /// Returns the time of a segment's first frame in its container, or of the packet with which it begins; nil if it can't
  /// be read.
  private func firstTime(of place: SegmentSource.Place, decodes: Bool) throws -> MediaTime? {
    let stream = makeStream(at: place, .readOn, scope: source.scope, isAlone: true)
    let start = context.recorder.clock.now
    defer { finishedWait += context.recorder.clock.now - start }
    do {
      let container = try source.openContainer(of: stream, try stream.head(), at: place).container
      let video = ContainerVideo(container)
      if decodes, let info = container.video {
        var options = VideoDecoder.Options()
        (options.gate, options.clock) = (context.gate, context.recorder.clock)
        let decoder = try VideoDecoder(
          stream: info, source: video, options: options, name: context.name, logger: context.logger)
        if case .element(let frame) = try decoder.firstFrame(), let ticks = frame.presentationTicks {
          return info.time(ticks: ticks)
        }
        return video.firstTime
      }
      while true {
        let unit = try container.next()
        if let main = container.mainUnit(unit) { return main.time }
        if case .end = unit { return nil }
      }
    } catch is ReelError {
      if source.scope.isCancelled { throw CancellationError() }
      return nil
    }
  }

  private func makeStream(
    at place: SegmentSource.Place, _ keyFrameAction: SegmentDownload.KeyFrameAction, scope: LoadScope,
    isAlone: Bool = false
  ) -> SegmentStream {
    let reading = context.configuration.reading
    return SegmentStream(
      place.track, from: place.index, place.segment, readsAhead: context.readsAhead && !isAlone, scope: scope,
      options: SegmentDownload.Options(
        capacity: context.configuration.pipeCapacity,
        keyFrameAction: reading.endsTransfers ? keyFrameAction : .readOn)
    ) { [source] segment in
      !isAlone && reading == .everything && source.stays(at: place, for: segment)
    }
  }

  // MARK: Planned segments

  /// Begins as many planned transfers as allowed. They belong to the whole loading until they are read.
  private func beginPlanned() {
    planned?.begin { makeStream(at: $0, .end, scope: context.scope) }
  }

  /// Returns the stream of a planned segment; nil if there is none, in which case the plan is abandoned.
  private func takePlanned(_ place: SegmentSource.Place) -> SegmentStream? {
    guard let stream = planned?.take(place) else {
      planned = nil
      return nil
    }
    stream.end(with: source.scope)
    beginPlanned()
    return stream
  }

  // MARK: Holes

  /// Reports media that is missing before the last packet, unless its segment is known to be damaged.
  private func recordHole(in span: Span) {
    guard let hole = span.mapper.takeHole() else { return }
    let (kind, supply) = (hole.kind, span.place.track.supply)
    let rung = span.place.track.rung.id
    let (start, length) = (hole.range.lowerBound, hole.range.upperBound - hole.range.lowerBound)
    let middle = start + MediaTime(seconds: length.seconds / 2)
    guard let index = supply.index(at: middle), let segment = supply[index],
      middle < segment.start + segment.duration
    else {
      let error = ReelError(.badManifest, "there is no segment \(hole.range.words)", at: context.name)
      return log(
        .hole(
          error, rung: rung, MediaLoss(kind: kind, reason: .missing, range: hole.range)))
    }
    // A frame may stay on show for long within a segment. If a segment lacks its end, the next frame is in
    // the next one.
    guard !span.stream.isDamaged(index),
      hole.followsDamage || endsSegment(hole.range.upperBound, of: supply)
    else { return }
    let error = ReelError(
      .badMedia, "the segment has no \(kind.rawValue) \(hole.range.words)", at: segment.url.reelName)
    log(.hole(error, rung: rung, MediaLoss(kind: kind, reason: .damaged, range: hole.range)))
  }

  /// Records where a packet is, and reports media that is missing between the span before and this one, although the list
  /// has no gap there.
  private func record(_ packet: MediaPacket, of span: Span, _ container: ContainerReader) {
    let supply = span.place.track.supply
    guard supply.timing == nil, let end = span.mapper.end(of: packet.kind),
      let index = container.position(of: packet.unit).flatMap({ span.index(at: $0) })
    else { return }
    let before = readMedia[packet.kind]
    if before?.spanNumber == spanNumber, before?.index == index {
      readMedia[packet.kind]?.end = end
      return
    }
    guard let segment = supply[index] else { return }
    let time = packet.time - packet.span.shift
    if readMedia.isEmpty { recordMissingBeginning(until: segment.start, rung: span.place.track.rung.id) }
    if let before, before.spanNumber != spanNumber, !span.place.followsGap, !before.isDamaged,
      time - before.end > before.tolerance(isWhole: segment.start > before.segment.range.upperBound)
    {
      recordMissing(packet.kind, before.end..<time, rung: before.rung)
    }
    readMedia[packet.kind] = ReadMedia(
      spanNumber: spanNumber, rung: span.place.track.rung.id, index: index, segment: segment, start: time,
      end: end)
  }

  /// Reports media that is missing at the end of the list.
  ///
  /// Durations of segments may be rounded, so the times of the list count from the last segment that has media. Of two
  /// tracks in the same segments, one may be shorter.
  private func recordMissingEnd() {
    let latest = readMedia.values.map(\.end).max()
    for (kind, media) in readMedia where !media.isDamaged {
      guard let end = source.readEnd, let latest else { continue }
      let expected = media.start + (end - media.segment.start)
      let tolerance = media.tolerance(isWhole: end > media.segment.range.upperBound)
      if expected - latest > tolerance { recordMissing(kind, media.end..<expected, rung: media.rung) }
    }
    if readMedia.isEmpty, let end = source.readEnd, let rung = source.opened?.rung {
      recordMissingBeginning(until: end, rung: rung.id)
    }
    readMedia = [:]
  }

  /// Reports segments before the first one with any media.
  private func recordMissingBeginning(until end: MediaTime, rung: String) {
    guard let start = beginning.take()?.start, end > start else { return }
    recordMissing(source.role.kind, start..<end, rung: rung)
  }

  private func forgetBeginning() {
    beginning = nil
    hasBegun = false
  }

  private func recordMissing(_ kind: TrackKind, _ range: Range<MediaTime>, rung: String) {
    let error = ReelError(
      .badMedia, "the segments have no \(kind.rawValue) \(range.words)", at: context.name)
    log(.hole(error, rung: rung, MediaLoss(kind: kind, reason: .damaged, range: range)))
  }

  /// Reports the segment whose media was left out, because its timestamps repeat those of earlier segments.
  private func recordLeftOut(_ unit: Packet, of span: Span, _ container: ContainerReader) {
    guard span.mapper.takeLeftOut(), let index = container.position(of: unit).flatMap({ span.index(at: $0) }),
      index != span.leftOutIndex, let segment = span.place.track.supply[index]
    else { return }
    span.leftOutIndex = index
    for kind in readMedia.keys { readMedia[kind]?.isDamaged = true }
    let error = ReelError(
      .badMedia, "the timestamps of segments repeat those of earlier ones: the segments are left out",
      at: context.name)
    log(
      .hole(
        error, rung: span.place.track.rung.id,
        MediaLoss(kind: source.role.kind, reason: .jumped, range: segment.range)))
  }

  /// Returns true if a segment ends at `time`, apart from leading frames.
  private func endsSegment(_ time: MediaTime, of supply: SegmentSupply) -> Bool {
    let tolerance = MediaTime(value: 1, timescale: 5)
    guard let index = supply.index(at: time - tolerance), let segment = supply[index] else { return false }
    return segment.start + segment.duration <= time + tolerance
  }
}

/// The media of one kind that was read last.
private struct ReadMedia {
  let spanNumber: Int
  let rung: String
  /// The last segment that has any, and the time of its first packet.
  let index: Int
  let segment: SegmentReference
  let start: MediaTime
  /// True if damage to that segment was reported.
  var isDamaged = false
  /// The end of the packets, in presentation order.
  var end: MediaTime

  /// Returns the length up to which a hole is due to a rounded duration, or to tracks of different lengths.
  ///
  /// - Parameter isWhole: True if whole segments have no media.
  func tolerance(isWhole: Bool) -> MediaTime {
    if isWhole { return MediaTime(value: 3, timescale: 10) }
    let seconds = segment.duration.seconds
    let rounding = seconds.rounded() == seconds ? min(1.05, seconds * 0.6) : 0.5
    return MediaTime(seconds: max(rounding, seconds / 4))
  }
}

/// Segments whose key frames will be read, in order. Several of them are requested in parallel.
private struct Planned {
  /// The place in whose rung they are.
  private let origin: SegmentSource.Place
  /// The segments whose transfers have not begun, in reverse order.
  private var waiting: [Int] = []
  /// The started transfers, in order.
  private var begun: [SegmentStream] = []

  /// The number of segments that are requested at the same time, or wait to be read: as many as browsers open
  /// connections to a host.
  private static let concurrency = 6

  init(_ places: [KeyFramePlace], in origin: SegmentSource.Place) {
    self.origin = origin
    for index in places.compactMap({ origin.track.supply.index(at: $0.seekTime) }) where index != waiting.last
    {
      waiting.append(index)
    }
    waiting.reverse()
  }

  /// Begins as many transfers as allowed.
  mutating func begin(_ makeStream: (SegmentSource.Place) -> SegmentStream) {
    while begun.count < Self.concurrency, let index = waiting.popLast() {
      guard let segment = origin.track.supply[index], !segment.isGap else { continue }
      var place = origin
      (place.index, place.segment) = (index, segment)
      begun.append(makeStream(place))
    }
  }

  /// Removes a segment whose transfer has begun, and ends the transfers before it; nil if it is not among them.
  mutating func take(_ place: SegmentSource.Place) -> SegmentStream? {
    guard place.key == origin.key, let index = begun.firstIndex(where: { $0.firstIndex == place.index })
    else { return nil }
    let stream = begun[index]
    begun.removeFirst(index + 1)
    return stream
  }
}

/// A run of segments that is demuxed as one container.
///
/// A span can rest: its demuxer is closed while its transfer waits. A new demuxer then continues after the last
/// packet without fetching a byte twice. It gets the boxes before the media of the fragment, zeros in place of the
/// media that was demuxed before, and then the following bytes.
private final class Span {
  /// The start of the span.
  let place: SegmentSource.Place
  let stream: SegmentStream
  var mapper: TimestampMapper
  var hasPackets = false
  /// Units that were read to find out where the span is on the timeline.
  var held: [ContainerReader.Unit] = []
  var cut: PeriodCut?
  /// The last segment whose media was left out.
  var leftOutIndex: Int?
  private let format: ContainerFormat
  private let options: ContainerReader.Options
  private var state: State
  /// The offset of the container's first byte in the stream. A rest changes it.
  private var shift: Int64 = 0

  private enum State {
    /// - `resumed`: The source of the container; nil before the first rest.
    case open(ContainerReader, resumed: ResumedSource?)
    /// - `history`: What the demuxer has read.
    case resting(SegmentResumption, history: FragmentHistory?)
  }

  init(
    _ place: SegmentSource.Place, stream: SegmentStream, options: ContainerReader.Options,
    container: ContainerReader, mapper: TimestampMapper, cut: PeriodCut?
  ) {
    self.place = place
    self.stream = stream
    self.options = options
    format = container.format
    state = .open(container, resumed: nil)
    self.mapper = mapper
    self.cut = cut
  }

  /// Nil while the span rests.
  var container: ContainerReader? { if case .open(let container, _) = state { container } else { nil } }

  /// Returns the next packet, with its place; nil if its unit is left out, or if it has to wait.
  func stamped(_ unit: Packet, _ kind: TrackKind) -> MediaPacket? {
    let packet = mapper.stamped(unit, kind) {
      container?.position(of: unit).flatMap { index(at: $0) }.flatMap { place.track.supply[$0]?.range }
    }
    guard let packet else { return nil }
    guard cut != nil else { return packet }
    cut?.append(packet)
    return cut?.next()
  }

  /// Returns the index of the segment with the byte at a position of the container; nil if it is unknown.
  func index(at position: Int64) -> Int? { stream.part(at: shift + position)?.index }

  /// The offset in the stream after the last packet.
  var position: Int64 {
    switch state {
    case .open(let container, _): shift + container.position
    case .resting(let resumption, _): resumption.offset
    }
  }

  /// Closes the demuxer if a new one can continue; returns how long it has waited for media. Otherwise does
  /// nothing and returns nil.
  func rest() -> Duration? {
    guard hasPackets, !stream.hasFailed, case .open(let container, let resumed) = state,
      let used = container.unread,
      let left = resumed == nil ? [] : resumed?.unreadTail,
      let resumption = stream.resumed(at: position, unread: used + left)
    else { return nil }
    state = .resting(resumption, history: container.fragmentHistory)
    return container.sourceWait
  }

  /// Returns the container, opened again if the span rests. Throws the errors of opening and reading.
  func awakeContainer(dropsAudio: Bool, context: TrackContext) throws -> ContainerReader {
    let (resumption, history): (SegmentResumption, FragmentHistory?)
    switch state {
    case .open(let container, _): return container
    case .resting(let found, let kept): (resumption, history) = (found, kept)
    }
    let source = ResumedSource(
      head: resumption.head, zeroCount: resumption.skippedByteCount, unread: resumption.unread, base: stream)
    shift = resumption.offset - resumption.resumedOffset
    (options.keys as? ContainerKeys)?.setShift(shift)
    var options = options
    options.fragmentHistory = history
    let made = try ContainerReader(
      source: source, format: format, options: options, name: context.name, logger: context.logger)
    made.setDropsAudio(dropsAudio)
    // These bytes are zeros.
    while made.position < resumption.resumedOffset {
      if case .end = try made.next() { break }
    }
    // Discard the demuxer's reports about the zeros.
    _ = made.takeLastError()
    state = .open(made, resumed: source)
    return made
  }
}

extension Range<MediaTime> {
  /// The start and end as text, for an error.
  package var words: String {
    "from \(lowerBound.seconds.formatted(places: 3)) s to \(upperBound.seconds.formatted(places: 3)) s"
  }
}
