import ReelPlayback
import Testing

@Suite("Buffering thresholds")
struct BufferingThresholdsTests {
  private let thresholds = BufferingThresholds()

  private func isLikely(
    _ buffered: Double, target: Double = 3, isComplete: Bool = false, isFull: Bool = false,
    isAfterStall: Bool = false, rate: Double = 1
  ) -> Bool {
    thresholds.isLikelyToKeepUp(
      buffered: .seconds(buffered), target: .seconds(target), isComplete: isComplete, isFull: isFull,
      isAfterStall: isAfterStall, rate: rate)
  }

  @Test("A start takes less than to go on after a stall")
  func thresholdsOfTime() {
    #expect(!isLikely(0.49))
    #expect(isLikely(0.5))
    #expect(!isLikely(1.49, isAfterStall: true))
    #expect(isLikely(1.5, isAfterStall: true))
  }

  @Test("What is loaded to its end or as far as it goes has to do")
  func noMoreComes() {
    #expect(isLikely(0, isComplete: true))
    #expect(isLikely(0.1, isFull: true, isAfterStall: true))
  }

  @Test("A faster presentation needs as much more, a slower one no less")
  func rate() {
    #expect(!isLikely(0.9, rate: 2))
    #expect(isLikely(1, rate: 2))
    #expect(!isLikely(0.4, rate: 0.5))
    #expect(!isLikely(0.4, rate: 0))
    #expect(isLikely(0.5, rate: .nan))
    #expect(isLikely(3, rate: 1e300))
  }

  @Test("No more is waited for than the target")
  func target() {
    #expect(!isLikely(0.9, target: 1, isAfterStall: true))
    #expect(isLikely(1, target: 1, isAfterStall: true))
    #expect(isLikely(0, target: 0))
  }
}
