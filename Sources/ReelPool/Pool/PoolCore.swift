internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The workings of a `PlayerPool`, which its task loop can hold on to weakly.
///
/// A swipe (`show`) notes what is wanted and hands over what is there. What follows from it, slots that change their
/// items, is done in the turns of one task loop (`reconcile`): however many swipes come in between, a turn brings the slots to
/// what the latest one wants, and begins anew where another comes meanwhile.
///
/// A swipe is a call, not a message to an actor: it hands over what is there within the call. With an actor the frame
/// would come a hop later, and fifty swipes would be fifty messages to work off.
final class PoolCore: Sendable {
  struct State: Sendable {
    var snapshot = FeedSnapshot(feed: "", items: [])
    /// Of the current item; nil before there is one.
    var index: Int?
    /// Where the last swipe went: 1 or -1.
    var direction = 1
    var phase = SwipePhase.settled
    var isPlaying = true
    /// When the current item was wanted to play, by the clock.
    var settledAt = Duration.zero
    /// Of what is wanted: a turn that began with an earlier one begins anew.
    var generation = 0
    /// The players, by slot.
    var slots: [PooledPlayer]
    /// Items that are shown by a player of their own.
    var pinned: [PinnedEntry] = []
    /// So many of the window's entries are kept, after memory was to be given back; nil for all.
    var keptCount: Int?
    var costs = StageCosts()
    /// The most that a current item was seen to take for decoding, beyond what it has as a preload.
    var decodingByteCount = 0
    var isClosed = false
    /// The current item has been swiped to since the last turn: where it has failed before, it is tried again, or
    /// reported again.
    var isShownAnew = false
    var onFailure: (@Sendable (FeedItem.ID, ReelError) -> Void)?

    var currentItem: FeedItem? { index.map { snapshot.items[$0] } }
    func player(of id: FeedItem.ID) -> PooledPlayer? { slots.first { $0.id == id } }
    /// The current item's player, and the item's identity.
    var target: OutputSurface.Target? {
      guard let id = currentItem?.id, let player = player(of: id) else { return nil }
      return (player, id)
    }
    func isPinned(_ id: FeedItem.ID?) -> Bool { pinned.contains { $0.id == id } }
  }

  struct PinnedEntry: Sendable {
    let id: FeedItem.ID
    let player: PooledPlayer
    /// Ends it, where it is still there.
    let stop: @Sendable () -> Void
  }

  /// Each does one thing at a time.
  private struct TaskLoops: Sendable {
    /// Brings the slots to what is wanted.
    let reconcile: TaskLoop
    /// Tells how far they have come.
    let progress: TaskLoop
    /// Decodes posters.
    let poster: TaskLoop

    var all: [TaskLoop] { [reconcile, progress, poster] }
  }

  let configuration: PoolConfiguration
  let resources: PoolResources
  let state: Locked<State>
  let surface: OutputSurface
  /// Where the readers of `frames` get theirs.
  let frameSurface: OutputSurface
  /// What all outputs of the window's players are called with.
  let outputLock: OutputLock
  let posters: PosterStore
  let events: EventChannel<PoolEvent>
  let readiness: ObservedProperty<[SlotReadiness]>
  /// Each frame that is shown, for `frameStream`.
  let frames = EventChannel<VideoFrame>(bufferLimit: 1)
  /// Told when something may have changed that somebody waits for.
  let changes = EventChannel<Void>(bufferLimit: 1)
  /// Told at once, on any thread, and in the order of what happens.
  let observer = Locked(Callback<PoolEvent>())
  /// Told of each frame that is decoded, and of what an item has come to when it leaves its player.
  let accountant = Locked<PoolAccountant?>(nil)
  let emit: @Sendable (PoolEvent) -> Void
  private let taskLoops = Locked<TaskLoops?>(nil)
  private let opener: (any ConnectionOpening)?

  init(fetcher: any Fetching, configuration: PoolConfiguration, logger: Logger) {
    var configuration = configuration
    configuration.slotCount = max(1, configuration.slotCount)
    let outputLock = OutputLock()
    self.outputLock = outputLock
    configuration.player.outputLock = outputLock
    self.configuration = configuration
    let (clock, runtime) = (configuration.player.clock, configuration.player.runtime)
    let permits = configuration.decodingPermits ?? ProcessInfo.processInfo.activeProcessorCount
    let resources = PoolResources(
      gate: PriorityGate(
        permits: permits, cost: configuration.decodeCost, clock: clock, runtime: runtime),
      network: PriorityFetcher(fetcher, clock: clock), logger: logger)
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
    // Events tell of the program's own surface.
    frameSurface = OutputSurface(lock: outputLock) { _ in }
    let taskLoops = taskLoops
    // After the current item, with the first of the preloads.
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
        self?.noteProgress()
        return .idle
      },
      poster: TaskLoop(named: "pool-poster", runtime: runtime, clock: clock) { [weak self] in
        self?.showPoster()
        return .idle
      })
    taskLoops.withLock { $0 = made }
  }

  // MARK: Commands

  func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase) throws(ReelError) -> Handover {
    let clock = configuration.player.clock
    let began = clock.now
    let item = try item(index, of: snapshot)
    // The frame that is found has had a little of its time: the next one is not late by what a thread takes to wake.
    let settled = began - configuration.player.runtime.wakeAllowance
    let player = state.withLock { state in
      state.setDirection(to: index, of: snapshot)
      // What plays plays on where a drag comes back to it.
      if state.setItems(snapshot, index: index) || state.phase == .dragEnded {
        state.phase = phase
        state.settledAt = settled
      }
      state.isShownAnew = true
      return state.player(of: item.id)
    }
    let frame = player.flatMap { self.frame(of: ($0, item.id)) }
    let load = player?.load
    var stage = load?.item.preloadStage.value ?? .none
    // The frame may have come, or its stage been reached, just now: what is said of both is the same.
    if frame == nil { stage = min(stage, .initialization) } else { stage = max(stage, .firstFrame) }
    var failure: ReelError?
    // What may pass is tried again.
    if case .failed(let error)? = load?.item.status.value, !error.isTemporary { failure = error }
    emit(.shown(item.id, phase, stage: stage))
    // What is woken may take this thread's core: nothing is before the surface has the frame, and who has it in hand is
    // left alone a while. What the item before does is ended in a turn.
    followCurrent()
    releaseCurrent()
    wake(after: frame == nil ? .zero : configuration.player.runtime.returnAllowance)
    return Handover(frame: frame, stage: stage, duration: clock.now - began, error: failure) { [self] in
      try await firstFrame(of: item, since: began)
    }
  }

  /// As the other, of the feed that there is. An index that it does not have changes nothing.
  func show(_ index: Int, phase: SwipePhase) -> Handover {
    do throws(ReelError) {
      return try show(index, of: state.withLock { $0.snapshot }, phase: phase)
    } catch {
      return Handover(frame: nil, stage: .none, duration: .zero, error: error)
    }
  }

  /// Throws `usage` for an index that the snapshot does not have.
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
      if state.setItems(snapshot, index: known) { state.settledAt = now }
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
    // What its end throws is for those who take it away themselves.
    try? surface.setOutput(nil) { nil }
    try? frameSurface.setOutput(nil) { nil }
    for entry in pinned { entry.stop() }
    let ends = slots.map { end($0) }
    // And what lay in none of the players' accounts.
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

  func wakeProgress() { taskLoops.withLock { $0 }?.progress.wake() }

  func wakePoster() {
    if configuration.showsPosters { taskLoops.withLock { $0 }?.poster.wake() }
  }

  func send(_ event: PoolEvent) { emit(event) }

  /// Ends what a player does, and says what came of it.
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

  /// The current item goes on where it had been left: nothing of it before the surface is there. With the state locked, so
  /// that of two swipes at once none releases what the other one has left.
  private func releaseCurrent() { state.withLock { $0.target?.player.player.release() } }

  /// The surface, and the readers of frames, go where the current item is.
  func followCurrent() {
    surface.follow { state.withLock { $0.target } }
    frameSurface.follow { state.withLock { $0.target } }
  }

  /// Gets told what happens in the player of an item.
  func observer(of id: FeedItem.ID) -> @Sendable (PlayerItem, PlayerSignal) -> Void {
    { [weak self] item, signal in
      guard let self else { return }
      switch signal {
      case .decoded(let count):
        accountant.withLock { $0 }?.decoded(id, count)
        return
      case .event(let event, let source):
        // Not of the item that the player had before.
        guard source == nil || source === item else { return }
        emit(.player(id, event))
        if case .failed(let error) = event { state.withLock { $0.onFailure }?(id, error) }
      case .progressed:
        // Before anybody looks.
        state.withLock { $0.player(of: id) }?.noteFirstFrame(of: item)
      }
      wakeProgress()
    }
  }

  /// Opens connections to the hosts of the items that come behind the window.
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
  /// The way of travel to an index: by where the current item is in the new snapshot.
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

  /// - Returns: True where the current item is another one now.
  fileprivate mutating func setItems(_ new: FeedSnapshot, index newIndex: Int?) -> Bool {
    let (old, oldPlayer) = (currentItem?.id, target?.player)
    snapshot = new
    index = newIndex
    generation += 1
    guard currentItem?.id != old else { return false }
    keptCount = nil
    // What is left stays at the frame that was seen last; the turn that pauses it may be some time away.
    oldPlayer?.player.hold()
    return true
  }
}

extension FeedItem {
  /// Where its first request goes; nil for what is not on a network.
  var host: String? {
    guard case .url(let url) = source, !url.isFileURL, let host = url.host else { return nil }
    return "\(url.scheme ?? "")://\(host):\(url.port ?? 0)"
  }
}
