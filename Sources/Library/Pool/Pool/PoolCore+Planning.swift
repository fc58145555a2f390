internal import ReelCore
internal import ReelPlayback

/// What a policy plans with, and when it is asked.
extension PoolCore {
  /// A plan for a turn of the pool, after which another one is due when it says.
  func nextPlan() -> Plan? {
    let now = configuration.player.clock.now
    // Before it is made: a change that comes meanwhile is not lost.
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
  func noteChange() {
    let now = configuration.player.clock.now
    let isWanted = state.withLock { state in
      guard state.followsProgress, !state.isClosed else { return false }
      state.reviewAt = min(state.reviewAt ?? now, now)
      return true
    }
    if isWanted { wakeReview() }
  }

  /// One turn of the task loop that asks for plans when they are due.
  func review() -> TaskLoop.Next {
    let now = configuration.player.clock.now
    let due = state.withLock { state -> Duration? in
      guard !state.isClosed, let time = state.reviewAt else { return nil }
      // Plans that change what they depend on must not follow each other without a pause.
      let due = max(time, (state.plannedAt ?? .zero) + PreloadPlan.minimumReviewInterval)
      if due <= now { state.reviewAt = nil }
      return due
    }
    guard let due else { return .idle }
    if due > now { return .at(due) }
    wake()
    return .idle
  }

  /// What the policy is asked with.
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
        item.note(load, of: player)
      }
      return item
    }
    return situation
  }
}

extension PoolCore.State {
  /// How long the current item has been played since its swipe settled.
  func watchedDuration(at now: Duration) -> Duration {
    phase == .settled && index != nil ? max(now - watchedSince, .zero) : .zero
  }
}

extension PoolSituation.Item {
  /// Adds how far the item is loaded.
  fileprivate mutating func note(_ load: PooledPlayer.Load, of player: PooledPlayer) {
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
    // It begins anew, and only if it is wanted.
    (stage, position, bufferedDuration, fetchedByteCount) = (.initialization, .zero, .zero, 0)
    isLoadedToEnd = false
  }

  /// True if the media up to `end` is loaded. A buffer that is full does not read on to find that nothing follows.
  private func isCovered(_ end: Duration?) -> Bool {
    // The last frame of a track may end a little before the item.
    end.map { bufferedDuration > .zero && position + bufferedDuration >= $0 - .milliseconds(50) } ?? false
  }
}

extension PreloadTarget {
  /// The target of an item that is about to be played with `bounds`.
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
