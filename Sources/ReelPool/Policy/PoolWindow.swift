package import ReelPlayback

/// Which items of a feed have a slot, how far each is loaded, and in which order: a pure value.
///
/// The window is one stretch of the feed around the current item, inside the feed, of no more items than there are
/// slots; so no two of its indices are the same modulo the slots. It grows outwards from the current item: by distance,
/// and at one distance first in the direction of travel. Where a side's next item is beyond the feed's end, or the
/// policy wants nothing of it, that side is at its end. A policy that asks for more than there are slots gets the first
/// of them in that order.
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

  /// - Parameters:
  ///   - itemCount: Of the feed.
  ///   - slotCount: Of the pool; less than 1 counts as 1.
  ///   - currentIndex: One outside of the feed counts as the nearest that is inside.
  ///   - direction: Where the last swipe went; negative for lower indices.
  ///   - costs: What the stages have cost so far.
  ///   - currentByteCount: The memory that the current item takes, where it is known; else it counts by `costs`.
  ///   - bandwidth: The network's estimated rate in bits per second.
  package init(
    itemCount: Int, slotCount: Int, currentIndex: Int, direction: Int = 1, policy: some PreloadPolicy,
    costs: StageCosts = StageCosts(), currentByteCount: Int? = nil, bandwidth: Double? = nil
  ) {
    let slots = max(slotCount, 1)
    self.slotCount = slots
    guard itemCount > 0 else {
      entries = []
      return
    }
    let current = min(max(currentIndex, 0), itemCount - 1)
    var forward = direction < 0 ? -1 : 1
    // At an end of the feed there is one way to go.
    if !(0..<itemCount).contains(current + forward) { forward = -forward }
    var entries = [Entry(index: current, distance: 0, target: .current)]
    var context = PreloadContext(
      direction: forward, slotCount: slots, itemCount: itemCount, currentIndex: current,
      plannedByteCount: currentByteCount ?? Self.currentByteCount(by: costs), costs: costs,
      bandwidth: bandwidth)
    var openSides = [forward, -forward]
    var distance = 1
    while !openSides.isEmpty, entries.count < slots {
      openSides = openSides.filter { side in
        guard entries.count < slots else { return false }
        let offset = side * distance
        guard (0..<itemCount).contains(current + offset) else { return false }
        context.rank = entries.count - 1
        let target = policy.target(at: offset, in: context)
        guard target.stage != .none else { return false }
        entries.append(Entry(index: current + offset, distance: offset, target: target))
        context.plannedByteCount = context.plannedByteCount.addingClamped(
          costs.memoryByteCount(of: target) ?? 0)
        return true
      }
      distance += 1
    }
    self.entries = entries
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
