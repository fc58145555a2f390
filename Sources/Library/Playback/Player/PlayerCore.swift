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
  let state = Guarded(State(), rank: .player)
  let outputLock: OutputLock
  let presenter = Locked<TaskLoop?>(nil)
  let observer = Locked(Callback<PlayerSignal>())
  /// Held while observers are told, so that they are told in order.
  let telling = Locked((), rank: .telling)

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
    let now = clock.now
    change { state, out in
      if state.startsOver {
        // An item that can't be sought stays at its end.
        _ = state.seek(to: .zero, plays: true, at: now, &out)
      } else {
        state.handle(.play, at: now, began: time, &out)
      }
      out.wake(.presenter)
    }
  }

  func pause() {
    let now = clock.now
    change { state, out in
      state.isHeld = false
      state.handle(.pause, at: now, &out)
    }
  }

  /// Keeps the frame on show, even if other frames are due, until the player is released or paused. Wakes no
  /// thread.
  func hold() {
    let now = clock.now
    change { state, _ in
      state.isHeld = true
      state.timebase.setRate(0, at: now)
    }
  }

  /// Continues after `hold()`.
  func release() {
    let now = clock.now
    change { state, out in
      guard state.isHeld else { return }
      state.isHeld = false
      state.followRate(at: now)
      out.wake(.presenter)
    }
  }

  func setRate(_ rate: Double) {
    guard rate > 0 else { return pause() }
    let wanted = rate == .infinity ? rate : min(max(rate, 0.25), 8)
    let now = clock.now
    change { state, _ in
      state.wantedRate = wanted
      state.followRate(at: now)
    }
    play()
  }

  func stop() { replace(with: nil, start: nil, detaches: true) }

  func takeItem() -> @Sendable () async -> Void {
    let session = replace(with: nil, start: nil, detaches: false)
    return { await session?.waitUntilStopped() }
  }

  func stopAndWait() async {
    await replace(with: nil, start: nil, detaches: true)?.waitUntilStopped()
  }

  func close() {
    stop()
    change { state, _ in state.isClosed = true }
    presenter.withLock { $0 }?.stop()
    timeControlStatus.finish()
    currentItem.finish()
    rate.finish()
    isMuted.finish()
    volume.finish()
    events.finish()
  }

  func replaceCurrentItem(with item: PlayerItem?, start: MediaTime?) {
    replace(with: item, start: start, detaches: false)
  }

  func seek(to time: MediaTime, tolerance: MediaTime) async throws -> Bool {
    try await withCheckedThrowingContinuation { continuation in
      let now = clock.now
      change { state, out in
        let wait = PendingSeek(time: time, began: now, continuation: continuation)
        guard let error = state.seek(to: time, tolerance: tolerance, for: wait, at: now, &out) else { return }
        out.answer(wait, with: .failure(error))
      }
    }
  }

  /// True if the item has ended and `play()` would restart it.
  var canRewind: Bool { state.read { $0.startsOver ? $0.session : nil }?.streams.canSeek ?? false }

  /// Returns an item that has ended to its beginning, without playing it. Returns false if it can't.
  func rewind() -> Bool {
    let now = clock.now
    return change { state, out in state.startsOver && state.seek(to: .zero, at: now, &out) == nil }
  }

  // MARK: Settings

  var settings: Settings { state.read { $0.settings } }

  func updateSettings(_ body: (inout Settings) -> Void) {
    let external = change { state, out in
      body(&state.settings)
      state.machine.waitsToMinimizeStalls = state.settings.waitsToMinimizeStalls
      // In the same change, so that no frame of a later iteration is shown once the item no longer loops.
      state.session?.setLoops(
        state.settings.actionAtItemEnd == .loop, iteration: state.lastSpan?.loop.iteration ?? 0, &out)
      out.wake(.presenter)
      return state.settings.allowsExternalPlayback ? [] : state.outputs.filter(\.isExternal)
    }
    for output in external { detachFailing(output, ReelError(.usage, "external playback is not allowed")) }
  }

  func setPreloadTarget(_ target: PreloadTarget?) {
    let session = change { state, _ in
      state.settings.preloadTarget = target
      return state.session
    }
    session?.setTarget(target)
    wake()
  }

  func setMuted(_ muted: Bool) {
    let session = change { state, _ in
      state.isMuted = muted
      return state.session
    }
    isMuted.set(muted)
    session?.setWantsAudio(!muted)
    wake()
  }

  func setVolume(_ value: Float) {
    let value = value.isFinite ? max(0, value) : 1
    change { state, _ in state.volume = value }
    volume.set(value)
  }

  // MARK: Outputs

  func attach(_ output: any FrameOutput) throws(ReelError) {
    // Under one lock, so that the next frame comes after the one on show.
    let isAllowed = outputLock.withLock {
      let (isAllowed, frame) = change { state, _ -> (Bool, SharedFrame?) in
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
    let (wasAttached, end) = change { state, _ in (state.remove(output), state.outputTimeline.end) }
    // Waits for a running call of the output.
    outputLock.wait()
    guard wasAttached else { return }
    output.ended(at: end)
    try output.finish()
  }

  func attach(_ output: any AudioOutput) {
    change { state, _ in
      guard !state.audioOutputs.contains(where: { $0.output === output }) else { return }
      state.audioOutputs.append(
        SoundAttachment(output: output, start: state.onShow?.frame.outputTime ?? .zero))
    }
  }

  func detach(_ output: any AudioOutput) throws {
    let (attachment, end) = change { state, _ in
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
    return state.read { $0.itemTime(at: now) }
  }

  var statistics: PlayerStatistics {
    var statistics = statisticsWithoutUnshown
    statistics.unshownByteCount = state.read { $0.session }?.state.read { $0.packets.unshownByteCount } ?? 0
    return statistics
  }

  /// The statistics without `unshownByteCount`, which requires visiting all packets.
  var statisticsWithoutUnshown: PlayerStatistics {
    let now = clock.now
    let (copy, session, onShow, hasOutput) = change { state, _ in
      (state.statistics, state.session, state.onShow, !state.outputs.isEmpty)
    }
    var statistics = copy
    statistics.times = copy.times.closed(at: now)
    statistics.stallDuration = statistics.times[.stalled]
    guard let session else { return statistics }
    let (level, highWaterByteCount, ring, decoding) = session.state.read {
      ($0.packets.level, $0.packets.highWaterByteCount, $0.frames.statistics, $0.decoding)
    }
    statistics.inFlightByteCount = session.memory.inFlightByteCount
    statistics.manifestByteCount = session.memory.manifestByteCount
    statistics.hasOutput = hasOutput
    statistics.onShowByteCount = onShow?.frame.decoded.byteCount ?? 0
    statistics.ring = ring
    statistics.bufferByteCount = level.byteCount
    statistics.bufferHighWaterByteCount = highWaterByteCount
    statistics.bufferedDuration = .seconds(level.ahead.seconds)
    statistics.isLoadedToEnd = level.isComplete
    statistics.estimatedBandwidth = session.bandwidth
    statistics.decodeDuration = decoding.duration
    statistics.decodedFrameCount = decoding.frameCount
    statistics.repeatedFrameCount = decoding.repeatedCount
    let outsideCount = ring.frameCount + (onShow == nil ? 0 : 1)
    statistics.decoderByteCount = decoding.facts?.heldByteCount(outsideCount: outsideCount) ?? 0
    return statistics
  }

  // MARK: - Private

  func wake() { presenter.withLock { $0 }?.wake() }

  func emit(_ event: PlayerEvent, of item: PlayerItem?) { change { $1.tell(event, of: item) } }

  /// Loads another item, or none, and returns the session of the one before. It takes effect at once.
  ///
  /// - Parameter detaches: True to pause, and to end and detach all outputs.
  @discardableResult
  func replace(with item: PlayerItem?, start: MediaTime?, detaches: Bool) -> ItemSession? {
    let session = item.map { makeSession($0, start: start) }
    let now = clock.now
    guard let left = change({ $0.replace(session, start: start, detaches: detaches, at: now, &$1) }) else {
      session?.stop()
      return nil
    }
    // A frame of the item may be shown to an output at this moment.
    outputLock.wait()
    change { state, out in
      state.publish(&out)
      out.answer(left.seek, with: .success(false))
    }
    // In this order, because both sessions may have the same item.
    left.session?.stop()
    session?.start()
    // Without an item, nothing remains to be presented.
    if session != nil { wake() } else { presenter.withLock { $0 }?.forgetTime() }
    for output in left.outputs {
      output.ended(at: left.outputEnd)
      report { try output.finish() }
    }
    for attachment in left.audioOutputs {
      attachment.output.ended(at: left.outputEnd - attachment.start)
      report { try attachment.output.finish() }
    }
    return left.session
  }

  /// Ends an output, and tells if that fails.
  private func report(_ finish: () throws -> Void) {
    do { try finish() } catch {
      emit(.outputFailed(error as? ReelError ?? ReelError(.internalFault, "\(error)")), of: nil)
    }
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
    let (wantsAudio, loops, isFast, target) = change { state, _ in
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
