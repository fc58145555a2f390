public import ReelPlayback

/// What a pool loads, and in which order, as a ``PreloadPolicy`` decides.
///
/// The current item has priority over all neighbours. Neighbours get the network only while the current item does not
/// want more: after its first frame, ``current`` decides how much that is. To load the first seconds of a neighbour
/// before the current item's later ones, bound the current item's forward buffer.
///
/// A pool loads a contiguous stretch of the feed around the current item, of no more items than it has slots. The stretch
/// grows from the current item: of the plan's neighbours that adjoin it, the one with the highest priority gets the next
/// slot, until no slot is free or no neighbour adjoins. All others are left out, and so is what can't be loaded: the
/// current item as its own neighbour, items outside the feed, a second entry for an item, the stage `.none`.
///
/// A changed plan changes what is loaded from then on, and nothing is fetched again for it, with one exception. A target
/// below `.firstFrame` for an item that has its first frame gives the item's memory back, so the item begins anew. To
/// keep what is loaded, ask for the stage that is reached (``PoolSituation/Item/stage``). An item that the plan does not
/// name, or that is left out, loses its slot and all that was loaded.
public struct PreloadPlan: Sendable, Hashable {
  /// A neighbour to load.
  public struct Neighbour: Sendable, Hashable {
    /// The distance from the current item, in items: negative for items before it.
    public var distance: Int
    /// How far to load the item.
    public var target: PreloadTarget

    /// A neighbour and its target.
    public init(distance: Int, target: PreloadTarget) {
      self.distance = distance
      self.target = target
    }
  }

  /// The neighbours to load, the most important one first.
  public var neighbours: [Neighbour]
  /// Limits on what the current item loads while it is played; by default, none.
  public var current: LoadingBounds
  /// The time after which the pool asks again if nothing changes; `nil` if only changes matter. Less than
  /// ``PreloadPlan/minimumReviewInterval`` counts as that.
  public var reviewInterval: Duration?
  /// False if the plan does not change when items have loaded what it wants of them.
  package var followsProgress = true

  /// The shortest time between two plans if the feed and the current item stay the same: 50 ms.
  public static let minimumReviewInterval = Duration.milliseconds(50)

  /// A plan; by default, one that loads the current item alone.
  public init(
    neighbours: [Neighbour] = [], current: LoadingBounds = LoadingBounds(), reviewInterval: Duration? = nil
  ) {
    self.neighbours = neighbours
    self.current = current
    self.reviewInterval = reviewInterval
  }
}

extension PreloadPolicy {
  /// Loads the neighbours for which ``target(at:in:)`` asks.
  ///
  /// It asks for each neighbour in the order of rank: the nearest first, and at equal distance first the one in the
  /// direction of travel. After the answer `none` it does not ask for items further away on that side. The current item
  /// has no bounds but its preferences.
  public func plan(in situation: PoolSituation) -> PreloadPlan {
    var plan = PreloadPlan()
    plan.followsProgress = false
    guard situation.itemCount > 0 else { return plan }
    let (forward, current) = (situation.direction, situation.currentIndex)
    var context = PreloadContext(
      direction: forward, slotCount: situation.slotCount, itemCount: situation.itemCount,
      currentIndex: current, plannedByteCount: situation.currentByteCount, costs: situation.costs,
      bandwidth: situation.throughput?.mean)
    var openSides = [forward, -forward]
    var distance = 1
    while !openSides.isEmpty, plan.neighbours.count + 1 < situation.slotCount {
      openSides = openSides.filter { side in
        guard plan.neighbours.count + 1 < situation.slotCount else { return false }
        let offset = side * distance
        guard situation.hasItem(at: offset) else { return false }
        context.rank = plan.neighbours.count
        let target = target(at: offset, in: context)
        guard target.stage != .none else { return false }
        plan.neighbours.append(PreloadPlan.Neighbour(distance: offset, target: target))
        context.plannedByteCount = context.plannedByteCount.addingClamped(
          situation.costs.memoryByteCount(of: target) ?? 0)
        return true
      }
      distance += 1
    }
    return plan
  }

  /// Loads nothing. A policy that decides in ``plan(in:)`` needs no other answer.
  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { .none }
}
