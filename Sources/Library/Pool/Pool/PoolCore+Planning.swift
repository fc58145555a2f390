internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The plan of a turn: the policy's, within the memory limit.
extension PoolCore {
  /// - Parameter state: A copy, so that the policy is called without the lock.
  func makePlan(_ state: PoolState) -> PoolState.Plan {
    var plan = PoolState.Plan(
      generation: state.generation, snapshot: state.snapshot, direction: state.direction)
    guard let index = state.index else { return plan }
    let situation = situation(state, index: index)
    let preload = configuration.policy.plan(in: situation)
    let window = PoolWindow(preload, in: situation)
    plan.indices = window.indices
    plan.reviewInterval = preload.reviewInterval
    plan.followsProgress = preload.followsProgress
    for (rank, entry) in window.entries.prefix(state.keptCount ?? .max).enumerated() {
      let item = state.snapshot.items[entry.index]
      // An item that a program lists twice gets one slot, that of its better rank.
      guard !state.isPinned(item.id), !plan.entries.contains(where: { $0.item.id == item.id }) else {
        continue
      }
      let isPlayed = entry.distance == 0 && state.phase == .settled
      let target = entry.distance == 0 ? entry.target.bounded(by: preload.current) : entry.target
      var order = PoolState.Order(
        index: entry.index, rank: rank, target: isPlayed ? nil : target,
        plays: isPlayed && state.isPlaying, since: state.settledAt, isMuted: state.isMuted)
      if isPlayed { order.bounds = preload.current }
      order.beginAt(startPeakBitRate(isAwaited: entry.distance == 0, situation.throughput))
      if let bitRate = heads?.bitRate(of: item.id) { order.begin(atHead: bitRate) }
      plan.entries.append(
        PoolState.Plan.Entry(item: item, slot: window.slot(of: entry.index), order: order))
    }
    let peakBitRate = preload.current.peakBitRate
    addOthers(to: &plan, after: window.entries.count, below: peakBitRate, state, situation.throughput)
    limitMemory(of: &plan, state)
    if heads != nil {
      let others = PreloadTarget(stage: .onDisk, peakBitRate: peakBitRate)
      plan.heads = wantedHeads(
        window.heads.map { (state.snapshot.items[$0.index], $0.target) } + state.others.map { ($0, others) },
        beside: plan, state, situation.throughput)
    }
    return plan
  }

  /// Adds the items of other feeds that have slots, after those of the window.
  private func addOthers(
    to plan: inout PoolState.Plan, after rank: Int, below peakBitRate: Int?, _ state: PoolState,
    _ throughput: ThroughputEstimate?
  ) {
    let items = state.others.filter { item in
      !state.isPinned(item.id) && !plan.entries.contains { $0.item.id == item.id }
    }
    let room = min(configuration.slotsForOtherFeeds, (state.keptCount ?? .max) - rank)
    for (number, item) in items.prefix(max(room, 0)).enumerated() {
      var order = PoolState.Order(
        index: nil, rank: rank + number, target: PreloadTarget(stage: .buffered, peakBitRate: peakBitRate),
        plays: false, since: state.settledAt, isMuted: state.isMuted)
      order.beginAt(startPeakBitRate(isAwaited: false, throughput))
      if let bitRate = heads?.bitRate(of: item.id) { order.begin(atHead: bitRate) }
      plan.entries.append(
        PoolState.Plan.Entry(item: item, slot: configuration.slotCount + number, order: order))
    }
  }

  /// The limit for the rung of an item's first segment, if the policy states none.
  private func startPeakBitRate(isAwaited: Bool, _ throughput: ThroughputEstimate?) -> Int? {
    configuration.firstRung.peakBitRate(
      isAwaited: isAwaited, throughput: throughput, start: configuration.player.thresholds.start)
  }

  /// Returns the input of the policy.
  func situation(_ state: PoolState, index: Int) -> PoolSituation {
    var situation = PoolSituation(
      direction: state.direction, slotCount: configuration.slotCount, itemCount: state.snapshot.items.count,
      currentIndex: index)
    situation.watchedDuration = state.watchedDuration(at: clock.now)
    situation.history = state.history
    situation.costs = state.costs
    situation.currentByteCount = (state.costs.memoryByteCount(of: .buffered) ?? 0) + state.decodingByteCount
    situation.throughput = resources.network.throughput
    situation.maximumOpenDecoders = configuration.maximumOpenDecoders
    situation.memoryLimit = configuration.memoryLimit
    situation.hasStore = heads != nil
    let reach = max(situation.slotCount - 1, situation.hasStore ? PreloadPlan.headLimit : 0)
    let current = situation.currentIndex
    let near = max(current - reach, 0)...min(current + reach, situation.itemCount - 1)
    situation.items = near.map { index in
      let feedItem = state.snapshot.items[index]
      var item = PoolSituation.Item(feedItem, index: index, distance: index - current)
      if let slot = state.slot(of: feedItem.id) { item.record(slot) }
      item.isOnDisk = heads?.isOnDisk(feedItem.id) ?? false
      return item
    }
    return situation
  }

  /// Throws if the policy currently does not preload the item's first frame.
  func checkIsPreloaded(_ item: FeedItem, at index: Int) throws {
    let state = state.withLock { $0 }
    guard !state.isPinned(item.id) else { throw ReelError.pinned(item.id) }
    guard !state.isClosed else { throw ReelError.closed }
    try state.snapshot.check(item.id)
    guard let order = makePlan(state).entries.first(where: { $0.item.id == item.id })?.order else {
      throw ReelError(
        .usage, "item \(index) is not preloaded by the policy \(configuration.policy)",
        at: item.id.description, advice: "show it, or use another policy or more slots")
    }
    if let target = order.target, target.stage < .firstFrame {
      throw ReelError(
        .usage,
        "item \(index) is preloaded only to \(target.stage.text) by the policy \(configuration.policy)",
        at: item.id.description, advice: "show it, or use another policy")
    }
  }

  // MARK: - Private

  /// Returns the heads to keep: each item once, and none of an item that has a slot or is a local file.
  private func wantedHeads(
    _ items: [(item: FeedItem, target: PreloadTarget)], beside plan: PoolState.Plan, _ state: PoolState,
    _ throughput: ThroughputEstimate?
  ) -> [HeadKeeper.Wanted] {
    var taken = Set(plan.entries.map(\.item.id) + state.pinned.map(\.id))
    return items.compactMap { item, target in
      guard item.host != nil, taken.insert(item.id).inserted else { return nil }
      var target = target
      target.startPeakBitRate = target.startPeakBitRate ?? startPeakBitRate(isAwaited: false, throughput)
      return HeadKeeper.Wanted(item: item, target: target, playsAudio: !state.isMuted)
    }
  }

  /// Lowers the targets of preloads according to the memory limit. Without a limit, nothing changes.
  private func limitMemory(of plan: inout PoolState.Plan, _ state: PoolState) {
    guard let limit = configuration.memoryLimit else { return }
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
    for (rank, entry) in plan.entries.enumerated() {
      guard let wanted = entry.order.target, entry.item.id != current else { continue }
      let slot = state.slot(of: entry.item.id)
      // The media that a rewound item loads again is not granted yet.
      let isAnew = slot?.player.player.canRewind == true
      let granted = isAnew ? PreloadTarget(stage: .initialization) : slot?.load?.order.target ?? .current
      let answer = admission.admit(
        MemoryAdmission.Request(
          wanted: wanted, granted: slot == nil ? nil : granted,
          heldByteCount: slot == nil ? 0 : held(entry.item.id)))
      plan.entries[rank].order.target = answer.target
      plan.entries[rank].order.lacksMemory = answer.isLimited
    }
    plan.growth = admission.growth
  }
}

extension PoolSituation.Item {
  /// Adds how far the item is loaded.
  fileprivate mutating func record(_ slot: PoolState.Slot) {
    guard let load = slot.load else { return }
    let (item, player) = (load.item, slot.player.player)
    let statistics = player.statistics
    duration = duration ?? item.duration.value.map { .seconds($0.seconds) }
    stage = load.stage
    position = max(.seconds(player.currentTime.seconds), .zero)
    bufferedDuration = statistics.bufferedDuration
    fetchedByteCount = slot.fetchedByteCount - load.byteCountBeforeRewind
    rungs = item.ladder.rungs
    rung = item.rung.value
    segmentDuration = item.ladder.segmentDuration
    isLoadedToEnd = statistics.isLoadedToEnd || isCovered(item.duration.value.map { .seconds($0.seconds) })
    if case .failed = item.status.value { hasFailed = true }
    guard distance != 0, player.canRewind else { return }
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
  fileprivate func bounded(by bounds: LoadingBounds) -> PreloadTarget {
    var target = self
    target.bufferDuration = bounds.forwardBufferDuration ?? bufferDuration
    target.peakBitRate = bounds.peakBitRate ?? peakBitRate
    target.startPeakBitRate = bounds.startPeakBitRate ?? startPeakBitRate
    return target
  }
}
