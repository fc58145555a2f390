internal import ReelCore
internal import ReelPlayback

/// Bringing the slots to what is wanted.
extension PoolCore {
  /// What a turn works for.
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
  }

  /// What becomes of the slots.
  private struct Assignment {
    typealias Place = (slot: Int, player: PooledPlayer)

    /// Items that have their players already.
    var kept: [(player: PooledPlayer, entry: Plan.Entry)] = []
    /// What leaves its player.
    var ended: [(place: Place, load: PooledPlayer.Load)] = []
    /// Items that are given players.
    var begun: [(place: Place, entry: Plan.Entry)] = []
    /// The current item has been shown, and had failed before.
    var failure: (id: FeedItem.ID, error: ReelError)?
    var pinned: [PooledPlayer] = []
  }

  /// One turn: ends when the slots are as the latest swipe wants them.
  func reconcile() {
    while let plan = makePlan() {
      // Nothing that is about to end is on the surface.
      followCurrent()
      guard let assignment = assign(plan) else { continue }
      // What is there goes first: the current item plays.
      for (player, entry) in assignment.kept { player.direct(entry.order) }
      for player in assignment.pinned { player.directPinned() }
      for (place, load) in assignment.ended {
        let stage = load.item.preloadStage.value
        end(place.player, load)
        send(.evicted(load.feedItem.id, slot: place.slot, stage))
      }
      for (place, entry) in assignment.begun {
        // What another swipe does not want is not even begun.
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

  /// What is wanted now; nil where nothing is, as the pool is closed.
  func makePlan() -> Plan? {
    // A copy: the policy is not asked with the lock held.
    let state = state.withLock { $0 }
    guard !state.isClosed else { return nil }
    guard let index = state.index else {
      return Plan(
        generation: state.generation, snapshot: state.snapshot, direction: state.direction, indices: 0..<0,
        entries: [])
    }
    let window = window(state, policy: configuration.policy, index: index)
    var entries: [Plan.Entry] = []
    for (rank, entry) in window.entries.prefix(state.keptCount ?? .max).enumerated() {
      let item = state.snapshot.items[entry.index]
      guard !state.isPinned(item.id) else { continue }
      let isPlayed = entry.distance == 0 && state.phase == .settled
      entries.append(
        Plan.Entry(
          item: item,
          order: PooledPlayer.Order(
            index: entry.index, rank: rank,
            target: isPlayed ? nil : entry.distance == 0 ? .current : entry.target,
            plays: isPlayed && state.isPlaying, since: state.settledAt)))
    }
    return Plan(
      generation: state.generation, snapshot: state.snapshot, direction: state.direction,
      indices: window.indices, entries: entries)
  }

  private func window(_ state: State, policy: some PreloadPolicy, index: Int) -> PoolWindow {
    PoolWindow(
      itemCount: state.snapshot.items.count, slotCount: configuration.slotCount, currentIndex: index,
      direction: state.direction, policy: policy, costs: state.costs,
      currentByteCount: (state.costs.memoryByteCount(of: .buffered) ?? 0) + state.decodingByteCount,
      bandwidth: state.target?.player.player.statistics.estimatedBandwidth)
  }

  private func isCurrent(_ plan: Plan) -> Bool { state.withLock { $0.generation == plan.generation } }

  /// Finds a player for each entry: the one that has the item goes to the slot of its index, others are taken as they
  /// come. All at once, so that a swipe finds either what there was or what there will be. Nil where another plan is
  /// wanted.
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
          // What may pass is tried again.
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
        // Its index has changed, as others were removed: with the item its player changes the slot.
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
    // Closed meanwhile: whoever did that may have been here before the item was.
    if state.withLock({ $0.isClosed }) { end(place.player) }
  }
}
