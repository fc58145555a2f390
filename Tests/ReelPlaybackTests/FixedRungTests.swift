import ReelCore
import ReelReading
import Testing

@Suite("A fixed rung")
struct FixedRungTests {
  private func candidate(_ index: Int, _ bits: Int, height: Int? = nil) -> RungCandidate {
    RungCandidate(
      index: index, id: "r\(index)", bitsPerSecond: bits,
      size: height.map { PixelSize(width: $0 * 16 / 9, height: $0) })
  }

  private func choose(
    _ candidates: [RungCandidate], cap: Int? = nil, height: Int? = nil, width: Int? = nil, current: Int? = nil
  ) -> Int {
    var fixed = FixedRung()
    fixed.recordTransfer(TransferSample(byteCount: 1_000, duration: .seconds(10), endedAt: .zero))
    #expect(fixed.estimatedBandwidth == nil)
    let state = AdaptationState(
      current: current, buffered: .zero, bufferTarget: .seconds(3), isRebuffering: true, now: .zero,
      peakBitRate: cap, maximumHeight: height, maximumWidth: width)
    return fixed.choose(among: candidates, state).index
  }

  private var ladder: [RungCandidate] {
    [
      candidate(0, 500_000, height: 270), candidate(1, 2_000_000, height: 540),
      candidate(2, 3_000_000, height: 720), candidate(3, 6_000_000, height: 1080),
    ]
  }

  @Test(
    "The highest at or under the cap, else the lowest",
    arguments: [(nil, 3), (3_000_000, 2), (2_999_999, 1), (100, 0), (0, 0)] as [(Int?, Int)])
  func cap(cap: Int?, expected: Int) {
    #expect(choose(ladder, cap: cap) == expected)
    #expect(choose(ladder, cap: cap, current: 0) == expected)
  }

  @Test(
    "Rungs with too many lines are left out where there are others",
    arguments: [(1080, 3), (1079, 2), (540, 1), (100, 0)])
  func height(maximum: Int, expected: Int) {
    #expect(choose(ladder, height: maximum) == expected)
  }

  @Test("Rungs that are too wide are left out", arguments: [(1920, 3), (1919, 2), (960, 1), (100, 0)])
  func width(maximum: Int, expected: Int) {
    #expect(choose(ladder, width: maximum) == expected)
    #expect(choose(ladder, height: 1080, width: maximum) == expected)
    #expect(choose(ladder, height: 540, width: maximum) == min(expected, 1))
  }

  @Test("The lines come before the cap, and an unknown size fits")
  func both() {
    #expect(choose(ladder, cap: 100, height: 100) == 0)
    #expect(choose([candidate(0, 1), candidate(1, 2, height: 1080)], height: 720) == 0)
    #expect(choose([candidate(0, 1, height: 720), candidate(1, 2, height: 720)], height: 100) == 1)
  }

  @Test("Of equals the first")
  func ties() {
    let equals = [candidate(4, 1_000), candidate(5, 1_000)]
    #expect(choose(equals) == 4)
    #expect(choose(equals, cap: 10) == 4)
  }
}
