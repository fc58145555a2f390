import ReelCore
import ReelPlayback
import ReelPool
import ReelLab
import ReelTestSupport
import Testing

@Suite("The pool's window")
struct PoolWindowTests {
  /// Wants what it is told, by distance.
  private struct TablePolicy: PreloadPolicy {
    var stages: [Int: PreloadStage]
    var other = PreloadStage.notLoaded

    func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
      PreloadTarget(stage: stages[distance] ?? other)
    }

    var description: String { "table" }
  }

  /// Wants the first frame of everything, and notes what it was asked.
  private struct WatchingPolicy: PreloadPolicy {
    let asked = Locked<[(distance: Int, context: PreloadContext)]>([])

    func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
      asked.withLock { $0.append((distance, context)) }
      return PreloadTarget(stage: .firstFrame)
    }

    var description: String { "watching" }
  }

  private static func policies(_ random: inout SplitMix) -> [any PreloadPolicy] {
    var stages: [Int: PreloadStage] = [:]
    for distance in -12...12 {
      stages[distance] = PreloadStage.allCases[Int(random.next() % UInt64(PreloadStage.allCases.count))]
    }
    return [
      AdjacentPreload(), AheadPreload(Int(random.next() % 8)), Media3Preload(), NoPreload(),
      BudgetPreload(byteCount: Int(random.next() % 20_000_000)), TablePolicy(stages: stages),
      TablePolicy(stages: [:], other: .buffered),
    ]
  }

  @Test("Rules that hold for every window", arguments: 0..<40)
  func properties(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    for _ in 0..<50 {
      let itemCount = Int(random.next() % 30)
      let slotCount = Int(random.next() % 9) - 1
      let current = Int(random.next() % 40) - 5
      let direction = random.next() % 2 == 0 ? 1 : -1
      var costs = StageCosts()
      if random.next() % 2 == 0 {
        costs.record(
          StageCost(memoryByteCount: 3_000_000, networkByteCount: 0, duration: .zero), of: .buffered)
      }
      for policy in Self.policies(&random) {
        let window = PoolWindow(
          itemCount: itemCount, slotCount: slotCount, currentIndex: current, direction: direction,
          policy: policy,
          costs: costs)
        guard itemCount > 0 else {
          #expect(window.entries.isEmpty)
          #expect(window.indices.isEmpty)
          continue
        }
        let clamped = min(max(current, 0), itemCount - 1)
        let first = try #require(window.entries.first)
        #expect(first == PoolWindow.Entry(index: clamped, distance: 0, target: .current))
        let indices = window.entries.map(\.index)
        #expect(indices.count <= max(slotCount, 1))
        #expect(indices.allSatisfy((0..<itemCount).contains))
        // Contiguous, each index once.
        #expect(indices.sorted() == Array(window.indices))
        #expect(Set(indices.map(window.slot)).count == indices.count)
        #expect(window.entries.allSatisfy { $0.distance == $0.index - clamped })
        let order = window.entries.map { entry in
          2 * abs(entry.distance) - (entry.distance * direction > 0 ? 1 : 0)
        }
        #expect(order == order.sorted())
        #expect(window.entries.dropFirst().allSatisfy { $0.target.stage != .notLoaded })
      }
    }
  }

  @Test("The window moves by one item with a swipe, and keeps what it had")
  func swipe() {
    func indices(_ current: Int, _ direction: Int) -> [Int] {
      PoolWindow(
        itemCount: 10, slotCount: 3, currentIndex: current, direction: direction, policy: AdjacentPreload()
      ).entries.map(\.index)
    }
    #expect(indices(0, 1) == [0, 1])
    #expect(indices(4, 1) == [4, 5, 3])
    #expect(indices(5, 1) == [5, 6, 4])
    #expect(indices(4, -1) == [4, 3, 5])
    #expect(indices(9, 1) == [9, 8])
  }

  @Test("More neighbours than slots are cut by rank")
  func clamped() {
    let all = TablePolicy(stages: [:], other: .buffered)
    let window = PoolWindow(itemCount: 100, slotCount: 4, currentIndex: 50, direction: -1, policy: all)
    #expect(window.entries.map(\.index) == [50, 49, 51, 48])
    #expect(
      PoolWindow(itemCount: 2, slotCount: 200, currentIndex: 1, policy: all).entries.map(\.index) == [1, 0])
    #expect(PoolWindow(itemCount: 5, slotCount: 1, currentIndex: 1, policy: all).entries.map(\.index) == [1])
  }

  @Test("A side ends where the policy wants nothing, though it wants something behind it")
  func gap() {
    let policy = TablePolicy(stages: [1: .notLoaded, 2: .buffered, -1: .manifest, -2: .firstFrame])
    let window = PoolWindow(itemCount: 100, slotCount: 9, currentIndex: 50, policy: policy)
    #expect(window.entries.map(\.index) == [50, 49, 48])
    #expect(window.entries.map(\.target.stage) == [.buffered, .manifest, .firstFrame])
  }

  @Test("The policy is told the rank and what is planned before it")
  func context() {
    var costs = StageCosts()
    costs.record(StageCost(memoryByteCount: 100, networkByteCount: 0, duration: .zero), of: .firstFrame)
    costs.record(StageCost(memoryByteCount: 300, networkByteCount: 0, duration: .zero), of: .buffered)
    let policy = WatchingPolicy()
    _ = PoolWindow(
      itemCount: 10, slotCount: 4, currentIndex: 1, direction: 1, policy: policy, costs: costs, bandwidth: 5e6
    )
    let asked = policy.asked.withLock { $0 }
    #expect(asked.map(\.distance) == [1, -1, 2])
    #expect(asked.map(\.context.rank) == [0, 1, 2])
    #expect(asked.map(\.context.plannedByteCount) == [300, 400, 500])
    #expect(asked.allSatisfy { $0.context.bandwidth == 5e6 && $0.context.currentIndex == 1 })
    let measured = WatchingPolicy()
    _ = PoolWindow(
      itemCount: 10, slotCount: 2, currentIndex: 1, policy: measured, costs: costs, currentByteCount: 7)
    #expect(measured.asked.withLock { $0 }.map(\.context.plannedByteCount) == [7])
  }
}

extension PoolWindow {
  /// The window of a policy's plan in a situation in which no item has loaded anything.
  init(
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

  /// Returns the current item's memory according to measurements, with an open decoder if one was measured.
  private static func currentByteCount(by costs: StageCosts) -> Int {
    var cold = PreloadTarget.current
    cold.isDecoderWarm = false
    return costs.memoryByteCount(of: .current) ?? costs.memoryByteCount(of: cold) ?? 0
  }
}
