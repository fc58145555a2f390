internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Loads and decodes one item for one player, from its source to the frame ring and the audio queue.
///
/// The work is done in turns of task loops: one reads video and muxed audio, one reads separate audio, one
/// decodes frames, one decodes audio. A turn never waits for another; each loop is woken when its input is
/// ready. Only reading waits, for bytes, and a seek or the end of the session interrupts it.
///
/// ```
///  reader ---> ForwardBuffer ---> VideoPipeline ---> FrameRing ---> (the player's clock)
///                  |
///                  +------------> AudioPipeline ---> AudioQueue --->
/// ```
///
/// `stop()` ends everything; running work ends by itself soon after.
final class ItemSession: Sendable {
  let item: PlayerItem
  let buffer: ForwardBuffer
  let ring: FrameRing
  let audio = AudioQueue()
  let startedAt: Duration

  let environment: SessionEnvironment
  let scope: LoadScope
  let recorder: StartupRecorder
  let offsets = TimestampOffsets()
  let state: Locked<State>
  let taskLoops: TaskLoops
  let delegate: Delegate

  /// The handlers of the owner. Called on any thread, never with a lock held.
  struct Delegate: Sendable {
    /// Called after a change that concerns the presenter: a frame, room, an end, a failure.
    var wake: @Sendable () -> Void
    var event: @Sendable (PlayerEvent) -> Void
    /// Called when loading has advanced.
    var progress: @Sendable () -> Void
    /// Called when the buffer is full, or contains the rest of the item.
    var filled: @Sendable () -> Void
    /// Called with the total number of frames that decoders have returned.
    var decoded: @Sendable (Int) -> Void
  }

  final class TaskLoops: Sendable {
    let all = Locked<[LoopKind: TaskLoop]>([:])

    func wake(_ kind: LoopKind) { all.withLock { $0[kind] }?.wake() }
  }

  enum LoopKind: Sendable, Hashable, CaseIterable {
    case reader
    case audioReader
    case video
    case audio
  }

  struct State {
    var machine: LoadingMachine
    var source: ResolvedSource?
    var resolver: SourceResolver?
    var context: TrackContext?
    var controller: RungController?
    var resolving: Task<Void, Never>?
    /// The scopes of the current reads. Cancelling one interrupts its loader.
    var scopes: [MediaPacket.Kind: LoadScope]
    var stoppedLoops: [TaskLoop] = []
    var stoppedResolving: Task<Void, Never>?
    /// The audio group of the rung (HLS).
    var audioGroup: String?
    /// The time for which the separate audio stream has been missing, and the next check of that.
    var audioAbsence = AudioAbsence()
    var audioWatch: (any ScheduledCall)?
    /// True during a turn of the audio decoder. The packet that it has taken is then in no queue.
    var isDecodingAudio = false
    var streams = ReaderStreams()
    var rate = 1.0
    var isRebuffering = false
    /// True while playing: the player then checks the buffer level by itself.
    var isPlaying = false
    var live: LiveSegments?
    /// The live segments of a separate audio stream.
    var liveAudio: LiveSegments?
    /// The time range of audio before the first frame.
    var soundBeforeVideo: Range<MediaTime>?
    /// The parts of a complete presentation that have no video.
    var videoAbsences: [Absence] = []
    var readerWait: Duration = .zero
    var readerBusy: Duration = .zero
    var decoding = DecodingAccount()
    /// The limits up to which the buffer was filled; nil while it is not full.
    var filledLimits: ForwardBuffer.Limits?

    /// Passes an event to the machine. Returns the consequences, to be performed once the lock is released.
    mutating func decide(_ event: LoadingMachine.Event) -> Consequences {
      let actions = machine.handle(event)
      var interrupted: [LoadScope] = []
      for case .interrupt(let loader) in actions {
        guard let old = scopes[loader] else { continue }
        interrupted.append(old)
        scopes[loader] = LoadScope(runtime: old.runtime, memory: old.memory)
      }
      return Consequences(actions: actions, interrupted: interrupted)
    }
  }

  /// The consequences of a decision. Perform them without holding a lock that ranks above the session's.
  struct Consequences {
    var actions: [LoadingMachine.Action] = []
    /// The scopes of reads that are no longer wanted.
    var interrupted: [LoadScope] = []
  }

  init(
    _ item: PlayerItem, environment: SessionEnvironment, start: MediaTime?, wantsAudio: Bool, loops: Bool,
    prefersThroughput: Bool, target: PreloadTarget? = nil, delegate: Delegate
  ) {
    self.item = item
    self.environment = environment
    self.delegate = delegate
    startedAt = environment.clock.now
    ring = FrameRing(
      frameCapacity: environment.ringFrameCapacity, byteCapacity: environment.ringByteCapacity)
    buffer = ForwardBuffer(limits: Self.limits(of: item, environment, target))
    let runtime = environment.runtime
    let memory = LoadingMemory(account: environment.account)
    scope = LoadScope(runtime: runtime, memory: memory)
    recorder = StartupRecorder(clock: environment.clock)
    var machine = LoadingMachine(
      target: target, wantsAudio: wantsAudio, loops: loops, prefersThroughput: prefersThroughput,
      retry: environment.retryPolicy)
    if let start, start > .zero {
      let start = start + Self.instant
      machine.start(at: start, bufferGeneration: buffer.seek(to: start).bufferGeneration)
    }
    let state = State(
      machine: machine,
      scopes: [
        .video: LoadScope(runtime: runtime, memory: memory),
        .audio: LoadScope(runtime: runtime, memory: memory),
      ])
    self.state = Locked(state, rank: .session)
    taskLoops = TaskLoops()
  }

  /// Starts loading. Call it once, after stopping a session that played the item before.
  func start() {
    item.reset()
    item.remainingRetries.set(environment.retryPolicy.remaining)
    let (taskLoops, delegate) = (taskLoops, delegate)
    makeTaskLoops()
    ring.setHandlers(onRoom: { taskLoops.wake(.video) }, onFrame: { delegate.wake() })
    audio.setOnRoom { taskLoops.wake(.audio) }
    item.setOnChange { [weak self] in self?.preferencesHaveChanged(wantsMore: $0) }
    handle(.began)
  }

  /// Ends all loading and decoding, and releases everything.
  func stop() {
    let (resolving, scopes) = state.withLock { state in
      _ = state.machine.handle(.stopped)
      state.stoppedResolving = state.resolving.take()
      state.audioWatch.take()?.cancel()
      return (state.stoppedResolving, MediaPacket.Kind.allCases.compactMap { state.scopes[$0] })
    }
    resolving?.cancel()
    scope.cancel()
    for scope in scopes { scope.cancel() }
    let all = taskLoops.all.withLock { all in
      defer { all = [:] }
      return LoopKind.allCases.compactMap { all[$0] }
    }
    for taskLoop in all { taskLoop.stop() }
    state.withLock { $0.stoppedLoops += all }
    item.setOnChange(nil)
    ring.flush()
    _ = buffer.reset(position: nil)
    audio.flush(generation: .max, start: nil)
  }

  /// Waits, after `stop()`, until nothing runs any more.
  func waitUntilStopped() async {
    let (stopped, resolving) = state.withLock { ($0.stoppedLoops, $0.stoppedResolving) }
    await resolving?.value
    for taskLoop in stopped { await taskLoop.waitUntilStopped() }
  }

  // MARK: Consequences of decisions

  func handle(_ event: LoadingMachine.Event) {
    perform(state.withLock { state in state.decide(event) })
  }

  /// - Returns: The time at which the current loader continues from its position.
  @discardableResult
  func perform(_ consequences: Consequences) -> TaskLoop.Next {
    var next = TaskLoop.Next.idle
    for scope in consequences.interrupted { scope.cancel() }
    for action in consequences.actions {
      switch action {
      case .interrupt: break
      case .resolve(let pause): beginResolving(after: pause)
      case .loadAgain(_, let pause): next = pause == .zero ? .again : .at(environment.clock.now + pause)
      case .wake(let kind): taskLoops.wake(kind)
      case .wakePlayer: delegate.wake()
      case .updateLimits: buffer.setLimits(Self.limits(of: item, environment, target))
      case .fillBuffer: buffer.fill()
      case .endBuffer(let kinds, let loader, let bufferGeneration, let isBroken):
        buffer.end(kinds, from: loader, bufferGeneration: bufferGeneration, isBroken: isBroken)
      case .setHasSeparateAudio(let hasSeparateAudio): buffer.setHasSeparateAudio(hasSeparateAudio)
      case .reached(let stage): reach(stage)
      case .log(let error, let outcome): recordFailure(error, rung: "", outcome: outcome)
      case .publishRetries(let remaining): item.remainingRetries.set(remaining)
      case .announceRetry(let attempt, let count, let pause, let error):
        delegate.event(.retry(attempt: attempt, of: count, after: pause, error))
      case .tracksAreKnown: item.areTracksKnown.set(true)
      }
    }
    return next
  }

  // MARK: Queries of the player

  var failure: ReelError? { state.withLock { $0.machine.dueFailure } }
  /// The reason why there was no frame at all.
  var fruitlessFailure: ReelError? { state.withLock { $0.machine.emptyFailure } }
  /// The failure, even if it is not due yet.
  var pendingFailure: ReelError? { state.withLock { $0.machine.failure } }
  private var target: PreloadTarget? { state.withLock { $0.machine.target } }
  var streams: ReaderStreams { state.withLock { $0.streams } }
  var hasSeparateAudio: Bool { state.withLock { $0.machine.hasSeparateAudio ?? false } }
  var generation: Int { state.withLock { $0.machine.order.generation } }
  var bandwidth: Double? { state.withLock { $0.controller }?.estimatedBandwidth }
  /// The memory that loading holds outside the buffer.
  var memory: LoadingMemory { scope.memory }
  var decoding: DecodingAccount { state.withLock { $0.decoding } }

  /// Makes the item fail. Called when the rest of the buffer has been shown.
  func makeFailureDue() { handle(.failureIsDue) }

  /// A time shorter than any frame. Printed times are rounded down to it, so a frame less than this after a
  /// requested time is the intended one.
  static let instant = MediaTime(value: 1, timescale: 1_000_000)

  /// Seeks to `time`, but not beyond the current iteration. Everything after the seek has the returned
  /// generation. Buffer, ring and audio queue change under the session's lock, so that no turn finds one of
  /// them at the old position. Perform the returned consequences when the caller's locks are released.
  ///
  /// - Parameter iteration: The current iteration.
  func seek(
    to time: MediaTime, tolerance: MediaTime, iteration: Int
  ) -> (generation: Int, target: MediaTime, consequences: Consequences) {
    state.withLock { state in
      let time = state.machine.iterations.place(of: time, iteration: iteration, instant: Self.instant)
      var order = state.machine.order
      order.generation = ring.flush()
      // After a temporary failure, loading starts over, even for a buffered position.
      if state.machine.startsOver { _ = buffer.reset(position: nil) }
      let place = buffer.seek(to: time)
      order.bufferGeneration = place.bufferGeneration
      order.target = time
      order.tolerance = tolerance
      audio.flush(generation: order.generation, start: time)
      // A buffer that fills up again is reported again.
      state.filledLimits = nil
      return (order.generation, time, state.decide(.sought(order, reload: place.reload)))
    }
  }

  /// Sets the position on show: drops media before it, and resumes loading if there is room again.
  func setPosition(_ time: MediaTime) {
    buffer.setPosition(time, bufferGeneration: state.withLock { $0.machine.order.bufferGeneration })
    refill()
  }

  func setRate(_ rate: Double, status: TimeControlStatus) {
    state.withLock { state in
      state.rate = rate
      state.isRebuffering = status == .waitingToPlay(.toMinimizeStalls)
      state.isPlaying = status == .playing
    }
  }

  /// Sets how far to load; nil for playing. If the target is below the current stage, releases everything
  /// that can be restored: frames after the one on show, and the decoder.
  func setTarget(_ target: PreloadTarget?) { handle(.targetChanged(target)) }

  /// - Parameter iteration: The current iteration. If the item no longer loops, it is the last one.
  func setLoops(_ loops: Bool, iteration: Int) {
    state.withLock { state in
      guard let cut = state.machine.setLoops(loops, iteration: iteration) else { return }
      audio.drop(after: cut.shift)
      buffer.drop(after: cut.iteration, ending: cut.ended, before: cut.generation)
      ring.drop(after: cut.iteration)
    }
    for kind in LoopKind.allCases { taskLoops.wake(kind) }
  }

  func setWantsAudio(_ wants: Bool) {
    let consequences = state.withLock { state -> Consequences in
      guard state.machine.wantsAudio != wants else { return Consequences() }
      let position = buffer.position
      // Under one lock, so that the decoder takes the new generation only when the queue has been flushed for
      // it.
      let bufferGeneration = buffer.dropAudio(isSeparate: state.machine.hasSeparateAudio ?? false)
      audio.flush(generation: state.machine.order.generation, start: position)
      return state.decide(.audioWanted(wants, bufferGeneration: bufferGeneration, place: position))
    }
    perform(consequences)
  }

  /// Returns true if separate audio has run out and more will follow.
  func lacksAudio(at time: MediaTime) -> Bool {
    let wants = state.withLock { $0.machine.playsSeparateAudio }
    return wants && audio.isEmpty && !audio.isDrained && buffer.isAudioBehind(time)
      && !absentKinds(at: time).contains(.audio)
  }

  /// Returns the kinds of media that a live presentation lacks at `time`, according to its periods.
  func absentKinds(at time: MediaTime) -> Set<MediaPacket.Kind> {
    let (video, audio) = state.withLock { ($0.live, $0.liveAudio) }
    var absent: Set<MediaPacket.Kind> = []
    if video?.isAbsent(at: time) == true { absent.insert(.video) }
    if audio?.isAbsent(at: time) == true { absent.insert(.audio) }
    return absent
  }

  /// Returns true if a complete presentation has no video at `time`, on the presentation's timeline.
  func lacksVideo(at time: MediaTime) -> Bool {
    state.withLock { $0.videoAbsences.contains { $0.contains(time) } }
  }

  /// Returns the position at which playback begins: the first frame, or the requested position if there is no
  /// video at that time. All times are on the player's timeline.
  ///
  /// - Parameter sought: The position of a seek; nil if there was none.
  func beginning(sought: MediaTime?, firstFrame: MediaTime, shift: MediaTime) -> MediaTime {
    let (wanted, isAbsent) = state.withLock { state -> (MediaTime, Bool) in
      let start = state.soundBeforeVideo.map { $0.lowerBound + shift }
      let wanted = sought ?? state.machine.order.target ?? start ?? firstFrame
      return (
        wanted, state.machine.wantsAudio && state.videoAbsences.contains { $0.contains(wanted - shift) }
      )
    }
    return isAbsent ? wanted : max(sought ?? firstFrame, firstFrame)
  }

  /// Returns true if the audio decoder is behind: no audio is ready, although packets due by `time` were
  /// loaded.
  func isAudioDecoderBehind(_ time: MediaTime) -> Bool {
    let (isWanted, isDecoding) = state.withLock {
      ($0.machine.wantsAudio && $0.machine.target == nil, $0.isDecodingAudio)
    }
    guard isWanted, audio.isEmpty, !audio.isDrained else { return false }
    return isDecoding || buffer.hasAudioToDecode(until: time)
  }

  /// Returns true if the audio loader is behind: no audio is ready, packets due by `time` were not loaded,
  /// and more will come.
  func isAudioLoaderBehind(_ time: MediaTime) -> Bool {
    let isWanted = state.withLock { state in
      state.machine.wantsAudio && state.machine.target == nil
        && (state.machine.hasSeparateAudio == true || state.streams.audio != nil)
    }
    guard isWanted, audio.isEmpty, !audio.isDrained else { return false }
    return buffer.isAudioBehind(time) && buffer.isLoadingMoreAudio
  }

  /// The same for audio that is read with the video.
  private func isMuxedAudioBehind(_ time: MediaTime) -> Bool {
    state.withLock { $0.machine.hasSeparateAudio == false } && isAudioLoaderBehind(time)
  }

  /// Returns true if audio before `time` is ready, or will be without more loading.
  func hasAudio(before time: MediaTime) -> Bool {
    audio.nextTime.map { $0 < time } ?? isAudioDecoderBehind(time)
  }

  /// True if some audio has not been passed to outputs yet.
  var hasAudioLeft: Bool {
    state.withLock { $0.machine.wantsAudio } && !audio.isDrained
  }

  /// Publishes the buffer level, and returns it.
  func publishLevel(isStalled: Bool, rate: Double, at time: MediaTime) -> (
    level: ForwardBuffer.Level, keepsUp: Bool
  ) {
    let level = buffer.level(without: absentKinds(at: time))
    let target = target?.bufferDuration ?? item.forwardBufferDuration
    let isDry = level.isConsumed && !level.isComplete && ring.statistics.frameCount == 0
    let keepsUp =
      !isDry
      && environment.thresholds.isLikelyToKeepUp(
        buffered: .seconds(level.ahead.seconds), target: target, isComplete: level.isComplete,
        isFull: level.isResting, isAfterStall: isStalled || isMuxedAudioBehind(time), rate: rate)
    item.loadedTimeRanges.set(level.range.map { [$0] } ?? [])
    item.isPlaybackBufferFull.set(level.isFull || level.isComplete)
    item.isPlaybackBufferEmpty.set(level.isConsumed && ring.statistics.frameCount == 0)
    item.isPlaybackLikelyToKeepUp.set(keepsUp)
    if level.isFull || level.isComplete, item.preloadStage.value == .firstFrame { reach(.buffered) }
    recordFilled(level.isFull || level.isComplete)
    return (level, keepsUp)
  }

  /// Reports once that the buffer is full, and again if it is full with other limits.
  private func recordFilled(_ isFull: Bool) {
    let limits = isFull ? Self.limits(of: item, environment, target) : nil
    let isNews = state.withLock { state in
      defer { state.filledLimits = limits }
      return limits != nil && state.filledLimits != limits
    }
    if isNews { delegate.filled() }
  }

  /// Publishes a stage of loading. The reader and the presenter may report at the same time, so the stage never
  /// goes back.
  func reach(_ stage: PreloadStage) {
    guard item.preloadStage.value < stage else { return }
    item.record(stage, after: environment.clock.now - startedAt)
    item.preloadStage.update { $0 = max($0, stage) }
    delegate.progress()
  }

  /// Records that the first frame, or the first since a seek, is about to be shown. Its decoding time was
  /// recorded before the ring received it.
  func recordFirstFrame() {
    let report = state.withLock { state -> StartupReport? in
      let isFirst = !state.machine.hasFirstFrame
      _ = state.machine.handle(.firstFrameDecoded)
      guard isFirst else { return nil }
      let decoding = state.decoding
      recorder.close(
        StartupReport.Timing(
          source: state.readerWait, demux: state.readerBusy,
          decode: decoding.firstFrameDuration ?? decoding.duration))
      return recorder.current
    }
    if let report { item.setStartup(report) }
  }

  /// Returns the distances of `time` from the live edge and of the oldest segment from the edge, and the
  /// manifest's delay; nil if the item is not live.
  func liveDistances(from time: MediaTime) -> LiveDistances? {
    guard let live = state.withLock({ $0.live }), let distance = live.distance else { return nil }
    let edge = live.edge
    let window = live.window
    let latency = Duration.seconds((edge - time).seconds)
    // While video is missing, its window does not show which media is still available.
    let length = live.isAbsent(at: time) ? MediaTime.zero : window.end - window.start
    return LiveDistances(
      latency: latency, target: .seconds(distance.seconds), oldest: .seconds(length.seconds),
      segmentDuration: window[window.endIndex - 1].map { .seconds($0.duration.seconds) }, edge: edge)
  }

  /// Returns the position for a jump of a live item to `time`: the start of the segment at `time`, or of the
  /// last known one if the edge, which moves with the clock, is further ahead. Inside the segment of
  /// `position`, it is `time` itself, if that is in the window. Nil if nothing is later than `position`.
  func livePlace(near time: MediaTime, after position: MediaTime) -> MediaTime? {
    guard let window = state.withLock({ $0.live })?.window,
      let index = window.index(at: min(time, window.end - Self.instant)), let segment = window[index]
    else { return nil }
    if segment.start > position { return segment.start }
    return time > position && time < window.end ? time : nil
  }

  struct LiveDistances: Sendable {
    var latency: Duration
    var target: Duration
    var oldest: Duration
    var segmentDuration: Duration?
    var edge: MediaTime
  }
}

extension ItemSession {
  /// Returns the limits of the forward buffer: from the target, or else from the item's preferences.
  static func limits(
    of item: PlayerItem, _ environment: SessionEnvironment, _ target: PreloadTarget?
  ) -> ForwardBuffer.Limits {
    let seconds = (target?.bufferDuration ?? item.forwardBufferDuration) / .seconds(1)
    return ForwardBuffer.Limits(
      target: MediaTime(seconds: seconds), refillShare: environment.thresholds.refillShare,
      byteCount: min(target?.byteLimit ?? .max, environment.thresholds.maximumByteCount))
  }

  func preferencesHaveChanged(wantsMore: Bool) {
    buffer.setLimits(Self.limits(of: item, environment, state.withLock { $0.machine.target }))
    guard wantsMore else { return refill() }
    // Fill the buffer up to the new bound, regardless of its level.
    buffer.fill()
    taskLoops.wake(.reader)
    taskLoops.wake(.audioReader)
  }

  func refill() {
    if buffer.takeRefill(.video) { taskLoops.wake(.reader) }
    if buffer.takeRefill(.audio) { taskLoops.wake(.audioReader) }
  }
}

extension PlayerItem {
  /// The compressed media to load ahead while the item is played.
  var forwardBufferDuration: Duration { bounds.forwardBufferDuration ?? preferences.forwardBufferDuration }
}
