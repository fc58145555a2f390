internal import ReelCore
internal import ReelPlayback

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
    /// When to plan anew if nothing changes; nil for not at all.
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

  /// One turn: ends when the slots are in the state that the latest swipe wants.
  func reconcile() {
    while let plan = nextPlan() {
      // The surface must not be on a player that is about to end.
      followCurrent()
      guard let assignment = assign(plan) else { continue }
      // Existing items come first: the current one begins to play.
      for (player, entry) in assignment.kept { player.direct(entry.order) }
      for (player, entry) in assignment.kept where player.rewindIfLeft() {
        noteRewind(of: entry.item, player)
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

  /// The current plan; nil if the pool is closed.
  func makePlan() -> Plan? {
    // A copy, so that the policy is asked without the lock.
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

  /// Assigns a player to each entry. A player that has the item moves to the slot of its index. All in one
  /// step, so that a swipe finds either the old state or the new one. Returns nil if another plan is wanted.
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
