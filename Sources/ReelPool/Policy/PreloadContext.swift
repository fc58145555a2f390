/// What a preload policy may go by when it is asked for one neighbour.
public struct PreloadContext: Sendable, Hashable {
  /// Where the last swipe went: 1 towards higher indices, -1 towards lower ones.
  public var direction: Int
  /// Slots of the pool, the current item's included.
  public var slotCount: Int
  public var itemCount: Int
  public var currentIndex: Int
  /// The neighbour's place among the preloads, 0 for the one that is loaded first.
  public var rank: Int
  /// The memory that the current item and the preloads of better rank take once they are where they are to be, in
  /// bytes; what is not known counts as 0.
  public var plannedByteCount: Int
  /// What the stages have cost so far.
  public var costs: StageCosts
  /// The network's estimated rate in bits per second; nil before anything was measured.
  public var bandwidth: Double?

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

  /// True where `distance` is the next item in the direction of travel.
  public func isNext(_ distance: Int) -> Bool { distance == (direction < 0 ? -1 : 1) }
}
