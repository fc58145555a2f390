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
/// All that the loops and the player share is one state under one lock. Each worker has a job, and what it brings
/// counts while that job is the current one: a seek ends the jobs that must begin elsewhere.
///
/// `stop()` ends everything; running work ends by itself soon after.
final class ItemSession: Sendable {
  let item: PlayerItem
  let startedAt: Duration

  let environment: SessionEnvironment
  let scope: LoadScope
  let recorder: StartupRecorder
  let offsets = TimestampOffsets()
  let state: Guarded<State>
  /// True if the first frame is not urgent, so that all decoder threads are used from the beginning.
  let prefersThroughput: Bool
  private let taskLoops = Locked(TaskLoops())
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

  struct TaskLoops: Sendable {
    var reader: TaskLoop?
    var audioReader: TaskLoop?
    var video: TaskLoop?
    var audio: TaskLoop?

    var all: [TaskLoop] { [reader, audioReader, video, audio].compactMap(\.self) }
  }

  struct State: ~Copyable {
    var machine: LoadingMachine
    var packets: ForwardBuffer
    var frames: FrameRing
    var audio = AudioQueue()
    /// The job of the video decoder. For the player, it stands for the position since the last seek.
    var videoJob: DecodingJob
    var audioJob = DecodingJob()
    /// The jobs of the readers.
    var readingJobs: [MediaPacket.Kind: ReadingJob]
    /// Nil until the source is resolved.
    var opened: Opened?
    var controller: RungController?
    var resolving: Task<Void, Never>?
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
  }

  init(
    _ item: PlayerItem, environment: SessionEnvironment, start: MediaTime?, wantsAudio: Bool, loops: Bool,
    prefersThroughput: Bool, target: PreloadTarget? = nil, delegate: Delegate
  ) {
    self.item = item
    self.environment = environment
    self.delegate = delegate
    startedAt = environment.clock.now
    self.prefersThroughput = prefersThroughput
    let runtime = environment.runtime
    let memory = LoadingMemory(account: environment.account)
    scope = LoadScope(runtime: runtime, memory: memory)
    recorder = StartupRecorder(clock: environment.clock)
    var packets = ForwardBuffer(limits: Self.limits(of: item, environment, target))
    // Printed times are rounded down.
    let start = start.flatMap { $0 > .zero ? $0 + Self.instant : nil }
    if let start { _ = packets.seek(to: start) }
    let readingJobs = MediaPacket.Kind.allCases.map { kind in
      (kind, ReadingJob(start: start, scope: LoadScope(runtime: runtime, memory: memory)))
    }
    state = Guarded(
      State(
        machine: LoadingMachine(
          target: target, wantsAudio: wantsAudio, loops: loops, retry: environment.retryPolicy),
        packets: packets,
        frames: FrameRing(
          frameCapacity: environment.ringFrameCapacity, byteCapacity: environment.ringByteCapacity),
        videoJob: DecodingJob(target: start), readingJobs: Dictionary(uniqueKeysWithValues: readingJobs)),
      rank: .session)
  }

  /// Starts loading. Call it once, after stopping a session that played the item before.
  func start() {
    item.reset()
    item.remainingRetries.set(environment.retryPolicy.remaining)
    let loops = makeTaskLoops()
    taskLoops.withLock { $0 = loops }
    item.setOnChange { [weak self] in self?.preferencesHaveChanged(wantsMore: $0) }
    handle(.began)
  }

  /// Ends all loading and decoding, and releases everything.
  func stop() {
    let resolving = change { state, out in
      _ = state.machine.handle(.stopped)
      out.cancel(scope)
      state.packets.reset(position: nil)
      state.moveDecoders(to: DecodingJob())
      for kind in MediaPacket.Kind.allCases { state.restart(kind, at: nil, &out) }
      state.stoppedResolving = state.resolving.take()
      state.audioWatch.take()?.cancel()
      return state.stoppedResolving
    }
    resolving?.cancel()
    let all = taskLoops.withLock { loops in
      defer { loops = TaskLoops() }
      return loops.all
    }
    for taskLoop in all { taskLoop.stop() }
    change { state, _ in state.stoppedLoops += all }
    item.setOnChange(nil)
  }

  /// Waits, after `stop()`, until nothing runs any more.
  func waitUntilStopped() async {
    let (stopped, resolving) = state.read { ($0.stoppedLoops, $0.stoppedResolving) }
    await resolving?.value
    for taskLoop in stopped { await taskLoop.waitUntilStopped() }
  }

  // MARK: Decisions

  /// Passes an event to the machine.
  ///
  /// - Returns: The pause after which the loader continues that failed; nil for none.
  @discardableResult
  func handle(_ event: LoadingMachine.Event) -> Duration? {
    change { state, out in state.decide(event, &out) }
  }

  /// Performs what a decision has left to do without the lock.
  func perform(_ action: LoadingMachine.Action) {
    switch action {
    case .resolve(let pause): beginResolving(after: pause)
    case .reached(let stage): reach(stage)
    case .log(let error, let outcome): recordFailure(error, rung: "", outcome: outcome)
    case .publishRetries(let remaining): item.remainingRetries.set(remaining)
    case .announceRetry(let attempt, let count, let pause, let error):
      delegate.event(.retry(attempt: attempt, of: count, after: pause, error))
    case .tracksAreKnown: item.areTracksKnown.set(true)
    case .restart, .loadAgain, .wake, .fillBuffer, .endBuffer, .setHasSeparateAudio: break
    }
  }

  /// Wakes task loops, always in the same order.
  func wake(_ workers: Workers) {
    let loops = taskLoops.withLock { $0 }
    if workers.contains(.reader) { loops.reader?.wake() }
    if workers.contains(.audioReader) { loops.audioReader?.wake() }
    if workers.contains(.video) { loops.video?.wake() }
    if workers.contains(.audio) { loops.audio?.wake() }
    if workers.contains(.presenter) { delegate.wake() }
  }

  // MARK: Queries of the player

  var failure: ReelError? { state.read { $0.machine.dueFailure } }
  /// The reason why there was no frame at all.
  var fruitlessFailure: ReelError? { state.read { $0.machine.emptyFailure } }
  /// The failure, even if it is not due yet.
  var pendingFailure: ReelError? { state.read { $0.machine.failure } }
  private var target: PreloadTarget? { state.read { $0.machine.target } }
  var streams: ReaderStreams { state.read { $0.streams } }
  var videoJob: DecodingJob { state.read { $0.videoJob } }
  var level: ForwardBuffer.Level { state.read { $0.packets.level } }
  var bandwidth: Double? { state.read { $0.controller }?.estimatedBandwidth }
  /// The memory that loading holds outside the buffer.
  var memory: LoadingMemory { scope.memory }

  /// Makes the item fail. Called when the rest of the buffer has been shown.
  func makeFailureDue() { handle(.failureIsDue) }

  /// A time shorter than any frame. Printed times are rounded down to it, so a frame less than this after a
  /// requested time is the intended one.
  static let instant = MediaTime(value: 1, timescale: 1_000_000)

  /// Seeks to `time`, but not beyond the current iteration, and returns the new job of the video decoder.
  ///
  /// - Parameter iteration: The current iteration.
  func seek(
    to time: MediaTime, tolerance: MediaTime, iteration: Int, _ out: inout Effects
  ) -> (job: DecodingJob, target: MediaTime) {
    change(in: &out) { state, out in
      let time = state.machine.iterations.place(of: time, iteration: iteration, instant: Self.instant)
      // After a temporary failure, loading starts over, even for a buffered position.
      if state.machine.startsOver { state.packets.reset(position: nil) }
      let reload = state.packets.seek(to: time)
      let job = DecodingJob(target: time, tolerance: tolerance)
      state.moveDecoders(to: job)
      // A buffer that fills up again is reported again.
      state.filledLimits = nil
      state.decide(.sought(time, reload: reload), &out)
      return (job, time)
    }
  }

  func setRate(_ rate: Double, status: TimeControlStatus, _ out: inout Effects) {
    change(in: &out) { state, _ in
      state.rate = rate
      state.isRebuffering = status == .waitingToPlay(.toMinimizeStalls)
      state.isPlaying = status == .playing
    }
  }

  /// Sets how far to load; nil for playing. If the target is below the current stage, releases everything
  /// that can be restored: frames after the one on show, and the decoder.
  func setTarget(_ target: PreloadTarget?) {
    let limits = Self.limits(of: item, environment, target)
    change { state, out in
      state.packets.limits = limits
      state.decide(.targetChanged(target), &out)
    }
  }

  /// - Parameter iteration: The current iteration. If the item no longer loops, it is the last one.
  func setLoops(_ loops: Bool, iteration: Int, _ out: inout Effects) {
    change(in: &out) { state, out in
      out.wake(.loading)
      guard let cut = state.machine.setLoops(loops, iteration: iteration) else { return }
      state.audio.drop(after: cut.loop.shift)
      state.packets.drop(after: cut.loop.iteration, ending: cut.ended)
      state.frames.drop(after: cut.loop.iteration)
      // What loaders ahead have under way is of iterations that are not wanted.
      for loader in MediaPacket.Kind.allCases where cut.ahead.contains(loader) {
        guard let job = state.readingJobs[loader] else { continue }
        state.readingJobs[loader] = ReadingJob(loop: cut.loop, beginsAtEnd: true, scope: job.scope)
      }
    }
  }

  func setWantsAudio(_ wants: Bool) {
    change { state, out in
      guard state.machine.wantsAudio != wants else { return }
      let position = state.packets.position
      state.packets.dropAudio(isSeparate: state.machine.hasSeparateAudio ?? false)
      state.moveAudioDecoder(to: position)
      state.decide(.audioWanted(wants, place: position), &out)
    }
  }

  // MARK: Frames and audio for the player

  /// The next frame; nil if the job is over.
  func head(of job: DecodingJob) -> FrameRing.Head? {
    state.read { $0.videoJob === job ? $0.frames.head : nil }
  }

  /// Takes the next frame, which is shown or dropped in the same change; nil if there is none, or if the job is
  /// over.
  func takeFrame(of job: DecodingJob, _ out: inout Effects) -> TimedFrame? {
    var taken: TimedFrame?
    change(in: &out) { state, out in
      guard state.videoJob === job else { return }
      taken = state.frames.take()
      if state.frames.takeRoom() { out.wake(.video) }
    }
    return taken
  }

  /// Returns true if the next frame belongs to a span other than `span` that follows a gap in the timeline.
  func headFollowsGap(than span: StreamSpan?) -> Bool { state.read { $0.frames.headFollowsGap(than: span) } }

  /// Takes the audio due by `time`; nil for all of it.
  func takeAudio(until time: MediaTime?, of job: DecodingJob) -> [AudioQueue.Chunk] {
    change { state, out in
      guard state.videoJob === job else { return [] }
      let chunks = state.audio.take(until: time)
      if state.audio.takeRoom() { out.wake(.audio) }
      return chunks
    }
  }

  /// The time at which the next audio is due; nil if there is none.
  var nextAudioTime: MediaTime? { state.read { $0.audio.nextTime } }
  /// The end of the audio so far; nil before there is any.
  var audioEnd: MediaTime? { state.read { $0.audio.end } }
  /// True if the last audio has been taken.
  var isAudioDrained: Bool { state.read { $0.audio.isDrained } }

  /// Returns true if separate audio has run out and more will follow.
  func lacksAudio(at time: MediaTime) -> Bool {
    let lacks = state.read { state in
      state.machine.playsSeparateAudio && state.lacksDecodedAudio && state.packets.isAudioBehind(time)
    }
    return lacks && !absentKinds(at: time).contains(.audio)
  }

  /// Returns the kinds of media that a live presentation lacks at `time`, according to its periods.
  func absentKinds(at time: MediaTime) -> Set<MediaPacket.Kind> {
    let (video, audio) = state.read { ($0.live, $0.liveAudio) }
    var absent: Set<MediaPacket.Kind> = []
    if video?.isAbsent(at: time) == true { absent.insert(.video) }
    if audio?.isAbsent(at: time) == true { absent.insert(.audio) }
    return absent
  }

  /// Returns true if a complete presentation has no video at `time`, on the presentation's timeline.
  func lacksVideo(at time: MediaTime) -> Bool {
    state.read { $0.videoAbsences.contains { $0.contains(time) } }
  }

  /// Returns the position at which playback begins: the first frame, or the requested position if there is no
  /// video at that time. All times are on the player's timeline.
  ///
  /// - Parameter sought: The position of a seek; nil if there was none.
  func beginning(sought: MediaTime?, firstFrame: MediaTime, shift: MediaTime) -> MediaTime {
    let (wanted, isAbsent) = state.read { state -> (MediaTime, Bool) in
      let start = state.soundBeforeVideo.map { $0.lowerBound + shift }
      let wanted = sought ?? state.videoJob.target ?? start ?? firstFrame
      return (
        wanted, state.machine.wantsAudio && state.videoAbsences.contains { $0.contains(wanted - shift) }
      )
    }
    return isAbsent ? wanted : max(sought ?? firstFrame, firstFrame)
  }

  /// Returns true if the audio decoder is behind: no audio is ready, although packets due by `time` were
  /// loaded.
  func isAudioDecoderBehind(_ time: MediaTime) -> Bool {
    state.read { state in
      state.playsAudio && state.lacksDecodedAudio
        && (state.isDecodingAudio || state.packets.hasAudioToDecode(until: time))
    }
  }

  /// Returns true if the audio loader is behind: no audio is ready, packets due by `time` were not loaded,
  /// and more will come.
  func isAudioLoaderBehind(_ time: MediaTime) -> Bool {
    state.read { state in
      state.playsAudio && (state.machine.hasSeparateAudio == true || state.streams.audio != nil)
        && state.lacksDecodedAudio && state.packets.isAudioBehind(time) && state.packets.isLoadingMoreAudio
    }
  }

  /// The same for audio that is read with the video.
  private func isMuxedAudioBehind(_ time: MediaTime) -> Bool {
    state.read { $0.machine.hasSeparateAudio == false } && isAudioLoaderBehind(time)
  }

  /// Returns true if audio before `time` is ready, or will be without more loading.
  func hasAudio(before time: MediaTime) -> Bool {
    nextAudioTime.map { $0 < time } ?? isAudioDecoderBehind(time)
  }

  /// True if some audio has not been passed to outputs yet.
  var hasAudioLeft: Bool { state.read { $0.machine.wantsAudio && !$0.audio.isDrained } }

  /// Publishes the buffer level. Returns true if playback can start or resume and is then unlikely to stall.
  func publishLevel(isStalled: Bool, rate: Double, at time: MediaTime) -> Bool {
    let absent = absentKinds(at: time)
    let (level, isRingEmpty) = state.read { ($0.packets.level(without: absent), $0.frames.isEmpty) }
    let target = target?.bufferDuration ?? item.forwardBufferDuration
    let isDry = level.isConsumed && !level.isComplete && isRingEmpty
    let keepsUp =
      !isDry
      && environment.thresholds.isLikelyToKeepUp(
        buffered: .seconds(level.ahead.seconds), target: target, isComplete: level.isComplete,
        isFull: level.isResting, isAfterStall: isStalled || isMuxedAudioBehind(time), rate: rate)
    item.loadedTimeRanges.set(level.range.map { [$0] } ?? [])
    item.isPlaybackBufferFull.set(level.isFull || level.isComplete)
    item.isPlaybackBufferEmpty.set(level.isConsumed && isRingEmpty)
    item.isPlaybackLikelyToKeepUp.set(keepsUp)
    if level.isFull || level.isComplete, item.preloadStage.value == .firstFrame { reach(.buffered) }
    recordFilled(level.isFull || level.isComplete)
    return keepsUp
  }

  /// Reports once that the buffer is full, and again if it is full with other limits.
  private func recordFilled(_ isFull: Bool) {
    let limits = isFull ? Self.limits(of: item, environment, target) : nil
    let isNews = change { state, _ in
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

  /// Records that the first frame, or the first since a seek, is on show. Its decoding time was recorded before the
  /// ring received it.
  func recordFirstFrame(_ out: inout Effects) {
    change(in: &out) { state, _ in
      let isFirst = !state.machine.hasFirstFrame
      _ = state.machine.handle(.firstFrameShown)
      guard isFirst else { return }
      recorder.close(
        StartupReport.Timing(
          source: state.readerWait, demux: state.readerBusy,
          decode: state.decoding.firstFrameDuration ?? state.decoding.duration))
      item.setStartup(recorder.current)
    }
  }

  /// Returns the distances of `time` from the live edge and of the oldest segment from the edge, and the
  /// manifest's delay; nil if the item is not live.
  func liveDistances(from time: MediaTime) -> LiveDistances? {
    guard let live = state.read({ $0.live }), let distance = live.distance else { return nil }
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
    guard let window = state.read({ $0.live })?.window,
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
    let limits = Self.limits(of: item, environment, target)
    change { state, out in
      state.packets.limits = limits
      guard wantsMore else { return state.refill(&out) }
      // Fill the buffer up to the new bound, regardless of its level.
      state.packets.fill()
      out.wake([.reader, .audioReader])
    }
  }
}

extension ItemSession.State {
  /// Passes an event to the machine, and carries out what concerns the state.
  ///
  /// - Returns: The pause after which the loader continues that failed; nil for none.
  @discardableResult
  mutating func decide(_ event: LoadingMachine.Event, _ out: inout Effects) -> Duration? {
    var delay: Duration?
    for action in machine.handle(event) {
      switch action {
      case .restart(let loader, let time): restart(loader, at: time, &out)
      case .loadAgain(let loader, let time, let pause):
        guard let scope = readingJobs[loader]?.scope else { continue }
        readingJobs[loader] = makeJob(loader, at: time, scope: scope)
        delay = pause
      case .wake(let workers): out.wake(workers)
      case .fillBuffer: packets.fill()
      case .endBuffer(let kinds, let isBroken): packets.end(kinds, isBroken: isBroken)
      case .setHasSeparateAudio(let isSeparate): packets.setHasSeparateAudio(isSeparate)
      case .resolve, .reached, .log, .publishRetries, .announceRetry, .tracksAreKnown: out.perform(action)
      }
    }
    return delay
  }

  /// Interrupts a loader, which begins again at a time.
  mutating func restart(_ loader: MediaPacket.Kind, at time: MediaTime?, _ out: inout Effects) {
    guard let old = readingJobs[loader]?.scope else { return }
    out.cancel(old)
    let scope = LoadScope(runtime: old.runtime, memory: old.memory)
    readingJobs[loader] = makeJob(loader, at: time, scope: scope)
  }

  private mutating func makeJob(_ loader: MediaPacket.Kind, at time: MediaTime?, scope: LoadScope)
    -> ReadingJob
  {
    ReadingJob(start: time, loop: machine.iterations.begin(at: time, of: loader), scope: scope)
  }

  /// Ends the jobs of both decoders, and drops what they have decoded.
  mutating func moveDecoders(to job: DecodingJob) {
    videoJob.end()
    videoJob = job
    frames.flush()
    moveAudioDecoder(to: job.target)
  }

  /// Ends the job of the audio decoder. Flush and new job are one change, so that no audio of the old one comes
  /// in between.
  mutating func moveAudioDecoder(to time: MediaTime?) {
    audioJob.end()
    audioJob = DecodingJob(target: time)
    audio.flush(start: time)
  }

  /// Sets the position on show: drops media before it, and resumes loading if there is room again.
  mutating func setPosition(_ time: MediaTime, _ out: inout Effects) {
    packets.setPosition(time)
    refill(&out)
  }

  /// Wakes the readers that have stopped at a full buffer and have room again.
  mutating func refill(_ out: inout Effects) {
    if packets.takeRefill(.video) { out.wake(.reader) }
    if packets.takeRefill(.audio) { out.wake(.audioReader) }
  }

  /// True if audio is decoded, and not only loaded.
  var playsAudio: Bool { machine.wantsAudio && machine.target == nil }

  /// True if no audio is ready, and more comes.
  var lacksDecodedAudio: Bool { audio.isEmpty && !audio.isDrained }
}

extension PlayerItem {
  /// The compressed media to load ahead while the item is played.
  var forwardBufferDuration: Duration { bounds.forwardBufferDuration ?? preferences.forwardBufferDuration }
}
