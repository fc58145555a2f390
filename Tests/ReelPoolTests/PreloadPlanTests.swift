import ReelPlayback
import ReelPool
import Testing

@Suite("Preload plans")
struct PreloadPlanTests {
  private static func plan(_ distances: [Int], stage: PreloadStage = .buffered) -> PreloadPlan {
    PreloadPlan(
      neighbours: distances.map { PreloadPlan.Neighbour(distance: $0, target: PreloadTarget(stage: stage)) })
  }

  private static func indices(_ plan: PreloadPlan, slots: Int, at current: Int = 5) -> [Int] {
    PoolWindow(plan, in: PoolSituation(slotCount: slots, itemCount: 10, currentIndex: current)).entries
      .map(\.index)
  }

  @Test("Neighbours are loaded in the plan's order, as far as they adjoin")
  func order() {
    let plan = Self.plan([2, 1, -1, -2])
    #expect(Self.indices(plan, slots: 5) == [5, 7, 6, 4, 3])
    #expect(Self.indices(plan, slots: 4) == [5, 7, 6, 4])
    #expect(Self.indices(plan, slots: 3) == [5, 7, 6])
    // The second item ahead does not adjoin before the first has its slot.
    #expect(Self.indices(plan, slots: 2) == [5, 6])
    #expect(Self.indices(plan, slots: 1) == [5])
  }

  @Test("What can't be loaded is left out")
  func impossible() {
    #expect(Self.indices(Self.plan([3, 2]), slots: 5) == [5])
    #expect(Self.indices(Self.plan([0, 1, 1, 1]), slots: 5) == [5, 6])
    #expect(Self.indices(Self.plan([1, 2, -1]), slots: 5, at: 9) == [9, 8])
    #expect(Self.indices(Self.plan([.max, .min, -1, 1, 1]), slots: 5) == [5, 4, 6])
    #expect(Self.indices(Self.plan([1, 2], stage: .notLoaded), slots: 5) == [5])
    #expect(
      PoolWindow(Self.plan([1]), in: PoolSituation(slotCount: 3, itemCount: 0, currentIndex: 0)).entries
        .isEmpty)
  }

  @Test("A policy that decides on each neighbour has a plan in the order of distance")
  func defaultPlan() {
    var situation = PoolSituation(direction: -1, slotCount: 4, itemCount: 10, currentIndex: 5)
    situation.throughput = ThroughputEstimate(mean: 1e6)
    let plan = AdjacentPreload().plan(in: situation)
    #expect(plan.neighbours.map(\.distance) == [-1, 1])
    #expect(plan.current == LoadingBounds())
    #expect(plan.reviewInterval == nil)
  }

  @Test("At an end of the feed, the direction is reversed")
  func direction() {
    #expect(PoolSituation(direction: 1, slotCount: 3, itemCount: 3, currentIndex: 2).direction == -1)
  }

  @Test("The history keeps the latest swipes")
  func history() {
    var history = ViewingHistory()
    for _ in 0..<100 { history.record(ViewingHistory.Swipe(watchedDuration: .zero, isForward: false)) }
    #expect(history.swipes.count == ViewingHistory.limit)
  }
}
