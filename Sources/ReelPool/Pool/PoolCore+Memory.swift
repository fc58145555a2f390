internal import ReelCore
internal import ReelPlayback

/// Giving memory back, and players that leave the window.
extension PoolCore {
  func trim(to byteCount: Int) -> Int {
    var hasGivenUp = false
    while heldByteCount > byteCount {
      // Its slot gets another player: this one is ended here, while the task loop may be at work.
      let replacement = PooledPlayer(resources, configuration: configuration)
      typealias Victim = (slot: Int, player: PooledPlayer, load: PooledPlayer.Load)
      let victim = state.withLock { state -> Victim? in
        let current = state.currentItem?.id
        let held = state.slots.enumerated().compactMap { slot, player -> Victim? in
          player.load.map { (slot, player, $0) }
        }
        let preloads = held.filter { $0.load.feedItem.id != current }
        guard let lowest = preloads.max(by: { $0.load.order.rank < $1.load.order.rank }) else { return nil }
        state.keptCount = min(state.keptCount ?? .max, max(1, lowest.load.order.rank))
        state.generation += 1
        lowest.player.forget()
        state.slots[lowest.slot] = replacement
        return lowest
      }
      guard let victim else { break }
      let stage = victim.load.item.preloadStage.value
      end(victim.player, victim.load)
      hasGivenUp = true
      send(.evicted(victim.load.feedItem.id, slot: victim.slot, stage))
    }
    let held = heldByteCount
    guard hasGivenUp else { return held }
    send(.trimmed(byteCount: held))
    wake()
    return held
  }

  func startPictureInPicture(to output: any FrameOutput) throws(ReelError) -> PictureInPicturePlayer {
    let property = ObservedProperty(PictureInPictureState.none)
    let replacement = PooledPlayer(resources, configuration: configuration)
    let outcome = state.withLock { state -> Result<PictureInPicturePlayer, ReelError> in
      guard let item = state.currentItem, let slot = state.slots.firstIndex(where: { $0.id == item.id })
      else {
        return .failure(ReelError(.usage, "there is no current player to be pinned"))
      }
      let player = state.slots[slot]
      guard configuration.allowsPictureInPicture, player.player.allowsPictureInPicture else {
        return .failure(ReelError(.usage, "pinning is not allowed", at: item.id.description))
      }
      guard !output.isExternal || player.player.allowsExternalPlayback else {
        return .failure(
          ReelError(.usage, "external playback is not allowed by this player", at: item.id.description))
      }
      let pinned = PictureInPicturePlayer(
        item, player: player, output: output, state: property, emit: emit,
        onStop: { [weak self] in self?.unpin(player) })
      state.slots[slot] = replacement
      state.pinned.append(PinnedEntry(id: item.id, player: player, stop: { [weak pinned] in pinned?.stop() }))
      state.generation += 1
      return .success(pinned)
    }
    let pinned = try outcome.get()
    pinned.start()
    // The surface leaves it, and what its own output takes is no matter of the window's any more.
    followCurrent()
    pinned.player.separateOutputs()
    do {
      try pinned.player.attach(output)
    } catch {
      pinned.stop()
      throw error
    }
    pinned.hasStarted()
    wake()
    return pinned
  }

  private func unpin(_ player: PooledPlayer) {
    state.withLock { state in
      state.pinned.removeAll { $0.player === player }
      state.generation += 1
    }
    end(player)
    wake()
  }

  /// Of the players that have an item: what the others had is about to be free.
  private var heldByteCount: Int {
    ledger.entries.reduce(0) { $1.item == nil ? $0 : $0 + $1.account.byteCount }
  }
}
