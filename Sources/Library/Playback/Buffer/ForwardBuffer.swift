internal import ReelCore
internal import ReelFFmpeg

/// The compressed media of one player: media loaded ahead, and the packets that the frame on show depends on,
/// so that a seek within it fetches nothing.
///
/// Loaders append packets and stop when the buffer is full; decoders take them; no call blocks. Each seek
/// begins a new generation for the decoders, and for loaders that must start at another position: their earlier
/// packets are dropped. A loader whose packets are kept continues in its own generation.
///
/// The buffer stores packets, not the bytes of segments: a seek within it, or a restarted decoder, costs only
/// decoding, and a limit in time is a limit in packets. Bytes would have to be demuxed again, and unwanted
/// muxed audio would be kept.
final class ForwardBuffer: Sendable {
  struct Limits: Sendable, Hashable {
    /// The amount of media ahead of the frame on show at which loading stops.
    var target: MediaTime
    /// The share of the target below which loading resumes.
    var refillShare = 0.75
    /// The number of undecoded bytes at which loading stops too.
    var byteCount = 64 << 20
  }

  /// The fill level.
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

  fileprivate struct State {
    /// The highest generation of decoders and loaders.
    var latest = 0
    /// The generations of the decoders.
    var generations = PerKind(0)
    /// The generations of the loaders.
    var loads = PerKind(0)
    var video = PacketQueue()
    var audio = PacketQueue()
    /// The position of the frame on show; nil until there is one.
    var position: MediaTime?
    var limits: Limits
    /// The loaders that are filling the buffer up to the target.
    var filling: Set<MediaPacket.Kind> = [.video, .audio]
    /// True if audio has a loader of its own.
    var hasSeparateAudio = false
    var hasAudio = false
    /// Packets of later iterations are dropped if they began before this generation.
    var cut: (iteration: Int, generation: Int)?
    var highWaterByteCount = 0
  }

  private let state: Locked<State>

  init(limits: Limits) { state = Locked(State(limits: limits), rank: .media) }

  /// Returns the generation of a kind's decoder.
  func bufferGeneration(of kind: MediaPacket.Kind) -> Int { state.withLock { $0.generations[kind] } }
  var byteCount: Int { state.withLock { $0.video.byteCount + $0.audio.byteCount } }
  var highWaterByteCount: Int { state.withLock { $0.highWaterByteCount } }
  var position: MediaTime? { state.withLock { $0.position } }

  func setLimits(_ limits: Limits) { state.withLock { $0.limits = limits } }

  // MARK: Loaders

  /// Returns the generation of a kind's loader.
  func loadGeneration(of loader: MediaPacket.Kind) -> Int { state.withLock { $0.loads[loader] } }

  /// Appends a packet from the video loader, which may also deliver audio, or from the audio loader. Returns
  /// false for a packet of an earlier generation.
  func append(
    _ packet: MediaPacket, _ kind: MediaPacket.Kind, from loader: MediaPacket.Kind, bufferGeneration: Int
  ) -> Bool {
    state.withLock { state in
      guard bufferGeneration == state.loads[loader] else { return false }
      let loop = packet.span.loop
      if let cut = state.cut, loop.iteration > cut.iteration, loop.generation < cut.generation {
        return false
      }
      switch kind {
      case .video:
        state.video.append(packet)
      case .audio:
        state.audio.append(packet)
        state.hasAudio = true
      }
      if state.position == nil { state.position = packet.time }
      state.highWaterByteCount = max(
        state.highWaterByteCount, state.video.byteCount + state.audio.byteCount)
      return true
    }
  }

  /// Marks the end of these kinds: the loader has no more packets in this generation.
  ///
  /// - Parameter isBroken: True after a failure: a seek beyond the last packet loads again.
  func end(
    _ kinds: Set<MediaPacket.Kind>, from loader: MediaPacket.Kind, bufferGeneration: Int,
    isBroken: Bool = false
  ) {
    state.withLock { state in
      guard bufferGeneration == state.loads[loader] else { return }
      if kinds.contains(.video) { (state.video.hasEnded, state.video.isBroken) = (true, isBroken) }
      if kinds.contains(.audio) { (state.audio.hasEnded, state.audio.isBroken) = (true, isBroken) }
    }
  }

  /// Cancels `end`: more packets follow because the item loops.
  func resume(from loader: MediaPacket.Kind, bufferGeneration: Int) {
    state.withLock { state in
      guard bufferGeneration == state.loads[loader] else { return }
      if loader == .video { state.video.hasEnded = false }
      if loader == .audio || !state.hasSeparateAudio { state.audio.hasEnded = false }
    }
  }

  /// Returns the end of the loaded packets of a kind, in presentation order.
  func end(of kind: MediaPacket.Kind) -> MediaTime? {
    state.withLock { kind == .video ? $0.video.end : $0.audio.end }
  }

  /// Returns true if the loaded audio ends before `time` and more will follow.
  func isAudioBehind(_ time: MediaTime) -> Bool {
    state.withLock { state in
      guard !state.audio.hasEnded else { return false }
      return state.audio.end.map { $0 < time } ?? true
    }
  }

  /// Returns true if audio that is due by `time` was loaded but not yet passed to its decoder.
  func hasAudioToDecode(until time: MediaTime) -> Bool {
    state.withLock { state in state.audio.next.map { $0.time <= time } ?? false }
  }

  /// True if the loader that delivers audio, its own or that of video, has reached neither the end nor its target.
  var isLoadingMoreAudio: Bool {
    state.withLock { state in
      let loader: MediaPacket.Kind = state.hasSeparateAudio ? .audio : .video
      return !state.audio.hasEnded && state.filling.contains(loader) && !state.isFull(loader)
    }
  }

  /// True if audio has a loader of its own, which has reached neither the end nor its target.
  var isLoadingAudio: Bool {
    state.withLock { $0.hasSeparateAudio && !$0.audio.hasEnded && $0.filling.contains(.audio) }
  }

  /// True if only audio with its own loader is missing to continue, or to end.
  var isHeldUpByAudio: Bool {
    state.withLock { state in
      let moment = MediaTime(value: 1, timescale: 10)
      return state.hasSeparateAudio && !state.audio.hasEnded && state.ahead(.audio) < moment
        && (state.video.hasEnded || state.ahead(.video) > state.ahead(.audio) + moment)
    }
  }

  func setHasSeparateAudio(_ hasSeparateAudio: Bool) {
    state.withLock { state in
      let wasSeparate = state.hasSeparateAudio
      state.hasSeparateAudio = hasSeparateAudio
      if wasSeparate, !hasSeparateAudio, !state.hasAudio { state.audio = PacketQueue() }
    }
  }

  /// Returns true if the loader of a kind should continue.
  func wantsMore(_ kind: MediaPacket.Kind) -> Bool {
    state.withLock { state in
      if state.isFull(kind) { state.filling.remove(kind) }
      return state.filling.contains(kind)
    }
  }

  /// Makes the loaders fill the buffer up to the target, regardless of its level.
  func fill() { state.withLock { $0.filling = [.video, .audio] } }

  /// Returns true, once, if a loader that stopped at a full buffer should resume.
  func takeRefill(_ kind: MediaPacket.Kind) -> Bool {
    state.withLock { state in
      guard !state.filling.contains(kind), state.needsRefill(kind) else { return false }
      state.filling.insert(kind)
      return true
    }
  }

  // MARK: Decoders

  /// Takes the next packet.
  ///
  /// - Parameter run: If the next packet belongs to another span, the result is `end`; nil accepts any span.
  func next(
    _ kind: MediaPacket.Kind, bufferGeneration: Int, of span: StreamSpan? = nil
  ) -> NextPacket {
    state.withLock { state in
      let next = state.peek(kind, bufferGeneration: bufferGeneration)
      switch next {
      case .packet(let packet):
        if let span, packet.span !== span { return .end }
        _ = kind == .video ? state.video.takeNext() : state.audio.takeNext()
      default: break
      }
      return next
    }
  }

  /// Returns the next packet, without taking it.
  func peekNext(_ kind: MediaPacket.Kind, bufferGeneration: Int) -> NextPacket {
    state.withLock { $0.peek(kind, bufferGeneration: bufferGeneration) }
  }

  /// Moves the video decoder back to the last key frame at or before `time` that it has already taken.
  /// Returns false without moving if there is none, or if the buffer is in another generation.
  func rewindToKey(before time: MediaTime, bufferGeneration: Int) -> Bool {
    state.withLock { $0.generations[.video] == bufferGeneration && $0.video.rewindToKey(before: time) }
  }

  /// Moves the video decoder back to its start in this generation, before it has returned any frame.
  ///
  /// - Parameter time: The target of the seek; nil for the beginning.
  func rewindToStart(soughtTime time: MediaTime?, bufferGeneration: Int) {
    state.withLock { state in
      guard state.generations[.video] == bufferGeneration else { return }
      if let time, state.video.rewindToKey(before: time) { return }
      state.video.rewindToStart()
    }
  }

  /// Moves the video decoder back to the last key frame that it has taken.
  func rewindToLastKey(bufferGeneration: Int) {
    state.withLock { state in
      guard state.generations[.video] == bufferGeneration else { return }
      state.video.rewindToLastKey()
    }
  }

  // MARK: Position

  /// Sets the position of the frame on show, and drops packets that are no longer needed for it.
  func setPosition(_ time: MediaTime, bufferGeneration: Int) {
    state.withLock { state in
      guard bufferGeneration == state.generations[.video] else { return }
      state.position = time
      state.video.trim(before: time, byteLimit: state.limits.byteCount / 2)
      if let start = state.video.start {
        state.audio.drop(endingBefore: min(start, time))
      } else {
        state.audio.drop(endingBefore: time)
      }
    }
  }

  /// Begins a new generation for a seek to `time`.
  ///
  /// Returns the kinds that must be loaded from there: none for a seek within the buffer.
  func seek(to time: MediaTime) -> (bufferGeneration: Int, reload: Set<MediaPacket.Kind>) {
    state.withLock { state in
      state.latest += 1
      state.generations = PerKind(state.latest)
      guard state.video.seek(to: time) else {
        state.reset(position: time)
        return (state.latest, [.video, .audio])
      }
      state.position = time
      state.filling = [.video, .audio]
      guard state.hasSeparateAudio, !state.audioCovers(time) else {
        state.audio.skip(to: time)
        return (state.latest, [])
      }
      state.audio = PacketQueue()
      state.loads[.audio] = state.latest
      return (state.latest, [.audio])
    }
  }

  /// Drops everything and begins a new generation.
  func reset(position: MediaTime?) -> Int {
    state.withLock { state in
      state.latest += 1
      state.generations = PerKind(state.latest)
      state.reset(position: position)
      return state.latest
    }
  }

  /// Drops the audio when it is muted or unmuted; returns the new generation of its loader.
  ///
  /// - Parameter isSeparate: Whether audio has a loader of its own, which starts again; nil to keep the current
  ///   state.
  func dropAudio(isSeparate: Bool? = nil) -> Int {
    state.withLock { state in
      let isSeparate = isSeparate ?? state.hasSeparateAudio
      state.latest += 1
      // If audio comes from the video loader, its end is the end of the audio too.
      let hasEnded = !isSeparate && state.audio.hasEnded
      state.audio = PacketQueue()
      state.audio.hasEnded = hasEnded
      state.hasAudio = false
      state.filling.insert(.audio)
      state.generations[.audio] = state.latest
      if isSeparate { state.loads[.audio] = state.latest }
      return state.latest
    }
  }

  /// Drops packets of iterations after `iteration`, including packets still on their way.
  ///
  /// - Parameters:
  ///   - kinds: The kinds that had been loaded to the end of the iteration, so that nothing more follows.
  ///  - generation: Iterations that begin with this generation or later are wanted again.
  func drop(
    after iteration: Int, ending kinds: Set<MediaPacket.Kind> = [.video, .audio],
    before generation: Int = .max
  ) {
    state.withLock { state in
      state.cut = (iteration, generation)
      state.video.drop(after: iteration)
      state.audio.drop(after: iteration)
      if kinds.contains(.video) { state.video.hasEnded = true }
      if kinds.contains(.audio) { state.audio.hasEnded = true }
    }
  }

  /// Sets where playback begins, which may be before the first loaded packet.
  func begin(at time: MediaTime) {
    state.withLock { state in
      if state.position == nil { state.position = time }
    }
  }

  var level: Level { level(without: []) }

  /// Returns how much media is buffered.
  ///
  /// - Parameter absent: The kinds of media that the item currently lacks, which playback does not wait for.
  func level(without absent: Set<MediaPacket.Kind>) -> Level { state.withLock { $0.level(without: absent) } }

  /// The number of bytes of packets after the position on show; of all packets if there is none.
  var unshownByteCount: Int {
    state.withLock { state in
      state.video.byteCount(after: state.position) + state.audio.byteCount(after: state.position)
    }
  }
}

/// A number for each kind of packet.
private struct PerKind: Sendable {
  private var video: Int
  private var audio: Int

  init(_ value: Int) { (video, audio) = (value, value) }

  subscript(kind: MediaPacket.Kind) -> Int {
    get { kind == .video ? video : audio }
    set { if kind == .video { video = newValue } else { audio = newValue } }
  }
}

extension ForwardBuffer.State {
  fileprivate mutating func reset(position: MediaTime?) {
    video = PacketQueue()
    audio = PacketQueue()
    loads = PerKind(latest)
    self.position = position
    filling = [.video, .audio]
  }

  fileprivate func peek(_ kind: MediaPacket.Kind, bufferGeneration: Int) -> NextPacket {
    guard bufferGeneration == generations[kind] else { return .stale }
    let queue = kind == .video ? video : audio
    if let packet = queue.next { return .packet(packet) }
    if queue.hasEnded { return .end }
    return .none
  }

  /// Returns the media of one kind ahead of the frame on show.
  fileprivate func ahead(_ kind: MediaPacket.Kind) -> MediaTime {
    let end = kind == .video ? video.end : audio.end
    guard let end, let position, end > position else { return .zero }
    return end - position
  }

  fileprivate func isFull(_ kind: MediaPacket.Kind) -> Bool {
    if video.pendingByteCount + audio.pendingByteCount >= limits.byteCount { return true }
    // Timestamps may be wrong: a buffer with nothing left to decode does not count as full.
    let isConsumed = kind == .video ? video.isConsumed : audio.isConsumed
    return ahead(kind) >= limits.target && !isConsumed
  }

  private func isResting(_ kind: MediaPacket.Kind) -> Bool {
    isFull(kind) || !filling.contains(kind) && !needsRefill(kind)
  }

  fileprivate func needsRefill(_ kind: MediaPacket.Kind) -> Bool {
    if kind == .video ? video.isConsumed : audio.isConsumed { return true }
    let bytes = Double(video.pendingByteCount + audio.pendingByteCount)
    return bytes < Double(limits.byteCount) * limits.refillShare
      && ahead(kind).seconds < limits.target.seconds * limits.refillShare
  }

  fileprivate func audioCovers(_ time: MediaTime) -> Bool {
    guard let start = audio.start, let end = audio.end else { return false }
    return start <= time && (time < end || audio.hasEnded)
  }

  fileprivate func level(without absent: Set<MediaPacket.Kind>) -> ForwardBuffer.Level {
    var level = ForwardBuffer.Level()
    let separate = hasSeparateAudio && !audio.hasEnded
    var kinds: Set<MediaPacket.Kind> = separate ? [.video, .audio] : [.video]
    // If both kinds are absent, the level can only be measured with both.
    if !kinds.isSubset(of: absent) { kinds.subtract(absent) }
    level.ahead = kinds.map(ahead).min() ?? .zero
    level.isComplete = video.hasEnded && (!hasSeparateAudio || audio.hasEnded)
    level.isFull = kinds.allSatisfy(isFull)
    level.isResting = kinds.allSatisfy(isResting)
    level.isConsumed = kinds.contains(.video) ? video.isConsumed : audio.isConsumed
    level.byteCount = video.byteCount + audio.byteCount
    if let start = video.start, let end = video.end, start < end { level.range = start..<end }
    return level
  }
}
