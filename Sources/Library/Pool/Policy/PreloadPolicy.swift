internal import ReelCore
public import ReelPlayback

/// Decides which items a pool loads besides the current one, and how far.
///
/// A policy is a value without state: it gives equal answers for equal arguments. The description of a
/// built-in policy is its form on the command line of `reel feed --preload`, such as `adjacent`.
public protocol PreloadPolicy: Sendable, CustomStringConvertible {
  /// Returns how far to load one neighbour.
  ///
  /// The pool calls it for each neighbour in the order of rank: the nearest first, and at equal distance first the one
  /// in the direction of travel. After the answer `none`, it is not called for items further away on that
  /// side, so the loaded items are contiguous. The call must not block.
  ///
  /// The answer `.onDisk` needs no slot: with a cache in front of the network, the pool keeps the item's head in it. It then
  /// calls also for items beyond the slots, of which at most 8 get a head, if the answer is that or more. Without a cache,
  /// `.onDisk` counts as `none`.
  ///
  /// - Parameters:
  ///   - distance: The neighbour's distance from the current item, in items: negative for items before it, never 0.
  ///   - context: The feed, the direction of travel, and the measured bandwidth.
  func target(at distance: Int, in context: PreloadContext) -> PreloadTarget
}

/// A policy that also decides on the order, on rungs, and on the current item's forward buffer.
package protocol PreloadPlanning: PreloadPolicy {
  /// Returns the items to load, and their order.
  ///
  /// The pool calls it after each swipe and each change of the feed, when an item has reached another stage
  /// or its target, and after ``PreloadPlan/reviewInterval``. The call must not block.
  func plan(in situation: PoolSituation) -> PreloadPlan
}

/// The items that a pool loads, and their order, as decided by a ``PreloadPolicy``.
///
/// The current item has priority over all neighbours. Neighbours get the network only while the current item
/// needs no more: after its first frame, ``current`` limits how much that is. To load the first seconds of a
/// neighbour before the current item's later ones, limit the current item's forward buffer.
///
/// A pool loads a contiguous stretch of the feed around the current item, of no more items than it has slots.
/// The stretch grows from the current item: of the plan's neighbours that adjoin it, the one with the highest
/// priority gets the next slot, until no slot is free or no neighbour adjoins. All others are left out, and
/// so are invalid entries: the current item as its own neighbour, items outside the feed, a second entry for
/// an item, the stage `.notLoaded`.
///
/// A neighbour with the target `.onDisk` needs no slot, and need not adjoin. If what the pool fetches is stored
/// (``PoolSituation/hasStore``), its head is fetched while no slot uses the network, one head at a time in the order of the
/// plan. An item that fails, or of which nothing was stored, is not tried again for some minutes.
///
/// A changed plan affects loading from then on, and nothing is fetched again because of it, with one
/// exception. A target below `.firstFrame` for an item that has its first frame releases the item's memory,
/// so the item starts over. To keep the loaded media, request the reached stage
/// (``PoolSituation/Item/stage``). An item that the plan does not contain, or that is left out, loses its
/// slot and all loaded media.
package struct PreloadPlan: Sendable, Hashable {
  package struct Neighbour: Sendable, Hashable {
    /// The distance from the current item, in items: negative for items before it.
    package var distance: Int
    /// How far to load the item.
    package var target: PreloadTarget

    package init(distance: Int, target: PreloadTarget) {
      self.distance = distance
      self.target = target
    }
  }

  /// The neighbours to load, the most important one first.
  package var neighbours: [Neighbour]
  /// Limits on the loading of the current item while it is played; by default, none.
  package var current: LoadingBounds
  /// The time after which the pool requests another plan if nothing changes; `nil` if only changes matter.
  /// Less than ``PreloadPlan/minimumReviewInterval`` counts as that.
  package var reviewInterval: Duration?
  /// False if the plan does not change when items have reached their targets.
  package var followsProgress = true

  /// The number of heads for which `target(at:in:)` is called beyond the slots: 8.
  package static let headLimit = 8

  /// The shortest time between two plans if the feed and the current item stay the same: 50 ms.
  package static let minimumReviewInterval = Duration.milliseconds(50)

  /// A plan; by default, one that loads the current item alone.
  package init(
    neighbours: [Neighbour] = [], current: LoadingBounds = LoadingBounds(), reviewInterval: Duration? = nil
  ) {
    self.neighbours = neighbours
    self.current = current
    self.reviewInterval = reviewInterval
  }
}

extension PreloadPolicy {
  /// Returns the plan of a policy: its own, or the neighbours that ``target(at:in:)`` requests. The current
  /// item then has no bounds except its preferences.
  package func plan(in situation: PoolSituation) -> PreloadPlan {
    if let planning = self as? any PreloadPlanning { return planning.plan(in: situation) }
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
    // Beyond a head, no item of its side has a slot.
    var headSides: [Int] = []
    var headRoom = situation.hasStore ? PreloadPlan.headLimit : 0
    while !openSides.isEmpty, context.rank + 1 < situation.slotCount || headRoom > 0 {
      openSides = openSides.filter { side in
        let hasSlot = context.rank + 1 < situation.slotCount && !headSides.contains(side)
        guard hasSlot || headRoom > 0 else { return false }
        let offset = side * distance
        guard situation.hasItem(at: offset) else { return false }
        var target = target(at: offset, in: context)
        if !hasSlot { target.stage = min(target.stage, .onDisk) }
        let isHead = target.stage == .onDisk
        guard isHead ? headRoom > 0 : target.stage != .notLoaded else { return false }
        plan.neighbours.append(PreloadPlan.Neighbour(distance: offset, target: target))
        if isHead {
          headRoom -= 1
          headSides.append(side)
          return true
        }
        context.rank += 1
        context.plannedByteCount = context.plannedByteCount.addingClamped(
          situation.costs.memoryByteCount(of: target) ?? 0)
        return true
      }
      distance += 1
    }
    return plan
  }

}

extension PreloadPlanning {
  /// Is not called.
  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { .notLoaded }
}

/// The basis of a preload policy's decision about one neighbour.
public struct PreloadContext: Sendable, Hashable {
  /// The direction of travel: 1 towards higher indices, -1 towards lower ones.
  ///
  /// It is the direction of the last swipe, or at an end of the feed the only possible one.
  public var direction: Int
  /// The number of slots in the pool, including the current item's.
  public var slotCount: Int
  /// The number of items in the feed.
  public var itemCount: Int
  /// The index of the current item.
  public var currentIndex: Int
  /// The neighbour's place among the preloads; 0 is loaded first.
  package var rank: Int
  /// The memory that the current item and the preloads with lower rank numbers hold when they have reached
  /// their targets, in bytes. Unknown parts count as 0.
  package var plannedByteCount: Int
  /// The measured costs of the stages so far.
  package var costs: StageCosts
  /// The mean throughput of the pool in bits per second; `nil` until enough
  /// was measured.
  public var bandwidth: Double?

  /// A context, for instance to test a policy with.
  package init(
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

  /// Returns true if `distance` is that of the next item in the direction of travel.
  public func isNext(_ distance: Int) -> Bool { distance == (direction < 0 ? -1 : 1) }
}

/// Preloads nothing: only the current item is loaded.
public struct NoPreload: PreloadPolicy, Hashable {
  /// The policy `none`.
  public init() {}

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { .notLoaded }

  public var description: String { "none" }
}

/// Preloads the previous and the next item: the first frame and 3 s of media each.
public struct AdjacentPreload: PreloadPolicy, Hashable {
  /// True to keep the decoder of the next item in the direction of travel open. Defaults to false.
  ///
  /// At 720x1280 an open decoder takes about 10 MB. It shortens the time to the second frame by about 25 ms, which is
  /// gained anyway if the end of the drag is reported (``SwipePhase/dragEnded``).
  public var isNextDecoderWarm: Bool

  /// The policy `adjacent`.
  public init(isNextDecoderWarm: Bool = false) {
    self.isNextDecoderWarm = isNextDecoderWarm
  }

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    guard abs(distance) == 1 else { return .notLoaded }
    return PreloadTarget(stage: .buffered, isDecoderWarm: isNextDecoderWarm && context.isNext(distance))
  }

  public var description: String { "adjacent" }
}

/// Preloads as many neighbours, and each as far, as a memory budget allows.
///
/// Neighbours are served by rank. Each gets the furthest stage whose measured memory fits the part of the
/// budget left by the current item and the neighbours of lower rank number. The next item in the direction of
/// travel keeps its decoder open if that fits too. Until something has been measured, only one neighbour is
/// loaded, up to its first frame.
public struct BudgetPreload: PreloadPolicy, Hashable {
  /// The budget for the whole pool, in bytes, not negative.
  public let byteCount: Int

  /// The policy `budget:SIZE`.
  ///
  /// - Parameter byteCount: The budget in bytes. A negative number counts as 0.
  public init(byteCount: Int) {
    self.byteCount = max(byteCount, 0)
  }

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    guard !context.costs.isEmpty else {
      return context.rank == 0 && context.plannedByteCount < byteCount
        ? PreloadTarget(stage: .firstFrame) : .notLoaded
    }
    let (rest, overflow) = byteCount.subtractingReportingOverflow(context.plannedByteCount)
    guard !overflow, rest > 0 else { return .notLoaded }
    return Self.ladder(isNext: context.isNext(distance)).first { target in
      context.costs.memoryByteCount(of: target).map { $0 <= rest } ?? false
    } ?? .notLoaded
  }

  public var description: String { "budget:\(ByteSize(byteCount: byteCount).compact)" }

  // MARK: - Private

  /// Returns the targets to try for a neighbour, the furthest first.
  private static func ladder(isNext: Bool) -> [PreloadTarget] {
    let stages: [PreloadStage] = [.buffered, .firstFrame, .initialization, .manifest]
    let cold = stages.map { PreloadTarget(stage: $0) }
    return isNext ? [PreloadTarget(stage: .buffered, isDecoderWarm: true)] + cold : cold
  }
}
