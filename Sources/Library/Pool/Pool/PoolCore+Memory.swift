internal import ReelCore
internal import ReelPlayback

/// Releasing memory, and picture in picture.
extension PoolCore {
  /// - Parameter sparesWaiting: Keeps preloads that wait for memory and have loaded nothing: ending them frees none.
  func trim(to byteCount: Int, sparesWaiting: Bool = false) -> Int {
    var hasGivenUp = false
    while heldByteCount > byteCount {
      // The slot gets another player, because this one is ended here while the task loop may be running.
      let replacement = PooledPlayer(resources, configuration: configuration)
      typealias Victim = (slot: Int, player: PooledPlayer, load: PooledPlayer.Load)
      let victim = state.withLock { state -> Victim? in
        let current = state.currentItem?.id
        let held = state.slots.enumerated().compactMap { slot, player -> Victim? in
          player.load.map { (slot, player, $0) }
        }
        let preloads = held.filter { entry in
          entry.load.feedItem.id != current
            && !(sparesWaiting && entry.load.order.target?.stage == PreloadStage.none)
        }
        guard let lowest = preloads.max(by: { $0.load.order.rank < $1.load.order.rank }) else { return nil }
        state.keptCount = min(state.keptCount ?? .max, max(1, lowest.load.order.rank))
        state.generation += 1
        lowest.player.forget()
        state.slots[lowest.slot] = replacement
        return lowest
      }
      guard let victim else { break }
      let stage = victim.load.stage
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
        return .failure(ReelError(.usage, "there is no current player to pin"))
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
    // The surface leaves the player, and its own output is independent of the window's lock.
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

  /// The bytes held by players with an item. The memory of the others is about to be released.
  var heldByteCount: Int {
    ledger.entries.reduce(0) { $1.item == nil ? $0 : $0 + $1.account.byteCount }
  }
}
