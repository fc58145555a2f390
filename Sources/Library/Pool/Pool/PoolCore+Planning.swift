internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The input of the policy, and the times at which it is called.
extension PoolCore {
  /// Returns a plan for a turn of the pool, and schedules the next one as the plan requests.
  func nextPlan() -> Plan? {
    let now = configuration.player.clock.now
    // Before the plan is made, so that a change in the meantime is not lost.
    state.withLock { state in
      state.plannedAt = now
      state.reviewAt = nil
    }
    guard let plan = makePlan() else { return nil }
    let isReviewed = state.withLock { state in
      state.followsProgress = plan.followsProgress
      guard let interval = plan.reviewInterval else { return false }
      let time = now + max(interval, PreloadPlan.minimumReviewInterval)
      state.reviewAt = min(state.reviewAt ?? time, time)
      return true
    }
    if isReviewed { wakeReview() }
    return plan
  }

  /// Something has changed that a plan may depend on.
  func recordChange() {
    let now = configuration.player.clock.now
    let isWanted = state.withLock { state in
      guard state.followsProgress, !state.isClosed else { return false }
      state.reviewAt = min(state.reviewAt ?? now, now)
      return true
    }
    if isWanted { wakeReview() }
  }

  /// Runs one turn of the task loop that requests plans when they are due.
  func review() -> TaskLoop.Next {
    let now = configuration.player.clock.now
    let due = state.withLock { state -> Duration? in
      guard !state.isClosed, let time = state.reviewAt else { return nil }
      // Plans that change their own input must not follow each other without a pause.
      let due = max(time, (state.plannedAt ?? .zero) + PreloadPlan.minimumReviewInterval)
      if due <= now { state.reviewAt = nil }
      return due
    }
    guard let due else { return .idle }
    if due > now { return .at(due) }
    wake()
    return .idle
  }

  /// Returns the input of the policy.
  func situation(_ state: State, index: Int) -> PoolSituation {
    var situation = PoolSituation(
      direction: state.direction, slotCount: configuration.slotCount, itemCount: state.snapshot.items.count,
      currentIndex: index)
    situation.watchedDuration = state.watchedDuration(at: configuration.player.clock.now)
    situation.history = state.history
    situation.costs = state.costs
    situation.currentByteCount = (state.costs.memoryByteCount(of: .buffered) ?? 0) + state.decodingByteCount
    situation.throughput = resources.network.throughput
    situation.maximumOpenDecoders = configuration.maximumOpenDecoders
    situation.memoryLimit = configuration.memoryLimit
    let reach = situation.slotCount - 1
    let current = situation.currentIndex
    let near = max(current - reach, 0)...min(current + reach, situation.itemCount - 1)
    situation.items = near.map { index in
      let feedItem = state.snapshot.items[index]
      var item = PoolSituation.Item(feedItem, index: index, distance: index - current)
      if let player = state.player(of: feedItem.id), let load = player.load, load.feedItem.id == feedItem.id {
        item.record(load, of: player)
      }
      return item
    }
    return situation
  }
}

extension PoolCore.State {
  /// Returns how long the current item has been played since its swipe settled.
  func watchedDuration(at now: Duration) -> Duration {
    phase == .settled && index != nil ? max(now - watchedSince, .zero) : .zero
  }
}

extension PoolSituation.Item {
  /// Adds how far the item is loaded.
  fileprivate mutating func record(_ load: PooledPlayer.Load, of player: PooledPlayer) {
    let (item, statistics) = (load.item, player.player.statistics)
    duration = duration ?? item.duration.value.map { .seconds($0.seconds) }
    stage = load.stage
    position = max(.seconds(player.player.currentTime.seconds), .zero)
    bufferedDuration = statistics.bufferedDuration
    fetchedByteCount = player.fetchedByteCount(since: load) - load.byteCountBeforeRewind
    rungs = item.ladder.rungs
    rung = item.rung.value
    segmentDuration = item.ladder.segmentDuration
    isLoadedToEnd = statistics.isLoadedToEnd || isCovered(item.duration.value.map { .seconds($0.seconds) })
    if case .failed = item.status.value { hasFailed = true }
    guard distance != 0, player.player.canRewind else { return }
    // It starts over, and only if it is wanted.
    (stage, position, bufferedDuration, fetchedByteCount) = (.initialization, .zero, .zero, 0)
    isLoadedToEnd = false
  }

  /// Returns true if the media up to `end` is loaded. A full buffer does not read on to detect the end.
  private func isCovered(_ end: Duration?) -> Bool {
    // The last frame of a track may end a little before the item.
    end.map { bufferedDuration > .zero && position + bufferedDuration >= $0 - .milliseconds(50) } ?? false
  }
}

extension PreloadTarget {
  /// Returns the target of an item that is about to be played with `bounds`.
  func bounded(by bounds: LoadingBounds) -> PreloadTarget {
    var target = self
    target.bufferDuration = bounds.forwardBufferDuration ?? bufferDuration
    target.peakBitRate = bounds.peakBitRate ?? peakBitRate
    target.startPeakBitRate = bounds.startPeakBitRate ?? startPeakBitRate
    return target
  }
}

extension PooledPlayer.Order {
  /// Limits the rung of the first segment, unless that is limited already.
  mutating func beginAt(_ peakBitRate: Int?) {
    guard var target else {
      bounds.startPeakBitRate = bounds.startPeakBitRate ?? peakBitRate
      return
    }
    target.startPeakBitRate = target.startPeakBitRate ?? peakBitRate
    self.target = target
  }
}

/// The progress of the slots, and their memory.
extension PoolCore {
  /// Runs one turn of the task loop that reports the stages reached since its last turn, publishes the
  /// readiness of the slots, and wakes callers that wait for a change.
  func recordProgress() {
    let players = state.withLock { $0.isClosed ? [] : $0.slots }
    for (slot, player) in players.enumerated() {
      guard let (load, stages) = player.takeProgress(), let last = stages.last else { continue }
      record(last, of: player, load)
      for stage in stages {
        send(
          .reached(load.feedItem.id, slot: slot, stage, after: load.item.stageTimes[stage] ?? .zero))
      }
    }
    recordDecoding()
    checkMemory()
    readiness.set(slotReadiness)
    changes.send(())
  }

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

  /// Returns the accounts with a single call of the allocator, because each call takes longer with more
  /// accounts.
  private func accounts(of players: [PooledPlayer]) -> [MemoryLedger.Account] {
    var figures = MemoryAccount.figures(of: players.compactMap(\.account)).makeIterator()
    return players.map {
      MemoryLedger.Account(
        $0.player.statisticsWithoutUnshown, figures: $0.account == nil ? nil : figures.next())
    }
  }

  /// Records the memory of the current item's decoder and ring. A policy that limits memory must leave room
  /// for them.
  private func recordDecoding() {
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

/// Waiting for first frames.
extension PoolCore {
  /// Waits until the first frame of an item of the feed is decoded.
  func ready(_ index: Int) async throws {
    let item = try item(index, of: state.withLock { $0.snapshot })
    try await wait {
      if try player(showing: item.id) != nil { return true }
      try checkIsPreloaded(item, at: index)
      return nil
    }
  }

  /// Waits for the first frame of the item that was shown at `began`.
  func firstFrame(of item: FeedItem, since began: Duration) async throws -> Handover {
    try await wait {
      let player = try player(showing: item.id)
      let (isCurrent, isPinned) = state.withLock { ($0.currentItem?.id == item.id, $0.isPinned(item.id)) }
      guard !isPinned else { throw Self.pinned(item) }
      guard isCurrent else {
        throw ReelError(
          .cancelled, "another item was shown before the first frame was ready", at: item.id.description)
      }
      guard let player, let load = player.load, let frame = frame(of: (player, item.id)) else { return nil }
      let shown = load.firstFrameAt ?? configuration.player.clock.now
      return Handover(
        frame: frame, stage: max(load.stage, .firstFrame),
        duration: max(.zero, shown - began))
    }
  }

  /// Returns the frame on show in a player; nil before the first.
  func frame(of target: OutputSurface.Target) -> VideoFrame? {
    guard let frame = target.player.player.currentFrame() else { return nil }
    return VideoFrame(frame, item: target.id)
  }

  // MARK: - Private

  /// Calls `look` now and after each change, until it returns a value.
  @discardableResult
  private func wait<Value>(_ look: () throws -> Value?) async throws -> Value {
    // Observe before the first call, so that no change is missed.
    let changes = changes.events
    if let value = try look() { return value }
    for await _ in changes {
      if let value = try look() { return value }
    }
    try Task.checkCancellation()
    throw Self.closed
  }

  /// Returns the player with a frame of the item; nil while there is none. Throws the item's failure.
  private func player(showing id: FeedItem.ID) throws(ReelError) -> PooledPlayer? {
    let (isClosed, player, failure) = state.withLock { state -> (Bool, PooledPlayer?, ReelError?) in
      let player = state.player(of: id)
      if player?.isReady == true { return (state.isClosed, player, nil) }
      guard case .failed(let error)? = player?.load?.item.status.value else {
        return (state.isClosed, nil, nil)
      }
      // A temporary failure is retried in the pool's next turn.
      let isTriedAgain = error.isTemporary && state.isShownAnew && state.currentItem?.id == id
      return (state.isClosed, nil, isTriedAgain ? nil : error)
    }
    guard !isClosed else { throw Self.closed }
    if let failure { throw failure }
    return player
  }

  /// Throws if the policy currently does not preload the item's first frame.
  private func checkIsPreloaded(_ item: FeedItem, at index: Int) throws(ReelError) {
    guard !state.withLock({ $0.isPinned(item.id) }) else { throw Self.pinned(item) }
    guard let plan = makePlan() else { throw Self.closed }
    let order = plan.entries.first { $0.item.id == item.id }?.order
    guard let order else {
      throw ReelError(
        .usage, "item \(index) is not preloaded by the policy \(configuration.policy)",
        at: item.id.description, advice: "show it, or use another policy or more slots")
    }
    if let target = order.target, target.stage < .firstFrame {
      throw ReelError(
        .usage, "item \(index) is preloaded only to \(target.stage) by the policy \(configuration.policy)",
        at: item.id.description, advice: "show it, or use another policy")
    }
  }

  private static let closed = ReelError(.cancelled, "the pool was closed")

  private static func pinned(_ item: FeedItem) -> ReelError {
    ReelError(.usage, "the item is pinned: it is shown by a player of its own", at: item.id.description)
  }
}

/// Enforcing the memory limit.
extension PoolCore {
  /// Lowers the targets of preloads according to the memory limit. Without a limit, nothing changes.
  ///
  /// - Returns: The entries, and the bytes by which the pool's memory is expected to grow with them.
  func withinMemory(_ entries: [Plan.Entry], _ state: State) -> (entries: [Plan.Entry], growth: Int) {
    guard let limit = configuration.memoryLimit else { return (entries, 0) }
    let ledger = ledger.entries
    func held(_ id: FeedItem.ID?) -> Int {
      ledger.first { $0.slot != nil && $0.item == id }?.account.byteCount ?? 0
    }
    let pinned = ledger.reduce(0) { $0 + ($1.slot == nil ? $1.account.byteCount : 0) }
    let current = state.currentItem?.id
    let expected = (state.costs.memoryByteCount(of: .buffered) ?? 0) + state.decodingByteCount
    var admission = MemoryAdmission(
      limit: limit, costs: state.costs, heldByteCount: held(current) + pinned,
      expectedByteCount: max(expected, held(current)) + pinned, decodingByteCount: state.decodingByteCount)
    let limited = entries.map { entry in
      guard let wanted = entry.order.target, entry.item.id != current else { return entry }
      let player = state.player(of: entry.item.id)
      let load = player?.load
      // The media that a rewound item loads again is not granted yet.
      let isAnew = player?.player.canRewind == true
      let begun = isAnew ? PreloadTarget(stage: .initialization) : load?.order.target ?? .current
      let answer = admission.admit(
        MemoryAdmission.Request(
          wanted: wanted, granted: load == nil ? nil : begun,
          heldByteCount: load == nil ? 0 : held(entry.item.id)))
      var order = entry.order
      order.target = answer.target
      order.lacksMemory = answer.isLimited
      return Plan.Entry(item: entry.item, order: order)
    }
    return (limited, admission.growth)
  }

  /// Ends preloads until the plan fits the memory limit. Call it when the slots have the planned items and
  /// ranks.
  func makeRoom(for growth: Int) {
    guard let limit = configuration.memoryLimit, hasPreload else { return }
    _ = trim(to: limit - min(growth, limit), sparesWaiting: true)
  }

  /// Plans again if the pool holds more than its memory limit, or if preloads wait for memory and a
  /// significant part of it, a 64th of the limit, has become free. (When costs change, the pool plans again
  /// anyway.)
  func checkMemory() {
    guard let limit = configuration.memoryLimit else { return }
    let held = heldByteCount
    let isFreed = state.withLock { state in
      guard held < state.heldByteCount - limit / 64 else {
        state.heldByteCount = max(state.heldByteCount, held)
        return false
      }
      state.heldByteCount = held
      return state.slots.contains { $0.load?.order.lacksMemory == true }
    }
    if isFreed || held > limit && hasPreload { wake() }
  }

  // MARK: - Private

  /// True if an item besides the current one is loaded, and may be ended.
  private var hasPreload: Bool {
    state.withLock { state in
      let current = state.currentItem?.id
      return state.slots.contains { player in
        guard let load = player.load, load.feedItem.id != current else { return false }
        return load.order.target?.stage != PreloadStage.none
      }
    }
  }
}

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
