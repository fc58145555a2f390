package import ReelPlayback

/// Which items of a feed have a slot, how far each is loaded, and in which order: a pure value.
///
/// The window is one stretch of the feed around the current item, inside the feed, of no more items than there are
/// slots; so no two of its indices are the same modulo the slots. It follows from a `PreloadPlan`.
package struct PoolWindow: Sendable, Hashable {
  /// An item with a slot.
  package struct Entry: Sendable, Hashable {
    /// In the feed.
    package let index: Int
    /// From the current item; negative for those before it.
    package let distance: Int
    package let target: PreloadTarget

    package init(index: Int, distance: Int, target: PreloadTarget) {
      self.index = index
      self.distance = distance
      self.target = target
    }
  }

  /// By rank: the current item, then the preloads, the one that is loaded first before the others. Empty for an empty
  /// feed.
  package let entries: [Entry]
  package let slotCount: Int

  /// The window of a plan: it grows as ``PreloadPlan`` says.
  package init(_ plan: PreloadPlan, in situation: PoolSituation) {
    slotCount = situation.slotCount
    guard situation.itemCount > 0 else {
      entries = []
      return
    }
    let current = situation.currentIndex
    var left = plan.neighbours.filter {
      $0.target.stage != .none && $0.distance != 0 && abs($0.distance) < situation.slotCount
        && situation.hasItem(at: $0.distance)
    }
    // The places of the neighbours in the plan that are loaded: those between `low` and `high`.
    var (low, high) = (0, 0)
    while high - low + 1 < slotCount,
      let next = left.firstIndex(where: { $0.distance == low - 1 || $0.distance == high + 1 })
    {
      let distance = left[next].distance
      (low, high) = (min(low, distance), max(high, distance))
    }
    var taken: Set<Int> = []
    left.removeAll { !(low...high).contains($0.distance) || !taken.insert($0.distance).inserted }
    entries =
      [Entry(index: current, distance: 0, target: .current)]
      + left.map { Entry(index: current + $0.distance, distance: $0.distance, target: $0.target) }
  }

  /// The window of a policy's plan in a situation in which no item has loaded anything.
  ///
  /// - Parameters:
  ///   - itemCount: Of the feed.
  ///   - slotCount: Of the pool; less than 1 counts as 1.
  ///   - currentIndex: One outside of the feed counts as the nearest that is inside.
  ///   - direction: Where the last swipe went; negative for lower indices.
  ///   - costs: What the stages have cost so far.
  ///   - currentByteCount: The memory that the current item takes, where it is known; else it counts by `costs`.
  ///   - bandwidth: The network's mean rate in bits per second.
  package init(
    itemCount: Int, slotCount: Int, currentIndex: Int, direction: Int = 1, policy: some PreloadPolicy,
    costs: StageCosts = StageCosts(), currentByteCount: Int? = nil, bandwidth: Double? = nil
  ) {
    var situation = PoolSituation(
      direction: direction, slotCount: slotCount, itemCount: itemCount, currentIndex: currentIndex)
    situation.costs = costs
    situation.currentByteCount = currentByteCount ?? Self.currentByteCount(by: costs)
    situation.throughput = bandwidth.map { ThroughputEstimate(mean: $0) }
    self.init(policy.plan(in: situation), in: situation)
  }

  /// The indices that have a slot; empty for an empty feed.
  package var indices: Range<Int> {
    guard let low = entries.map(\.index).min(), let high = entries.map(\.index).max() else { return 0..<0 }
    return low..<high + 1
  }

  /// The slot of an item's index.
  package func slot(of index: Int) -> Int { index % slotCount }

  // MARK: - Private

  /// The current item's memory by what was measured, with an open decoder where one was.
  private static func currentByteCount(by costs: StageCosts) -> Int {
    var cold = PreloadTarget.current
    cold.isDecoderWarm = false
    return costs.memoryByteCount(of: .current) ?? costs.memoryByteCount(of: cold) ?? 0
  }
}
