import ReelPlayback
import ReelPool
import Testing

@Suite("Costs of stages")
struct StageCostsTests {
  private static func cost(_ byteCount: Int, _ milliseconds: Int = 0) -> StageCost {
    StageCost(
      memoryByteCount: byteCount, networkByteCount: byteCount * 2, duration: .milliseconds(milliseconds))
  }

  @Test("The average of the first items, then one that follows the latest")
  func averages() {
    var costs = StageCosts()
    #expect(costs.isEmpty)
    costs.record(Self.cost(100, 10), of: .firstFrame)
    costs.record(Self.cost(300, 30), of: .firstFrame)
    #expect(costs[.firstFrame] == Self.cost(200, 20))
    for _ in 0..<200 { costs.record(Self.cost(10_000, 10), of: .firstFrame) }
    // Whole numbers: the average stops less than a window short of the value.
    #expect((9_993...10_000).contains(costs[.firstFrame]?.memoryByteCount ?? 0))
    #expect(costs[.buffered] == nil)
    costs.record(Self.cost(1), of: .notLoaded)
    #expect(costs[.notLoaded] == nil)
  }

  @Test("Memory of a target")
  func memory() {
    var costs = StageCosts()
    #expect(costs.memoryByteCount(of: .notLoaded) == 0)
    #expect(costs.memoryByteCount(of: PreloadTarget(stage: .manifest)) == nil)
    costs.record(Self.cost(1_000), of: .firstFrame)
    #expect(costs.memoryByteCount(of: PreloadTarget(stage: .manifest)) == 1_000)
    #expect(costs.memoryByteCount(of: PreloadTarget(stage: .buffered)) == nil)
    costs.record(Self.cost(4_000), of: .buffered)
    func buffered(_ duration: Duration, limit: Int? = nil, warm: Bool = false) -> Int? {
      costs.memoryByteCount(
        of: PreloadTarget(stage: .buffered, bufferDuration: duration, byteLimit: limit, isDecoderWarm: warm))
    }
    #expect(buffered(.seconds(3)) == 4_000)
    #expect(buffered(.seconds(1)) == 2_000)
    #expect(buffered(.seconds(6)) == 7_000)
    #expect(buffered(.seconds(6), limit: 1_500) == 2_500)
    #expect(buffered(.seconds(-1)) == 1_000)
    #expect(buffered(.seconds(3), warm: true) == nil)
    costs.recordWarmDecoder(byteCount: 5_000)
    costs.recordWarmDecoder(byteCount: 7_000)
    #expect(costs.warmDecoderByteCount == 6_000)
    #expect(buffered(.seconds(3), warm: true) == 10_000)
  }
}
