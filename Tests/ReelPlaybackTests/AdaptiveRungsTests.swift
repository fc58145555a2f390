import ReelCore
import ReelReading
import Testing

@Suite("Adaptive rungs")
struct AdaptiveRungsTests {
  private let ladder = [500_000, 1_000_000, 2_000_000, 4_000_000].enumerated().map {
    RungCandidate(index: $0, id: "r\($0)", bitsPerSecond: $1)
  }

  /// With a target of 10 s, segments of 2 s, and no caps.
  private func state(
    _ current: Int?, buffered: Double = 6, segment: Double? = 2, rate: Double = 1,
    isRebuffering: Bool = false,
    cap: Int? = nil, height: Int? = nil
  ) -> AdaptationState {
    AdaptationState(
      current: current, buffered: .seconds(buffered), bufferTarget: .seconds(10),
      segmentDuration: segment.map { .seconds($0) }, rate: rate, isRebuffering: isRebuffering,
      now: .seconds(100),
      peakBitRate: cap, maximumHeight: height)
  }

  private func choose(_ estimate: Int?, _ state: AdaptationState) -> Int {
    var rungs = AdaptiveRungs(options: .init(initialEstimate: estimate))
    return rungs.choose(among: ladder, state).index
  }

  @Test("The start is the highest rung that the estimate carries with room to spare")
  func start() {
    #expect(choose(100_000, state(nil)) == 0)
    #expect(choose(1_428_000, state(nil)) == 0)
    #expect(choose(1_429_000, state(nil)) == 1)
    #expect(choose(100_000_000, state(nil)) == 3)
    #expect(choose(100_000_000, state(nil, cap: 1_500_000)) == 1)
    #expect(choose(3_000_000, state(nil, rate: 2)) == 1)
  }

  @Test("Without any estimate the start is the highest rung under the caps")
  func blindStart() {
    #expect(choose(nil, state(nil)) == 2)
    #expect(choose(nil, state(nil, cap: 1_500_000)) == 1)
    #expect(choose(nil, state(nil, cap: 100_000)) == 0)
    #expect(choose(nil, state(nil, cap: 100_000_000)) == 2)
  }

  @Test("Without any estimate the rung stays, but while rebuffering")
  func blind() {
    #expect(choose(nil, state(2, buffered: 0.1)) == 2)
    #expect(choose(nil, state(2, buffered: 0.1, isRebuffering: true)) == 0)
    #expect(choose(nil, state(1, buffered: 10)) == 1)
  }

  @Test("Up takes room in the estimate and something buffered")
  func up() {
    #expect(choose(2_860_000, state(1, buffered: 6)) == 2)
    #expect(choose(2_850_000, state(1, buffered: 6)) == 1)
    #expect(choose(2_860_000, state(1, buffered: 2)) == 2)
    #expect(choose(2_860_000, state(1, buffered: 1.9)) == 1)
    // Without the duration of a segment it is half of the target.
    #expect(choose(2_860_000, state(1, buffered: 4.9, segment: nil)) == 1)
    #expect(choose(2_860_000, state(1, buffered: 5, segment: nil)) == 2)
    #expect(choose(2_860_000, state(1, buffered: 4.9, segment: 6)) == 1)
    #expect(choose(2_860_000, state(1, buffered: 5, segment: 6)) == 2)
    #expect(choose(2_860_000, state(1, buffered: 6, isRebuffering: true)) == 1)
    #expect(choose(100_000_000, state(0, buffered: 6)) == 3)
    #expect(choose(2_860_000, state(1, buffered: 6, rate: 1.1)) == 1)
    #expect(choose(2_860_000, state(1, buffered: 6, rate: 0.5)) == 2)
  }

  @Test("Down where the estimate does not bear the rung, to the highest that it does")
  func down() {
    #expect(choose(2_360_000, state(2)) == 2)
    #expect(choose(2_350_000, state(2)) == 1)
    #expect(choose(700_000, state(3)) == 0)
    #expect(choose(100_000, state(3)) == 0)
    #expect(choose(4_600_000, state(2, rate: 2)) == 1)
    #expect(choose(100_000, state(0)) == 0)
  }

  @Test("A full buffer keeps a rung that is too high")
  func bufferGuard() {
    #expect(choose(1_500_000, state(2, buffered: 7.5)) == 2)
    #expect(choose(1_500_000, state(2, buffered: 7.4)) == 1)
    // Two segments have to be there as well.
    #expect(choose(1_500_000, state(2, buffered: 7.5, segment: 4)) == 1)
    #expect(choose(1_500_000, state(2, buffered: 8, segment: 4)) == 2)
    #expect(choose(1_500_000, state(2, buffered: 7.5, segment: nil)) == 2)
    #expect(choose(1_500_000, state(2, buffered: 7.5, cap: 1_000_000)) == 1)
  }

  @Test("What is urgent takes the rung that has room to spare")
  func urgent() {
    // 2 Mbit/s is bearable at 2.5 Mbit/s, and not comfortable.
    #expect(choose(2_500_000, state(2, buffered: 2.5)) == 2)
    #expect(choose(2_500_000, state(2, buffered: 2.4)) == 1)
    #expect(choose(2_500_000, state(2, buffered: 9, isRebuffering: true)) == 1)
    #expect(choose(100_000, state(3, buffered: 0)) == 0)
    #expect(choose(3_000_000, state(2, buffered: 0, isRebuffering: true)) == 2)
  }

  @Test("Between two steps up two segments are loaded, and a step down waits for none")
  func noFlapping() {
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 1_500_000))
    #expect(rungs.choose(among: ladder, state(nil)).index == 1)
    rungs.recordTransfer(TransferSample(byteCount: 1_000_000, duration: .seconds(2.6), endedAt: .zero))
    #expect(rungs.choose(among: ladder, state(1)).index == 2)
    for _ in 0..<20 {
      rungs.recordTransfer(TransferSample(byteCount: 10_000_000, duration: .seconds(1), endedAt: .zero))
    }
    #expect(rungs.choose(among: ladder, state(2)).index == 2)
    #expect(rungs.choose(among: ladder, state(2)).index == 3)
    for _ in 0..<20 {
      rungs.recordTransfer(TransferSample(byteCount: 200_000, duration: .seconds(1), endedAt: .zero))
    }
    #expect(rungs.choose(among: ladder, state(3)).index == 1)
    for _ in 0..<20 {
      rungs.recordTransfer(TransferSample(byteCount: 10_000_000, duration: .seconds(1), endedAt: .zero))
    }
    #expect(rungs.choose(among: ladder, state(1)).index == 1)
    #expect(rungs.choose(among: ladder, state(1)).index == 3)
  }

  @Test("A rung that is no candidate any more is left for the one below, or for the lowest")
  func missingCurrent() {
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 100_000_000))
    let without = { (index: Int) in ladder.filter { $0.index != index } }
    #expect(rungs.choose(among: without(2), state(2, buffered: 10)).index == 1)
    #expect(rungs.choose(among: without(0), state(0, buffered: 10)).index == 1)
    var slow = AdaptiveRungs(options: .init(initialEstimate: 700_000))
    #expect(slow.choose(among: without(3), state(3, buffered: 10)).index == 0)
    var blind = AdaptiveRungs()
    #expect(blind.choose(among: without(3), state(3)).index == 2)
  }

  @Test("The peak counts, the average where no peak is known, and what is unknown always fits")
  func demand() {
    let rungs = [
      RungCandidate(index: 0, id: "a", bitsPerSecond: 0, averageBitsPerSecond: 900_000),
      RungCandidate(index: 1, id: "b", bitsPerSecond: 2_000_000, averageBitsPerSecond: 1_000_000),
    ]
    var adaptive = AdaptiveRungs(options: .init(initialEstimate: 2_000_000))
    #expect(adaptive.choose(among: rungs, state(nil)).id == "a")
    let unknown = [
      RungCandidate(index: 0, id: "c", bitsPerSecond: 0), RungCandidate(index: 1, id: "d", bitsPerSecond: 0),
    ]
    #expect(adaptive.choose(among: unknown, state(nil)).id == "c")
    #expect(adaptive.choose(among: unknown, state(1)).id == "d")
  }

  @Test("What was measured counts before what was configured")
  func estimate() throws {
    var rungs = AdaptiveRungs()
    #expect(rungs.estimatedBandwidth == nil)
    rungs = AdaptiveRungs(options: .init(initialEstimate: 5_000_000))
    #expect(rungs.estimatedBandwidth == 5_000_000)
    rungs.recordTransfer(TransferSample(byteCount: 100_000, duration: .seconds(1), endedAt: .seconds(1)))
    let estimate = try #require(rungs.estimatedBandwidth)
    #expect(abs(estimate - 800_000) < 1)
  }

  @Test("Latency is left out of the estimate, and of the time that a segment has")
  func latency() throws {
    func rungs(_ latency: Double?) -> AdaptiveRungs {
      var rungs = AdaptiveRungs()
      rungs.recordTransfer(
        TransferSample(
          byteCount: 450_000, duration: .seconds(1), latency: latency.map { .seconds($0) }, endedAt: .zero))
      return rungs
    }
    var patient = rungs(0.2)
    #expect(try abs(#require(patient.estimatedBandwidth) - 4_500_000) < 1)
    // Of 2 s 0.2 s are idle, of 0.4 s the half: 4.05 Mbit/s and 2.25 Mbit/s, of which a step up may take 0.7.
    #expect(patient.choose(among: ladder, state(1)).index == 2)
    #expect(patient.choose(among: ladder, state(1, segment: 0.4)).index == 1)
    #expect(patient.choose(among: ladder, state(1, segment: nil)).index == 2)
    var straight = rungs(nil)
    #expect(try abs(#require(straight.estimatedBandwidth) - 3_600_000) < 1)
    #expect(straight.choose(among: ladder, state(1, segment: 0.4)).index == 2)
    // What came in one piece tells little: no more than half of it is taken as latency.
    #expect(try abs(#require(rungs(0.999).estimatedBandwidth) - 7_200_000) < 1)
  }

  // MARK: - Simulated links

  @Test(
    "On a constant link it comes to the highest rung with room, and stays",
    arguments: [500_000.0, 1_300_000, 2_600_000, 5_000_000, 20_000_000],
    [(2.0, 3.0), (2, 10), (6, 12), (4, 30)])
  func constantLink(speed: Double, times: (segment: Double, target: Double)) throws {
    var simulation = LinkSimulation { _ in speed }
    simulation.segmentSeconds = times.segment
    simulation.targetSeconds = times.target
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 450_000))
    let result = simulation.run(&rungs, seconds: 180)
    let best = try #require(simulation.candidates.last { Double($0.bitsPerSecond) <= speed * 0.68 })
    #expect(result.stallTimes.isEmpty)
    #expect(Set(result.rungs(from: 60)) == [best.index])
    #expect(result.switchCount <= 4)
    #expect(result.rungs == result.rungs.sorted())
  }

  @Test("A start that is too high costs one stall at most, and only at the beginning", arguments: [3.0, 10])
  func highStart(target: Double) {
    var simulation = LinkSimulation { _ in 1_300_000 }
    simulation.targetSeconds = target
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 100_000_000))
    let result = simulation.run(&rungs, seconds: 120)
    #expect(result.rungs.first == 4)
    #expect(result.rungs.dropFirst().allSatisfy { $0 <= 1 })
    // The first segment takes 9.3 s, six times as long as it plays.
    #expect(result.stallTimes.allSatisfy { $0 < 15 })
    #expect(Set(result.rungs(from: 20)) == [1])
  }

  @Test("A link that becomes slower is followed before the buffer is empty")
  func stepDown() {
    let simulation = LinkSimulation { $0 < 40 ? 6_000_000 : 1_300_000 }
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 1_000_000))
    let result = simulation.run(&rungs, seconds: 120)
    #expect(result.rungs(from: 20).first == 3)
    #expect(result.stallTimes.isEmpty)
    #expect(Set(result.rungs(from: 60)) == [1])
    #expect(result.switchCount <= 6)
  }

  @Test("With a small buffer a link that becomes slower costs one stall at most", arguments: [nil, 0.25])
  func stepDownWithSmallBuffer(sampleSeconds: Double?) {
    var simulation = LinkSimulation { $0 < 40 ? 6_000_000 : 1_300_000 }
    simulation.targetSeconds = 3
    simulation.sampleSeconds = sampleSeconds
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 1_000_000))
    let result = simulation.run(&rungs, seconds: 120)
    #expect(result.stallTimes.count <= 1)
    #expect(result.stallTimes.allSatisfy { (40...46).contains($0) })
    #expect(Set(result.rungs(from: 60)) == [1])
  }

  @Test("A link that becomes faster is followed")
  func stepUp() {
    let simulation = LinkSimulation { $0 < 40 ? 1_300_000 : 12_000_000 }
    var rungs = AdaptiveRungs()
    let result = simulation.run(&rungs, seconds: 120)
    #expect(Set(result.rungs(from: 20).prefix(3)) == [1])
    #expect(result.rungs(from: 70).allSatisfy { $0 >= 3 })
    #expect(Set(result.rungs(from: 90)) == [4])
  }

  @Test("A link that swings does not make the rung swing with it", arguments: [3.0, 10, 30], [2.0, 8, 20])
  func oscillation(target: Double, period: Double) {
    var simulation = LinkSimulation {
      $0.truncatingRemainder(dividingBy: period) < period / 2 ? 4_000_000 : 1_300_000
    }
    simulation.targetSeconds = target
    simulation.sampleSeconds = 0.5
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 1_300_000))
    let result = simulation.run(&rungs, seconds: 240)
    #expect(result.stallTimes.isEmpty)
    // Two switches a period at the most, and no more than one in two segments.
    #expect(Double(result.switchCount) <= min(240 / period * 2, 60) + 4)
    #expect(result.rungs(from: 20).allSatisfy { $0 >= 1 })
  }

  @Test("Short spikes and short breaks change little", arguments: [3.0, 10])
  func spikes(target: Double) {
    var simulation = LinkSimulation { time in
      switch time.truncatingRemainder(dividingBy: 5) {
      case ..<0.3: 0
      case 2..<2.2: 60_000_000
      default: 2_500_000
      }
    }
    simulation.targetSeconds = target
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 1_000_000))
    let result = simulation.run(&rungs, seconds: 240)
    #expect(result.stallTimes.isEmpty)
    #expect(result.rungs(from: 20).allSatisfy { (1...3).contains($0) })
    #expect(result.switchCount <= 6)
  }

  @Test("Twice the speed needs twice the link")
  func fastPlayback() {
    var simulation = LinkSimulation { _ in 5_000_000 }
    simulation.rate = 2
    var rungs = AdaptiveRungs(options: .init(initialEstimate: 1_000_000))
    let result = simulation.run(&rungs, seconds: 120)
    #expect(result.stallTimes.isEmpty)
    #expect(Set(result.rungs(from: 30)) == [2])
  }

  @Test("A cap is kept to")
  func cap() {
    var simulation = LinkSimulation { _ in 50_000_000 }
    simulation.peakBitRate = 2_000_000
    var rungs = AdaptiveRungs()
    let result = simulation.run(&rungs, seconds: 60)
    #expect(Set(result.rungs) == [2])
  }
}
