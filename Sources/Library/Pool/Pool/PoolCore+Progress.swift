internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The progress of the slots, and their memory.
extension PoolCore {
  /// One turn of the task loop that reports the stages reached since its last turn, publishes the readiness of
  /// the slots, and wakes callers that wait for a change.
  func noteProgress() {
    let players = state.withLock { $0.isClosed ? [] : $0.slots }
    for (slot, player) in players.enumerated() {
      guard let (load, stages) = player.takeProgress(), let last = stages.last else { continue }
      record(last, of: player, load)
      for stage in stages {
        send(
          .reached(load.feedItem.id, slot: slot, stage, after: load.item.stageTimes[stage] ?? .zero))
      }
    }
    noteDecoding()
    checkMemory()
    readiness.set(slotReadiness)
    changes.send(())
  }

  /// The readiness of each slot.
  var slotReadiness: [SlotReadiness] {
    state.withLock { $0.slots }.enumerated().map { slot, player in
      var readiness = SlotReadiness(slot: slot)
      guard let load = player.load else { return readiness }
      let statistics = player.player.statisticsWithoutUnshown
      readiness.item = load.feedItem.id
      readiness.index = load.order.index
      readiness.rank = load.order.rank
      readiness.target = load.order.target
      readiness.stage = load.stage
      readiness.status = load.item.status.value
      readiness.timeControlStatus = player.player.timeControlStatus.value
      readiness.bufferedDuration = statistics.bufferedDuration
      readiness.bufferedByteCount = statistics.bufferByteCount
      readiness.frameCount = (statistics.ring?.frameCount ?? 0) + (statistics.onShowByteCount > 0 ? 1 : 0)
      readiness.rung = load.item.rung.value
      readiness.stageTimes = load.item.stageTimes
      readiness.fetchedByteCount = player.fetchedByteCount(since: load)
      readiness.waiting = waiting(of: player, load, readiness)
      return readiness
    }
  }

  /// The memory of each player, by kind.
  var ledger: MemoryLedger {
    let (slots, pinned) = state.withLock { ($0.slots, $0.pinned) }
    var holders: [(player: PooledPlayer, slot: Int?)] = slots.enumerated().map { ($1, $0) }
    for entry in pinned { holders.append((entry.player, nil)) }
    let accounts = accounts(of: holders.map(\.player))
    let entries = zip(holders, accounts).map { holder, account in
      MemoryLedger.Entry(slot: holder.slot, item: holder.player.id, account: account)
    }
    return MemoryLedger(entries: entries, shared: configuration.keepsAccounts ? MemoryAccount.shared : nil)
  }

  // MARK: - Private

  /// The allocator is asked once for all accounts, because each question takes longer the more accounts there
  /// are.
  private func accounts(of players: [PooledPlayer]) -> [MemoryLedger.Account] {
    var figures = MemoryAccount.figures(of: players.compactMap(\.account)).makeIterator()
    return players.map {
      MemoryLedger.Account(
        $0.player.statisticsWithoutUnshown, figures: $0.account == nil ? nil : figures.next())
    }
  }

  /// Records the memory of the current item's decoder and ring. A policy that limits memory has to leave room
  /// for them.
  private func noteDecoding() {
    guard let player = state.withLock({ $0.target })?.player else { return }
    let statistics = player.player.statisticsWithoutUnshown
    let account = MemoryLedger.Account(statistics, figures: player.account?.mappedFigures)
    let byteCount = account[.decoder] + (statistics.ring?.byteCount ?? 0)
    let hasGrown = state.withLock { state in
      defer { state.decodingByteCount = max(state.decodingByteCount, byteCount) }
      return byteCount > state.decodingByteCount
    }
    if hasGrown { wake() }
  }

  /// Records the cost of the stage that an item has reached, apart from its frames and an open decoder. The
  /// current item counts too, because it may be the only one that gets this far.
  private func record(_ stage: PreloadStage, of player: PooledPlayer, _ load: PooledPlayer.Load) {
    let statistics = player.player.statisticsWithoutUnshown
    let account = accounts(of: [player])[0]
    let ahead = statistics.ring?.byteCount ?? 0
    let decoder = account[.decoder] + ahead
    let cost = StageCost(
      memoryByteCount: max(0, account.byteCount - decoder),
      networkByteCount: Int(player.fetchedByteCount(since: load)),
      duration: load.item.stageTimes[stage] ?? .zero)
    let isWarm = load.order.target?.isDecoderWarm == true && stage == .buffered && decoder > 0
    state.withLock { state in
      state.costs.record(cost, of: stage)
      if isWarm { state.costs.recordWarmDecoder(byteCount: decoder) }
    }
    // The policy may now decide differently.
    wake()
  }

  private func waiting(
    of player: PooledPlayer, _ load: PooledPlayer.Load, _ readiness: SlotReadiness
  ) -> SlotReadiness.Waiting {
    if case .failed = readiness.status { return .failed }
    if let target = load.order.target, readiness.stage >= target.stage {
      return load.order.lacksMemory ? .memory : .atTarget
    }
    if load.order.target == nil, load.item.isPlaybackBufferFull.value { return .atTarget }
    if load.item.remainingRetries.value < configuration.player.retryPolicy.attempts { return .retry }
    if player.isWaitingForDecoder { return .decoder }
    if player.isHeldBack { return .rank }
    return readiness.stage < .manifest ? .source : .media
  }
}
