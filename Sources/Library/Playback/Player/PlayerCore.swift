internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The implementation of `Player`, which its task loops reference weakly.
///
/// One task loop shows frames and passes audio to outputs (`present`). Its state has one lock, which is never
/// held while an output is called.
final class PlayerCore: Sendable {
  struct Settings: Sendable {
    var waitsToMinimizeStalls = true
    var isLinear = false
    var actionAtItemEnd = Player.ActionAtItemEnd.pause
    var allowsExternalPlayback = true
    var playsWhenReady = false
    var preloadTarget: PreloadTarget?
    var allowsPictureInPicture = true
  }

  let timeControlStatus = ObservedProperty(TimeControlStatus.paused)
  let currentItem = ObservedProperty<PlayerItem?>(nil)
  let rate = ObservedProperty(0.0)
  let isMuted = ObservedProperty(false)
  let volume = ObservedProperty<Float>(1)
  let events = EventChannel<PlayerEvent>()

  let fetcher: any Fetching
  let configuration: PlayerConfiguration
  let gate: (any DecodingGate)?
  let decoders: (any DecoderLimit)?
  let account: MemoryAccount?
  let logger: Logger
  let clock: any MonotonicClock
  let state = Locked(State(), rank: .player)
  let outputLock: OutputLock
  let presenter = Locked<TaskLoop?>(nil)
  let observer = Locked(Callback<PlayerSignal>())
  /// The status that was published last. Held while properties and the session are updated, so that the later
  /// of two updates wins.
  let announced = Locked(TimeControlStatus.paused, rank: .announcing)

  init(
    fetcher: any Fetching, configuration: PlayerConfiguration, gate: (any DecodingGate)?,
    decoders: (any DecoderLimit)? = nil, account: MemoryAccount? = nil, logger: Logger
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.gate = gate
    self.decoders = decoders
    self.account = account
    self.logger = logger
    clock = configuration.clock
    outputLock = configuration.outputLock.map { OutputLock(sharing: $0) } ?? OutputLock()
    let taskLoop = TaskLoop(named: "present", .prompt, runtime: configuration.runtime, clock: clock) {
      [weak self] in
      self?.present() ?? .idle
    }
    presenter.withLock { $0 = taskLoop }
  }

  // MARK: Commands

  /// - Parameter time: The time at which playback was requested, by the clock. The frame on show counts as
  ///   shown since then.
  func play(asOf time: Duration? = nil) {
    var isPlayed = false
    while !isPlayed, !restartIfEnded() {
      apply(asOf: time) { state in
        // The item may have ended meanwhile.
        isPlayed = !state.startsOver
        return isPlayed ? state.machine.handle(.play) : []
      }
    }
    wake()
  }

  func pause() {
    apply { state in
      state.isHeld = false
      return state.machine.handle(.pause)
    }
  }

  /// Keeps the frame on show, even if other frames are due, until the player is released or paused. Wakes no
  /// thread.
  func hold() {
    let now = clock.now
    state.withLock { state in
      state.isHeld = true
      state.timebase.setRate(0, at: now)
    }
  }

  /// Continues after `hold()`.
  func release() {
    let now = clock.now
    let wasHeld = state.withLock { state in
      guard state.isHeld else { return false }
      state.isHeld = false
      if state.machine.status == .playing, !state.hasEnded {
        state.timebase.setRate(state.clockRate, at: now)
      }
      return true
    }
    if wasHeld { wake() }
  }

  func setRate(_ rate: Double) {
    guard rate > 0 else { return pause() }
    let wanted = rate == .infinity ? rate : min(max(rate, 0.25), 8)
    let now = clock.now
    state.withLock { state in
      state.wantedRate = wanted
      if state.machine.status == .playing, !state.hasEnded {
        state.timebase.setRate(state.clockRate, at: now)
      }
    }
    play()
  }

  func stop() { replace(with: nil, start: nil, detaches: true)?.finish() }

  func takeItem() -> @Sendable () async -> Void {
    let ending = replace(with: nil, start: nil, detaches: false)
    ending?.finish()
    let session = ending?.session
    return { await session?.waitUntilStopped() }
  }

  func stopAndWait() async {
    let ending = replace(with: nil, start: nil, detaches: true)
    ending?.finish()
    await ending?.session?.waitUntilStopped()
  }

  func close() {
    stop()
    state.withLock { $0.isClosed = true }
    presenter.withLock { $0 }?.stop()
    timeControlStatus.finish()
    currentItem.finish()
    rate.finish()
    isMuted.finish()
    volume.finish()
    events.finish()
  }

  func replaceCurrentItem(with item: PlayerItem?, start: MediaTime?) {
    replace(with: item, start: start, detaches: false)?.finish()
  }

  func seek(to time: MediaTime, tolerance: MediaTime) async throws -> Bool {
    try await withCheckedThrowingContinuation { continuation in
      begin(seekTo: time, tolerance: tolerance, continuation: continuation)
    }
  }

  // MARK: Settings

  var settings: Settings { state.withLock { $0.settings } }

  func updateSettings(_ body: (inout Settings) -> Void) {
    let (session, loops, iteration, external) = state.withLock { state in
      body(&state.settings)
      state.machine.waitsToMinimizeStalls = state.settings.waitsToMinimizeStalls
      let external = state.settings.allowsExternalPlayback ? [] : state.outputs.filter(\.isExternal)
      let iteration = state.lastSpan?.loop.iteration ?? 0
      state.lastIteration = state.settings.actionAtItemEnd == .loop ? .max : iteration
      return (state.session, state.settings.actionAtItemEnd == .loop, iteration, external)
    }
    session?.setLoops(loops, iteration: iteration)
    for output in external { detachFailing(output, ReelError(.usage, "external playback is not allowed")) }
    wake()
  }

  func setPreloadTarget(_ target: PreloadTarget?) {
    let session = state.withLock { state in
      state.settings.preloadTarget = target
      return state.session
    }
    session?.setTarget(target)
    wake()
  }

  func setMuted(_ muted: Bool) {
    let session = state.withLock { state in
      state.isMuted = muted
      return state.session
    }
    isMuted.set(muted)
    session?.setWantsAudio(!muted)
    wake()
  }

  func setVolume(_ value: Float) {
    let value = value.isFinite ? max(0, value) : 1
    state.withLock { $0.volume = value }
    volume.set(value)
  }

  // MARK: Outputs

  func attach(_ output: any FrameOutput) throws(ReelError) {
    // Under one lock, so that the next frame comes after the one on show.
    let isAllowed = outputLock.withLock {
      let (isAllowed, frame) = state.withLock { state -> (Bool, SharedFrame?) in
        guard !output.isExternal || state.settings.allowsExternalPlayback else { return (false, nil) }
        guard !state.outputs.contains(where: { $0 === output }) else { return (true, nil) }
        state.outputs.append(output)
        return (true, state.onShow)
      }
      if let frame { show(frame, to: [output]) { $0.onShow === frame } }
      return isAllowed
    }
    guard isAllowed else { throw ReelError(.usage, "external playback is not allowed by this player") }
  }

  func detach(_ output: any FrameOutput) throws {
    let (wasAttached, end) = state.withLock { ($0.remove(output), $0.outputTimeline.end) }
    // Waits for a running call of the output.
    outputLock.wait()
    guard wasAttached else { return }
    output.ended(at: end)
    try output.finish()
  }

  func attach(_ output: any AudioOutput) {
    state.withLock { state in
      guard !state.audioOutputs.contains(where: { $0.output === output }) else { return }
      state.audioOutputs.append(
        SoundAttachment(output: output, start: state.onShow?.frame.outputTime ?? .zero))
    }
  }

  func detach(_ output: any AudioOutput) throws {
    let (attachment, end) = state.withLock { state in
      let attachment = state.audioOutputs.first { $0.output === output }
      return (state.remove(output) ? attachment : nil, state.outputTimeline.end)
    }
    outputLock.wait()
    guard let attachment else { return }
    output.ended(at: end - attachment.start)
    try output.finish()
  }

  // MARK: Accounts

  var currentTime: MediaTime {
    let now = clock.now
    return state.withLock { $0.itemTime(at: now) }
  }

  var statistics: PlayerStatistics {
    var statistics = statisticsWithoutUnshown
    statistics.unshownByteCount = state.withLock { $0.session }?.buffer.unshownByteCount ?? 0
    return statistics
  }

  /// The statistics without `unshownByteCount`, which requires visiting all packets.
  var statisticsWithoutUnshown: PlayerStatistics {
    let now = clock.now
    let (copy, session, onShow, hasOutput) = state.withLock { state in
      (state.statistics, state.session, state.onShow, !state.outputs.isEmpty)
    }
    var statistics = copy
    statistics.times = copy.times.closed(at: now)
    statistics.stallDuration = statistics.times[.stalled]
    guard let session else { return statistics }
    let level = session.buffer.level
    statistics.inFlightByteCount = session.memory.inFlightByteCount
    statistics.manifestByteCount = session.memory.manifestByteCount
    statistics.hasOutput = hasOutput
    statistics.onShowByteCount = onShow?.frame.decoded.byteCount ?? 0
    statistics.ring = session.ring.statistics
    statistics.bufferByteCount = level.byteCount
    statistics.bufferHighWaterByteCount = session.buffer.highWaterByteCount
    statistics.bufferedDuration = .seconds(level.ahead.seconds)
    statistics.isLoadedToEnd = level.isComplete
    statistics.estimatedBandwidth = session.bandwidth
    let decoding = session.decoding
    statistics.decodeDuration = decoding.duration
    statistics.decodedFrameCount = decoding.frameCount
    statistics.repeatedFrameCount = decoding.repeatedCount
    let outsideCount = (statistics.ring?.frameCount ?? 0) + (onShow == nil ? 0 : 1)
    statistics.decoderByteCount = decoding.facts?.heldByteCount(outsideCount: outsideCount) ?? 0
    return statistics
  }

  // MARK: - Private

  func wake() { presenter.withLock { $0 }?.wake() }

  func emit(_ event: PlayerEvent, of item: PlayerItem?) {
    item?.eventChannel.send(event)
    events.send(event)
    observer.withLock { $0.call }?(.event(event, of: item))
  }

  /// Changes the machine and performs its actions.
  ///
  /// - Parameter began: The time at which the clock should have started, if an action starts it.
  func apply(asOf began: Duration? = nil, _ body: (inout sending State) -> [PlaybackMachine.Action]) {
    let now = clock.now
    let (actions, session, time, lastStall) = state.withLock { state in
      let actions = body(&state)
      state.follow(actions, now: now, began: began)
      return (actions, state.session, state.itemTime(at: now), state.lastStall)
    }
    for action in actions {
      switch action {
      case .stalled: emit(.stalled(time: time), of: session?.item)
      case .resumed: emit(.resumed(time: time, after: lastStall), of: session?.item)
      case .startClock, .stopClock, .changed: break
      }
    }
    if actions.contains(.stalled) {
      session?.item.updateAccess(rung: session?.item.rung.value) { $0.stallCount += 1 }
    }
    publish()
  }

  /// Publishes the state to properties and to the session, whose loading depends on it.
  func publish() {
    announced.withLock { announced in
      let (session, wantedRate, status, isPlayWanted) = state.withLock { state in
        (state.session, state.wantedRate, state.machine.status, state.machine.isPlayWanted)
      }
      announced = status
      timeControlStatus.set(status)
      rate.set(isPlayWanted ? wantedRate : 0)
      currentItem.set(session?.item)
      session?.setRate(wantedRate, status: status)
    }
  }

  struct Ending {
    var session: ItemSession?
    var seek: PendingSeek?
    var outputs: [any FrameOutput] = []
    var audioOutputs: [SoundAttachment] = []
    /// The end of the frames and audio that outputs have received, in output time.
    var outputEnd = MediaTime.zero
    var report: (ReelError) -> Void = { _ in }

    func finish() {
      seek?.continuation.resume(returning: false)
      for output in outputs {
        output.ended(at: outputEnd)
        do { try output.finish() } catch {
          report(error as? ReelError ?? ReelError(.internalFault, "\(error)"))
        }
      }
      for attachment in audioOutputs {
        attachment.output.ended(at: outputEnd - attachment.start)
        do { try attachment.output.finish() } catch {
          report(error as? ReelError ?? ReelError(.internalFault, "\(error)"))
        }
      }
    }
  }

  func replace(with item: PlayerItem?, start: MediaTime?, detaches: Bool) -> Ending? {
    let session = item.map { makeSession($0, start: start) }
    var ending = Ending()
    let now = clock.now
    let isClosed = state.withLock { state in
      guard !state.isClosed else { return true }
      ending.session = state.session
      ending.seek = state.seek
      state.seek = nil
      state.session = session
      state.isHeld = false
      var actions: [PlaybackMachine.Action] = []
      if detaches {
        ending.outputs = state.outputs
        ending.audioOutputs = state.audioOutputs
        ending.outputEnd = state.outputTimeline.end
        state.outputs = []
        state.audioOutputs = []
        actions += state.machine.handle(.pause)
      }
      actions += state.machine.handle(.itemReplaced(hasItem: session != nil))
      if session != nil, state.settings.playsWhenReady { actions += state.machine.handle(.play) }
      state.begin(generation: session?.generation ?? 0, at: start)
      state.statistics = PlayerStatistics()
      state.statistics.times = PlaybackTimes(start: session?.startedAt ?? now)
      state.latenessIndex = 0
      state.onShow = nil
      state.lastSpan = nil
      state.lastIteration = .max
      state.liveFactor = 1
      state.liveTarget = nil
      state.catchUp = LiveCatchUp()
      state.stalledAt = nil
      state.follow(actions, now: now)
      return false
    }
    guard !isClosed else {
      session?.stop()
      return nil
    }
    outputLock.wait()
    publish()
    // In this order, because both sessions may have the same item.
    ending.session?.stop()
    session?.start()
    // Without an item, nothing remains to be presented.
    if session != nil { wake() } else { presenter.withLock { $0 }?.forgetTime() }
    ending.report = { [weak self] in self?.emit(.outputFailed($0), of: nil) }
    return ending
  }

  func makeSession(_ item: PlayerItem, start: MediaTime?) -> ItemSession {
    var loading = configuration.loading
    loading.headers += item.headers
    let environment = SessionEnvironment(
      fetcher: fetcher, loading: loading, account: account, clock: clock,
      runtime: configuration.runtime, gate: gate, decoderLimit: decoders,
      decoders: configuration.decoders, logger: logger,
      thresholds: configuration.thresholds, retryPolicy: configuration.retryPolicy,
      ringFrameCapacity: configuration.ringFrameCapacity, ringByteCapacity: configuration.ringByteCapacity,
      isAdaptive: configuration.adaptsBitRate, initialBandwidth: configuration.initialBandwidth)
    let (wantsAudio, loops, isFast, target) = state.withLock { state in
      (
        !state.isMuted, state.settings.actionAtItemEnd == .loop, state.wantedRate == .infinity,
        state.settings.preloadTarget
      )
    }
    let delegate = ItemSession.Delegate(
      wake: { [weak self] in self?.wake() },
      event: { [weak self, weak item] event in self?.emit(event, of: item) },
      progress: { [weak self] in self?.observer.withLock { $0.call }?(.progressed) },
      filled: { [weak self] in self?.observer.withLock { $0.call }?(.filled) },
      decoded: { [weak self] count in self?.observer.withLock { $0.call }?(.decoded(count: count)) })
    return ItemSession(
      item, environment: environment, start: start, wantsAudio: wantsAudio, loops: loops,
      prefersThroughput: isFast && target == nil, target: target, delegate: delegate)
  }
}
