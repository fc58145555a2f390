internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The workings of a `Player`, which its pumps can hold on to weakly.
///
/// One pump shows pictures and hands out sound (`present`). What it needs is behind one lock, which is never held while
/// an output is called.
final class PlayerCore: Sendable {
  struct Settings: Sendable {
    var waitsToMinimizeStalls = true
    var isLinear = false
    var actionAtItemEnd = Player.ActionAtItemEnd.pause
    var allowsExternalPlayback = true
    var playsWhenReady = false
  }

  let timeControlStatus = ObservedProperty(TimeControlStatus.paused)
  let currentItem = ObservedProperty<PlayerItem?>(nil)
  let rate = ObservedProperty(0.0)
  let isMuted = ObservedProperty(false)
  let volume = ObservedProperty<Float>(1)
  let events = EventChannel<PlayerEvent>()

  private let fetcher: any Fetching
  private let configuration: PlayerConfiguration
  private let gate: (any DecodingGate)?
  private let logger: Logger
  private let clock: any MonotonicClock
  private let state = Locked(State())
  /// Held while outputs are called, so that a detached one is not called any more when `detach` has returned, nor any
  /// with a picture of another item when that was replaced. An output may use the player: the lock can be taken again.
  private let outputLock = NSRecursiveLock()
  private let presenter = Locked<Pump?>(nil)
  /// Held while properties and the session are told what the state is: of two who tell, the later one is right.
  private let publishing = Locked(())

  fileprivate struct PendingSeek {
    let generation: Int
    let time: MediaTime
    let began: Duration
    let continuation: CheckedContinuation<Bool, any Error>
  }

  fileprivate struct State {
    var session: ItemSession?
    var machine = PlaybackMachine()
    var settings = Settings()
    var timebase = Timebase()
    /// The rate that `play()` uses.
    var wantedRate = 1.0
    /// What the clock runs by: the rate, a little more where a live item catches up.
    var liveFactor = 1.0
    var catchUp = LiveCatchUp()
    /// Where the user wants a live item to be, behind the edge; nil for the manifest's delay.
    var liveTarget: Duration?
    var generation = 0
    /// The first picture of the generation has been shown.
    var hasPicture = false
    var lastShownAt: Duration?
    var lastTime: MediaTime?
    var lastEnd: MediaTime?
    var lastRun: MediaRun?
    /// The last time through the item: pictures of later ones, which were read ahead, are not shown.
    var lastIteration = Int.max
    var onShow: PictureBox?
    var hasEnded = false
    var hasAnnouncedEnd = false
    var seek: PendingSeek?
    var stalledAt: Duration?
    var outputs: [any FrameOutput] = []
    var audioOutputs: [any AudioOutput] = []
    var statistics = PlayerStatistics()
    var latenessIndex = 0
    var levelCheckedAt: Duration?
    var isClosed = false
    var volume: Float = 1
    var isMuted = false
  }

  init(
    fetcher: any Fetching, configuration: PlayerConfiguration, gate: (any DecodingGate)?, logger: Logger
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.gate = gate
    self.logger = logger
    clock = configuration.clock
    let pump = Pump(named: "present", clock: clock) { [weak self] in self?.present() ?? .idle }
    presenter.withLock { $0 = pump }
  }

  // MARK: Commands

  func play() {
    if !restartIfEnded() { apply { $0.machine.handle(.play) } }
    wake()
  }

  func pause() { apply { $0.machine.handle(.pause) } }

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
      let iteration = state.lastRun?.pass.iteration ?? 0
      state.lastIteration = state.settings.actionAtItemEnd == .loop ? .max : iteration
      return (state.session, state.settings.actionAtItemEnd == .loop, iteration, external)
    }
    session?.setLoops(loops, iteration: iteration)
    for output in external { detachFailing(output, ReelError(.usage, "external playback is not allowed")) }
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
    // Together: the next picture comes after the one that is on show.
    let isAllowed = outputLock.withLock {
      let (isAllowed, picture) = state.withLock { state -> (Bool, PictureBox?) in
        guard !output.isExternal || state.settings.allowsExternalPlayback else { return (false, nil) }
        state.outputs.append(output)
        return (true, state.onShow)
      }
      if let picture { show(picture, to: [output]) { $0.onShow === picture } }
      return isAllowed
    }
    guard isAllowed else { throw ReelError(.usage, "external playback is not allowed by this player") }
  }

  func detach(_ output: any FrameOutput) throws {
    let wasAttached = state.withLock { state in
      let count = state.outputs.count
      state.outputs.removeAll { $0 === output }
      return state.outputs.count < count
    }
    // One that is being shown to is waited for.
    outputLock.withLock {}
    if wasAttached { try output.finish() }
  }

  func attach(_ output: any AudioOutput) { state.withLock { $0.audioOutputs.append(output) } }

  func detach(_ output: any AudioOutput) throws {
    let wasAttached = state.withLock { state in
      let count = state.audioOutputs.count
      state.audioOutputs.removeAll { $0 === output }
      return state.audioOutputs.count < count
    }
    outputLock.withLock {}
    if wasAttached { try output.finish() }
  }

  // MARK: Accounts

  var currentTime: MediaTime {
    let now = clock.now
    return state.withLock { $0.itemTime(at: now) }
  }

  var statistics: PlayerStatistics {
    let (copy, session) = state.withLock { ($0.statistics, $0.session) }
    var statistics = copy
    guard let session else { return statistics }
    let level = session.buffer.level
    statistics.ring = session.ring.statistics
    statistics.bufferByteCount = level.byteCount
    statistics.bufferHighWaterByteCount = session.buffer.highWaterByteCount
    statistics.bufferedDuration = .seconds(level.ahead.seconds)
    statistics.estimatedBandwidth = session.bandwidth
    statistics.decodeDuration = session.decodeDuration
    return statistics
  }

  // MARK: - Private

  private func wake() { presenter.withLock { $0 }?.wake() }

  private func emit(_ event: PlayerEvent, of item: PlayerItem?) {
    item?.events.send(event)
    events.send(event)
  }

  /// Changes the machine, and does what follows.
  private func apply(_ body: (inout sending State) -> [PlaybackMachine.Action]) {
    let now = clock.now
    let (actions, session, time) = state.withLock { state in
      let actions = body(&state)
      state.follow(actions, now: now)
      return (actions, state.session, state.itemTime(at: now))
    }
    for action in actions {
      switch action {
      case .stalled: emit(.stalled(time: time), of: session?.item)
      case .resumed:
        let length = state.withLock { state in
          let length = state.stalledAt.map { now - $0 } ?? .zero
          state.stalledAt = nil
          state.statistics.stallDuration += length
          return length
        }
        emit(.resumed(time: time, after: length), of: session?.item)
      case .startClock, .stopClock, .changed: break
      }
    }
    if actions.contains(.stalled) {
      session?.item.updateAccess(rung: session?.item.rung.value) { $0.stallCount += 1 }
    }
    publish()
  }

  /// Tells what the state is: properties, and the session, whose loading goes by it.
  private func publish() {
    publishing.withLock { _ in
      let (session, wantedRate, status, isPlayWanted) = state.withLock { state in
        (state.session, state.wantedRate, state.machine.status, state.machine.isPlayWanted)
      }
      timeControlStatus.set(status)
      rate.set(isPlayWanted ? wantedRate : 0)
      currentItem.set(session?.item)
      session?.setRate(wantedRate, status: status)
    }
  }

  private struct Ending {
    var session: ItemSession?
    var seek: PendingSeek?
    var outputs: [any FrameOutput] = []
    var audioOutputs: [any AudioOutput] = []
    var report: (ReelError) -> Void = { _ in }

    func finish() {
      seek?.continuation.resume(returning: false)
      for output in outputs {
        do { try output.finish() } catch {
          report(error as? ReelError ?? ReelError(.internalFault, "\(error)"))
        }
      }
      for output in audioOutputs {
        do { try output.finish() } catch {
          report(error as? ReelError ?? ReelError(.internalFault, "\(error)"))
        }
      }
    }
  }

  private func replace(with item: PlayerItem?, start: MediaTime?, detaches: Bool) -> Ending? {
    let session = item.map { makeSession($0, start: start) }
    var ending = Ending()
    let now = clock.now
    let isClosed = state.withLock { state in
      guard !state.isClosed else { return true }
      ending.session = state.session
      ending.seek = state.seek
      state.seek = nil
      state.session = session
      var actions: [PlaybackMachine.Action] = []
      if detaches {
        ending.outputs = state.outputs
        ending.audioOutputs = state.audioOutputs
        state.outputs = []
        state.audioOutputs = []
        actions += state.machine.handle(.pause)
      }
      actions += state.machine.handle(.itemReplaced(hasItem: session != nil))
      if session != nil, state.settings.playsWhenReady { actions += state.machine.handle(.play) }
      state.begin(generation: session?.generation ?? 0, at: start)
      state.statistics = PlayerStatistics()
      state.latenessIndex = 0
      state.onShow = nil
      state.lastRun = nil
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
    outputLock.withLock {}
    publish()
    // In this order: it may be the same item.
    ending.session?.stop()
    session?.start()
    wake()
    let events = events
    ending.report = { events.send(.outputFailed($0)) }
    return ending
  }

  private func makeSession(_ item: PlayerItem, start: MediaTime?) -> ItemSession {
    let environment = SessionEnvironment(
      fetcher: fetcher, loading: configuration.loading, clock: clock, gate: gate, logger: logger,
      thresholds: configuration.thresholds, retryPolicy: configuration.retryPolicy,
      ringFrameCapacity: configuration.ringFrameCapacity, ringByteCapacity: configuration.ringByteCapacity,
      isAdaptive: configuration.adaptsBitRate, initialBandwidth: configuration.initialBandwidth)
    let (wantsAudio, loops, isFast) = state.withLock { state in
      (!state.isMuted, state.settings.actionAtItemEnd == .loop, state.wantedRate == .infinity)
    }
    let delegate = ItemSession.Delegate(
      wake: { [weak self] in self?.wake() },
      event: { [weak self, weak item] event in self?.emit(event, of: item) })
    return ItemSession(
      item, environment: environment, start: start, wantsAudio: wantsAudio, loops: loops,
      prefersThroughput: isFast, delegate: delegate)
  }

  // MARK: Seeking

  /// True where it has begun. A failed item is tried again where its failure may pass.
  ///
  /// - Parameter isWanted: asked with the state locked; nothing is done where it says false.
  @discardableResult
  private func begin(
    seekTo time: MediaTime, tolerance: MediaTime, continuation: CheckedContinuation<Bool, any Error>?,
    where isWanted: (State) -> Bool = { _ in true }
  ) -> Bool {
    let now = clock.now
    let outcome = state.withLock { state -> Result<PendingSeek?, ReelError> in
      guard let session = state.session, isWanted(state) else {
        return .failure(ReelError(.usage, "there is no item to seek in"))
      }
      let name = session.item.source.name
      if continuation != nil, state.settings.isLinear {
        return .failure(ReelError(.usage, "seeking is refused: playback is linear", at: name))
      }
      if let failure = session.failure, !failure.isTemporary { return .failure(failure) }
      guard session.streams.canSeek else {
        return .failure(ReelError(.unsupported, "this source can't be sought", at: name))
      }
      let old = state.seek
      let (generation, target) = session.seek(
        to: state.target(of: time, duration: session.item.duration.value), tolerance: tolerance,
        iteration: state.lastRun?.pass.iteration ?? 0)
      if continuation != nil, let distances = session.liveDistances(from: target) {
        // Who goes back in the window stays there.
        state.liveTarget = max(distances.latency, distances.target)
      }
      state.seek = continuation.map {
        PendingSeek(generation: generation, time: target, began: now, continuation: $0)
      }
      state.begin(generation: generation, at: target)
      if case .failed = session.item.status.value { session.item.status.set(.unknown) }
      state.follow(state.machine.handle(.seekBegan), now: now)
      return .success(old)
    }
    switch outcome {
    case .failure(let error):
      continuation?.resume(throwing: error)
      return false
    case .success(let old):
      old?.continuation.resume(returning: false)
      publish()
      wake()
      return true
    }
  }

  /// Playing on after the end begins at the beginning. False where the item has not ended.
  private func restartIfEnded() -> Bool {
    guard state.withLock({ $0.hasEnded && $0.settings.actionAtItemEnd != .none }) else { return false }
    if begin(seekTo: .zero, tolerance: .zero, continuation: nil) { apply { $0.machine.handle(.play) } }
    return true
  }

  // MARK: Presenting

  /// One turn of showing what is due.
  private func present() -> Pump.Next {
    while true {
      guard let session = state.withLock({ $0.session }) else { return .idle }
      checkLevel(of: session)
      switch step(session) {
      case .again: continue
      case .idle: return .idle
      case .at(let deadline): return .at(deadline)
      }
    }
  }

  private func step(_ session: ItemSession) -> Pump.Next {
    let head = session.ring.head()
    let now = clock.now
    let (generation, hasPicture, isPlaying, rate, isCurrent) = state.withLock { state in
      (
        state.generation, state.hasPicture, state.machine.status == .playing, state.wantedRate,
        state.session === session
      )
    }
    // Replaced or sought since: that makes for another turn.
    guard isCurrent, session.generation == generation else { return .idle }
    switch head {
    case .picture(let time, let following):
      if !hasPicture { return showFirst(session, generation: generation) }
      guard isPlaying else { return .idle }
      if rate == .infinity {
        skipGap(before: time, of: session, generation: generation, now: now)
        show(session, generation: generation, due: nil)
        handOutAudio(session, until: time, generation: generation)
        return .again
      }
      return showDue(session, time: time, following: following, generation: generation, now: now)
    case .empty:
      if let failure = session.failure, !hasPicture { return fail(session, failure, generation: generation) }
      guard isPlaying, rate != .infinity else { return .idle }
      handOutAudio(session, until: state.withLock { $0.timebase.time(at: now) }, generation: generation)
      let level = session.buffer.level
      guard level.isConsumed, !level.isComplete else { return audioWait(session, now: now) }
      return stall(session, generation: generation, now: now)
    case .drained:
      return atEnd(session, hasPicture: hasPicture, isPlaying: isPlaying, generation: generation, now: now)
    }
  }

  private func stall(_ session: ItemSession, generation: Int, now: Duration) -> Pump.Next {
    apply { state in
      guard state.isCurrent(session, generation) else { return [] }
      let actions = state.machine.handle(.ranDry)
      if actions.contains(.stalled) {
        state.stalledAt = now
        state.statistics.stallCount += 1
      }
      return actions
    }
    return .again
  }

  private func showFirst(_ session: ItemSession, generation: Int) -> Pump.Next {
    guard let picture = session.ring.take(generation: generation) else { return .again }
    session.noteFirstPicture()
    let now = clock.now
    let time = picture.time
    let (seek, isFirst, startup) = state.withLock { state -> (PendingSeek?, Bool, Duration) in
      guard state.isCurrent(session, generation) else { return (nil, false, .zero) }
      state.hasPicture = true
      // Exact: the clock stands at the time that was asked for, within the picture's time on show.
      let anchor = state.seek.map { max($0.time, time) } ?? time
      state.timebase.setTime(anchor, at: now)
      let startup = now - session.startedAt
      let isFirst = state.statistics.startupTime == nil
      if isFirst { state.statistics.startupTime = startup }
      defer { state.seek = nil }
      return (state.seek, isFirst, startup)
    }
    display(picture, session: session, generation: generation, due: nil)
    let item = session.item
    state.withLock { if $0.isCurrent(session, generation) { item.status.set(.readyToPlay) } }
    if isFirst {
      item.updateAccess(rung: item.rung.value) { $0.startupTime = startup }
      emit(.firstFrame(time: state.withLock { $0.itemTime(at: now) }, after: startup), of: item)
    }
    if let seek {
      emit(.seekDone(time: state.withLock { $0.itemTime(at: now) }, after: now - seek.began), of: item)
      seek.continuation.resume(returning: true)
    }
    apply { $0.isCurrent(session, generation) ? $0.machine.handle(.pictureShown) : [] }
    checkLevel(of: session, always: true)
    return .again
  }

  private func showDue(
    _ session: ItemSession, time: MediaTime, following: MediaTime?, generation: Int, now: Duration
  ) -> Pump.Next {
    skipGap(before: time, of: session, generation: generation, now: now)
    let (timebase, lastShownAt) = state.withLock { ($0.timebase, $0.lastShownAt) }
    handOutAudio(session, until: timebase.time(at: now), generation: generation)
    if session.lacksAudio(at: timebase.time(at: now) - Self.audioTolerance) {
      return stall(session, generation: generation, now: now)
    }
    switch FramePacer().decision(
      next: time, following: following, timebase: timebase, now: now, lastShownAt: lastShownAt)
    {
    case .show:
      show(session, generation: generation, due: timebase.clockTime(of: time))
      return .again
    case .drop:
      if session.ring.take(generation: generation) != nil {
        state.withLock { state in
          if state.isCurrent(session, generation) { state.statistics.droppedFrameCount += 1 }
        }
        session.item.updateAccess(rung: session.item.rung.value) { $0.droppedFrameCount += 1 }
      }
      return .again
    case .wait(let deadline):
      guard let sound = session.audio.nextTime, let due = timebase.clockTime(of: sound), due < deadline else {
        return .at(deadline)
      }
      return .at(max(due, now))
    }
  }

  /// Sound may be due while the decoder is behind.
  private func audioWait(_ session: ItemSession, now: Duration) -> Pump.Next {
    guard let sound = session.audio.nextTime,
      let due = state.withLock({ $0.timebase.clockTime(of: sound) })
    else { return .idle }
    return .at(max(due, now))
  }

  /// Goes on at once behind a hole in the timeline.
  private func skipGap(before time: MediaTime, of session: ItemSession, generation: Int, now: Duration) {
    let skipped = state.withLock { state -> (MediaTime, MediaTime)? in
      guard state.isCurrent(session, generation), let end = state.lastEnd,
        time - end > MediaTime(value: 3, timescale: 10),
        session.ring.headFollowsGap(generation: generation, than: state.lastRun)
      else { return nil }
      guard state.timebase.time(at: now) >= end || state.wantedRate == .infinity else { return nil }
      state.timebase.setTime(time, at: now)
      return (end - state.shift, time - state.shift)
    }
    if let skipped { emit(.gapSkipped(from: skipped.0, to: skipped.1), of: session.item) }
  }

  private func show(_ session: ItemSession, generation: Int, due: Duration?) {
    guard let picture = session.ring.take(generation: generation) else { return }
    display(picture, session: session, generation: generation, due: due)
  }

  /// Shows a picture to all outputs, unless it is of an earlier generation.
  private func display(
    _ taken: consuming TimedPicture, session: ItemSession, generation: Int, due: Duration?
  ) {
    var picture = taken
    let now = clock.now
    let run = picture.run
    let time = picture.time
    let length = picture.displayTime
    let isDamaged = picture.frame.isDamaged
    let size = picture.geometry().output
    picture.time = time - (run?.shift ?? .zero)
    let box = PictureBox(picture)
    // Together: nobody takes an output, or the item, away in between.
    let shown = outputLock.withLock {
      let shown = state.withLock { state -> (outputs: [any FrameOutput], last: MediaRun?, gap: Duration?)? in
        guard state.isCurrent(session, generation), (run?.pass.iteration ?? 0) <= state.lastIteration else {
          return nil
        }
        let last = state.lastRun
        var gap: Duration?
        if let last, let run, run.pass.iteration > last.pass.iteration {
          gap = due.map { max(.zero, now - $0) } ?? .zero
          if let gap { state.statistics.loopGaps.append(gap) }
        }
        state.lastRun = run ?? last
        state.lastShownAt = now
        state.lastTime = time
        state.lastEnd = time + length
        // As fast as it goes, the clock stands at the picture on show: another rate goes on from there.
        if state.wantedRate == .infinity { state.timebase.setTime(time, at: now) }
        state.onShow = box
        state.statistics.shownFrameCount += 1
        if isDamaged { state.statistics.damagedFrameCount += 1 }
        if let due { state.noteLateness(now - due) }
        return (state.outputs, last, gap)
      }
      if let shown { show(box, to: shown.outputs) { $0.onShow === box && $0.generation == generation } }
      return shown
    }
    guard let shown else { return }
    let item = session.item
    session.setPosition(time)
    item.presentationSize.set(size)
    item.updateAccess(rung: run?.rung?.id) { $0.shownFrameCount += 1 }
    if let rung = run?.rung?.id, rung != item.rung.value {
      let old = item.rung.value
      item.rung.set(rung)
      if shown.last != nil {
        emit(.rungSwitched(from: old, to: rung, time: time - (run?.shift ?? .zero)), of: item)
      }
    }
    if let gap = shown.gap { emit(.looped(gap: gap), of: item) }
  }

  /// Shows a picture to outputs, as long as it is wanted: one of them may use the player. With `outputLock` held.
  private func show(_ picture: PictureBox, to outputs: [any FrameOutput], while isWanted: (State) -> Bool) {
    for output in outputs {
      let isNext = state.withLock { state in isWanted(state) && state.outputs.contains { $0 === output } }
      guard isNext else { continue }
      do {
        try output.show(picture.picture)
      } catch {
        detachFailing(output, error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)"))
      }
    }
  }

  private func detachFailing(_ output: any FrameOutput, _ error: ReelError) {
    let wasAttached = state.withLock { state in
      let count = state.outputs.count
      state.outputs.removeAll { $0 === output }
      return state.outputs.count < count
    }
    guard wasAttached else { return }
    try? output.finish()
    events.send(.outputFailed(error))
  }

  // MARK: Sound

  /// Hands out what is heard by `time`; nil for all there is.
  private func handOutAudio(_ session: ItemSession, until time: MediaTime?, generation: Int) {
    let chunks = session.audio.take(until: time, generation: generation)
    guard !chunks.isEmpty else { return }
    outputLock.withLock {
      for chunk in chunks {
        let (outputs, volume) = state.withLock { state in
          let isHeard = state.isCurrent(session, generation) && !state.isMuted
          return (isHeard ? state.audioOutputs : [], state.volume)
        }
        guard !outputs.isEmpty else { return }
        var buffer = chunk.buffer
        buffer.scale(by: volume)
        for output in outputs where state.withLock({ $0.audioOutputs.contains { $0 === output } }) {
          do {
            try output.write(buffer, at: chunk.time - chunk.shift)
          } catch {
            detachFailing(output, error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)"))
          }
        }
      }
    }
  }

  private func detachFailing(_ output: any AudioOutput, _ error: ReelError) {
    let wasAttached = state.withLock { state in
      let count = state.audioOutputs.count
      state.audioOutputs.removeAll { $0 === output }
      return state.audioOutputs.count < count
    }
    guard wasAttached else { return }
    try? output.finish()
    events.send(.outputFailed(error))
  }

  // MARK: The end

  private func atEnd(
    _ session: ItemSession, hasPicture: Bool, isPlaying: Bool, generation: Int, now: Duration
  ) -> Pump.Next {
    if !hasPicture {
      let failure =
        session.fruitlessFailure
        ?? ReelError(.badMedia, "no picture in the media", at: session.item.source.name)
      // A seek behind the last picture: the one on show stays.
      if session.pendingFailure == nil, state.withLock({ $0.onShow != nil }) {
        return endSeek(session, generation: generation)
      }
      return fail(session, failure, generation: generation)
    }
    guard isPlaying else { return .idle }
    let (timebase, end, isFast) = state.withLock { ($0.timebase, $0.lastEnd, $0.wantedRate == .infinity) }
    if isFast {
      // Sound that is longer than the picture is waited for.
      guard session.audio.isDrained || !session.hasAudioLeft else {
        handOutAudio(session, until: nil, generation: generation)
        return session.audio.isDrained || !session.hasAudioLeft ? .again : .idle
      }
    } else {
      handOutAudio(session, until: timebase.time(at: now), generation: generation)
      if let end, let due = timebase.clockTime(of: end), due > now {
        guard let sound = session.audio.nextTime, let first = timebase.clockTime(of: sound) else {
          return .at(due)
        }
        return .at(min(due, max(first, now)))
      }
      if let sound = session.audio.nextTime, let due = timebase.clockTime(of: sound) {
        return .at(max(due, now))
      }
      if session.hasAudioLeft, !session.audio.isDrained { return .idle }
    }
    if let failure = session.pendingFailure { return fail(session, failure, generation: generation) }
    if settings.actionAtItemEnd == .loop {
      // Asked for when the end had been read already: not without a gap.
      let goesOn = begin(seekTo: .zero, tolerance: .zero, continuation: nil) {
        $0.isCurrent(session, generation)
      }
      // What can't be sought ends here.
      if goesOn { return .again }
    }
    let time = state.withLock { state -> MediaTime? in
      guard !state.hasAnnouncedEnd, state.isCurrent(session, generation) else { return nil }
      state.hasAnnouncedEnd = true
      state.hasEnded = true
      if let end { state.timebase.setTime(end, at: now) }
      return (end ?? .zero) - state.shift
    }
    guard let time else { return .idle }
    if settings.actionAtItemEnd != .none {
      apply { $0.isCurrent(session, generation) ? $0.machine.handle(.reachedEnd) : [] }
    } else {
      state.withLock { state in
        if state.isCurrent(session, generation) { state.timebase.setRate(0, at: now) }
      }
    }
    emit(.playedToEnd(time: time), of: session.item)
    return .idle
  }

  private func endSeek(_ session: ItemSession, generation: Int) -> Pump.Next {
    let now = clock.now
    let seek = state.withLock { state -> PendingSeek? in
      guard state.isCurrent(session, generation) else { return nil }
      state.hasPicture = true
      state.lastEnd = state.timebase.time(at: now)
      defer { state.seek = nil }
      return state.seek
    }
    if let seek {
      emit(.seekDone(time: currentTime, after: now - seek.began), of: session.item)
      seek.continuation.resume(returning: true)
    }
    apply { $0.isCurrent(session, generation) ? $0.machine.handle(.pictureShown) : [] }
    checkLevel(of: session, always: true)
    return .again
  }

  private func fail(_ session: ItemSession, _ error: ReelError, generation: Int) -> Pump.Next {
    let item = session.item
    let outcome = state.withLock { state -> (seek: PendingSeek?, isNews: Bool)? in
      guard state.isCurrent(session, generation) else { return nil }
      defer { state.seek = nil }
      if case .failed = item.status.value { return (state.seek, false) }
      item.status.set(.failed(error))
      return (state.seek, true)
    }
    guard let outcome else { return .idle }
    session.makeFailureDue()
    if outcome.isNews {
      apply { $0.isCurrent(session, generation) ? $0.machine.handle(.failed) : [] }
      emit(.failed(error), of: item)
    }
    outcome.seek?.continuation.resume(throwing: error)
    return .idle
  }

  // MARK: Levels

  private static let levelInterval = Duration.milliseconds(50)
  /// Sound may be missing for so long before that is a stall.
  private static let audioTolerance = MediaTime(value: 1, timescale: 10)

  /// Publishes how much there is, and lets the machine know; not more often than is of use while playing.
  private func checkLevel(of session: ItemSession, always: Bool = false) {
    let now = clock.now
    let (isDue, isStalled, rate, time) = state.withLock { state in
      let isPlaying = state.machine.status == .playing
      let isDue = always || !isPlaying || state.levelCheckedAt.map { now - $0 >= Self.levelInterval } ?? true
      if isDue { state.levelCheckedAt = now }
      return (isDue, state.machine.isAfterStall, state.wantedRate, state.timebase.time(at: now))
    }
    guard isDue else { return }
    var (_, keepsUp) = session.publishLevel(isStalled: isStalled, rate: rate)
    // However much there is: it would stall at once.
    if isStalled, session.lacksAudio(at: time - Self.audioTolerance) { keepsUp = false }
    apply { state in
      state.session === session && state.hasPicture
        ? state.machine.handle(.buffer(isLikelyToKeepUp: keepsUp)) : []
    }
    followLive(session, now: now)
  }

  /// Keeps a live item at its distance from the edge.
  private func followLive(_ session: ItemSession, now: Duration) {
    let (time, hasPicture, isPlaying, rate, isStalled) = state.withLock { state in
      (
        state.timebase.time(at: now), state.hasPicture, state.machine.status == .playing, state.wantedRate,
        state.machine.isStalled
      )
    }
    guard hasPicture, let distances = session.liveDistances(from: time) else { return }
    session.item.liveLatency.set(distances.latency)
    guard isPlaying || isStalled, rate.isFinite else { return }
    let action = state.withLock { state in
      state.catchUp.action(
        latency: distances.latency, target: state.liveTarget ?? distances.target,
        oldestLatency: distances.oldest > distances.target ? distances.oldest : nil,
        segmentDuration: distances.segmentDuration, userRate: rate, isStalled: isStalled)
    }
    switch action {
    case .normal: setLiveFactor(1, now: now)
    case .rate(let factor): setLiveFactor(factor, now: now)
    case .jump(let latency):
      let to = distances.edge - MediaTime(seconds: latency / .seconds(1))
      guard to > time else { return }
      setLiveFactor(1, now: now)
      state.withLock { $0.liveTarget = nil }
      begin(seekTo: to, tolerance: MediaTime(value: 10, timescale: 1), continuation: nil) {
        $0.session === session
      }
      emit(.jumpedToLive(from: time, to: to), of: session.item)
    }
  }

  private func setLiveFactor(_ factor: Double, now: Duration) {
    state.withLock { state in
      guard state.liveFactor != factor else { return }
      state.liveFactor = factor
      if state.timebase.rate > 0 { state.timebase.setRate(state.clockRate, at: now) }
    }
  }
}

extension PlayerCore.State {
  /// What the clock runs by while playing; at `.infinity` it follows the pictures.
  fileprivate var clockRate: Double { wantedRate == .infinity ? 0 : wantedRate * liveFactor }

  /// Where the present time through the item begins on the player's timeline.
  fileprivate var shift: MediaTime { lastRun?.shift ?? .zero }

  fileprivate func itemTime(at now: Duration) -> MediaTime {
    if wantedRate == .infinity, let lastTime { return lastTime - shift }
    let time = timebase.time(at: now)
    // The clock does not run beyond what is there.
    return (lastEnd.map { min(time, max($0, lastTime ?? $0)) } ?? time) - shift
  }

  /// A time that is asked for on the player's timeline, within the item.
  fileprivate func target(of time: MediaTime, duration: MediaTime?) -> MediaTime {
    var time = max(time, .zero)
    // Pictures may lie behind the duration that a manifest states: the last one is shown for what lies behind it.
    if let duration, duration > .zero { time = min(time, duration + MediaTime(value: 1, timescale: 1)) }
    // What is printed is rounded to the microsecond: it names the picture that it was printed for.
    return time + shift + (time > .zero ? MediaTime(value: 1, timescale: 1_000_000) : .zero)
  }

  /// True where this is still what is played, from where it was sought last.
  fileprivate func isCurrent(_ session: ItemSession, _ generation: Int) -> Bool {
    self.session === session && self.generation == generation
  }

  /// Begins a generation: nothing of it has been shown.
  fileprivate mutating func begin(generation: Int, at time: MediaTime?) {
    self.generation = generation
    hasPicture = false
    hasEnded = false
    hasAnnouncedEnd = false
    lastShownAt = nil
    lastTime = nil
    lastEnd = nil
    levelCheckedAt = nil
    timebase = Timebase(time: time ?? .zero)
  }

  fileprivate mutating func follow(_ actions: [PlaybackMachine.Action], now: Duration) {
    for action in actions {
      switch action {
      case .startClock: timebase.setRate(clockRate, at: now)
      case .stopClock: timebase.setRate(0, at: now)
      case .changed, .stalled, .resumed: break
      }
    }
  }

  fileprivate mutating func noteLateness(_ lateness: Duration) {
    if statistics.lateness.count < 8192 {
      statistics.lateness.append(lateness)
    } else {
      statistics.lateness[latenessIndex] = lateness
      latenessIndex = (latenessIndex + 1) % statistics.lateness.count
    }
  }
}
