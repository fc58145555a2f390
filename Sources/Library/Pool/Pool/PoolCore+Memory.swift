internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The progress of the slots, and their memory.
extension PoolCore {
  /// Reports the stages reached since the last turn, publishes the readiness of the slots, and wakes callers that wait
  /// for a change.
  func recordProgress() {
    guard !state.withLock({ $0.isClosed }) else { return }
    for (number, slot, stages) in state.withLock({ $0.takeProgress() }) {
      guard let load = slot.load, let last = stages.last else { continue }
      record(last, of: slot, load)
      for stage in stages {
        emit(.reached(load.feedItem.id, slot: number, stage, after: load.item.stageTimes[stage] ?? .zero))
      }
    }
    recordDecoding()
    checkMemory()
    readiness.set(slotReadiness)
    changes.send(())
  }

  var slotReadiness: [SlotReadiness] {
    let attempts = configuration.player.retryPolicy.attempts
    return state.withLock { $0.slots }.enumerated().map { number, slot in
      var readiness = SlotReadiness(number, slot, attempts: attempts)
      if readiness.stage == .notLoaded, let id = slot.id, heads?.isOnDisk(id) == true {
        readiness.stage = .onDisk
      }
      return readiness
    }
  }

  /// The memory of each player, by kind.
  var ledger: MemoryLedger {
    let (slots, pinned) = state.withLock { ($0.slots, $0.pinned.map(\.slot)) }
    var holders: [(number: Int?, slot: PoolState.Slot)] = slots.enumerated().map { ($0, $1) }
    holders += pinned.map { (nil, $0) }
    let entries = zip(holders, accounts(of: holders.map(\.slot.player))).map { holder, account in
      MemoryLedger.Entry(slot: holder.number, item: holder.slot.id, account: account)
    }
    return MemoryLedger(entries: entries, shared: configuration.keepsAccounts ? MemoryAccount.shared : nil)
  }

  /// The same, with what is on disk.
  var ledgerWithDisk: MemoryLedger {
    var ledger = ledger
    ledger.storedByteCount = resources.network.store?.storedByteCount
    ledger.heads = heads?.heads ?? []
    return ledger
  }

  /// Ends preloads until the plan fits the memory limit. Call it when the slots have the planned items and
  /// ranks.
  func makeRoom(for growth: Int) {
    guard let limit = configuration.memoryLimit, state.withLock({ $0.hasPreload }) else { return }
    _ = trim(to: limit - min(growth, limit), sparesWaiting: true)
  }

  /// - Parameter sparesWaiting: Keeps preloads that wait for memory and have loaded nothing: ending them frees none.
  func trim(to byteCount: Int, sparesWaiting: Bool = false) -> Int {
    var hasGivenUp = false
    while heldByteCount > byteCount {
      // The slot gets another player, because this one is ended here while a turn may be running.
      let replacement = PooledPlayer(resources, configuration: configuration)
      let victim = state.withLock {
        $0.giveUpPreload(sparesWaiting: sparesWaiting, replacement: replacement)
      }
      guard let (number, slot) = victim else { break }
      hasGivenUp = true
      evict(slot, number)
    }
    let held = heldByteCount
    guard hasGivenUp else { return held }
    emit(.trimmed(byteCount: held))
    wake()
    return held
  }

  // MARK: - Private

  /// The bytes held by players with an item. The memory of the others is about to be released.
  private var heldByteCount: Int {
    ledger.entries.reduce(0) { $1.item == nil ? $0 : $0 + $1.account.byteCount }
  }

  /// Returns the accounts with a single call of the allocator, because each call takes longer with more
  /// accounts.
  private func accounts(of players: [PooledPlayer]) -> [MemoryLedger.Account] {
    var figures = MemoryAccount.figures(of: players.compactMap(\.account)).makeIterator()
    return players.map {
      MemoryLedger.Account(
        $0.player.statisticsWithoutUnshown, figures: $0.account == nil ? nil : figures.next())
    }
  }

  /// Records the cost of the stage that an item has reached, apart from its frames and an open decoder. The
  /// current item counts too, because it may be the only one that gets this far.
  private func record(_ stage: PreloadStage, of slot: PoolState.Slot, _ load: PoolState.Load) {
    let statistics = slot.player.player.statisticsWithoutUnshown
    let account = accounts(of: [slot.player])[0]
    let ahead = statistics.ring?.byteCount ?? 0
    let decoder = account[.decoder] + ahead
    let cost = StageCost(
      memoryByteCount: max(0, account.byteCount - decoder),
      networkByteCount: Int(slot.fetchedByteCount),
      duration: load.item.stageTimes[stage] ?? .zero)
    let isWarm = load.order.target?.isDecoderWarm == true && stage == .buffered && decoder > 0
    state.withLock { state in
      state.costs.record(cost, of: stage)
      if isWarm { state.costs.recordWarmDecoder(byteCount: decoder) }
      // The policy may decide differently.
      state.beginGeneration()
    }
  }

  /// Records the memory of the current item's decoder and ring. A policy that limits memory must leave room
  /// for them.
  private func recordDecoding() {
    guard let player = state.withLock({ $0.target })?.player else { return }
    let statistics = player.player.statisticsWithoutUnshown
    let account = MemoryLedger.Account(statistics, figures: player.account?.mappedFigures)
    let byteCount = account[.decoder] + (statistics.ring?.byteCount ?? 0)
    state.withLock { state in
      guard byteCount > state.decodingByteCount else { return }
      state.decodingByteCount = byteCount
      state.beginGeneration()
    }
  }

  /// Plans again if the pool holds more than its memory limit, or if preloads wait for memory and a
  /// significant part of it, a 64th of the limit, has become free. (When costs change, the pool plans again
  /// anyway.)
  private func checkMemory() {
    guard let limit = configuration.memoryLimit else { return }
    let held = heldByteCount
    state.withLock { state in
      var isFreed = false
      if held < state.heldByteCount - limit / 64 {
        state.heldByteCount = held
        isFreed = state.slots.contains { $0.load?.order.lacksMemory == true }
      } else {
        state.heldByteCount = max(state.heldByteCount, held)
      }
      if isFreed || held > limit && state.hasPreload { state.beginGeneration() }
    }
  }
}

/// Picture in picture.
extension PoolCore {
  func startPictureInPicture(to output: any FrameOutput) throws(ReelError) -> PictureInPicturePlayer {
    let replacement = PooledPlayer(resources, configuration: configuration)
    let outcome = state.withLock { state -> Result<PictureInPicturePlayer, ReelError> in
      guard !state.isClosed else { return .failure(.closed) }
      guard let item = state.currentItem, let number = state.slots.firstIndex(where: { $0.id == item.id })
      else {
        return .failure(ReelError(.usage, "there is no current player to pin"))
      }
      let slot = state.slots[number]
      guard configuration.allowsPictureInPicture, slot.player.player.allowsPictureInPicture else {
        return .failure(ReelError(.usage, "pinning is not allowed", at: item.id.description))
      }
      guard !output.isExternal || slot.player.player.allowsExternalPlayback else {
        return .failure(
          ReelError(.usage, "external playback is not allowed by this player", at: item.id.description))
      }
      let pinned = PictureInPicturePlayer(
        item, player: slot.player.player, output: output, emit: emit,
        onStop: { [weak self] in
          self?.unpin(slot.player)
          // In case the pool no longer exists.
          slot.player.end()
        })
      state.slots[number] = PoolState.Slot(player: replacement)
      state.pinned.append(
        PoolState.Pinned(id: item.id, slot: slot, stop: { [weak pinned] in pinned?.stop() }))
      state.beginGeneration()
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
    let slot = state.withLock { state in
      defer {
        state.pinned.removeAll { $0.slot.player === player }
        state.beginGeneration()
      }
      return state.pinned.first { $0.slot.player === player }?.slot
    }
    if let slot { end(slot) }
    wake()
  }
}
