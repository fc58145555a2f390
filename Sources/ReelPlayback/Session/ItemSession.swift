internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// One item being loaded and decoded for one player: from its source to the ring of frames and the queue of sound.
///
/// Work is done in the turns of task loops: one reads video (and what is muxed with it), one reads audio that is a stream of
/// its own, one decodes frames, one decodes sound. None of them waits for another inside of a turn; each is woken by
/// what it waits for. Only reading waits, for bytes, and a seek or the end of the session interrupts that.
///
/// ```
///  reader ---> ForwardBuffer ---> VideoPipeline ---> FrameRing ---> (the player's clock)
///                  |
///                  +------------> AudioPipeline ---> AudioQueue --->
/// ```
///
/// `stop()` ends everything; what is running ends by itself soon after.
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

  /// Who is told. Called on any thread, never with a lock held.
  struct Delegate: Sendable {
    /// There is something for the player to look at: a frame, room, an end, a failure.
    var wake: @Sendable () -> Void
    var event: @Sendable (PlayerEvent) -> Void
    /// Loading has come further.
    var progress: @Sendable () -> Void
    /// So many frames have come out of decoders.
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
    /// What ends the reads of a loader, for it to go to another place.
    var scopes: [MediaPacket.Kind: LoadScope]
    var stoppedLoops: [TaskLoop] = []
    var stoppedResolving: Task<Void, Never>?
    /// The audio that goes with the rung (HLS).
    var audioGroup: String?
    /// How long the separate audio stream has not arrived, and the next check of that.
    var audioAbsence = AudioAbsence()
    var audioWatch: (any ScheduledCall)?
    /// True during a turn of the audio decoder, when the packet that it has taken is in no queue.
    var isDecodingAudio = false
    var streams = ReaderStreams()
    var rate = 1.0
    var isRebuffering = false
    /// The player looks by itself how much there is.
    var isPlaying = false
    var live: LiveSegments?
    /// The live segments of a separate audio stream.
    var liveAudio: LiveSegments?
    /// The time range of audio that is played before the first frame.
    var soundBeforeVideo: Range<MediaTime>?
    /// The parts of a complete presentation that have no video.
    var videoAbsences: [Absence] = []
    var readerWait: Duration = .zero
    var readerBusy: Duration = .zero
    var decoding = DecodingAccount()

    /// Has the machine decide, and gives what follows once the lock is released.
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

  /// What follows from a decision, to be performed when no lock is held that leads to the session's.
  struct Consequences {
    var actions: [LoadingMachine.Action] = []
    /// What ends the reads that nobody waits for any more.
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

  /// Begins to load. To be called once, when a session that has played the item before was stopped.
  func start() {
    item.reset()
    item.remainingRetries.set(environment.retryPolicy.remaining)
    let (taskLoops, delegate) = (taskLoops, delegate)
    makeTaskLoops()
    ring.setHandlers(onRoom: { taskLoops.wake(.video) }, onFrame: { delegate.wake() })
    audio.setOnRoom { taskLoops.wake(.audio) }
    item.setOnChange { [weak self] in self?.preferencesHaveChanged() }
    handle(.began)
  }

  /// Ends all loading and decoding, and lets go of all that is held.
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

  /// Returns when nothing runs any more, after `stop()`.
  func waitUntilStopped() async {
    let (stopped, resolving) = state.withLock { ($0.stoppedLoops, $0.stoppedResolving) }
    await resolving?.value
    for taskLoop in stopped { await taskLoop.waitUntilStopped() }
  }

  // MARK: What follows from decisions

  func handle(_ event: LoadingMachine.Event) {
    perform(state.withLock { state in state.decide(event) })
  }

  /// - Returns: When the loader that was working is to go on, where it is.
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
      case .log(let error): noteFailure(error, rung: "")
      case .publishRetries(let remaining): item.remainingRetries.set(remaining)
      case .tellRetry(let attempt, let count, let pause, let error):
        delegate.event(.retry(attempt: attempt, of: count, after: pause, error))
      case .tracksAreKnown: item.areTracksKnown.set(true)
      }
    }
    return next
  }

  // MARK: What the player asks

  var failure: ReelError? { state.withLock { $0.machine.dueFailure } }
  /// Why there was no frame at all.
  var fruitlessFailure: ReelError? { state.withLock { $0.machine.emptyFailure } }
  /// A failure, also one that is not due yet.
  var pendingFailure: ReelError? { state.withLock { $0.machine.failure } }
  private var target: PreloadTarget? { state.withLock { $0.machine.target } }
  var streams: ReaderStreams { state.withLock { $0.streams } }
  var hasSeparateAudio: Bool { state.withLock { $0.machine.hasSeparateAudio ?? false } }
  var generation: Int { state.withLock { $0.machine.order.generation } }
  var bandwidth: Double? { state.withLock { $0.controller }?.estimatedBandwidth }
  /// What loading holds outside of the buffer.
  var memory: LoadingMemory { scope.memory }
  var decoding: DecodingAccount { state.withLock { $0.decoding } }

  /// Shows what is left of the buffer, then fails.
  func makeFailureDue() { handle(.failureIsDue) }

  /// Less than any frame is on show. What is printed is cut to it: a frame whose time is less than that after the one
  /// that is asked for is the one that was meant.
  static let instant = MediaTime(value: 1, timescale: 1_000_000)

  /// Goes to `time`, but not beyond the time through the item that is on show: everything that comes after has
  /// `generation`. Buffer, ring and audio queue change under the session's lock, so that no turn finds one of them at the
  /// old position. What it gives is to be performed when the caller's locks are released.
  ///
  /// - Parameter iteration: the time through the item that is on show.
  func seek(
    to time: MediaTime, tolerance: MediaTime, iteration: Int
  ) -> (generation: Int, target: MediaTime, consequences: Consequences) {
    state.withLock { state in
      let time = state.machine.iterations.place(of: time, iteration: iteration, instant: Self.instant)
      var order = state.machine.order
      order.generation = ring.flush()
      // What failed and may pass is tried again, also for a place that is still there.
      if state.machine.startsOver { _ = buffer.reset(position: nil) }
      let place = buffer.seek(to: time)
      order.bufferGeneration = place.bufferGeneration
      order.target = time
      order.tolerance = tolerance
      audio.flush(generation: order.generation, start: time)
      return (order.generation, time, state.decide(.sought(order, reload: place.reload)))
    }
  }

  /// The position of what is on show: what lies behind is let go, and loading goes on where there is room again.
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

  /// Sets how far to load; nil for playing. A target that asks for less than there is gives back what can be made again:
  /// frames behind the one on show, and the decoder.
  func setTarget(_ target: PreloadTarget?) { handle(.targetChanged(target)) }

  /// - Parameter iteration: the time through the item that is on show: the last one, where it does not loop any more.
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
      // Together: the decoder takes the new generation when the queue has been emptied for it.
      let bufferGeneration = buffer.dropAudio(isSeparate: state.machine.hasSeparateAudio ?? false)
      audio.flush(generation: state.machine.order.generation, start: position)
      return state.decide(.audioWanted(wants, bufferGeneration: bufferGeneration, place: position))
    }
    perform(consequences)
  }

  /// True where the sound of its own stream has run out, and more is to come.
  func lacksAudio(at time: MediaTime) -> Bool {
    let wants = state.withLock { $0.machine.playsSeparateAudio }
    return wants && audio.isEmpty && !audio.isDrained && buffer.isAudioBehind(time)
      && !absentKinds(at: time).contains(.audio)
  }

  /// The kinds of media that a live presentation lacks at `time`, according to its periods.
  func absentKinds(at time: MediaTime) -> Set<MediaPacket.Kind> {
    let (video, audio) = state.withLock { ($0.live, $0.liveAudio) }
    var absent: Set<MediaPacket.Kind> = []
    if video?.isAbsent(at: time) == true { absent.insert(.video) }
    if audio?.isAbsent(at: time) == true { absent.insert(.audio) }
    return absent
  }

  /// True if a complete presentation has no video at `time`, on the presentation's timeline.
  func lacksVideo(at time: MediaTime) -> Bool {
    state.withLock { $0.videoAbsences.contains { $0.contains(time) } }
  }

  /// Where playback begins: at the first frame, or at the requested position if there is no video at that time. All
  /// times are on the player's timeline.
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

  /// True if the audio decoder is behind: no audio is ready, although packets due by `time` were loaded.
  func isAudioDecoderBehind(_ time: MediaTime) -> Bool {
    let (isWanted, isDecoding) = state.withLock {
      ($0.machine.wantsAudio && $0.machine.target == nil, $0.isDecodingAudio)
    }
    guard isWanted, audio.isEmpty, !audio.isDrained else { return false }
    return isDecoding || buffer.hasAudioToDecode(until: time)
  }

  /// True if the audio loader is behind: no audio is ready, packets due by `time` were not loaded, and more will
  /// come.
  func isAudioLoaderBehind(_ time: MediaTime) -> Bool {
    let isWanted = state.withLock { state in
      state.machine.wantsAudio && state.machine.target == nil
        && (state.machine.hasSeparateAudio == true || state.streams.audio != nil)
    }
    guard isWanted, audio.isEmpty, !audio.isDrained else { return false }
    return buffer.isAudioBehind(time) && buffer.isLoadingMoreAudio
  }

  /// Audio before `time` is ready, or will be without more being loaded.
  func hasAudio(before time: MediaTime) -> Bool {
    audio.nextTime.map { $0 < time } ?? isAudioDecoderBehind(time)
  }

  /// There is sound that has not been handed out yet.
  var hasAudioLeft: Bool {
    state.withLock { $0.machine.wantsAudio } && !audio.isDrained
  }

  /// Publishes how much there is, and gives it.
  func publishLevel(isStalled: Bool, rate: Double, at time: MediaTime) -> (
    level: ForwardBuffer.Level, keepsUp: Bool
  ) {
    let level = buffer.level(without: absentKinds(at: time))
    let target = target?.bufferDuration ?? item.preferences.forwardBufferDuration
    let isDry = level.isConsumed && !level.isComplete && ring.statistics.frameCount == 0
    let keepsUp =
      !isDry
      && environment.thresholds.isLikelyToKeepUp(
        buffered: .seconds(level.ahead.seconds), target: target, isComplete: level.isComplete,
        isFull: level.isResting, isAfterStall: isStalled, rate: rate)
    item.loadedTimeRanges.set(level.range.map { [$0] } ?? [])
    item.isPlaybackBufferFull.set(level.isFull || level.isComplete)
    item.isPlaybackBufferEmpty.set(level.isConsumed && ring.statistics.frameCount == 0)
    item.isPlaybackLikelyToKeepUp.set(keepsUp)
    if level.isFull || level.isComplete, item.preloadStage.value == .firstFrame { reach(.buffered) }
    return (level, keepsUp)
  }

  /// A stage of loading has been reached. The reader and the presenter may tell theirs at the same time: none goes back.
  func reach(_ stage: PreloadStage) {
    guard item.preloadStage.value < stage else { return }
    item.note(stage, after: environment.clock.now - startedAt)
    item.preloadStage.update { $0 = max($0, stage) }
    delegate.progress()
  }

  /// The first frame is about to be shown: what has been spent in its decoder was noted before the ring had it.
  func noteFirstFrame() {
    let report = state.withLock { state -> StartupReport? in
      guard !state.machine.hasFirstFrame else { return nil }
      _ = state.machine.handle(.firstFrameDecoded)
      let decoding = state.decoding
      recorder.close(
        StartupReport.Timing(
          source: state.readerWait, demux: state.readerBusy,
          decode: decoding.firstFrameDuration ?? decoding.duration))
      return recorder.current
    }
    if let report { item.setStartup(report) }
  }

  /// How far the edge of a live item is ahead of `time`, how far its oldest segment is behind, and the delay that its
  /// manifest asks for; nil for an item that is not live.
  func liveDistances(from time: MediaTime) -> LiveDistances? {
    guard let live = state.withLock({ $0.live }), let distance = live.distance else { return nil }
    let edge = live.edge
    let window = live.window
    let latency = Duration.seconds((edge - time).seconds)
    // While video is absent, its window does not show what is still available.
    let length = live.isAbsent(at: time) ? MediaTime.zero : window.end - window.start
    return LiveDistances(
      latency: latency, target: .seconds(distance.seconds), oldest: .seconds(length.seconds),
      segmentDuration: window[window.endIndex - 1].map { .seconds($0.duration.seconds) }, edge: edge)
  }

  /// Where a live item can go on that is to go to `time`: at the beginning of the segment on show then, which needs no
  /// frame before, or of the last one where the edge, which moves on with the clock, is ahead of what is named; within
  /// the segment that `position` lies in only where all up to `time` is named. Nil where there is nothing later than
  /// `position`.
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
  /// Compressed media to be kept: as the target says, else as the item prefers.
  static func limits(
    of item: PlayerItem, _ environment: SessionEnvironment, _ target: PreloadTarget?
  ) -> ForwardBuffer.Limits {
    let seconds = (target?.bufferDuration ?? item.preferences.forwardBufferDuration) / .seconds(1)
    return ForwardBuffer.Limits(
      target: MediaTime(seconds: seconds), refillShare: environment.thresholds.refillShare,
      byteCount: min(target?.byteLimit ?? .max, environment.thresholds.maximumByteCount))
  }

  func preferencesHaveChanged() {
    buffer.setLimits(Self.limits(of: item, environment, state.withLock { $0.machine.target }))
    refill()
  }

  func refill() {
    if buffer.takeRefill(.video) { taskLoops.wake(.reader) }
    if buffer.takeRefill(.audio) { taskLoops.wake(.audioReader) }
  }
}
