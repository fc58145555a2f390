import ReelPlayback
import ReelPool
import Testing

@Suite("Preloading by a budget of memory")
struct BudgetPreloadTests {
  private static func cost(_ byteCount: Int) -> StageCost {
    StageCost(memoryByteCount: byteCount, networkByteCount: byteCount, duration: .milliseconds(1))
  }

  private static let costs: StageCosts = {
    var costs = StageCosts()
    costs.record(cost(50), of: .manifest)
    costs.record(cost(100), of: .initialization)
    costs.record(cost(1_500), of: .firstFrame)
    costs.record(cost(2_500), of: .buffered)
    costs.recordWarmDecoder(byteCount: 5_000)
    return costs
  }()

  private static func window(_ budget: Int, costs: StageCosts, slotCount: Int = 5) -> [PreloadTarget] {
    PoolWindow(
      itemCount: 100, slotCount: slotCount, currentIndex: 50, policy: BudgetPreload(byteCount: budget),
      costs: costs
    ).entries.dropFirst().map(\.target)
  }

  @Test("Before anything is known: one neighbour, to its first frame")
  func unknown() {
    #expect(Self.window(1_000_000, costs: StageCosts()) == [PreloadTarget(stage: .firstFrame)])
    #expect(Self.window(0, costs: StageCosts()).isEmpty)
  }

  @Test("As deep as what is left allows, by rank")
  func ladder() {
    // The current item takes 7,500.
    #expect(Self.window(7_500, costs: Self.costs).isEmpty)
    #expect(Self.window(7_550, costs: Self.costs).map(\.stage) == [.manifest])
    #expect(Self.window(7_500 + 1_600, costs: Self.costs).map(\.stage) == [.firstFrame, .initialization])
    #expect(Self.window(7_500 + 4_000, costs: Self.costs).map(\.stage) == [.buffered, .firstFrame])
    let warm = Self.window(7_500 + 7_500, costs: Self.costs)
    #expect(warm == [PreloadTarget(stage: .buffered, isDecoderWarm: true)])
    let all = Self.window(1_000_000, costs: Self.costs)
    #expect(all.map(\.stage) == [.buffered, .buffered, .buffered, .buffered])
    #expect(all.map(\.isDecoderWarm) == [true, false, false, false])
  }

  @Test("The plan never takes more than the budget", arguments: Array(stride(from: 0, to: 40_000, by: 170)))
  func fits(budget: Int) {
    let planned = Self.window(budget, costs: Self.costs, slotCount: 9).compactMap(
      Self.costs.memoryByteCount(of:))
    #expect(planned.isEmpty || planned.reduce(7_500, +) <= budget)
  }

  @Test("A stage that was never measured is not gone to, unless a deeper one fits")
  func partlyKnown() {
    var costs = StageCosts()
    costs.record(Self.cost(1_500), of: .firstFrame)
    // What the current item takes is not known yet.
    #expect(Self.window(1_500, costs: costs).map(\.stage) == [.firstFrame])
    #expect(Self.window(1_499, costs: costs).isEmpty)
  }
}
