internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// One item being loaded and decoded for one player: from its source to the ring of pictures and the queue of sound.
///
/// Work is done in the turns of pumps: one reads video (and what is muxed with it), one reads audio that is a stream of
/// its own, one decodes pictures, one decodes sound. None of them waits for another inside of a turn; each is woken by
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
  let domains = DomainTable()
  let state: Locked<State>
  let pumps: Pumps
  let delegate: Delegate

  /// Who is told. Called on any thread, never with a lock held.
  struct Delegate: Sendable {
    /// There is something for the player to look at: a picture, room, an end, a failure.
    var wake: @Sendable () -> Void
    var event: @Sendable (PlayerEvent) -> Void
    /// Loading has come further.
    var progress: @Sendable () -> Void
    /// So many pictures have come out of decoders.
    var decoded: @Sendable (Int) -> Void
  }

  final class Pumps: Sendable {
    let all = Locked<[PumpKind: Pump]>([:])

    func wake(_ kind: PumpKind) { all.withLock { $0[kind] }?.wake() }
  }

  enum PumpKind: Sendable, Hashable, CaseIterable {
    case reader
    case audioReader
    case video
    case audio
  }

  struct State {
    var source: ResolvedSource?
    var resolver: SourceResolver?
    var context: TrackContext?
    var controller: RungController?
    var resolving: Task<Void, Never>?
    /// What ends the reads of a loader, for it to go to another place.
    var scopes: [MediaPacket.Kind: LoadScope]
    var order = VideoPipeline.Order()
    /// What readers are to go to before they go on, and the epoch that this is for.
    var pendingSeek: [MediaPacket.Kind: (epoch: Int, time: MediaTime?)] = [:]
    var retry: ItemRetryPolicy
    var isStopped = false
    var stoppedPumps: [Pump] = []
    var stoppedResolving: Task<Void, Never>?
    var failure: ReelError?
    /// Why nothing was shown, where nothing else is wrong.
    var fruitless: ReelError?
    /// The failure is told when what is there has been shown.
    var isFailureDue = false
    var wantsAudio = true
    /// Audio is a stream of its own; nil before that is known.
    var hasSeparateAudio: Bool?
    var audioGroup: String?
    var hasVideoPacket = false
    var loops = false
    /// How much later each time through the item is than the one before.
    var shifts: [MediaTime] = [.zero]
    /// Passes that readers have begun so far.
    var passSerial = 0
    /// The pass that each reader is in.
    var passes: [MediaPacket.Kind: ItemPass] = [:]
    /// The last time through the item, when looping was given up; readers that were beyond it go back to its end.
    var cut: (iteration: Int, serial: Int)?
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
    var prefersThroughput = false
    /// How far to load; nil for playing.
    var target: PreloadTarget?
    /// Resolving has begun.
    var hasBegun = false
    var live: LiveSegments?
    /// The live segments of a separate audio stream.
    var liveAudio: LiveSegments?
    /// The time range of audio that is played before the first frame.
    var soundBeforeVideo: Range<MediaTime>?
    /// The parts of a complete presentation that have no video.
    var videoAbsences: [Absence] = []
    var readerWait: Duration = .zero
    var readerBusy: Duration = .zero
    var hasRecordedStartup = false
    var decoding = DecodingAccount()
    var videoTracks: [PlayerItem.Track] = []
    var audioTracks: [PlayerItem.Track] = []
    /// The readers that have reached the end. They announce no more tracks.
    var hasReadEnd: Set<MediaPacket.Kind> = []
    var rungBits: [String: Rung] = [:]
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
    let execution = environment.execution
    let memory = LoadingMemory(account: environment.account)
    scope = LoadScope(execution: execution, memory: memory)
    recorder = StartupRecorder(clock: environment.clock)
    var state = State(
      scopes: [
        .video: LoadScope(execution: execution, memory: memory),
        .audio: LoadScope(execution: execution, memory: memory),
      ],
      retry: environment.retryPolicy)
    state.target = target
    state.order.limit = target?.frameLimit
    state.wantsAudio = wantsAudio
    state.loops = loops
    state.prefersThroughput = prefersThroughput
    state.order.prefersThroughput = prefersThroughput
    if let start, start > .zero {
      let start = start + Self.instant
      let place = buffer.seek(to: start)
      state.order.epoch = place.epoch
      state.order.target = start
      state.pendingSeek = [.video: (place.epoch, start), .audio: (place.epoch, start)]
    }
    self.state = Locked(state)
    pumps = Pumps()
  }

  /// Begins to load. To be called once, when a session that has played the item before was stopped.
  func start() {
    item.reset()
    item.remainingRetries.set(environment.retryPolicy.remaining)
    let (pumps, delegate) = (pumps, delegate)
    makePumps()
    ring.setHandlers(onRoom: { pumps.wake(.video) }, onPicture: { delegate.wake() })
    audio.setOnRoom { pumps.wake(.audio) }
    item.setOnChange { [weak self] in self?.preferencesHaveChanged() }
    beginWhereWanted()
  }

  /// Ends all loading and decoding, and lets go of all that is held.
  func stop() {
    let (resolving, scopes) = state.withLock { state in
      state.isStopped = true
      state.stoppedResolving = state.resolving.take()
      state.audioWatch.take()?.cancel()
      return (state.stoppedResolving, MediaPacket.Kind.allCases.compactMap { state.scopes[$0] })
    }
    resolving?.cancel()
    scope.cancel()
    for scope in scopes { scope.cancel() }
    let all = pumps.all.withLock { all in
      defer { all = [:] }
      return PumpKind.allCases.compactMap { all[$0] }
    }
    for pump in all { pump.stop() }
    state.withLock { $0.stoppedPumps += all }
    item.setOnChange(nil)
    ring.flush()
    _ = buffer.reset(position: nil)
    audio.flush(generation: .max, start: nil)
  }

  /// Returns when nothing runs any more, after `stop()`.
  func waitUntilStopped() async {
    let (stopped, resolving) = state.withLock { ($0.stoppedPumps, $0.stoppedResolving) }
    await resolving?.value
    for pump in stopped { await pump.waitUntilStopped() }
  }

  // MARK: What the player asks

  var failure: ReelError? { state.withLock { $0.isFailureDue || !$0.hasVideoPacket ? $0.failure : nil } }
  /// Why there was no picture at all.
  var fruitlessFailure: ReelError? { state.withLock { $0.failure ?? $0.fruitless } }
  /// A failure, also one that is not due yet.
  var pendingFailure: ReelError? { state.withLock { $0.failure } }
  var streams: ReaderStreams { state.withLock { $0.streams } }
  var hasSeparateAudio: Bool { state.withLock { $0.hasSeparateAudio ?? false } }
  var generation: Int { state.withLock { $0.order.generation } }
  var bandwidth: Double? { state.withLock { $0.controller }?.estimatedBandwidth }
  /// What loading holds outside of the buffer.
  var memory: LoadingMemory { scope.memory }
  var decoding: DecodingAccount { state.withLock { $0.decoding } }

  /// Shows what is left of the buffer, then fails.
  func makeFailureDue() { state.withLock { $0.isFailureDue = $0.failure != nil } }

  /// Less than any picture is on show. What is printed is cut to it: a picture whose time is less than that after the one
  /// that is asked for is the one that was meant.
  static let instant = MediaTime(value: 1, timescale: 1_000_000)

  /// Goes to `time`, but not beyond the time through the item that is on show: everything that comes after has
  /// `generation`.
  ///
  /// - Parameter iteration: the time through the item that is on show.
  func seek(
    to time: MediaTime, tolerance: MediaTime, iteration: Int
  ) -> (generation: Int, target: MediaTime) {
    let (generation, time, old, isUnresolved) = state.withLock {
      state -> (Int, MediaTime, [LoadScope], Bool) in
      var time = time > state.shifts[min(iteration, state.shifts.count - 1)] ? time + Self.instant : time
      if iteration + 1 < state.shifts.count { time = min(time, state.shifts[iteration + 1] - Self.instant) }
      let generation = ring.flush()
      // What failed and may pass is tried again, also for a place that is still there.
      if state.failure?.isTemporary == true { _ = buffer.reset(position: nil) }
      let place = buffer.seek(to: time)
      state.order.generation = generation
      state.order.epoch = place.epoch
      state.order.target = time
      state.order.tolerance = tolerance
      audio.flush(generation: generation, start: time)
      let old = MediaPacket.Kind.allCases.filter(place.reload.contains).compactMap { kind in
        state.send(kind, to: time, epoch: place.epoch)
      }
      var isUnresolved = false
      if let failure = state.failure, failure.isTemporary || !place.reload.isEmpty {
        state.failure = nil
        state.isFailureDue = false
        state.retry.succeed()
        isUnresolved = state.source == nil
      }
      return (generation, time, old, isUnresolved)
    }
    for scope in old { scope.cancel() }
    if isUnresolved { beginResolving() }
    for kind in PumpKind.allCases { pumps.wake(kind) }
    return (generation, time)
  }

  /// The position of what is on show: what lies behind is let go, and loading goes on where there is room again.
  func setPosition(_ time: MediaTime) {
    buffer.setPosition(time, epoch: state.withLock { $0.order.epoch })
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
  /// pictures behind the one on show, and the decoder.
  func setTarget(_ target: PreloadTarget?) {
    let isChanged = state.withLock { state in
      guard state.target != target else { return false }
      state.target = target
      state.order.limit = target?.frameLimit
      return true
    }
    guard isChanged else { return }
    buffer.setLimits(Self.limits(of: item, environment, target))
    beginWhereWanted()
    buffer.fill()
    for kind in PumpKind.allCases { pumps.wake(kind) }
  }

  /// - Parameter iteration: the time through the item that is on show: the last one, where it does not loop any more.
  func setLoops(_ loops: Bool, iteration: Int) {
    state.withLock { state in
      let hadMore = state.loops && !loops && state.shifts.count > iteration + 1
      state.loops = loops
      state.order.lastIteration = loops ? .max : iteration
      guard hadMore else { return }
      state.shifts.removeLast(state.shifts.count - iteration - 1)
      state.passSerial += 1
      state.cut = (iteration, state.passSerial)
      var ended = Set(
        state.passes.filter { $1.iteration > iteration && state.pendingSeek[$0] == nil }.map(\.key))
      if ended.contains(.video), state.hasSeparateAudio != true { ended.insert(.audio) }
      audio.drop(after: state.shifts[iteration])
      buffer.drop(after: iteration, ending: ended, before: state.passSerial)
      ring.drop(after: iteration)
    }
    for kind in PumpKind.allCases { pumps.wake(kind) }
  }

  func setWantsAudio(_ wants: Bool) {
    let hasChanged = state.withLock { state in
      defer { state.wantsAudio = wants }
      return state.wantsAudio != wants
    }
    guard hasChanged else { return }
    let position = buffer.position
    // Together: the decoder takes the new epoch when the queue has been emptied for it.
    let old = state.withLock { state in
      let epoch = buffer.dropAudio(isSeparate: state.hasSeparateAudio ?? false)
      let old = state.send(.audio, to: position, epoch: epoch)
      audio.flush(generation: state.order.generation, start: position)
      return old
    }
    old?.cancel()
    noteTracksKnown()
    buffer.setHasSeparateAudio(wants && hasSeparateAudio)
    for kind in PumpKind.allCases { pumps.wake(kind) }
  }

  /// True where the sound of its own stream has run out, and more is to come.
  func lacksAudio(at time: MediaTime) -> Bool {
    let wants = state.withLock { $0.wantsAudio && $0.hasSeparateAudio == true }
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
  func beginning(sought: MediaTime?, firstPicture: MediaTime, shift: MediaTime) -> MediaTime {
    let (wanted, isAbsent) = state.withLock { state -> (MediaTime, Bool) in
      let start = state.soundBeforeVideo.map { $0.lowerBound + shift }
      let wanted = sought ?? state.order.target ?? start ?? firstPicture
      return (wanted, state.wantsAudio && state.videoAbsences.contains { $0.contains(wanted - shift) })
    }
    return isAbsent ? wanted : max(sought ?? firstPicture, firstPicture)
  }

  /// True if the audio decoder is behind: no audio is ready, although packets due by `time` were loaded.
  func isAudioDecoderBehind(_ time: MediaTime) -> Bool {
    let (isWanted, isDecoding) = state.withLock { ($0.wantsAudio && $0.target == nil, $0.isDecodingAudio) }
    guard isWanted, audio.isEmpty, !audio.isDrained else { return false }
    return isDecoding || buffer.hasAudioToDecode(until: time)
  }

  /// True if the audio loader is behind: no audio is ready, packets due by `time` were not loaded, and more will
  /// come.
  func isAudioLoaderBehind(_ time: MediaTime) -> Bool {
    let isWanted = state.withLock { state in
      state.wantsAudio && state.target == nil
        && (state.hasSeparateAudio == true || state.streams.audio != nil)
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
    state.withLock { $0.wantsAudio } && !audio.isDrained
  }

  /// Publishes how much there is, and gives it.
  func publishLevel(isStalled: Bool, rate: Double, at time: MediaTime) -> (
    level: ForwardBuffer.Level, keepsUp: Bool
  ) {
    let level = buffer.level(without: absentKinds(at: time))
    let target = state.withLock { $0.target }?.bufferDuration ?? item.preferences.forwardBufferDuration
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

  /// The first picture is about to be shown: what has been spent in its decoder was noted before the ring had it.
  func noteFirstPicture() {
    let report = state.withLock { state -> StartupReport? in
      guard !state.hasRecordedStartup else { return nil }
      state.hasRecordedStartup = true
      let decoding = state.decoding
      recorder.close(
        StartupReport.Timing(
          source: state.readerWait, demux: state.readerBusy,
          decode: decoding.firstPictureDuration ?? decoding.duration))
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
  /// picture before, or of the last one where the edge, which moves on with the clock, is ahead of what is named; within
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

extension ItemSession.State {
  /// True if no more tracks will be announced.
  var areTracksKnown: Bool {
    guard !videoTracks.isEmpty else { return false }
    if !wantsAudio { return true }
    if hasSeparateAudio == true { return !audioTracks.isEmpty || hasReadEnd.contains(.audio) }
    return streams.areAllKnown || videoTracks.contains { $0.kind == .audio } || hasReadEnd.contains(.video)
  }

  /// A reader begins to read a pass, from its beginning or another place in it.
  mutating func beginPass(_ iteration: Int, of loader: MediaPacket.Kind) -> ItemPass {
    passSerial += 1
    let pass = ItemPass(iteration: iteration, shift: shifts[iteration], serial: passSerial)
    passes[loader] = pass
    return pass
  }

  /// Has a loader go to `time`; gives what ends its reads.
  mutating func send(
    _ loader: MediaPacket.Kind, to time: MediaTime?, epoch: Int
  ) -> LoadScope? {
    pendingSeek[loader] = (epoch, time)
    guard let old = scopes[loader] else { return nil }
    return scopes.updateValue(LoadScope(execution: old.execution, memory: old.memory), forKey: loader)
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
    buffer.setLimits(Self.limits(of: item, environment, state.withLock { $0.target }))
    refill()
  }

  func refill() {
    if buffer.takeRefill(.video) { pumps.wake(.reader) }
    if buffer.takeRefill(.audio) { pumps.wake(.audioReader) }
  }
}
