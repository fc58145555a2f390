internal import DequeModule
internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading
internal import ReelSources

/// The compressed media of one player: media loaded ahead, and the packets that the frame on show depends on,
/// so that a seek within it fetches nothing.
///
/// Loaders append packets and stop when the buffer is full; decoders take them. A pure value, which its owner
/// keeps with the jobs of loaders and decoders under one lock. Dropped packets wait for `takeReleased()`.
///
/// The buffer stores packets, not the bytes of segments: a seek within it, or a restarted decoder, costs only
/// decoding, and a limit in time is a limit in packets. Bytes would have to be demuxed again, and unwanted
/// muxed audio would be kept.
struct ForwardBuffer: ~Copyable, Sendable {
  struct Limits: Sendable, Hashable {
    /// The amount of media ahead of the frame on show at which loading stops.
    var target: MediaTime
    /// The share of the target below which loading resumes.
    var refillShare = 0.75
    /// The number of undecoded bytes at which loading stops too, whatever the timestamps are. Half as many bytes of
    /// decoded packets are kept at most.
    var byteCount = 64 << 20
  }

  struct Level: Sendable, Hashable {
    /// Media ahead of the frame on show.
    var ahead: MediaTime = .zero
    /// True if the buffer reaches to the end of the item.
    var isComplete = false
    /// True if the target is reached, in time or bytes.
    var isFull = false
    /// True if loading pauses until the level falls, so waiting brings no more media.
    var isResting = false
    /// True if every packet has been taken by a decoder.
    var isConsumed = true
    var byteCount = 0
    /// From the key frame of the frame on show to the end of the loaded media.
    var range: Range<MediaTime>?
  }

  var limits: Limits
  /// The position of the frame on show; nil until there is one.
  private(set) var position: MediaTime?
  /// The loader that delivers audio: its own, or that of video. Nil if no audio is wanted, or none is known so far.
  private(set) var audioLoader: TrackKind?
  private(set) var highWaterByteCount = 0
  private var video = PacketQueue()
  private var audio = PacketQueue()
  /// The loaders that are filling the buffer up to the target.
  private var filling: Set<TrackKind> = [.video, .audio]
  private var hasAudio = false
  /// Where the first audio is expected while none is loaded.
  private var audioStart: MediaTime?
  /// The audio that was dropped since the last packet of video.
  private var overflow: Range<MediaTime>?

  /// The distance by which audio may follow the video beside it in a file: the length of a segment that has all its video
  /// first. Audio that is further behind is taken to be absent there.
  private static let interleaving = MediaTime(value: 10, timescale: 1)

  /// Timestamps may be wrong: a buffer is full too if its undecoded packets last this many times as long as the target.
  /// A guessed duration of a frame is up to four times too long.
  private static let durationFactor = 4

  init(limits: Limits) { self.limits = limits }

  /// True if audio has a loader of its own.
  var hasSeparateAudio: Bool { audioLoader == .audio }

  var byteCount: Int { video.byteCount + audio.byteCount }

  // MARK: Loaders

  /// Appends a packet from the video loader, which may also deliver audio, or from the audio loader.
  mutating func append(_ packet: MediaPacket) {
    switch packet.kind {
    case .video:
      video.append(packet)
    case .audio:
      audio.append(packet)
      hasAudio = true
      dropOverflow()
    }
    if position == nil { position = packet.time }
    if audioStart == nil { audioStart = packet.time }
    highWaterByteCount = max(highWaterByteCount, byteCount)
  }

  /// Returns audio that was dropped because the file has more of it before its video than the buffer takes. Returns it
  /// once, when the video follows or the end has been read.
  mutating func takeOverflow() -> Range<MediaTime>? {
    guard !video.isConsumed || video.hasEnded else { return nil }
    defer { overflow = nil }
    return overflow
  }

  /// Marks the end of these kinds: no packet of them follows.
  ///
  /// - Parameter isBroken: True after a failure: a seek beyond the last packet loads again.
  mutating func end(_ kinds: Set<TrackKind>, isBroken: Bool = false) {
    if kinds.contains(.video) { (video.hasEnded, video.isBroken) = (true, isBroken) }
    if kinds.contains(.audio) { (audio.hasEnded, audio.isBroken) = (true, isBroken) }
  }

  /// Cancels `end`: more packets follow because the item loops.
  mutating func resume(from loader: TrackKind) {
    if loader == .video { video.hasEnded = false }
    if loader == .audio || !hasSeparateAudio { audio.hasEnded = false }
  }

  /// Returns the end of the loaded packets of a kind, in presentation order.
  func end(of kind: TrackKind) -> MediaTime? { kind == .video ? video.end : audio.end }

  /// Returns true if the loaded audio ends before `time` and more will follow.
  func isAudioBehind(_ time: MediaTime) -> Bool {
    guard !audio.hasEnded else { return false }
    return audio.end.map { $0 < time } ?? true
  }

  /// Returns true if audio that is due by `time` was loaded but not yet passed to its decoder.
  func hasAudioToDecode(until time: MediaTime) -> Bool { audio.next.map { $0.time <= time } ?? false }

  /// True if the loader that delivers audio, its own or that of video, has reached neither the end nor its target.
  var isLoadingMoreAudio: Bool {
    let loader: TrackKind = hasSeparateAudio ? .audio : .video
    return !audio.hasEnded && filling.contains(loader) && !isFull(loader)
  }

  /// True if audio has a loader of its own, which has reached neither the end nor its target.
  var isLoadingAudio: Bool { hasSeparateAudio && !audio.hasEnded && filling.contains(.audio) }

  /// True if only audio with its own loader is missing to continue, or to end.
  var isHeldUpByAudio: Bool {
    let moment = MediaTime(value: 1, timescale: 10)
    return hasSeparateAudio && !audio.hasEnded && ahead(.audio) < moment
      && (video.hasEnded || ahead(.video) > ahead(.audio) + moment)
  }

  mutating func setAudioLoader(_ loader: TrackKind?) {
    if hasSeparateAudio, loader != .audio, !hasAudio { audio.removeAll() }
    audioLoader = loader
  }

  /// Returns true if the loader of a kind should continue.
  mutating func wantsMore(_ kind: TrackKind) -> Bool {
    if isFull(kind) { filling.remove(kind) }
    return filling.contains(kind)
  }

  /// Makes the loaders fill the buffer up to the target, regardless of its level.
  mutating func fill() { filling = [.video, .audio] }

  /// Returns true, once, if a loader that stopped at a full buffer should resume.
  mutating func takeRefill(_ kind: TrackKind) -> Bool {
    guard !filling.contains(kind), needsRefill(kind) else { return false }
    filling.insert(kind)
    return true
  }

  // MARK: Decoders

  /// Takes the next packet.
  ///
  /// - Parameter span: If the next packet belongs to another span, the result is `end`; nil accepts any span.
  mutating func next(_ kind: TrackKind, of span: StreamSpan? = nil) -> Pulled<MediaPacket> {
    let next = peekNext(kind)
    guard case .element(let packet) = next else { return next }
    if let span, packet.span !== span { return .end }
    switch kind {
    case .video:
      _ = video.takeNext()
      video.dropTaken(beyond: limits.byteCount / 2)
    case .audio:
      _ = audio.takeNext()
      audio.dropTaken(beyond: limits.byteCount / 2)
    }
    return next
  }

  /// Returns the next packet, without taking it.
  func peekNext(_ kind: TrackKind) -> Pulled<MediaPacket> {
    if let packet = kind == .video ? video.next : audio.next { return .element(packet) }
    return (kind == .video ? video.hasEnded : audio.hasEnded) ? .end : .wait
  }

  /// Moves the video decoder back to the last key frame at or before `time` that it has already taken.
  /// Returns false without moving if there is none.
  mutating func rewindToKey(before time: MediaTime) -> Bool { video.rewindToKey(before: time) }

  /// Moves the video decoder back to its start, before it has returned any frame.
  ///
  /// - Parameter time: The target of the seek; nil for the beginning.
  mutating func rewindToStart(soughtTime time: MediaTime?) {
    if let time, video.rewindToKey(before: time) { return }
    video.rewindToStart()
  }

  /// Moves the video decoder back to the last key frame that it has taken.
  mutating func rewindToLastKey() { video.rewindToLastKey() }

  // MARK: Position

  /// Sets the position of the frame on show, and drops packets that are no longer needed for it.
  mutating func setPosition(_ time: MediaTime) {
    position = time
    video.trim(before: time)
    video.dropTaken(beyond: limits.byteCount / 2)
    audio.drop(endingBefore: video.start.map { min($0, time) } ?? time)
  }

  /// Moves the decoders to `time`.
  ///
  /// Returns the kinds that must be loaded from there: none for a seek within the buffer.
  mutating func seek(to time: MediaTime) -> Set<TrackKind> {
    guard video.seek(to: time) else {
      reset(position: time)
      return [.video, .audio]
    }
    position = time
    filling = [.video, .audio]
    guard hasSeparateAudio, !audioCovers(time) else {
      audio.skip(to: time)
      return []
    }
    audio.removeAll()
    return [.audio]
  }

  /// Drops everything.
  mutating func reset(position: MediaTime?) {
    video.removeAll()
    audio.removeAll()
    audioStart = nil
    self.position = position
    filling = [.video, .audio]
  }

  /// Drops the audio when it is muted or unmuted.
  ///
  /// - Parameter isSeparate: Whether audio has a loader of its own, which starts again.
  mutating func dropAudio(isSeparate: Bool) {
    // If audio comes from the video loader, its end is the end of the audio too.
    let hasEnded = !isSeparate && audio.hasEnded
    audio.removeAll()
    audio.hasEnded = hasEnded
    hasAudio = false
    audioStart = video.end
    filling.insert(.audio)
  }

  /// Drops packets of iterations after `iteration`.
  ///
  /// - Parameter kinds: The kinds that had been loaded to the end of the iteration, so that nothing more follows.
  mutating func drop(after iteration: Int, ending kinds: Set<TrackKind> = [.video, .audio]) {
    video.drop(after: iteration)
    audio.drop(after: iteration)
    if kinds.contains(.video) { video.hasEnded = true }
    if kinds.contains(.audio) { audio.hasEnded = true }
  }

  /// Sets where playback begins, which may be before the first loaded packet.
  mutating func begin(at time: MediaTime) {
    if position == nil { position = time }
  }

  /// Returns the packets that were dropped since the last call, to be freed outside the owner's lock.
  mutating func takeReleased() -> [MediaPacket] { video.takeReleased() + audio.takeReleased() }

  /// The number of bytes of packets after the position on show; of all packets if there is none.
  var unshownByteCount: Int { video.byteCount(after: position) + audio.byteCount(after: position) }

  var level: Level { level(without: []) }

  /// Returns how much media is buffered.
  ///
  /// - Parameter absent: The kinds of media that the item currently lacks, which playback does not wait for.
  func level(without absent: Set<TrackKind>) -> Level {
    var level = Level()
    let separate = hasSeparateAudio && !audio.hasEnded
    var kinds: Set<TrackKind> = separate ? [.video, .audio] : [.video]
    // If both kinds are absent, the level can only be measured with both.
    if !kinds.isSubset(of: absent) { kinds.subtract(absent) }
    level.ahead = kinds.contains(.video) ? ahead(.video) : ahead(.audio)
    if kinds.count == 2 { level.ahead = min(level.ahead, ahead(.audio)) }
    level.isComplete = video.hasEnded && (!hasSeparateAudio || audio.hasEnded)
    level.isFull = !kinds.contains { !isFull($0) }
    level.isResting = !kinds.contains { !isResting($0) }
    level.isConsumed = isConsumed(kinds.contains(.video) ? .video : .audio)
    level.byteCount = byteCount
    if let start = video.start, let end = video.end, start < end { level.range = start..<end }
    return level
  }

  // MARK: - Private

  private func isConsumed(_ kind: TrackKind) -> Bool {
    kind == .video ? video.isConsumed : audio.isConsumed
  }

  /// Returns the media of one kind ahead of the frame on show.
  private func ahead(_ kind: TrackKind) -> MediaTime {
    guard let end = end(of: kind), let position, end > position else { return .zero }
    return end - position
  }

  /// A kind with nothing left to decode is not full, even if the other fills the buffer: neither waits for the other.
  private func isFull(_ kind: TrackKind) -> Bool {
    guard !isConsumed(kind) else { return false }
    let bytes = video.pendingByteCount + audio.pendingByteCount
    return bytes >= limits.byteCount || loaded(by: kind) >= limits.target
      || pendingSeconds(kind) >= longest(kind)
  }

  /// Returns how long the undecoded packets of a full buffer last at most, in seconds. Video is loaded further while audio
  /// in the same file is awaited.
  private func longest(_ kind: TrackKind) -> Double {
    let awaited = kind == .video && audioLoader == .video && !audio.hasEnded ? Self.interleaving.seconds : 0
    return limits.target.seconds * Double(Self.durationFactor) + awaited
  }

  /// Returns how long the undecoded packets last.
  private func pendingSeconds(_ kind: TrackKind) -> Double {
    (kind == .video ? video.pendingDuration : audio.pendingDuration) / .seconds(1)
  }

  /// Drops the oldest undecoded audio of a file that has more of it than the buffer takes, while its video is awaited.
  private mutating func dropOverflow() {
    guard !hasSeparateAudio, video.isConsumed else { return }
    while audio.pendingByteCount > limits.byteCount, let first = audio.dropNext() {
      overflow =
        min(
          overflow?.lowerBound ?? first.time, first.time)..<max(
          overflow?.upperBound ?? first.end, first.end)
    }
  }

  /// Returns the media ahead of the frame on show that a loader has brought. If audio follows its video in the file, it may
  /// be behind by half the target: the loader has to continue before either runs out.
  private func loaded(by loader: TrackKind) -> MediaTime {
    guard loader == .video, audioLoader == .video, !audio.hasEnded, let videoEnd = video.end,
      let audioEnd = audio.end ?? audioStart, videoEnd - audioEnd < Self.interleaving
    else { return ahead(loader) }
    return min(ahead(.video), ahead(.audio) + MediaTime(seconds: limits.target.seconds / 2))
  }

  private func isResting(_ kind: TrackKind) -> Bool {
    isFull(kind) || !filling.contains(kind) && !needsRefill(kind)
  }

  private func needsRefill(_ kind: TrackKind) -> Bool {
    if isConsumed(kind) { return true }
    let bytes = Double(video.pendingByteCount + audio.pendingByteCount)
    return bytes < Double(limits.byteCount) * limits.refillShare
      && loaded(by: kind).seconds < limits.target.seconds * limits.refillShare
      && pendingSeconds(kind) < longest(kind) * limits.refillShare
  }

  private func audioCovers(_ time: MediaTime) -> Bool {
    guard let start = audio.start, let end = audio.end else { return false }
    return start <= time && (time < end || audio.hasEnded)
  }
}

/// The packets of one stream, from the key frame of the frame on show to the end of the loaded media, and the
/// position of its decoder.
///
/// A pure value. The packets that it drops are kept until their owner takes them with `takeReleased()`: freeing
/// them may take long, so it does that outside its lock.
struct PacketQueue: Sendable {
  private var packets: Deque<MediaPacket> = []
  /// The number of packets that the decoder has taken.
  private var cursor = 0
  /// The end of the last packet in presentation order, in its span's time.
  private var latest: (span: StreamSpan, end: MediaTime)?
  private(set) var byteCount = 0
  /// The number of bytes that the decoder has not taken.
  private(set) var pendingByteCount = 0
  /// The sum of the durations of the packets that the decoder has not taken.
  private(set) var pendingDuration = Duration.zero
  /// The packets that were dropped and not taken yet.
  private var released: [MediaPacket] = []
  /// True if no packet follows the last one.
  var hasEnded = false
  /// True if the end is due to a failure: more media may follow.
  var isBroken = false

  var isEmpty: Bool { packets.isEmpty }
  var count: Int { packets.count }
  /// True if the decoder has taken all packets.
  var isConsumed: Bool { cursor == packets.count }
  /// The end of the last packet in presentation order.
  var end: MediaTime? { latest.map { $0.span.time($0.end) } }
  /// The time of the first packet in the queue.
  var start: MediaTime? { packets.first?.time }

  mutating func append(_ packet: MediaPacket) {
    packets.append(packet)
    byteCount += packet.byteCount
    addPending(packet, 1)
    recordEnd(of: packet)
  }

  var next: MediaPacket? { cursor < packets.count ? packets[cursor] : nil }

  mutating func takeNext() -> MediaPacket? {
    guard cursor < packets.count else { return nil }
    defer { cursor += 1 }
    addPending(packets[cursor], -1)
    return packets[cursor]
  }

  /// Drops the next packet for the decoder, and returns it; nil if there is none.
  mutating func dropNext() -> MediaPacket? {
    guard cursor < packets.count else { return nil }
    let packet = packets.remove(at: cursor)
    byteCount -= packet.byteCount
    addPending(packet, -1)
    released.append(packet)
    return packet
  }

  /// Moves the decoder to the last key frame at or before `time`. Returns false without moving if there is
  /// none, or if `time` is after the loaded media.
  mutating func seek(to time: MediaTime) -> Bool {
    guard let end, time < end || hasEnded && !isBroken else { return false }
    guard let index = packets.lastIndex(where: { $0.isKey && $0.time <= time }) else { return false }
    moveCursor(to: index)
    return true
  }

  /// Moves the decoder to the first packet at or after `time`, or to the end.
  mutating func skip(to time: MediaTime) {
    moveCursor(to: packets.firstIndex { $0.end > time } ?? packets.count)
  }

  /// Moves the decoder back to the last key frame at or before `time` that it has already decoded, or from
  /// which it was moved back before. Returns false without moving if no such key frame is left.
  mutating func rewindToKey(before time: MediaTime) -> Bool {
    let had = packets[..<min(cursor + 1, packets.count)]
    guard let index = had.lastIndex(where: { $0.isKey && $0.time <= time }) else { return false }
    moveCursor(to: index)
    return true
  }

  /// Moves the decoder back to the first packet that is kept.
  mutating func rewindToStart() { moveCursor(to: 0) }

  /// Moves the decoder back to the last key frame that it has taken. Does nothing if there is none.
  mutating func rewindToLastKey() {
    if let index = packets[..<cursor].lastIndex(where: \.isKey) { moveCursor(to: index) }
  }

  /// Drops packets that are not needed to show the frame at `time` again: those before its key frame.
  mutating func trim(before time: MediaTime) {
    drop(packets[..<cursor].lastIndex { $0.isKey && $0.time <= time } ?? 0)
  }

  /// Drops the oldest packets that the decoder has taken beyond `byteLimit` bytes.
  mutating func dropTaken(beyond byteLimit: Int) {
    var (kept, count) = (byteCount - pendingByteCount, 0)
    while kept > byteLimit, count < cursor {
      kept -= packets[count].byteCount
      count += 1
    }
    drop(count)
  }

  /// Drops audio that has been played: packets that end before `time`.
  mutating func drop(endingBefore time: MediaTime) {
    drop(packets[..<cursor].firstIndex { $0.end >= time } ?? cursor)
  }

  /// Drops packets of iterations after `iteration`.
  mutating func drop(after iteration: Int) {
    while let last = packets.last, last.span.loop.iteration > iteration {
      released.append(packets.removeLast())
      byteCount -= last.byteCount
      if cursor > packets.count { cursor = packets.count } else { addPending(last, -1) }
    }
    guard !packets.isEmpty else { return }
    latest = nil
    for packet in packets { recordEnd(of: packet) }
  }

  mutating func removeAll() {
    var new = PacketQueue()
    new.released = released
    new.released.append(contentsOf: packets)
    self = new
  }

  /// Returns the packets that were dropped since the last call.
  mutating func takeReleased() -> [MediaPacket] {
    defer { released = [] }
    return released
  }

  /// Returns the number of bytes of the packets presented after `time`; of all packets if it is nil.
  func byteCount(after time: MediaTime?) -> Int {
    guard let time else { return byteCount }
    return packets.reduce(0) { $1.time > time ? $0 + $1.byteCount : $0 }
  }

  // MARK: - Private

  private mutating func recordEnd(of packet: MediaPacket) {
    if let end, end >= packet.end { return }
    latest = (packet.span, packet.mediaTime + packet.duration)
  }

  private mutating func addPending(_ packet: MediaPacket, _ sign: Int) {
    pendingByteCount += packet.byteCount * sign
    pendingDuration += Duration.seconds(packet.duration.seconds) * sign
  }

  private mutating func moveCursor(to index: Int) {
    for packet in packets[min(index, cursor)..<max(index, cursor)] {
      addPending(packet, index < cursor ? 1 : -1)
    }
    cursor = index
  }

  private mutating func drop(_ count: Int) {
    guard count > 0 else { return }
    byteCount -= packets[..<count].reduce(0) { $0 + $1.byteCount }
    released.append(contentsOf: packets[..<count])
    packets.removeFirst(count)
    cursor -= count
  }
}
