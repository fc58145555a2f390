internal import ReelCore
internal import ReelPlayback

/// Giving memory back, and players that leave the window.
extension PoolCore {
  func trim(to byteCount: Int) -> Int {
    var held = ledger.byteCount
    while held > byteCount {
      // The lowest rank that has a player.
      let victim = state.withLock { state -> PooledPlayer.Load? in
        let current = state.currentItem?.id
        let loads = state.slots.compactMap(\.load).filter { $0.feedItem.id != current }
        guard let lowest = loads.max(by: { $0.rank < $1.rank }) else { return nil }
        state.keptCount = min(state.keptCount ?? .max, max(1, lowest.rank))
        state.revision += 1
        return lowest
      }
      guard let victim else { break }
      let player = state.withLock { state -> (Int, PooledPlayer)? in
        guard let slot = state.slots.firstIndex(where: { $0.id == victim.feedItem.id }) else { return nil }
        state.slots[slot].forget()
        return (slot, state.slots[slot])
      }
      if let (slot, player) = player {
        let stage = victim.item.preloadStage.value
        end(player, victim)
        send(.evicted(victim.feedItem.id, slot: slot, stage))
      }
      held = ledger.byteCount
    }
    send(.trimmed(byteCount: held))
    wake()
    return held
  }

  func pin(to output: any FrameOutput) throws(ReelError) -> PinnedPlayer {
    let replacement = PooledPlayer(resources, configuration: configuration)
    let outcome = state.withLock { state -> Result<(PooledPlayer, FeedItem, Int), ReelError> in
      guard let item = state.currentItem, let index = state.index,
        let slot = state.slots.firstIndex(where: { $0.id == item.id })
      else {
        return .failure(ReelError(.usage, "there is no current player to be pinned"))
      }
      let player = state.slots[slot]
      guard configuration.allowsPinning, player.player.allowsPictureInPicture else {
        return .failure(ReelError(.usage, "pinning is not allowed", at: item.id.description))
      }
      state.slots[slot] = replacement
      state.pinned.append(PinnedEntry(id: item.id, player: player))
      state.revision += 1
      return .success((player, item, index))
    }
    let (player, item, index) = try outcome.get()
    let property = ObservedProperty(PinnedState.none)
    let pinned = PinnedPlayer(
      item, player: player, output: output, state: property, emit: { [weak self] in self?.send($0) },
      onStop: { [weak self] in self?.unpin(player) })
    property.set(.willStart)
    send(.pinned(item.id, .willStart))
    followCurrent()
    do {
      try player.player.attach(output)
    } catch {
      pinned.stop()
      throw error
    }
    player.direct(at: index, rank: 0, target: nil, plays: true)
    property.set(.didStart)
    send(.pinned(item.id, .didStart))
    wake()
    return pinned
  }

  private func unpin(_ player: PooledPlayer) {
    state.withLock { state in
      state.pinned.removeAll { $0.player === player }
      state.revision += 1
    }
    wake()
  }
}
