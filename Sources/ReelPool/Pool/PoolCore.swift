internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The workings of a `PlayerPool`, which its pump can hold on to weakly.
///
/// A swipe (`show`) notes what is wanted and hands over what is there. What follows from it, slots that change their
/// items, is done in the turns of one pump (`reconcile`): however many swipes come in between, a turn brings the slots to
/// what the latest one wants, and begins anew where another comes meanwhile.
final class PoolCore: Sendable {
  struct State: Sendable {
    var playlist = Playlist(feed: "", items: [])
    /// Of the current item; nil before there is one.
    var index: Int?
    /// Where the last swipe went: 1 or -1.
    var direction = 1
    var phase = SwipePhase.settled
    var isPlaying = true
    /// Of what is wanted: a turn that began with an earlier one begins anew.
    var revision = 0
    /// The players, by slot.
    var slots: [PooledPlayer]
    /// Items that are shown by a player of their own.
    var pinned: [PinnedEntry] = []
    /// So many of the window's entries are kept, after memory was to be given back; nil for all.
    var keptCount: Int?
    var costs = StageCosts()
    var isClosed = false
    /// The current item has failed in a way that may pass, and is to be tried again as it was shown once more.
    var triesAgain = false
    var onFailure: (@Sendable (FeedItem.ID, ReelError) -> Void)?

    var currentItem: FeedItem? { index.map { playlist.items[$0] } }
    func player(of id: FeedItem.ID) -> PooledPlayer? { slots.first { $0.id == id } }
    var currentPlayer: PooledPlayer? { currentItem.flatMap { player(of: $0.id) } }
  }

  struct PinnedEntry: Sendable {
    let id: FeedItem.ID
    let player: PooledPlayer
  }

  let configuration: PoolConfiguration
  let resources: PoolResources
  let state: Locked<State>
  let surface: OutputSurface
  let posters: PosterStore
  let events: EventChannel<PoolEvent>
  let readiness: ObservedProperty<[SlotReadiness]>
  /// Told at once, on any thread, and in the order of what happens.
  let observer = Locked(Callback<PoolEvent>())
  /// Told of each picture that is decoded, and of what an item has come to when it leaves its player.
  let accountant = Locked<PoolAccountant?>(nil)
  private let emit: @Sendable (PoolEvent) -> Void
  private let pump = Locked<Pump?>(nil)
  private let progress = Locked<Pump?>(nil)
  private let opener: (any ConnectionOpening)?

  init(fetcher: any Fetching, configuration: PoolConfiguration, logger: Logger) {
    var configuration = configuration
    configuration.slotCount = max(1, configuration.slotCount)
    self.configuration = configuration
    let (clock, execution) = (configuration.player.clock, configuration.player.execution)
    let permits = configuration.decodingPermits ?? ProcessInfo.processInfo.activeProcessorCount
    let resources = PoolResources(
      gate: PriorityGate(
        permits: permits, cost: configuration.decodeCost, clock: clock, execution: execution),
      network: RankedNetwork(fetcher, clock: clock), logger: logger)
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
    surface = OutputSurface(emit: emit)
    posters = PosterStore(fetcher: fetcher, execution: execution)
    readiness = ObservedProperty((0..<configuration.slotCount).map { SlotReadiness(slot: $0) })
    state = Locked(
      State(
        slots: (0..<configuration.slotCount).map { _ in PooledPlayer(resources, configuration: configuration)
        }))
    let pump = Pump(named: "pool", execution: execution, clock: clock) { [weak self] in
      self?.reconcile()
      return .idle
    }
    self.pump.withLock { $0 = pump }
    let progress = Pump(named: "pool-progress", execution: execution, clock: clock) { [weak self] in
      self?.noteProgress()
      return .idle
    }
    self.progress.withLock { $0 = progress }
  }

  // MARK: Commands

  func show(_ index: Int, of playlist: Playlist, phase: SwipePhase) throws(ReelError) -> Handover {
    let clock = configuration.player.clock
    let began = clock.now
    guard playlist.items.indices.contains(index) else {
      throw ReelError(
        .usage,
        playlist.items.isEmpty
          ? "the feed \(playlist.feed) has no items"
          : "the feed \(playlist.feed) has no item \(index): its \(playlist.items.count) items count from 0")
    }
    let item = playlist.items[index]
    let player = state.withLock { state -> PooledPlayer? in
      if state.playlist.feed == playlist.feed, let old = state.index, old != index {
        state.direction = index > old ? 1 : -1
      }
      if state.currentItem?.id != item.id { state.keptCount = nil }
      state.playlist = playlist
      state.index = index
      state.phase = phase
      state.revision += 1
      let player = state.player(of: item.id)
      if case .failed(let error)? = player?.load?.item.status.value { state.triesAgain = error.isTemporary }
      return player
    }
    let stage = player?.load?.item.preloadStage.value ?? .none
    let picture = player?.player.currentPicture()
    let handover = Handover(picture: picture, stage: stage, duration: clock.now - began)
    emit(.shown(item.id, phase, stage: stage))
    followCurrent()
    wake()
    return handover
  }

  func update(_ playlist: Playlist, index: Int?) {
    state.withLock { state in
      state.playlist = playlist
      state.index = index.flatMap { playlist.items.indices.contains($0) ? $0 : nil }
      state.revision += 1
    }
    followCurrent()
    wake()
  }

  func setPlaying(_ isPlaying: Bool) {
    state.withLock { state in
      state.isPlaying = isPlaying
      state.revision += 1
    }
    wake()
  }

  func close() {
    let players = state.withLock { state in
      state.isClosed = true
      state.index = nil
      state.revision += 1
      defer { state.pinned = [] }
      return state.slots + state.pinned.map(\.player)
    }
    for pump in [pump, progress] { pump.withLock { $0 }?.stop() }
    followCurrent()
    for player in players { end(player) }
    posters.cancel()
    events.finish()
    readiness.finish()
  }

  // MARK: - Private

  func wake() { pump.withLock { $0 }?.wake() }

  func send(_ event: PoolEvent) { emit(event) }

  /// Ends what a player does, and says what came of it.
  func end(_ player: PooledPlayer, _ load: PooledPlayer.Load? = nil) {
    if let accountant = accountant.withLock({ $0 }), let load = load ?? player.load {
      accountant.departed(
        load.feedItem.id,
        PoolAccountant.Departure(
          fetchedByteCount: player.fetchedByteCount(since: load), statistics: player.player.statistics))
    }
    player.end()
  }

  /// The surface goes where the current item is, or shows its poster.
  func followCurrent() {
    surface.follow { state.withLock { $0.currentPlayer } }
    showPoster()
  }

  /// Gets told what happens in the player of an item.
  func observer(of id: FeedItem.ID) -> @Sendable (PlayerSignal) -> Void {
    { [weak self] signal in
      guard let self else { return }
      switch signal {
      case .decoded(let count):
        accountant.withLock { $0 }?.decoded(id, count)
        return
      case .event(let event):
        emit(.player(id, event))
        if case .failed(let error) = event { noteFailure(error, of: id) }
      case .progressed: break
      }
      progress.withLock { $0 }?.wake()
    }
  }

  private func noteFailure(_ error: ReelError, of id: FeedItem.ID) {
    state.withLock { $0.onFailure }?(id, error)
  }

  /// Opens connections to the hosts of the items that come behind the window.
  func openConnections(behind indices: Range<Int>, of playlist: Playlist, direction: Int) {
    guard let opener, configuration.connectionsAhead > 0 else { return }
    let known = Set(playlist.items[indices].compactMap(\.host))
    let next = (1...configuration.connectionsAhead).map {
      direction > 0 ? indices.upperBound - 1 + $0 : indices.lowerBound - $0
    }
    var hosts: [String] = []
    for index in next where playlist.items.indices.contains(index) {
      let item = playlist.items[index]
      guard let host = item.host, case .url(let url) = item.source, !known.contains(host),
        !hosts.contains(host)
      else { continue }
      hosts.append(host)
      opener.openConnection(to: url)
    }
  }
}

extension FeedItem {
  /// Where its first request goes; nil for what is not on a network.
  fileprivate var host: String? {
    guard case .url(let url) = source, !url.isFileURL, let host = url.host else { return nil }
    return "\(url.scheme ?? "")://\(host):\(url.port ?? 0)"
  }
}
