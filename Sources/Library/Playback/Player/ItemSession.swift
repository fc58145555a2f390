internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelSources

/// What works for one item of one player: the task that resolves its source, and the task loops that read and decode
/// it. All that they share is the state of the player (`ItemState`).
///
/// The work is done in turns of task loops: one reads video and muxed audio, one reads separate audio, one
/// decodes both. A turn never waits for another; each loop is woken when its input is ready. Only reading waits, for
/// bytes, and a seek or the end of the session interrupts it.
///
/// `stop()` ends everything; running work ends by itself soon after. What it brings then is of an item that the player
/// has left, and changes nothing.
final class ItemSession: Sendable {
  let item: PlayerItem
  // The player lives until it has left its last item (`Player.deinit`).
  let core: PlayerCore
  let startedAt: Duration
  let loading: LoadingConfiguration
  let scope: LoadScope
  let recorder: StartupRecorder
  let offsets = TimestampOffsets()
  private let reader, audioReader, decoder: TaskLoop
  private let resolving = Locked(Resolving())

  private struct Resolving: Sendable {
    var task: Task<Void, Never>?
    var isStopped = false
  }

  var owner: PlayerItem.Owner {
    PlayerItem.Owner(player: ObjectIdentifier(core), session: ObjectIdentifier(self))
  }

  init(_ item: PlayerItem, core: PlayerCore) {
    self.item = item
    self.core = core
    startedAt = core.clock.now
    var loading = core.configuration.loading
    loading.itemHeaders = item.headers
    self.loading = loading
    scope = LoadScope(runtime: core.configuration.runtime, memory: LoadingMemory(account: core.account))
    recorder = StartupRecorder(clock: core.clock)
    func makeLoop(_ name: String) -> TaskLoop {
      TaskLoop(named: name, runtime: core.configuration.runtime, clock: core.clock, account: core.account)
    }
    reader = makeLoop("read")
    audioReader = makeLoop("read-audio")
    decoder = makeLoop("decode")
  }

  /// Starts loading. Call it once, after stopping a session that played the item before.
  func start() {
    item.reset()
    item.observed.remainingRetries.set(core.configuration.retryPolicy.remaining)
    let (itemReader, itemAudioReader) = (ItemReader(self, kind: .video), ItemReader(self, kind: .audio))
    let itemDecoder = ItemDecoder(self)
    reader.setTurn(turn { itemReader.turn() })
    audioReader.setTurn(turn { itemAudioReader.turn() })
    decoder.setTurn(turn { itemDecoder.turn() })
    item.setOnChange { [weak self] in self?.preferencesHaveChanged(wantsMore: $0) }
    change { state, out in state.begin(&out) }
  }

  /// Ends all loading and decoding.
  ///
  /// - Parameter scopes: Those of the readers' jobs.
  func stop(_ scopes: [LoadScope] = []) {
    scope.cancel()
    for scope in scopes { scope.cancel() }
    let task = resolving.withLock { resolving in
      resolving.isStopped = true
      return resolving.task
    }
    task?.cancel()
    for taskLoop in [reader, audioReader, decoder] { taskLoop.stop() }
    item.setOnChange(nil)
    item.release(owner)
  }

  /// Waits, after `stop()`, until nothing runs any more.
  func waitUntilStopped() async {
    await resolving.withLock { $0.task }?.value
    for taskLoop in [reader, audioReader, decoder] { await taskLoop.waitUntilStopped() }
  }

  /// Wakes task loops, always in the same order.
  func wake(_ wanted: Workers) {
    if wanted.contains(.reader) { reader.wake() }
    if wanted.contains(.audioReader) { audioReader.wake() }
    if wanted.contains(.decoder) { decoder.wake() }
  }

  /// The scope of a reader's work from one position on.
  func makeScope() -> LoadScope { LoadScope(runtime: scope.runtime, memory: scope.memory) }

  // MARK: The source

  func beginResolving(after pause: Duration) {
    let task = core.configuration.runtime.task { [weak self] in
      guard let self else { return }
      if pause > .zero {
        do { try await core.clock.sleep(for: pause) } catch { return }
      }
      await resolve()
    }
    let isStopped = resolving.withLock { resolving in
      resolving.task = task
      return resolving.isStopped
    }
    if isStopped { task.cancel() }
  }

  private func resolve() async {
    do {
      let opened = try await OpenSource(
        item.source, fetcher: CountedFetcher(base: core.fetcher, memory: scope.memory),
        configuration: loading, scope: scope, recorder: recorder, gate: core.gate, logger: core.logger,
        readsAhead: read { $0.prefersThroughput } ?? false, storeUse: read { $0.storeUse } ?? StoreUse())
      var (rungs, fault): ([ItemRung]?, ReelError?) = (nil, nil)
      if case .presentation(let resolved) = opened.source {
        rungs = ladder(of: resolved.presentation)
        fault = resolved.presentation.live?.driftFault?.located(at: item.source.name)
      }
      change { state, out in
        // Before any rung is opened.
        if let rungs { state.playerItem?.updateLadder { $0.rungs = rungs } }
        if let fault { state.log(fault, .tolerated) }
        state.sourceOpened(opened, &out)
      }
    } catch {
      if Task.isCancelled { return }
      let other =
        error is CancellationError
        ? ReelError(.network, "a transfer was cancelled") : ReelError(.internalFault, "\(error)")
      let failure = (error as? ReelError ?? other).located(at: item.source.name)
      change { state, out in state.sourceFailed(failure, &out) }
    }
  }

  /// Returns the available rungs; nil if they are not known yet.
  private func ladder(of presentation: Presentation) -> [ItemRung]? {
    let role = ReaderRole.main(wantsAudio: false)
    guard let period = presentation.periods(carrying: role).first,
      let ladder = try? RungMatcher.ladder(of: period, role: role, configuration: loading)
    else { return nil }
    let rungs = ladder.sorted { $0.ladderBitsPerSecond < $1.ladderBitsPerSecond }
    return rungs.map { rung in
      ItemRung(id: rung.id, bitRate: rung.bitsPerSecond ?? rung.averageBitsPerSecond ?? 0, size: rung.size)
    }
  }

  // MARK: Requests of the program

  /// Returns the limits of the forward buffer: from the target, or else from the item's preferences.
  func limits(for target: PreloadTarget?) -> ForwardBuffer.Limits {
    let thresholds = core.configuration.thresholds
    let seconds = (target?.bufferDuration ?? item.forwardBufferDuration) / .seconds(1)
    return ForwardBuffer.Limits(
      target: MediaTime(seconds: seconds), refillShare: thresholds.refillShare,
      byteCount: min(target?.byteLimit ?? .max, thresholds.maximumByteCount))
  }

  func preferencesHaveChanged(wantsMore: Bool) {
    change { state, out in
      state.packets.limits = limits(for: state.target)
      guard wantsMore else { return state.refill(&out) }
      // Fill the buffer up to the new bound, regardless of its level.
      state.packets.fill()
      out.wake([.reader, .audioReader])
    }
  }

  /// How the rungs of video are chosen.
  var rungChoice: RungController.Choice {
    guard core.configuration.adaptsBitRate else { return .fixed }
    return .adaptive(estimate: (item.initialBandwidth ?? core.configuration.initialBandwidth).map { Int($0) })
  }

  var conditions: RungConditions {
    let preferences = item.preferences
    let bounds = item.bounds
    let known = core.state.read {
      $0.item.session === self
        ? ($0.item.target, $0.item.packets.level, $0.wantedRate, $0.status) : nil
    }
    var conditions = RungConditions()
    guard let (target, level, rate, status) = known else { return conditions }
    conditions.now = core.clock.now
    conditions.buffered = .seconds(level.ahead.seconds)
    conditions.bufferTarget = target == nil ? item.forwardBufferDuration : preferences.forwardBufferDuration
    let isAdaptive = core.configuration.adaptsBitRate
    let cap = preferences.peakBitRate ?? (isAdaptive ? nil : loading.preferredPeakBitRate)
    let peak = target.map { $0.peakBitRate } ?? bounds.peakBitRate
    conditions.peakBitRate = [cap, peak].compactMap(\.self).min()
    conditions.startCap = target.map { $0.startPeakBitRate } ?? bounds.startPeakBitRate
    conditions.maximumHeight = preferences.maximumResolution?.height
    conditions.maximumWidth = preferences.maximumResolution?.width
    conditions.rate = rate.isFinite ? rate : 1
    conditions.isRebuffering = status == .waitingToPlayAtSpecifiedRate(.toMinimizeStalls)
    return conditions
  }

  // MARK: - Private

  /// Keeps the session for the time of a turn.
  private func turn(_ body: @escaping @Sendable () -> TaskLoop.Next) -> @Sendable () -> TaskLoop.Next {
    { [weak self] in
      guard let self else { return .idle }
      return withExtendedLifetime(self) { body() }
    }
  }
}

extension PlayerItem {
  /// The compressed media to load ahead while the item is played.
  var forwardBufferDuration: Duration { bounds.forwardBufferDuration ?? preferences.forwardBufferDuration }
}

/// Reports of readers.
extension ItemSession {
  /// Takes a report of the reader of a kind into the item's logs.
  func take(_ report: ReadingReport, of kind: TrackKind) {
    let isVideo = kind == .video
    switch report {
    case .rung(let rung):
      var entry = AccessLogEntry(rung: rung.id)
      entry.indicatedBitRate = rung.bitsPerSecond ?? rung.averageBitsPerSecond
      entry.size = rung.size
      item.beginAccess(entry)
    case .transfer(let transfer, let rung):
      // Video only: transfers of separate audio share the link and would measure only their part of it.
      guard isVideo else { return }
      read { $0.controller }??.record(transfer)
      item.updateAccess(rung: rung) { entry in
        entry.byteCount += transfer.byteCount
        entry.requestCount += transfer.requestCount
        entry.measuredByteCount += transfer.freeByteCount
        entry.transferDuration += transfer.freeEnd - transfer.began
      }
    case .file(let requestCount, let byteCount):
      guard isVideo else { return }
      change { state, _ in
        state.playerItem?.updateAccess(rung: nil) { entry in
          entry.byteCount += byteCount
          entry.requestCount += requestCount
        }
      }
    case .failure(let error, let rung, let outcome):
      if let outcome { log(error, rung: rung, outcome) }
    case .damage(let error, let rung, let range):
      // Missing or damaged frames are recorded separately.
      let loss = range.map { MediaLoss(kind: kind, reason: .damaged, range: $0) }
      log(error, rung: rung, loss.map(ErrorLogEntry.Outcome.lost) ?? .tolerated)
    case .hole(let error, let rung, let loss):
      log(error, rung: rung, .lost(loss))
    case .passedOver(let error, let start, let duration):
      guard isVideo else { return }
      change { state, out in
        out.tell(.segmentMissed(start: start, duration: duration, error), of: state.playerItem)
      }
    case .absence(let segments):
      // Without video, audio begins by itself.
      change { state, out in
        if isVideo { state.live = segments } else { state.liveAudio = segments }
        out.wake(isVideo ? [.audioReader, .presenter] : .presenter)
      }
    case .segment(let duration):
      if isVideo { item.updateLadder { $0.segmentDuration = .seconds(duration.seconds) } }
    }
  }

  private func log(_ error: ReelError, rung: String, _ outcome: ErrorLogEntry.Outcome) {
    change { state, _ in state.log(error, rung: rung, outcome) }
  }
}
