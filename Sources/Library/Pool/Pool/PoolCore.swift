internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The implementation of `PlayerPool`, which its task loops reference weakly.
///
/// A swipe (`show`) records the wanted state and returns the frame that is ready. The slots change in the
/// turns of one task loop (`reconcile`). A turn brings them to the state of the latest swipe, and starts over
/// if another swipe comes meanwhile.
///
/// A swipe is a call, not a message to an actor: it returns the frame within the call. With an actor the
/// frame would come a hop later, and fifty swipes would be fifty messages to process.
final class PoolCore: Sendable {
  struct State: Sendable {
    var snapshot = FeedSnapshot(feed: "", items: [])
    /// The index of the current item; nil if there is none.
    var index: Int?
    /// The direction of the last swipe: 1 or -1.
    var direction = 1
    var phase = SwipePhase.settled
    var isPlaying = true
    /// The time at which playback of the current item was requested, by the clock.
    var settledAt = Duration.zero
    /// The time at which the current item became current, or its swipe settled, by the clock.
    var watchedSince = Duration.zero
    var history = ViewingHistory()
    /// The time at which the last planning turn began, by the clock.
    var plannedAt: Duration?
    /// The time of the next plan even without a command; nil for none.
    var reviewAt: Duration?
    /// True if the plan depends on how much items have loaded.
    var followsProgress = false
    /// The generation of the wanted state. A turn that finds a later one starts over.
    var generation = 0
    /// The players, by slot.
    var slots: [PooledPlayer]
    /// Items in picture in picture, each with its own player.
    var pinned: [PinnedEntry] = []
    /// The number of the window's entries that are kept after a call of `trim`; nil for all.
    var keptCount: Int?
    var costs = StageCosts()
    /// The maximum memory that decoding of a current item has taken beyond its preload.
    var decodingByteCount = 0
    /// The memory that the pool holds, for its memory limit: the maximum since it last held much less.
    var heldByteCount = 0
    var isClosed = false
    /// True if the current item has been shown since the last turn. If it had failed, it is retried or
    /// reported again.
    var isShownAnew = false
    var onFailure: (@Sendable (FeedItem.ID, ReelError) -> Void)?

    var currentItem: FeedItem? { index.map { snapshot.items[$0] } }
    func player(of id: FeedItem.ID) -> PooledPlayer? { slots.first { $0.id == id } }
    /// The player and the id of the current item.
    var target: OutputSurface.Target? {
      guard let id = currentItem?.id, let player = player(of: id) else { return nil }
      return (player, id)
    }
    func isPinned(_ id: FeedItem.ID?) -> Bool { pinned.contains { $0.id == id } }
  }

  struct PinnedEntry: Sendable {
    let id: FeedItem.ID
    let player: PooledPlayer
    /// A closure that ends picture in picture, if it still exists.
    let stop: @Sendable () -> Void
  }

  /// The pool's task loops.
  private struct TaskLoops: Sendable {
    /// Brings the slots to the wanted state.
    let reconcile: TaskLoop
    /// Reports the progress of the slots.
    let progress: TaskLoop
    /// Decodes posters.
    let poster: TaskLoop
    /// Makes a new plan when it is time.
    let review: TaskLoop

    var all: [TaskLoop] { [reconcile, progress, poster, review] }
  }

  let configuration: PoolConfiguration
  let resources: PoolResources
  let state: Locked<State>
  let surface: OutputSurface
  /// The output for readers of `frames`.
  let frameSurface: OutputSurface
  /// Held while outputs of the window's players are called.
  let outputLock: OutputLock
  let posters: PosterStore
  let events: EventChannel<PoolEvent>
  let readiness: ObservedProperty<[SlotReadiness]>
  /// The frames on show, for `frameStream`.
  let frames = EventChannel<VideoFrame>(bufferLimit: 1)
  /// Receives an event after each change that a caller may wait for.
  let changes = EventChannel<Void>(bufferLimit: 1)
  /// Called at once, on any thread, in the order of events.
  let observer = Locked(Callback<PoolEvent>())
  /// Receives the figures of decoding, and those of items that leave their players.
  let accountant = Locked<PoolAccountant?>(nil)
  let emit: @Sendable (PoolEvent) -> Void
  private let taskLoops = Locked<TaskLoops?>(nil)
  private let opener: (any ConnectionOpening)?

  init(fetcher: any Fetching, configuration: PoolConfiguration, logger: Logger) {
    var configuration = configuration
    configuration.slotCount = max(1, configuration.slotCount)
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
    let events = EventChannel<PoolEvent>()
    self.events = events
    let observer = observer
    let emit: @Sendable (PoolEvent) -> Void = { event in
      observer.withLock { $0.call }?(event)
      events.send(event)
    }
    self.emit = emit
    surface = OutputSurface(lock: outputLock, emit: emit)
    // Events concern only the program's own surface.
    frameSurface = OutputSurface(lock: outputLock) { _ in }
    let taskLoops = taskLoops
    // Ranked after the current item, with the first preload.
    posters = PosterStore(fetcher: resources.network.makeSlot(rank: 1), runtime: runtime) {
      taskLoops.withLock { $0 }?.poster.wake()
    }
    readiness = ObservedProperty((0..<configuration.slotCount).map { SlotReadiness(slot: $0) })
    state = Locked(
      State(
        slots: (0..<configuration.slotCount).map { _ in PooledPlayer(resources, configuration: configuration)
        }), rank: .pool)
    let made = TaskLoops(
      reconcile: TaskLoop(named: "pool", runtime: runtime, clock: clock) { [weak self] in
        self?.reconcile()
        return .idle
      },
      progress: TaskLoop(named: "pool-progress", runtime: runtime, clock: clock) { [weak self] in
        self?.recordProgress()
        return .idle
      },
      poster: TaskLoop(named: "pool-poster", runtime: runtime, clock: clock) { [weak self] in
        self?.showPoster()
        return .idle
      },
      review: TaskLoop(named: "pool-review", runtime: runtime, clock: clock) { [weak self] in
        self?.review() ?? .idle
      })
    taskLoops.withLock { $0 = made }
  }

  // MARK: Commands

  func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase) throws(ReelError) -> Handover {
    let clock = configuration.player.clock
    let began = clock.now
    let item = try item(index, of: snapshot)
    // The frame on show counts as shown since slightly earlier, so that the next one is not late because a
    // thread takes time to wake.
    let settled = began - configuration.player.runtime.wakeLatency
    let player = state.withLock { state in
      state.setDirection(to: index, of: snapshot)
      let (isFirst, watched) = (state.currentItem == nil, state.watchedDuration(at: began))
      let isOther = state.setItems(snapshot, index: index)
      if isOther, !isFirst {
        state.history.record(
          ViewingHistory.Swipe(watchedDuration: watched, isForward: state.direction > 0))
      }
      // An item that is playing continues when a drag returns to it.
      if isOther || state.phase == .dragEnded {
        state.phase = phase
        state.settledAt = settled
        state.watchedSince = began
      }
      state.isShownAnew = true
      return state.player(of: item.id)
    }
    let frame = player.flatMap { self.frame(of: ($0, item.id)) }
    let load = player?.load
    var stage = load?.stage ?? .none
    // The frame or its stage may have arrived just now; report both consistently.
    if frame == nil { stage = min(stage, .initialization) } else { stage = max(stage, .firstFrame) }
    var failure: ReelError?
    // A temporary failure is retried.
    if case .failed(let error)? = load?.item.status.value, !error.isTemporary { failure = error }
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

  /// Like `show(_:of:phase:)`, for the current feed. An index outside the feed changes nothing.
  func show(_ index: Int, phase: SwipePhase) -> Handover {
    do throws(ReelError) {
      return try show(index, of: state.withLock { $0.snapshot }, phase: phase)
    } catch {
      return Handover(frame: nil, stage: .none, duration: .zero, error: error)
    }
  }

  /// Throws `usage` for an index outside the snapshot.
  func item(_ index: Int, of snapshot: FeedSnapshot) throws(ReelError) -> FeedItem {
    guard snapshot.items.indices.contains(index) else {
      throw ReelError(
        .usage,
        snapshot.items.isEmpty
          ? "the feed \(snapshot.feed) has no items"
          : "the feed \(snapshot.feed) has no item \(index): its \(snapshot.items.count) items count from 0")
    }
    return snapshot.items[index]
  }

  func update(_ snapshot: FeedSnapshot, index: Int?) {
    let now = configuration.player.clock.now
    state.withLock { state in
      let known = index.flatMap { snapshot.items.indices.contains($0) ? $0 : nil }
      if state.setItems(snapshot, index: known) { (state.settledAt, state.watchedSince) = (now, now) }
    }
    followCurrent()
    releaseCurrent()
    wake()
  }

  func setPlaying(_ isPlaying: Bool) {
    state.withLock { state in
      state.isPlaying = isPlaying
      state.settledAt = configuration.player.clock.now
      state.generation += 1
    }
    wake()
  }

  func close() {
    let (wasClosed, slots, pinned) = state.withLock { state in
      defer { state.isClosed = true }
      state.index = nil
      state.generation += 1
      return (state.isClosed, state.slots, state.pinned)
    }
    if wasClosed { return }
    for taskLoop in taskLoops.withLock({ $0 })?.all ?? [] { taskLoop.stop() }
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
    readiness.set(slotReadiness)
    events.finish()
    readiness.finish()
    frames.finish()
    changes.finish()
  }

  // MARK: - Private

  func wake(after pause: Duration = .zero) { taskLoops.withLock { $0 }?.reconcile.wake(after: pause) }

  func wakeReview() { taskLoops.withLock { $0 }?.review.wake() }

  func wakeProgress() { taskLoops.withLock { $0 }?.progress.wake() }

  func wakePoster() {
    if configuration.showsPosters { taskLoops.withLock { $0 }?.poster.wake() }
  }

  func send(_ event: PoolEvent) { emit(event) }

  /// Ends a player's work, and reports its figures.
  @discardableResult
  func end(_ player: PooledPlayer, _ load: PooledPlayer.Load? = nil) -> Task<Void, Never> {
    if let accountant = accountant.withLock({ $0 }), let load = load ?? player.load {
      accountant.departed(
        load.feedItem.id,
        PoolAccountant.Departure(
          fetchedByteCount: player.fetchedByteCount(since: load), statistics: player.player.statistics))
    }
    return player.end()
  }

  /// Called when an item that has ended and was left is back at its start, which loads again.
  func recordRewind(of item: FeedItem, _ player: PooledPlayer) {
    if let accountant = accountant.withLock({ $0 }), let load = player.load {
      accountant.rewound(
        item.id,
        PoolAccountant.Departure(
          fetchedByteCount: load.byteCountBeforeRewind, statistics: player.player.statisticsWithoutUnshown))
    }
    recordChange()
    wakeProgress()
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
  func observer(of id: FeedItem.ID) -> @Sendable (PlayerItem, PlayerSignal) -> Void {
    { [weak self] item, signal in
      guard let self else { return }
      switch signal {
      case .decoded(let count):
        accountant.withLock { $0 }?.decoded(id, count)
        return
      case .event(let event, let source):
        // Ignore events of the player's previous item.
        guard source == nil || source === item else { return }
        emit(.player(id, event))
        if case .failed(let error) = event {
          recordChange()
          state.withLock { $0.onFailure }?(id, error)
        }
      case .progressed:
        // Recorded before waiting callers check.
        let player = state.withLock { $0.player(of: id) }
        player?.recordFirstFrame(of: item)
        if player?.recordRewind(of: item) == true { recordChange() }
      case .filled:
        let isNews = state.withLock { $0.player(of: id) }?.recordRewind(of: item) ?? false
        recordChange()
        guard isNews else { return }
      }
      wakeProgress()
    }
  }

  /// Opens connections to the hosts of the next items beyond the window.
  func openConnections(behind indices: Range<Int>, of snapshot: FeedSnapshot, direction: Int) {
    guard let opener, configuration.connectionsAhead > 0 else { return }
    let known = Set(snapshot.items[indices].compactMap(\.host))
    let next = (1...configuration.connectionsAhead).map {
      direction > 0 ? indices.upperBound - 1 + $0 : indices.lowerBound - $0
    }
    var hosts: [String] = []
    for index in next where snapshot.items.indices.contains(index) {
      let item = snapshot.items[index]
      guard let host = item.host, case .url(let url) = item.source, !known.contains(host),
        !hosts.contains(host)
      else { continue }
      hosts.append(host)
      opener.openConnection(to: url)
    }
  }
}

extension PoolCore.State {
  /// Sets the direction of a swipe to an index, seen from the current item's position in the new snapshot.
  fileprivate mutating func setDirection(to next: Int, of new: FeedSnapshot) {
    guard new.feed == snapshot.feed else {
      direction = 1
      return
    }
    guard let index, let id = currentItem?.id else { return }
    let isThere = new.items.indices.contains(index) && new.items[index].id == id
    let old = isThere ? index : new.items.firstIndex { $0.id == id } ?? index
    if old != next { direction = next > old ? 1 : -1 }
  }

  /// - Returns: True if the current item has changed.
  fileprivate mutating func setItems(_ new: FeedSnapshot, index newIndex: Int?) -> Bool {
    let (old, oldPlayer) = (currentItem?.id, target?.player)
    snapshot = new
    index = newIndex
    generation += 1
    guard currentItem?.id != old else { return false }
    keptCount = nil
    // The previous item stays at its last frame, because the turn that pauses it may come later.
    oldPlayer?.player.hold()
    return true
  }
}

extension FeedItem {
  /// The scheme, host and port of its first request; nil if it is not on the network.
  var host: String? {
    guard case .url(let url) = source, !url.isFileURL, let host = url.host else { return nil }
    return "\(url.scheme ?? "")://\(host):\(url.port ?? 0)"
  }
}

/// Bringing the slots to the wanted state.
extension PoolCore {
  /// The wanted state of the slots.
  struct Plan {
    struct Entry {
      let item: FeedItem
      let order: PooledPlayer.Order
    }

    let generation: Int
    let snapshot: FeedSnapshot
    let direction: Int
    let indices: Range<Int>
    let entries: [Entry]
    /// The bytes by which the pool's memory is expected to grow; 0 without a memory limit.
    var growth = 0
    /// The time until the next plan if nothing changes; nil for none.
    var reviewInterval: Duration?
    var followsProgress = false
  }

  /// The changes to the slots.
  private struct Assignment {
    typealias Place = (slot: Int, player: PooledPlayer)

    /// Items that keep their players.
    var kept: [(player: PooledPlayer, entry: Plan.Entry)] = []
    /// Items that leave their players.
    var ended: [(place: Place, load: PooledPlayer.Load)] = []
    /// Items that are assigned to players.
    var begun: [(place: Place, entry: Plan.Entry)] = []
    /// The current item was shown again although it had failed.
    var failure: (id: FeedItem.ID, error: ReelError)?
    var pinned: [PooledPlayer] = []
  }

  /// Runs one turn, which ends when the slots are in the state of the latest swipe.
  func reconcile() {
    while let plan = nextPlan() {
      // The surface must not be on a player that is about to end.
      followCurrent()
      guard let assignment = assign(plan) else { continue }
      // Existing items come first: the current one begins to play.
      for (player, entry) in assignment.kept { player.direct(entry.order) }
      for (player, entry) in assignment.kept where player.rewindIfLeft() {
        recordRewind(of: entry.item, player)
      }
      for player in assignment.pinned { player.directPinned() }
      for (place, load) in assignment.ended {
        let stage = load.stage
        end(place.player, load)
        send(.evicted(load.feedItem.id, slot: place.slot, stage))
      }
      makeRoom(for: plan.growth)
      for (place, entry) in assignment.begun {
        // Do not begin an item that a later swipe no longer wants.
        guard isCurrent(plan) else { break }
        begin(entry, at: place)
      }
      followCurrent()
      if let (id, error) = assignment.failure { state.withLock { $0.onFailure }?(id, error) }
      guard isCurrent(plan) else { continue }
      if configuration.showsPosters { posters.keep(plan.entries.compactMap { $0.item.poster }) }
      openConnections(behind: plan.indices, of: plan.snapshot, direction: plan.direction)
      wakePoster()
      wakeProgress()
      if isCurrent(plan) { return }
    }
  }

  // MARK: - Private

  /// Returns the current plan; nil if the pool is closed.
  func makePlan() -> Plan? {
    // Copied, so that the policy is called without the lock.
    let state = state.withLock { $0 }
    guard !state.isClosed else { return nil }
    guard let index = state.index else {
      return Plan(
        generation: state.generation, snapshot: state.snapshot, direction: state.direction, indices: 0..<0,
        entries: [])
    }
    let situation = situation(state, index: index)
    let preload = configuration.policy.plan(in: situation)
    let window = PoolWindow(preload, in: situation)
    var entries: [Plan.Entry] = []
    for (rank, entry) in window.entries.prefix(state.keptCount ?? .max).enumerated() {
      let item = state.snapshot.items[entry.index]
      guard !state.isPinned(item.id) else { continue }
      let isPlayed = entry.distance == 0 && state.phase == .settled
      let target = entry.distance == 0 ? entry.target.bounded(by: preload.current) : entry.target
      var order = PooledPlayer.Order(
        index: entry.index, rank: rank, target: isPlayed ? nil : target,
        plays: isPlayed && state.isPlaying, since: state.settledAt)
      if isPlayed { order.bounds = preload.current }
      order.beginAt(
        configuration.firstRung.peakBitRate(
          isAwaited: entry.distance == 0, throughput: situation.throughput,
          start: configuration.player.thresholds.start))
      entries.append(Plan.Entry(item: item, order: order))
    }
    let (limited, growth) = withinMemory(entries, state)
    return Plan(
      generation: state.generation, snapshot: state.snapshot, direction: state.direction,
      indices: window.indices, entries: limited, growth: growth, reviewInterval: preload.reviewInterval,
      followsProgress: preload.followsProgress)
  }

  private func isCurrent(_ plan: Plan) -> Bool { state.withLock { $0.generation == plan.generation } }

  /// Assigns a player to each entry. A player that has the item moves to the slot of its index. All changes
  /// are one step, so that a swipe finds either the old state or the new one. Returns nil if another plan is
  /// needed.
  private func assign(_ plan: Plan) -> Assignment? {
    state.withLock { state in
      guard state.generation == plan.generation else { return nil }
      var assignment = Assignment()
      assignment.pinned = state.pinned.map(\.player)
      let isShown = state.isShownAnew
      state.isShownAnew = false
      for (slot, player) in state.slots.enumerated() {
        guard let load = player.load else { continue }
        if isShown, load.feedItem.id == state.currentItem?.id,
          case .failed(let error) = load.item.status.value
        {
          // A temporary failure is retried.
          if !error.isTemporary {
            assignment.failure = (load.feedItem.id, error)
            continue
          }
        } else if let entry = plan.entries.first(where: { $0.item.id == load.feedItem.id }),
          !entry.order.givesBack(load)
        {
          continue
        }
        player.forget()
        assignment.ended.append(((slot, player), load))
      }
      for entry in plan.entries {
        let slot = entry.order.index % configuration.slotCount
        // Other items were removed, so the item's index has changed. Its player moves to the new slot.
        if let place = state.slots.firstIndex(where: { $0.id == entry.item.id }), place != slot {
          state.slots.swapAt(place, slot)
        }
      }
      for entry in plan.entries {
        let slot = entry.order.index % configuration.slotCount
        let player = state.slots[slot]
        if player.id == entry.item.id {
          assignment.kept.append((player, entry))
        } else {
          assignment.begun.append(((slot, player), entry))
        }
      }
      return assignment
    }
  }

  private func begin(_ entry: Plan.Entry, at place: Assignment.Place) {
    send(.assigned(entry.item.id, slot: place.slot))
    place.player.begin(entry.item, entry.order, observer: observer(of: entry.item.id))
    // If the pool was closed meanwhile, `close` may have missed this item.
    if state.withLock({ $0.isClosed }) { end(place.player) }
  }
}

/// The frames of the current item, for readers.
extension PoolCore {
  /// A stream for a new reader: the frame on show, then each frame when it is due. A slow reader gets only
  /// the newest.
  var frameStream: AsyncStream<VideoFrame> {
    // Under one lock, so that no frame comes in between.
    outputLock.withLock {
      // Attach only for the first reader, because a player without outputs holds less memory.
      if !frameSurface.hasOutput {
        try? frameSurface.setOutput(makeFrameOutput()) { state.withLock { $0.target } }
      }
      let shown = state.withLock { $0.target }.flatMap { $0.id == frameSurface.id ? frame(of: $0) : nil }
      return frames.events(after: shown)
    }
  }

  private func makeFrameOutput() -> CallbackOutput {
    CallbackOutput { [frames, weak frameSurface] frame in
      // Without readers, no frame is kept.
      guard frames.observerCount > 0, let id = frameSurface?.id, let copy = try? frame.clone() else {
        return
      }
      frames.send(VideoFrame(copy, item: id))
    }
  }
}

/// Showing an item's poster until its first frame is ready.
extension PoolCore {
  /// Shows the poster of the current item if it has been fetched and no frame is shown yet.
  func showPoster() {
    let item = state.withLock { state -> FeedItem? in
      guard state.target?.player.hasFrame != true, !state.isPinned(state.currentItem?.id) else {
        return nil
      }
      return state.currentItem
    }
    guard let item, let url = item.poster, surface.wantsPoster(of: item.id),
      let bytes = posters.bytes(of: url),
      let image = try? StillImage(decoding: bytes, name: url.absoluteString, logger: resources.logger),
      let decoded = try? image.frame.clone()
    else { return }
    let frame = TimedFrame(decoded, time: .zero, stream: image.stream, frameRate: nil)
    surface.show(frame, of: item.id) {
      state.withLock { $0.currentItem?.id == item.id && $0.target?.player.hasFrame != true }
    }
  }
}
