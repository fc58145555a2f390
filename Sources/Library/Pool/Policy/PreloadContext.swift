/// What a preload policy can base its decision about one neighbour on.
public struct PreloadContext: Sendable, Hashable {
  /// The direction of travel: 1 towards higher indices, -1 towards lower ones.
  ///
  /// It is the direction of the last swipe, or at an end of the feed the only one possible.
  public var direction: Int
  /// The number of slots in the pool, including the current item's.
  public var slotCount: Int
  /// The number of items in the feed.
  public var itemCount: Int
  /// The index of the current item.
  public var currentIndex: Int
  /// The neighbour's place among the preloads; 0 is loaded first.
  public var rank: Int
  /// The memory that the current item and the preloads with lower rank numbers take when they have reached their
  /// targets, in bytes. Unknown parts count as 0.
  public var plannedByteCount: Int
  /// The measured costs of the stages so far.
  public var costs: StageCosts
  /// The mean throughput of the pool in bits per second (``PoolSituation/throughput``); `nil` until enough was measured.
  public var bandwidth: Double?

  /// A context, for instance to test a policy with.
  public init(
    direction: Int = 1, slotCount: Int, itemCount: Int, currentIndex: Int, rank: Int = 0,
    plannedByteCount: Int = 0, costs: StageCosts = StageCosts(), bandwidth: Double? = nil
  ) {
    self.direction = direction
    self.slotCount = slotCount
    self.itemCount = itemCount
    self.currentIndex = currentIndex
    self.rank = rank
    self.plannedByteCount = plannedByteCount
    self.costs = costs
    self.bandwidth = bandwidth
  }

  /// True if `distance` is that of the next item in the direction of travel.
  public func isNext(_ distance: Int) -> Bool { distance == (direction < 0 ? -1 : 1) }
}
