import ReelReading
import Testing

@Suite("Bandwidth estimates")
struct BandwidthEstimatorTests {
  private func isNear(_ value: Double?, _ expected: Double) -> Bool {
    value.map { abs($0 - expected) <= expected * 1e-9 } ?? false
  }

  @Test("The first sample counts in full, and equal samples change nothing")
  func constant() {
    var estimator = BandwidthEstimator()
    #expect(estimator.estimate == nil)
    for _ in 0..<50 {
      estimator.add(byteCount: 125_000, duration: .milliseconds(500))
      #expect(isNear(estimator.estimate, 2_000_000))
    }
  }

  @Test("A sample weighs as much as it took")
  func weights() {
    var whole = BandwidthEstimator()
    whole.add(byteCount: 1_000_000, duration: .seconds(4))
    whole.add(byteCount: 250_000, duration: .seconds(4))
    var parts = BandwidthEstimator()
    for _ in 0..<8 { parts.add(byteCount: 125_000, duration: .milliseconds(500)) }
    for _ in 0..<8 { parts.add(byteCount: 31_250, duration: .milliseconds(500)) }
    #expect(isNear(parts.estimate, whole.estimate ?? 0))
  }

  @Test("After its half-life an average has gone half the way")
  func halfLife() {
    var estimator = BandwidthEstimator(fastHalfLife: .seconds(2), slowHalfLife: .seconds(2))
    // So long that the bias of the beginning is gone.
    estimator.add(byteCount: 1_000_000_000, duration: .seconds(1000))
    estimator.add(byteCount: 500_000, duration: .seconds(2))
    #expect(isNear(estimator.estimate, 5_000_000))
  }

  @Test("The lesser counts: down with the fast average, up with the slow one")
  func lesser() {
    var fall = BandwidthEstimator()
    fall.add(byteCount: 1_000_000_000, duration: .seconds(1000))
    fall.add(byteCount: 0, duration: .seconds(2))
    fall.add(byteCount: 16_000, duration: .zero)
    // 16,000 bytes in 2 s, half of the fast average.
    #expect(isNear(fall.estimate, 4_032_000))
    var rise = BandwidthEstimator()
    rise.add(byteCount: 125_000_000, duration: .seconds(1000))
    rise.add(byteCount: 5_000_000, duration: .seconds(5))
    #expect(isNear(rise.estimate, 4_500_000))
  }

  @Test("Small samples are added up")
  func smallSamples() {
    var estimator = BandwidthEstimator(minimumByteCount: 16_000)
    for _ in 0..<3 {
      estimator.add(byteCount: 4_000, duration: .milliseconds(100))
      #expect(estimator.estimate == nil)
    }
    estimator.add(byteCount: 4_000, duration: .milliseconds(100))
    #expect(isNear(estimator.estimate, 320_000))
  }

  @Test("What has no time or no bytes is no rate")
  func degenerate() {
    var estimator = BandwidthEstimator(minimumByteCount: 0)
    estimator.add(byteCount: 1_000_000, duration: .zero)
    #expect(estimator.estimate == nil)
    estimator.add(byteCount: 0, duration: .seconds(1))
    #expect(isNear(estimator.estimate, 8_000_000))
    estimator.add(byteCount: -5, duration: .seconds(-5))
    #expect(isNear(estimator.estimate, 8_000_000))
    estimator.add(byteCount: .max, duration: .zero)
    estimator.add(byteCount: .max, duration: .seconds(1))
    #expect(estimator.estimate.map { $0.isFinite && $0 > 8_000_000 } == true)
  }
}
