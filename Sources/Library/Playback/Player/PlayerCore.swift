internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelSources

/// The implementation of `Player`, which its task loops reference weakly.
///
/// One task loop shows frames and passes audio to outputs (`present`). Its state has one lock, which is never
/// held while an output is called. The workers of the item (`ItemSession`) change the same state.
final class PlayerCore: Sendable {
  let timeControlStatus = ObservedSource(TimeControlStatus.paused)
  let currentItem = ObservedSource<PlayerItem?>(nil)
  let rate = ObservedSource(0.0)
  let isMuted = ObservedSource(false)
  let volume = ObservedSource<Float>(1)
  let events = EventChannel<PlayerEvent>(memory: PlayerEvent.memory)

  let fetcher: any Fetching
  let configuration: PlayerConfiguration
  let gate: (any DecodingGate)?
  let decoders: (any DecoderLimit)?
  let account: MemoryAccount?
  let logger: Logger
  /// Nil unless the program collects metrics.
  let counters = PlayerCounters(
    stages: StartupReport.Stage.allCases.filter { $0 != .convert }.map(\.rawValue))
  let clock: any MonotonicClock
  let state = Guarded()
  let outputLock: OutputLock
  let presenter: TaskLoop
  /// The receiver of the player's signals. Its lock is held while observers are notified, so they are notified in order.
  let observer = Locked(SignalObserver(), rank: .telling)

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
    presenter = TaskLoop(named: "present", .prompt, runtime: configuration.runtime, clock: clock)
    presenter.setTurn { [weak self] in self?.present() ?? .idle }
  }

  // MARK: Commands

  /// - Parameter time: The time at which playback was requested, by the clock. The frame on show counts as
  ///   shown since then.
  func play(asOf time: Duration? = nil) {
    let now = clock.now
    change { state, out in state.play(asked: time, at: now, &out) }
  }

  func pause() {
    let now = clock.now
    change { state, out in state.pause(at: now, &out) }
  }

  /// Keeps the frame on show, even if other frames are due, until the player is released or paused. Wakes no
  /// thread.
  func hold() {
    let now = clock.now
    change { state, _ in state.hold(at: now) }
  }

  /// Continues after `hold()`.
  func release() {
    let now = clock.now
    change { state, out in state.release(at: now, &out) }
  }

  func setRate(_ rate: Double) {
    guard rate > 0 else { return pause() }
    let now = clock.now
    change { state, out in state.setRate(rate, at: now, &out) }
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
    presenter.stop()
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
    try Task.checkCancellation()
    let call = SeekCall()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let now = clock.now
        change { state, out in
          let wait = PendingSeek(time: time, began: now, call: call, continuation: continuation)
          guard let error = state.seek(to: time, tolerance: tolerance, for: wait, at: now, &out) else {
            return
          }
          out.answer(wait, with: .failure(error))
        }
        // The handler may have come before the seek.
        if Task.isCancelled { cancel(call) }
      }
    } onCancel: {
      // Not in this call, which must not wait for locks (`Observers`).
      configuration.runtime.task { [self] in cancel(call) }
    }
  }

  /// Ends the wait of a call of `seek`, if it still waits.
  private func cancel(_ call: SeekCall) {
    change { state, out in
      guard let seek = state.item.playback.seek, seek.call === call else { return }
      state.item.playback = .opening(nil)
      out.answer(seek, with: .failure(CancellationError()))
    }
  }

  /// True if the item has ended and `play()` would restart it.
  var canRewind: Bool { state.read { $0.startsOver && $0.item.streams.canSeek } }

  /// Returns an item that has ended to its beginning, without playing it. Returns false if it can't.
  func rewind() -> Bool {
    let now = clock.now
    return change { state, out in state.startsOver && state.seek(to: .zero, at: now, &out) == nil }
  }

  // MARK: Settings

  var settings: PlayerState.Settings { state.read { $0.settings } }

  func updateSettings(_ body: (inout PlayerState.Settings) -> Void) {
    let now = clock.now
    let external = change { state, out in
      state.update(body, at: now, &out)
      return state.settings.allowsExternalPlayback ? [] : state.outputs.filter(\.isExternal)
    }
    for output in external { detachFailing(output, ReelError(.usage, "external playback is not allowed")) }
  }

  func setPreloadTarget(_ target: PreloadTarget?) { change { state, out in state.setTarget(target, &out) } }

  func setMuted(_ muted: Bool) {
    change { state, out in
      state.setMuted(muted, &out)
      isMuted.set(muted)
    }
  }

  func setVolume(_ value: Float) {
    let value = value.isFinite ? max(0, value) : 1
    change { state, _ in
      state.volume = value
      volume.set(value)
    }
  }

  // MARK: Outputs

  func attach(_ output: any FrameOutput) throws(ReelError) {
    // Under one lock, so that the next frame comes after the one on show.
    let isAllowed = outputLock.withLock {
      let (isAllowed, frame) = change { state, _ -> (Bool, VideoFrame?) in
        guard !output.isExternal || state.settings.allowsExternalPlayback else { return (false, nil) }
        return (true, state.attach(output))
      }
      if let frame { show(frame, to: [output]) { $0.item.onShow.isOf(frame) } }
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

  func attach(_ output: any AudioOutput) { change { state, _ in state.attach(output) } }

  func detach(_ output: any AudioOutput) throws {
    let (attachment, end) = change { state, _ in (state.remove(output), state.outputTimeline.end) }
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
    statistics.unshownByteCount = state.read { $0.item.packets.unshownByteCount }
    return statistics
  }

  /// The statistics without `unshownByteCount`, which requires visiting all packets.
  var statisticsWithoutUnshown: PlayerStatistics {
    let now = clock.now
    let (copy, session) = state.read { state -> (PlayerStatistics, ItemSession?) in
      (state.statistics, state.item.session)
    }
    var statistics = copy
    statistics.times = copy.times.closed(at: now)
    statistics.stallDuration = statistics.times[.stalled]
    guard let session else { return statistics }
    statistics.inFlightByteCount = session.scope.memory.inFlightByteCount
    statistics.manifestByteCount = session.scope.memory.manifestByteCount
    return statistics
  }

  func currentFrame() -> VideoFrame? { state.read { $0.item.onShow.frame } }

  // MARK: - Private

  func wake() { presenter.wake() }

  func emit(_ event: PlayerEvent, of item: PlayerItem?) { change { $1.tell(event, of: item) } }

  /// Loads another item, or none, and returns the session of the one before. It takes effect at once.
  ///
  /// - Parameter detaches: True to pause, and to end and detach all outputs.
  @discardableResult
  func replace(with item: PlayerItem?, start: MediaTime?, detaches: Bool) -> ItemSession? {
    let wanted = item.map { ItemSession($0, core: self) }
    let session = wanted.flatMap { $0.item.claim(for: $0.owner) ? $0 : nil }
    var refusal: ReelError?
    if session == nil, let item { refusal = .itemInUse(item) }
    let now = clock.now
    let replaced = change { [refusal] state, out in
      let left = state.replace(with: session, start: start, detaches: detaches, at: now, &out)
      if left != nil { state.refusal = refusal }
      return left
    }
    guard let left = replaced else {
      if let session { session.item.release(session.owner) }
      return nil
    }
    // A frame of the item may be shown to an output at this moment.
    outputLock.wait()
    change { state, out in
      state.publish(&out)
      out.answer(left.seek, with: .success(false))
    }
    // In this order, because both sessions may have the same item.
    left.session?.stop(left.scopes)
    events.forget()
    session?.start()
    if let refusal { emit(.failed(refusal), of: nil) }
    // Without an item, nothing remains to be presented.
    if session != nil { wake() } else { presenter.forgetTime() }
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
}

extension ReelError {
  /// The error of a player that gets the item of another one.
  fileprivate static func itemInUse(_ item: PlayerItem) -> ReelError {
    ReelError(
      .usage, "the item is in use by another player", at: item.source.name,
      advice: "create an item for each player")
  }
}

/// The turns of the task loop that shows frames and passes audio to outputs.
extension PlayerCore {
  /// Runs one turn: asks what is next, and performs it.
  func present() -> TaskLoop.Next {
    while true {
      let now = clock.now
      switch change({ state, out in state.next(at: now, &out) }) {
      case .show(let job, let due): show(job, due: due)
      case .passSound(let job, let time): passSound(job, until: time)
      case .again: continue
      case .wait(let deadline): return .at(deadline)
      case .rest: return .idle
      }
    }
  }

  /// Puts the next frame on show and shows it to all outputs.
  private func show(_ job: DecodingJob, due: Duration?) {
    let now = clock.now
    // Under one lock, so that neither outputs nor the item change in between.
    let new = outputLock.withLock {
      let new = change { state, out in state.take(job, due: due, at: now, &out) }
      if let new {
        show(new.frame, to: new.outputs) { $0.item.onShow.isOf(new.frame) && $0.item.videoJob === job }
      }
      return new
    }
    guard let new else { return }
    if new.beginsJob { compact(new.frame) }
    let shownAt = clock.now
    change { state, out in state.shown(new, at: shownAt, &out) }
  }

  /// Shows a frame to outputs while it is still current: an output may use the player. Call with `outputLock`
  /// held.
  func show(
    _ frame: VideoFrame, to outputs: [any FrameOutput], while isWanted: (borrowing PlayerState) -> Bool
  ) {
    for output in outputs {
      let isNext = state.read { state in isWanted(state) && state.outputs.contains { $0 === output } }
      guard isNext else { continue }
      do {
        try output.show(frame)
      } catch {
        detachFailing(output, error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)"))
      }
    }
  }

  /// Reduces the memory of the frame on show, if it is kept until the item is played, and nobody is waiting for it.
  private func compact(_ frame: VideoFrame) {
    guard state.read({ $0.restsAtFirst }), let small = frame.compacted(for: account) else { return }
    change { state, out in
      guard state.item.onShow.isOf(frame) else { return }
      out.free(frame)
      state.item.onShow.frame = small
    }
  }

  /// Passes audio that is due by `time` to outputs; nil for all decoded audio. Tells them once that it has ended.
  private func passSound(_ job: DecodingJob, until time: MediaTime?) {
    outputLock.withLock {
      while let sound = change({ state, out in state.takeSound(job, until: time, &out) }) { passSound(sound) }
      for output in change({ state, _ in state.takeSoundEnd(job) }) { output.soundEnded() }
    }
  }

  private func passSound(_ sound: NewSound) {
    guard !sound.attachments.isEmpty else { return }
    let chunk = sound.chunk
    var buffer = chunk.buffer
    buffer.scale(by: sound.volume)
    for attachment in sound.attachments {
      let output = attachment.output
      guard state.read({ $0.audioOutputs.contains { $0.output === output } }) else { continue }
      do {
        try output.write(
          TimedAudio(
            buffer, time: chunk.time - chunk.shift, outputTime: sound.outputTime - attachment.start))
      } catch {
        detachFailing(output, error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)"))
      }
    }
  }

  func detachFailing(_ output: any FrameOutput, _ error: ReelError) {
    guard change({ state, _ in state.remove(output) }) else { return }
    try? output.finish()
    emit(.outputFailed(error), of: nil)
  }

  private func detachFailing(_ output: any AudioOutput, _ error: ReelError) {
    guard change({ state, _ in state.remove(output) }) != nil else { return }
    try? output.finish()
    emit(.outputFailed(error), of: nil)
  }
}
