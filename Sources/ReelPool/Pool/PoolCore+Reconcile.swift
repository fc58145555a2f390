internal import ReelCore
internal import ReelPlayback

/// Bringing the slots to what is wanted.
extension PoolCore {
  /// What a turn works for.
  private struct Plan {
    struct Entry {
      let index: Int
      let item: FeedItem
      let rank: Int
      /// Nil for playing.
      let target: PreloadTarget?
      let plays: Bool
    }

    let revision: Int
    let playlist: Playlist
    let direction: Int
    let indices: Range<Int>
    let entries: [Entry]
  }

  /// One turn: ends when the slots are as the latest swipe wants them.
  func reconcile() {
    while true {
      guard let plan = state.withLock({ $0.isClosed ? nil : plan($0) }) else { return }
      guard evict(plan), let loads = assign(plan) else { continue }
      for (player, entry, slot) in loads {
        let triesAgain = entry.rank == 0 && state.withLock { $0.takeRetry(of: entry.item.id) }
        if player.id == entry.item.id, !triesAgain {
          player.direct(at: entry.index, rank: entry.rank, target: entry.target, plays: entry.plays)
        } else {
          send(.assigned(entry.item.id, slot: slot))
          player.begin(
            entry.item, at: entry.index, rank: entry.rank, target: entry.target,
            observer: observer(of: entry.item.id))
          player.direct(at: entry.index, rank: entry.rank, target: entry.target, plays: entry.plays)
        }
      }
      followCurrent()
      if configuration.showsPosters {
        posters.keep(plan.entries.compactMap { $0.item.poster })
      }
      openConnections(behind: plan.indices, of: plan.playlist, direction: plan.direction)
      noteProgress()
      if state.withLock({ $0.revision == plan.revision }) { return }
    }
  }

  // MARK: - Private

  private func plan(_ state: State) -> Plan {
    guard let index = state.index else {
      return Plan(
        revision: state.revision, playlist: state.playlist, direction: state.direction, indices: 0..<0,
        entries: [])
    }
    let window = window(state, policy: configuration.policy, index: index)
    var entries: [Plan.Entry] = []
    for (rank, entry) in window.entries.prefix(state.keptCount ?? .max).enumerated() {
      let item = state.playlist.items[entry.index]
      guard !state.pinned.contains(where: { $0.id == item.id }) else { continue }
      let isPlayed = entry.distance == 0 && state.phase == .settled
      entries.append(
        Plan.Entry(
          index: entry.index, item: item, rank: rank,
          target: isPlayed ? nil : entry.distance == 0 ? .current : entry.target,
          plays: isPlayed && state.isPlaying))
    }
    return Plan(
      revision: state.revision, playlist: state.playlist, direction: state.direction,
      indices: window.indices, entries: entries)
  }

  private func window(_ state: State, policy: some PreloadPolicy, index: Int) -> PoolWindow {
    PoolWindow(
      itemCount: state.playlist.items.count, slotCount: configuration.slotCount, currentIndex: index,
      direction: state.direction, policy: policy, costs: state.costs,
      bandwidth: state.currentPlayer?.player.statistics.estimatedBandwidth)
  }

  /// Takes from their slots what is not wanted any more. False where another plan is wanted.
  private func evict(_ plan: Plan) -> Bool {
    let wanted = plan.entries.map(\.item.id)
    let out = state.withLock { state -> [(Int, PooledPlayer, PooledPlayer.Load)]? in
      guard state.revision == plan.revision else { return nil }
      return state.slots.enumerated().compactMap { slot, player in
        guard let load = player.load, !wanted.contains(load.feedItem.id) else { return nil }
        return (slot, player, load)
      }
    }
    guard let out else { return false }
    for (slot, player, load) in out {
      // Another swipe may want it after all: it is looked for by its identity, under the same lock.
      let isWanted = state.withLock { state in
        guard state.revision == plan.revision else { return true }
        player.forget()
        return false
      }
      if isWanted { return false }
      let stage = load.item.preloadStage.value
      end(player, load)
      send(.evicted(load.feedItem.id, slot: slot, stage))
    }
    return true
  }

  /// Finds a player for each entry: the one that has the item goes to the slot of its index, others are taken as they
  /// come. Nil where another plan is wanted.
  private func assign(_ plan: Plan) -> [(PooledPlayer, Plan.Entry, Int)]? {
    state.withLock { state in
      guard state.revision == plan.revision else { return nil }
      for entry in plan.entries {
        let slot = entry.index % configuration.slotCount
        // Its index has changed, as others were removed: with the item its player changes the slot.
        if let place = state.slots.firstIndex(where: { $0.id == entry.item.id }), place != slot {
          state.slots.swapAt(place, slot)
        }
      }
      return plan.entries.map { entry in
        let slot = entry.index % configuration.slotCount
        return (state.slots[slot], entry, slot)
      }
    }
  }
}

extension PoolCore.State {
  /// True once where the current item is to be tried again.
  fileprivate mutating func takeRetry(of id: FeedItem.ID) -> Bool {
    guard triesAgain, currentItem?.id == id else { return false }
    triesAgain = false
    return true
  }
}
