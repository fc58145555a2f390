internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelSources

/// Places the packets of one container on the timeline.
struct TimestampMapper {
  private var container: (video: StreamInfo?, audio: StreamInfo?)
  private let format: ContainerFormat
  private var placement: Placement
  private var frameDuration: MediaTime
  private var spans: (video: StreamSpan?, audio: StreamSpan?)?
  private var continuity = TimestampContinuity()
  /// The ends of the last packets, in the container's time.
  private var lastEnd: [TrackKind: MediaTime] = [:]
  /// The times of the first packets, by kind.
  private var firstTime: [TrackKind: MediaTime] = [:]
  private var holes = TimestampHoles()
  private var repeats = TimestampRepeats()
  private var detours = TimestampDetours()
  private var hasLeftOut = false

  /// The position of a container on the timeline.
  struct Placement {
    /// The offset of its timestamps, if known.
    var offset: TimestampOffset
    /// Its start according to the manifest; checked against the offset if it may be wrong (HLS).
    var start = MediaTime.zero
    var isChecked = false
    /// How far from the list's start it may be because durations are rounded.
    var drift = MediaTime.zero
    var rung: Rung?
    var loop = LoopIteration()
    var followsGap = false
    /// The reason why the rung was chosen.
    var switchCause: RungSwitchCause?
    /// True for segments: the manifest states gaps, so a jump of timestamps is damage.
    var isSegmented = false
  }

  private static let segmentedThreshold = MediaTime(value: 3, timescale: 1)

  /// The distance of timestamps from their position in the playlist beyond which they belong to another
  /// clock.
  static let tolerance = MediaTime(value: 2, timescale: 1)

  init(_ container: ContainerReader, _ placement: Placement) {
    self.container = (container.video, container.audio)
    format = container.format
    self.placement = placement
    // Its timestamps restart in each container.
    if !container.hasTimestamps { self.placement.offset = TimestampOffset(offset: nil) }
    if placement.isSegmented { continuity.forwardThreshold = Self.segmentedThreshold }
    frameDuration = Self.frameDuration(container, placement)
  }

  /// Continues with the container's streams after a program change or a new stream. Their timestamps continue
  /// across a jump.
  mutating func begin(_ container: ContainerReader) {
    continuity.beginStreams(frames: container.video?.index)
    self.container = (container.video, container.audio)
    frameDuration = Self.frameDuration(container, placement)
    firstTime = [:]
    holes = TimestampHoles()
    repeats = TimestampRepeats()
    detours = TimestampDetours()
    if spans != nil { placement.followsGap = false }
    spans = nil
  }

  /// Adds audio that was announced after the first frames. Video continues unchanged.
  mutating func add(audio: StreamInfo) {
    container.audio = audio
    guard let video = spans?.video else { return }
    spans?.audio = StreamSpan(
      stream: audio, offset: video.offset, rung: video.rung, loop: video.loop, followsGap: video.followsGap)
  }

  /// Returns the unit with its place; nil if its stream is not played, and for segments whose timestamps repeat those of
  /// earlier ones (`takeLeftOut()`). The unit gets the times of the place.
  ///
  /// - Parameter listed: Returns the part of the item's timeline that the list states for the unit's segment; nil if unknown.
  mutating func stamped(
    _ unit: Packet, _ kind: TrackKind, listed: () -> Range<MediaTime>? = { nil }
  ) -> MediaPacket? {
    guard let stream = kind == .video ? container.video : container.audio else { return nil }
    if format.hasSystemClock {
      let shift = continuity.shift(
        stream: stream.index, dts: unit.decodingTicks, pts: unit.presentationTicks,
        duration: unit.durationTicks, timeBase: stream.timeBase)
      Self.move(unit, by: shift, of: stream)
      Self.repair(unit, stream: stream)
    } else if placement.isSegmented, let ticks = unit.decodingTicks ?? unit.presentationTicks {
      let place = stream.time(ticks: ticks)
      let offset = spans.flatMap { kind == .video ? $0.video : $0.audio }?.offset.value ?? .zero
      let shift = detours.shift(kind, place: place, duration: stream.time(ticks: unit.durationTicks)) {
        listed().map { TimestampDetours.continues(place + offset, $0) } ?? true
      }
      Self.move(unit, by: shift, of: stream)
    }
    let ticks = unit.presentationTicks ?? unit.decodingTicks
    let stamp = ticks.map { stream.time(ticks: $0) }
    let spans = spans(at: stamp)
    guard let span = kind == .video ? spans.video : spans.audio else { return nil }
    let duration =
      unit.durationTicks > 0
      ? stream.time(ticks: unit.durationTicks) : kind == .video ? frameDuration : .zero
    let time = stamp ?? lastEnd[kind] ?? placement.start - span.offset.value
    let place = unit.decodingTicks.map { stream.time(ticks: $0) } ?? time
    if placement.isSegmented,
      repeats.isRepeated(kind, isKey: unit.isKey, decodedAt: place, presentedAt: time, duration: duration)
    {
      hasLeftOut = true
      holes.forget(kind)
      return nil
    }
    lastEnd[kind] = time + duration
    holes.record(
      kind, decodedAt: place, presentedAt: time, duration: duration,
      limit: placement.isSegmented ? .segments : .file)
    let isFirst = firstTime[kind].map { $0 == time } ?? true
    if isFirst { firstTime[kind] = time }
    return MediaPacket(
      unit: unit, span: span, mediaTime: time, duration: duration, isKey: unit.isKey,
      byteCount: unit.byteCount, isFirst: isFirst)
  }

  /// Returns true once after units that repeat earlier ones were left out.
  mutating func takeLeftOut() -> Bool {
    defer { hasLeftOut = false }
    return hasLeftOut
  }

  /// Returns the end of the media of a kind so far, on the item's timeline; nil before the first packet.
  func end(of kind: TrackKind) -> MediaTime? {
    guard let end = repeats.end(of: kind), let span = kind == .video ? spans?.video : spans?.audio else {
      return nil
    }
    return end + span.offset.value
  }

  /// Records that the container is damaged, so media may be missing from its streams.
  mutating func recordDamage() { holes.recordDamage() }

  /// Returns the missing media before the last packet, on the item's timeline; nil for none. Returns it once.
  mutating func takeHole() -> TimestampHoles.Hole? {
    guard var hole = holes.take(), let span = spans.flatMap({ hole.kind == .video ? $0.video : $0.audio })
    else { return nil }
    let offset = span.offset.value
    hole.range = hole.range.lowerBound + offset..<hole.range.upperBound + offset
    return hole
  }

  // MARK: - Private

  private static func frameDuration(_ container: ContainerReader, _ placement: Placement) -> MediaTime {
    let rate = container.video?.averageFrameRate ?? placement.rung?.frameRate ?? Rational(25, 1)
    return rate.isPositive
      ? MediaTime(value: Int64(rate.denominator), timescale: rate.numerator)
      : MediaTime(value: 1, timescale: 25)
  }

  private static func move(_ unit: Packet, by shift: MediaTime, of stream: StreamInfo) {
    guard shift != .zero else { return }
    unit.move(
      by: shift.ticks(timescale: stream.timeBase.denominator) / Int64(max(1, stream.timeBase.numerator)))
  }

  /// Repairs a presentation time far from the decoding time. It is beyond a 33-bit wrap, or damaged; a damaged
  /// one is replaced by the decoding time.
  private static func repair(_ unit: Packet, stream: StreamInfo) {
    guard let pts = unit.presentationTicks, let dts = unit.decodingTicks else { return }
    let unwrapped = TimestampContinuity.unwrapped(pts: pts, nextTo: dts, timeBase: stream.timeBase)
    let distance = stream.time(ticks: unwrapped - dts).seconds
    let repaired = abs(distance) > maximumReorder ? dts : unwrapped
    if repaired != pts { unit.setPresentationTicks(repaired) }
  }

  /// The longest time, in seconds, that a frame waits for frames shown before it.
  private static let maximumReorder = 10.0

  /// Returns the spans of the streams, created when the first packet determines the offset of its timestamps.
  private mutating func spans(at media: MediaTime?) -> (video: StreamSpan?, audio: StreamSpan?) {
    if let spans { return spans }
    var offset = placement.offset
    var setsOffset = false
    if let media {
      if placement.isChecked, let known = offset.knownValue {
        let distance = media + known - placement.start
        if max(distance, .zero - distance) > Self.tolerance + placement.drift {
          offset = TimestampOffset(offset: nil)
        }
      }
      setsOffset = offset.begin(media, at: placement.start, isMain: container.video != nil)
    }
    let span = { [placement] (stream: StreamInfo) in
      StreamSpan(
        stream: stream, offset: offset, rung: placement.rung, loop: placement.loop,
        followsGap: placement.followsGap, setsOffset: setsOffset, switchCause: placement.switchCause)
    }
    let made = (video: container.video.map(span), audio: container.audio.map(span))
    spans = made
    return made
  }
}

/// The offsets shared by the readers of one item, so that video, audio and all rungs are on one timeline.
package final class TimestampOffsets: Sendable {
  private struct Key: Hashable {
    let period: Int
    let discontinuity: Int
  }

  private struct State {
    var offsets: [Key: TimestampOffset] = [:]
    /// The first live playlist that was read. Later ones are aligned with it.
    var reference: LiveSegments?
  }

  private let state = Locked(State())

  /// A live item adds an offset at each jump, so old ones are dropped.
  private static let countLimit = 256

  package init() {}

  /// Returns the offset of a segment's timestamps: the one that the manifest states, or that of all segments
  /// with the same discontinuity number (RFC 8216 §6.2.4: the timestamps of variants match).
  func offset(for segment: SegmentReference, period: Int) -> TimestampOffset {
    if let offset = segment.timestampOffset { return TimestampOffset(offset: offset) }
    let key = Key(period: period, discontinuity: segment.discontinuity)
    return state.withLock { state in
      if let known = state.offsets[key] { return known }
      if state.offsets.count >= Self.countLimit { state.offsets = [:] }
      let made = TimestampOffset(offset: nil)
      state.offsets[key] = made
      return made
    }
  }

  /// Returns a live playlist, shifted so that segments with the same number begin at the same time as in
  /// earlier playlists.
  func aligned(_ segments: LiveSegments) -> SegmentSupply {
    let reference = state.withLock { state in
      defer { state.reference = state.reference ?? segments }
      return state.reference
    }
    guard let reference else { return .live(segments) }
    return .live(segments, shift: Self.shift(from: segments.window, to: reference.window))
  }

  // MARK: - Private

  private static func shift(from window: SegmentWindow, to reference: SegmentWindow) -> MediaTime {
    for index in window.startIndex..<window.endIndex {
      guard let segment = window[index] else { continue }
      let twin = (reference.startIndex..<reference.endIndex).lazy.compactMap { reference[$0] }.first {
        $0.number == segment.number
      }
      if let twin { return twin.start - segment.start }
    }
    return reference.end - window.end
  }
}

/// Detects missing media in the streams of a container by the timestamps of their packets.
///
/// A stream has a hole if a packet is decoded much later than the end of the previous one. Frames without a
/// stated duration may stay on show for long, so the distance must also exceed the usual one.
///
/// A value of one container.
struct TimestampHoles: Sendable {
  /// The maximum time from the end of a packet to the next one.
  enum Limit: Sendable {
    /// The limit for consecutive segments.
    case segments
    /// The limit for a file, in which a frame may stay on show for some time. With B-frames, the duration of
    /// a packet does not state how long.
    case file

    fileprivate var length: MediaTime {
      switch self {
      case .segments: MediaTime(value: 3, timescale: 10)
      // As in `TimestampContinuity`.
      case .file: MediaTime(value: 10, timescale: 1)
      }
    }
  }

  /// Media that is missing from a stream.
  struct Hole: Sendable {
    var kind: TrackKind
    var range: Range<MediaTime>
    /// True if damage was found just before.
    var followsDamage: Bool
  }

  private struct Stream: Sendable {
    var place: MediaTime
    var end: MediaTime
    var presentationEnd: MediaTime
    var longestStep = MediaTime.zero
    /// The number of packets for which every hole counts.
    var suspectCount = 0
  }

  /// The initial value of `suspectCount`, because packets may be returned some time after damage was found.
  private static let suspectCount = 32

  private var streams: [TrackKind: Stream] = [:]
  private var hole: Hole?

  /// Records damage: the next holes count, however short they are.
  mutating func recordDamage() {
    for kind in streams.keys { streams[kind]?.suspectCount = Self.suspectCount }
  }

  /// Forgets the last packet of a stream: what follows it was left out.
  mutating func forget(_ kind: TrackKind) { streams[kind] = nil }

  /// Records the next packet of a stream, in the container's time.
  mutating func record(
    _ kind: TrackKind, decodedAt place: MediaTime, presentedAt time: MediaTime, duration: MediaTime,
    limit: Limit
  ) {
    let end = time + duration
    guard var stream = streams[kind] else {
      streams[kind] = Stream(place: place, end: place + duration, presentationEnd: end)
      return
    }
    let gap = place - stream.end
    let tolerance =
      stream.suspectCount > 0
      ? MediaTime(seconds: duration.seconds / 2) : max(limit.length, stream.longestStep * 2)
    if gap > tolerance, gap > .zero {
      let start = min(stream.presentationEnd, time - gap)
      if start < time {
        hole = Hole(kind: kind, range: start..<time, followsDamage: stream.suspectCount > 0)
      }
      stream.suspectCount = 0
    } else {
      stream.longestStep = max(stream.longestStep, place - stream.place)
      stream.suspectCount = max(0, stream.suspectCount - 1)
    }
    stream.presentationEnd = gap > tolerance ? end : max(stream.presentationEnd, end)
    (stream.place, stream.end) = (place, place + duration)
    streams[kind] = stream
  }

  /// Returns the last hole that was found, on the container's timeline. Returns it once.
  mutating func take() -> Hole? {
    defer { hole = nil }
    return hole
  }
}

/// Joins segments whose timestamps are far after those before, although the list has no gap there: such as one with a wrong
/// base time in a list that is right otherwise. They continue where the segment before ended, and what follows them has its
/// own timestamps again, if these continue there too.
///
/// A value of one container whose timestamps must not jump.
struct TimestampDetours: Sendable {
  private struct Stream: Sendable {
    /// The end of the packets so far, with their shifts.
    var end: MediaTime
    var shift = MediaTime.zero
  }

  private var streams: [TrackKind: Stream] = [:]
  /// The shift of the last jump, which all streams share.
  private var newest = MediaTime.zero

  /// The least jump. Less may be media that is missing.
  private static let threshold = MediaTime(value: 60, timescale: 1)
  /// The largest distance of a packet from the end of the one before that continues it.
  private static let tolerance = MediaTime(value: 10, timescale: 1)

  /// Returns true if a time lies in a part of a timeline, or near it.
  static func continues(_ time: MediaTime, _ range: Range<MediaTime>) -> Bool {
    time >= range.lowerBound - tolerance && time <= range.upperBound + tolerance
  }

  /// Returns the shift to add to the timestamps of the next packet of a stream.
  ///
  /// - Parameter isListed: True if the list has the packet at its own time. Called only for a packet that jumps.
  mutating func shift(
    _ kind: TrackKind, place: MediaTime, duration: MediaTime, isListed: () -> Bool
  ) -> MediaTime {
    guard var stream = streams[kind] else {
      streams[kind] = Stream(end: place + duration)
      return .zero
    }
    func continues(_ time: MediaTime) -> Bool { Self.continues(time, stream.end..<stream.end) }
    if stream.shift != .zero, continues(place) {
      stream.shift = .zero
    } else if place + stream.shift > stream.end + Self.threshold, !isListed() {
      if !continues(place + newest) { newest = stream.end - place }
      stream.shift = newest
    }
    stream.end = max(stream.end, place + stream.shift + duration)
    streams[kind] = stream
    return stream.shift
  }
}

/// Detects segments whose timestamps go back to media that was read before: a segment that a list has twice, or an encoder
/// that was started again without a discontinuity.
///
/// Such media has no place on the timeline. It is left out until the timestamps go beyond those read before, at a key
/// frame.
///
/// A value of one container.
struct TimestampRepeats: Sendable {
  private struct Stream: Sendable {
    var place: MediaTime
    /// The presentation time of the last key frame.
    var keyTime: MediaTime?
    var end: MediaTime
    var isBehind = false
  }

  private var streams: [TrackKind: Stream] = [:]

  /// A smaller step back is an imprecise timestamp.
  private static let tolerance = MediaTime(value: 1, timescale: 2)

  /// The latest end of the packets of a stream.
  func end(of kind: TrackKind) -> MediaTime? { streams[kind]?.end }

  /// Records the next packet of a stream, in the container's time. Returns true if it lies before the end of the packets
  /// read so far.
  mutating func isRepeated(
    _ kind: TrackKind, isKey: Bool, decodedAt place: MediaTime, presentedAt time: MediaTime,
    duration: MediaTime
  ) -> Bool {
    let end = time + duration
    let isEntry = isKey || kind == .audio
    guard var stream = streams[kind] else {
      streams[kind] = Stream(place: place, keyTime: isEntry ? time : nil, end: end)
      return false
    }
    let half = duration.half
    if stream.isBehind {
      guard isEntry, time + half >= stream.end else { return true }
      stream.isBehind = false
    } else if place + Self.tolerance < stream.place
      || kind == .video && isKey && end + half < stream.end && stream.keyTime.map({ time <= $0 }) ?? false
    {
      // Key frames come in the order in which they are shown.
      stream.isBehind = true
      streams[kind] = stream
      return true
    }
    stream.place = place
    if isEntry { stream.keyTime = time }
    stream.end = max(stream.end, end)
    streams[kind] = stream
    return false
  }
}
