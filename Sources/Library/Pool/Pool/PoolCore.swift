internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback
internal import ReelReading
internal import ReelSources

/// The implementation of `PlayerPool`, which its task loop references weakly.
///
/// Its state is one value under one lock. A swipe (`show`) records what is wanted there and returns the frame that is
/// ready. Everything else happens afterwards, in turns of one task loop (`turn`): a turn brings the slots to what the
/// latest swipe wants, and then reports how far they are.
///
/// A swipe is a call, not a message to an actor: it returns the frame within the call. With an actor the
/// frame would come a hop later, and fifty swipes would be fifty messages to process.
final class PoolCore: Sendable {
  /// The handlers of the program and of tools.
  struct Listeners: Sendable {
    var onFailure: (@Sendable (FeedItem.ID, ReelError) -> Void)?
    /// Called at once, on any thread, in the order of events.
    var onEvent: (@Sendable (PoolEvent) -> Void)?
    /// Receives the figures of decoding, and those of items that leave their players.
    var accountant: PoolAccountant?
  }

  let configuration: PoolConfiguration
  let resources: PoolResources
  let state: Locked<PoolState>
  let listeners = Locked(Listeners())
  let surface: OutputSurface
  /// The output for readers of `frames`.
  let frameSurface: OutputSurface
  /// Held while outputs of the window's players are called.
  let outputLock: OutputLock
  let posters: PosterStore
  /// Nil if what the pool fetches is not stored.
  let heads: HeadKeeper?
  let events: EventChannel<PoolEvent>
  let readiness: ObservedSource<[SlotReadiness]>
  /// The frames on show, for `frameStream`.
  let frames = EventChannel<VideoFrame>(bufferLimit: 1)
  /// Receives an event after each change that a caller may wait for.
  let changes = EventChannel<Void>(bufferLimit: 1)
  let emit: @Sendable (PoolEvent) -> Void
  private let taskLoop: TaskLoop
  private let opener: (any ConnectionOpening)?

  init(fetcher: any Fetching, configuration: PoolConfiguration, logger: Logger) {
    var configuration = configuration
    configuration.slotCount = max(1, configuration.slotCount)
    configuration.slotsForOtherFeeds = max(0, configuration.slotsForOtherFeeds)
    configuration.memoryLimit = configuration.memoryLimit.map { max(0, $0) }
    let outputLock = OutputLock()
    self.outputLock = outputLock
    configuration.player.outputLock = outputLock
    self.configuration = configuration
    let (clock, runtime) = (configuration.player.clock, configuration.player.runtime)
    let resources = PoolResources(
      gate: PriorityGate(permits: configuration.decodingPermits, runtime: runtime),
      decoders: configuration.maximumOpenDecoders.map { DecoderPermits(limit: $0) },
      network: PriorityFetcher(
        fetcher, clock: clock, maximumTransfers: configuration.maximumTransfers), logger: logger)
    self.resources = resources
    opener = fetcher as? any ConnectionOpening
    let (events, listeners) = (EventChannel<PoolEvent>(memory: 512), listeners)
    self.events = events
    let emit: @Sendable (PoolEvent) -> Void = { event in
      listeners.withLock { $0.onEvent }?(event)
      events.send(event)
      switch event {
      case .evicted(let id, _, _), .pinned(let id, .willStop): events.forget { $0.item == id }
      case .pinned(_, .didStop), .trimmed, .stored: events.forget { $0 == event }
      default: break
      }
    }
    self.emit = emit
    surface = OutputSurface(lock: outputLock, emit: emit)
    // Events concern only the program's own surface.
    frameSurface = OutputSurface(lock: outputLock) { _ in }
    let taskLoop = TaskLoop(named: "pool", runtime: runtime, clock: clock)
    self.taskLoop = taskLoop
    posters = PosterStore(network: resources.network, runtime: runtime, logger: logger) { taskLoop.wake() }
    heads = HeadKeeper(network: resources.network, configuration: configuration) { emit(.stored($0)) }
    let slots = 0..<configuration.slotCount + configuration.slotsForOtherFeeds
    readiness = ObservedSource(slots.map { SlotReadiness(slot: $0) })
    let players = slots.map { _ in
      PooledPlayer(resources, configuration: configuration)
    }
    var state = PoolState(players: players)
    state.isMuted = configuration.isMuted
    self.state = Locked(state, rank: .pool)
    taskLoop.setTurn { [weak self] in self?.turn() ?? .idle }
  }

  var clock: any MonotonicClock { configuration.player.clock }

  // MARK: Commands

  /// An index outside the snapshot changes nothing.
  ///
  /// - Parameter snapshot: Nil for the pool's items.
  func show(_ index: Int, of snapshot: FeedSnapshot?, phase: SwipePhase) -> Handover {
    let began = clock.now
    // The frame on show counts as shown since slightly earlier, so that the next one is not late because a
    // thread takes time to wake.
    let settled = began - configuration.player.runtime.wakeLatency
    let (item, slot): (FeedItem, PoolState.Slot?)
    do throws(ReelError) {
      (item, slot) = try state.withLock { state throws(ReelError) in
        guard !state.isClosed else { throw ReelError.closed }
        let snapshot = snapshot ?? state.snapshot
        let item = try snapshot.item(at: index)
        state.show(index, of: snapshot, phase, settled: settled, at: began)
        return (item, state.slot(of: item.id))
      }
    } catch { return Handover(error: error) }
    let frame = slot.flatMap { self.frame(of: $0) }
    var stage = slot?.load?.stage ?? .notLoaded
    if stage == .notLoaded, heads?.isOnDisk(item.id) == true { stage = .onDisk }
    // The frame or its stage may have arrived just now; report both consistently.
    if frame == nil { stage = min(stage, .initialization) } else { stage = max(stage, .firstFrame) }
    var failure: ReelError?
    // A temporary failure is retried.
    if case .failed(let error)? = slot?.load?.item.status.value, !error.isTemporary { failure = error }
    emit(.shown(item.id, phase, stage: stage))
    // Woken threads may take this thread's core, so wake none before the surface has the frame, and wait a
    // little while the caller handles it. The previous item is ended in a turn.
    followCurrent()
    releaseCurrent()
    let pause = min(configuration.player.runtime.wakeLatency, .milliseconds(1))
    wake(after: frame == nil ? .zero : pause)
    return Handover(frame: frame, stage: stage, duration: clock.now - began, error: failure) { [self] in
      try await firstFrame(of: item, since: began)
    }
  }

  func update(_ snapshot: FeedSnapshot, index: Int?) {
    let now = clock.now
    state.withLock { state in
      let known = index.flatMap { snapshot.items.indices.contains($0) ? $0 : nil }
      if state.setItems(snapshot, index: known) { (state.settledAt, state.watchedSince) = (now, now) }
    }
    followCurrent()
    releaseCurrent()
    wake()
  }

  func keepStarts(of items: [FeedItem]) {
    state.withLock { state in
      guard state.others != items else { return }
      state.others = items
      state.beginGeneration()
    }
    wake()
  }

  func setPlaying(_ isPlaying: Bool) {
    state.withLock { state in
      state.isPlaying = isPlaying
      state.settledAt = clock.now
      state.beginGeneration()
    }
    wake()
  }

  func setMuted(_ isMuted: Bool) {
    state.withLock { state in
      state.isMuted = isMuted
      state.beginGeneration()
    }
    wake()
  }

  func close() {
    let (slots, pinned) = state.withLock { state in
      state.isClosed ? ([], []) : (state.close(), state.pinned)
    }
    // There is at least one slot, so the pool was closed before.
    if slots.isEmpty { return }
    taskLoop.stop()
    // An output's error at its end is reported only to callers that remove it.
    try? surface.setOutput(nil) { nil }
    try? frameSurface.setOutput(nil) { nil }
    for entry in pinned { entry.stop() }
    let ends = slots.map { end($0) }
    // Also return the memory outside of all players' accounts.
    configuration.player.runtime.task {
      for end in ends { await end.value }
      MemoryAccount.purgeProcess()
    }
    posters.close()
    heads?.close()
    readiness.set(slotReadiness)
    events.finish()
    readiness.finish()
    frames.finish()
    changes.finish()
  }

  // MARK: The turn

  /// Brings the slots to what the latest swipe wants, then reports their progress.
  private func turn() -> TaskLoop.Next {
    while let plan = nextPlan() { carryOut(plan) }
    recordProgress()
    showPoster()
    return state.withLock { $0.nextTurn(at: clock.now) }
  }

  /// Returns a plan if one is due.
  private func nextPlan() -> PoolState.Plan? {
    let now = clock.now
    // Copied, so that the policy is called without the lock.
    guard let state = state.withLock({ $0.beginPlan(at: now) ? $0 : nil }) else { return nil }
    let plan = makePlan(state)
    self.state.withLock { $0.setReview(of: plan, at: now) }
    return plan
  }

  private func carryOut(_ plan: PoolState.Plan) {
    // The surface must not be on a player that is about to end.
    followCurrent()
    guard let assignment = state.withLock({ $0.assign(plan) }) else { return }
    // Existing items come first: the current one begins to play.
    for (slot, entry) in assignment.kept { direct(slot.player, entry.order) }
    for (slot, _) in assignment.kept { rewindIfLeft(slot.player) }
    directPinned()
    for (number, slot) in assignment.ended { evict(slot, number) }
    makeRoom(for: plan.growth)
    let awaited = itemAwaitingFrame?.poster
    // Before the item's media.
    if let awaited { posters.fetch(awaited, isAwaited: true) }
    for (number, player, entry) in assignment.begun {
      // Do not begin an item that a later swipe no longer wants.
      guard isCurrent(plan) else { break }
      begin(entry, in: player, number)
    }
    followCurrent()
    if let (id, error) = assignment.failure { listeners.withLock { $0.onFailure }?(id, error) }
    guard isCurrent(plan) else { return }
    if showsPosters { posters.keep(plan.entries.compactMap { $0.item.poster }, awaited: awaited) }
    openConnections(behind: plan)
    heads?.keep(plan.heads, in: plan.snapshot.feed)
  }

  private func isCurrent(_ plan: PoolState.Plan) -> Bool {
    state.withLock { $0.generation == plan.generation }
  }

  private func begin(_ entry: PoolState.Plan.Entry, in player: PooledPlayer, _ number: Int) {
    let id = entry.item.id
    emit(.assigned(id, slot: number))
    let load = PoolState.Load(
      feedItem: entry.item, item: PlayerItem(entry.item.source, headers: entry.item.headers),
      fetchedBefore: player.fetchedByteCount, storedBefore: player.storedByteCount, order: entry.order)
    state.withLock { state in
      if let place = state.slots.firstIndex(where: { $0.player === player }) {
        state.slots[place].load = load
      }
    }
    player.begin(load, observer: observer(of: id))
    // If the pool was closed meanwhile, `close` may have missed this item.
    if state.withLock({ $0.isClosed }) { end(PoolState.Slot(player: player, load: load)) }
  }

  /// Changes the rank, the target and playback of a player's item.
  private func direct(_ player: PooledPlayer, _ wanted: PoolState.Order) {
    let change = state.withLock { state in
      state.withLoad(of: player) { load in
        let old = load.order
        load.order = wanted.keepingStart(of: load)
        return (load, old)
      }
    }
    if let (load, old) = change { player.follow(load, before: old) }
  }

  /// Plays the items of picture in picture, regardless of the current item.
  private func directPinned() {
    for entry in state.withLock({ $0.pinned }) {
      guard let last = entry.slot.load?.order else { continue }
      entry.slot.player.pinDecoder()
      direct(
        entry.slot.player,
        PoolState.Order(
          index: last.index, rank: 0, target: nil, plays: true, since: clock.now, isMuted: last.isMuted))
    }
  }

  /// Puts an item that has ended and was left back to its start, if its order wants the first frame. The start is loaded
  /// and decoded again like a preload; its manifest, initialization and connection stay. An item that can't be sought stays
  /// at its end, and one that loops has none.
  private func rewindIfLeft(_ player: PooledPlayer) {
    guard player.player.canRewind else { return }
    // Before the player reports progress.
    let old = state.withLock { state in
      state.withLoad(of: player) { load -> PoolState.Load? in
        guard load.order.rank > 0, let target = load.order.target, target.stage >= .firstFrame else {
          return nil
        }
        let old = load
        load.rewoundStage = .initialization
        load.byteCountBeforeRewind = player.fetchedByteCount - load.fetchedBefore
        return old
      }
    }
    guard let old = old ?? nil else { return }
    guard player.player.rewind() else {
      state.withLock { state in
        _ = state.withLoad(of: player) { load in
          load.rewoundStage = nil
          load.byteCountBeforeRewind = old.byteCountBeforeRewind
        }
      }
      return
    }
    if let accountant = listeners.withLock({ $0.accountant }) {
      accountant.rewound(
        old.feedItem.id,
        PoolAccountant.Departure(
          fetchedByteCount: player.fetchedByteCount - old.fetchedBefore,
          statistics: player.player.statisticsWithoutUnshown))
    }
    recordChange()
  }

  // MARK: - Private

  func wake(after pause: Duration = .zero) { taskLoop.wake(after: pause) }

  /// Something has changed that a plan may depend on.
  private func recordChange() {
    let now = clock.now
    if state.withLock({ $0.recordChange(at: now) }) { wake() }
  }

  /// Ends the work for an item that has left the window.
  func evict(_ slot: PoolState.Slot, _ number: Int) {
    guard let load = slot.load else { return }
    let stage = load.stage
    end(slot)
    emit(.evicted(load.feedItem.id, slot: number, stage))
  }

  /// Ends a player's work, and reports its figures.
  @discardableResult
  func end(_ slot: PoolState.Slot) -> Task<Void, Never> {
    if let accountant = listeners.withLock({ $0.accountant }), let load = slot.load {
      accountant.departed(
        load.feedItem.id,
        PoolAccountant.Departure(
          fetchedByteCount: slot.fetchedByteCount, statistics: slot.player.player.statistics))
    }
    return slot.player.end()
  }

  /// Continues the current item from its held frame. The surface has moved before, so that it misses no
  /// frame. With the state locked, so that of two simultaneous swipes neither releases a player that the
  /// other has held.
  private func releaseCurrent() { state.withLock { $0.target?.player.player.release() } }

  /// Moves the surface, and the output for readers, to the current item's player.
  func followCurrent() {
    surface.follow { state.withLock { $0.target } }
    frameSurface.follow { state.withLock { $0.target } }
  }

  /// Returns the handler for signals of the player of an item.
  private func observer(of id: FeedItem.ID) -> @Sendable (PlayerItem, PlayerSignal) -> Void {
    { [weak self] item, signal in
      guard let self else { return }
      switch signal {
      case .decoded(let count):
        listeners.withLock { $0.accountant }?.decoded(id, count)
        return
      case .event(let event, let source):
        // Ignore events of the player's previous item.
        guard source == nil || source === item else { return }
        emit(.player(id, event))
        if case .failed(let error) = event {
          recordChange()
          listeners.withLock { $0.onFailure }?(id, error)
        }
      case .progressed:
        // Recorded before waiting callers check.
        let isNews = state.withLock { state in
          state.recordFirstFrame(of: item, at: clock.now)
          return state.recordRewind(of: item)
        }
        if isNews { recordChange() }
      case .filled:
        let isNews = state.withLock { $0.recordRewind(of: item) }
        recordChange()
        guard isNews else { return }
      }
      wake()
    }
  }

  /// Opens connections to the hosts of the next items beyond the window of a plan, in the feed of that plan: the pool
  /// may have got another one by now.
  private func openConnections(behind plan: PoolState.Plan) {
    guard let opener else { return }
    let (items, window) = (plan.snapshot.items, plan.indices)
    let count = max(0, configuration.connectionsAhead)
    let next =
      plan.direction > 0
      ? Array(items[window.upperBound...].prefix(count))
      : items[..<window.lowerBound].suffix(count).reversed()
    var hosts = Set(items[window].compactMap(\.host))
    for item in next {
      guard let host = item.host, case .url(let url) = item.source, hosts.insert(host).inserted else {
        continue
      }
      opener.openConnection(to: url)
    }
  }
}

extension FeedItem {
  /// The scheme, host and port of its first request; nil if it is not on the network.
  var host: String? {
    guard case .url(let url) = source, !url.isFileURL, let host = url.host else { return nil }
    return "\(url.scheme ?? "")://\(host):\(url.port ?? 0)"
  }
}

/// The frames of the current item, for readers, and its poster until its first frame is ready.
extension PoolCore {
  /// A stream for a new reader: the frame on show, then each frame when it is due. A slow reader gets only
  /// the newest.
  var frameStream: AsyncStream<VideoFrame> {
    // Under one lock, so that no frame comes in between.
    outputLock.withLock {
      // Attach only for the first reader, because a player without outputs holds less memory.
      if !frameSurface.hasOutput {
        let output = CallbackOutput { [frames] in frames.send($0) }
        try? frameSurface.setOutput(output) { state.withLock { $0.target } }
      }
      let shown = state.withLock { $0.currentSlot }.flatMap { $0.id == frameSurface.id ? frame(of: $0) : nil }
      return frames.events(after: shown)
    }
  }

  /// Returns the frame on show of a slot's item; nil before the first, and if the player has another item by now.
  func frame(of slot: PoolState.Slot) -> VideoFrame? {
    guard let load = slot.load else { return nil }
    var frame = slot.player.player.currentFrame(of: load.item)
    frame?.item = load.feedItem.id
    return frame
  }

  /// True if posters are wanted, and there is a surface to show them on.
  private var showsPosters: Bool { configuration.showsPosters && surface.hasOutput }

  /// The current item while no frame of it is shown, if its poster may be.
  private var itemAwaitingFrame: FeedItem? {
    guard showsPosters else { return nil }
    return state.withLock { state in
      guard state.target?.player.player.hasFrame != true, !state.isPinned(state.currentItem?.id) else {
        return nil
      }
      return state.currentItem
    }
  }

  /// Shows the poster of the current item if it is decoded and no frame is shown yet.
  private func showPoster() {
    guard let item = itemAwaitingFrame, let url = item.poster, surface.wantsPoster(of: item.id),
      let poster = posters.takeFrame(of: url)
    else { return }
    surface.show(poster, of: item.id) {
      state.withLock { $0.currentItem?.id == item.id && $0.target?.player.player.hasFrame != true }
    }
  }
}
