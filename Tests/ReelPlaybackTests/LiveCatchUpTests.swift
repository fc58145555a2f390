import ReelPlayback
import Testing

@Suite("Catching up with a live edge")
struct LiveCatchUpTests {
  /// With a target of 6 s.
  private func action(
    _ catchUp: inout LiveCatchUp, _ latency: Double, oldest: Double? = nil, segment: Double? = 2,
    rate: Double = 1,
    isStalled: Bool = false
  ) -> LiveCatchUp.Action {
    catchUp.action(
      latency: .seconds(latency), target: .seconds(6), oldestLatency: oldest.map { .seconds($0) },
      segmentDuration: segment.map { .seconds($0) }, userRate: rate, isStalled: isStalled)
  }

  private func first(
    _ latency: Double, oldest: Double? = nil, segment: Double? = 2, rate: Double = 1, isStalled: Bool = false
  ) -> LiveCatchUp.Action {
    var catchUp = LiveCatchUp()
    return action(
      &catchUp, latency, oldest: oldest, segment: segment, rate: rate, isStalled: isStalled)
  }

  @Test("It begins at a second or half a segment, and ends near the target")
  func hysteresis() {
    #expect(first(5) == .normal)
    #expect(first(7) == .normal)
    #expect(first(7.1) == .rate(1.06))
    #expect(first(8.9, segment: 6) == .normal)
    #expect(first(9.1, segment: 6) == .rate(1.08))
    #expect(first(7.1, segment: nil) == .rate(1.06))
    var catchUp = LiveCatchUp()
    #expect(action(&catchUp, 7.5) == .rate(1.06))
    #expect(action(&catchUp, 6.5) == .rate(1.05))
    #expect(action(&catchUp, 6.25) == .normal)
    #expect(action(&catchUp, 6.9) == .normal)
    #expect(action(&catchUp, 7.1) == .rate(1.06))
  }

  @Test("The rate is 1.05 to 1.1, more where more is to be made up, and brings the latency down")
  func convergence() {
    var catchUp = LiveCatchUp()
    var latency = 11.9
    var rates: [Double] = []
    for _ in 0..<2_000 {
      switch action(&catchUp, latency) {
      case .normal: break
      case .rate(let rate):
        rates.append(rate)
        latency -= (rate - 1) * 0.1
      case .jump: Issue.record("a jump at \(latency)")
      }
    }
    #expect(rates.allSatisfy { (1.05...1.1).contains($0) })
    #expect(rates.first == 1.1)
    #expect(rates.last == 1.05)
    #expect(rates == rates.sorted(by: >))
    #expect(Set(rates).count <= 6)
    #expect(latency > 6.2 && latency <= 6.25)
  }

  @Test("Too far behind it jumps: three segments, but 3 to 10 s")
  func jump() {
    #expect(first(12) == .rate(1.1))
    #expect(first(12.1) == .jump(toLatency: .seconds(6)))
    #expect(first(9, segment: 0.5) == .rate(1.08))
    #expect(first(9.1, segment: 0.5) == .jump(toLatency: .seconds(6)))
    #expect(first(16, segment: 6) == .rate(1.1))
    #expect(first(16.1, segment: 6) == .jump(toLatency: .seconds(6)))
    #expect(first(10.9, segment: 30) == .normal)
    #expect(first(11.1, segment: 30) == .rate(1.1))
  }

  @Test("A position that has left the window jumps, to a place some way inside it")
  func leftWindow() {
    #expect(first(8, oldest: 8) == .rate(1.07))
    #expect(first(8.1, oldest: 8) == .jump(toLatency: .seconds(6)))
    #expect(first(8.1, oldest: 7) == .jump(toLatency: .seconds(5)))
    #expect(first(8.1, oldest: 2) == .jump(toLatency: .seconds(1)))
    #expect(first(5, oldest: 4) == .jump(toLatency: .seconds(2)))
    #expect(first(-1, oldest: -2) == .normal)
  }

  @Test("At another rate than 1 nothing happens, but where the media is gone")
  func otherRates() {
    for rate in [0, 0.5, 1.25, 2] {
      #expect(first(9, rate: rate) == .normal)
      #expect(first(60, rate: rate) == .normal)
    }
    #expect(first(60, oldest: 50, rate: 0.5) == .jump(toLatency: .seconds(6)))
    #expect(first(60, oldest: 50, rate: 0) == .normal)
    var catchUp = LiveCatchUp()
    #expect(action(&catchUp, 7.5) == .rate(1.06))
    #expect(action(&catchUp, 7.5, rate: 2) == .normal)
    #expect(action(&catchUp, 6.5) == .normal)
  }

  @Test("What stands still is not made faster, but may jump")
  func stalled() {
    #expect(first(8, isStalled: true) == .normal)
    #expect(first(13, isStalled: true) == .jump(toLatency: .seconds(6)))
    var catchUp = LiveCatchUp()
    #expect(action(&catchUp, 8, isStalled: true) == .normal)
    #expect(action(&catchUp, 6.9) == .rate(1.06))
  }
}
