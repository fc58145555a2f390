internal import ReelCore
internal import ReelPlayback

/// Keeping to the memory limit.
extension PoolCore {
  /// Lowers the targets of preloads to what the memory limit allows. Without a limit, nothing changes.
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
      // What an item that has ended loads anew is not granted yet.
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

  /// Ends preloads until what is planned fits the memory limit. To be called when the slots have the planned items and
  /// ranks.
  func makeRoom(for growth: Int) {
    guard let limit = configuration.memoryLimit, hasPreload else { return }
    _ = trim(to: limit - min(growth, limit), sparesWaiting: true)
  }

  /// Plans again if the pool holds more than its memory limit, or if preloads wait for memory and a noticeable part of
  /// it, a 64th of the limit, has become free. (When costs change, the pool plans again anyway.)
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

  /// An item beside the current one is loaded, and may be ended.
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
