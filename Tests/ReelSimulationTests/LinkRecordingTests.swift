import ReelCore
import ReelSimulation
import Testing

@Suite("Recorded links")
struct LinkRecordingTests {
  private typealias Step = LinkRecording.Step

  /// A second at 8 kbit/s, a second without any rate, and 2 s at 16 kbit/s: 5000 bytes in 4 s.
  private func sample() throws -> LinkRecording {
    try LinkRecording(
      [
        Step(start: .zero, bitsPerSecond: 8000), Step(start: .seconds(1), bitsPerSecond: 0),
        Step(start: .seconds(2), bitsPerSecond: 16_000),
      ], period: .seconds(4))
  }

  private func bottleneck(_ recording: LinkRecording, start: Duration = .zero) -> LinkBottleneck {
    var link = LinkSpec(recording)
    link.start = start
    return LinkBottleneck(link)
  }

  @Test("Figures of a recording")
  func figures() throws {
    let recording = try sample()
    #expect(recording.period == .seconds(4))
    #expect(recording.meanBitsPerSecond == 10_000)
    #expect(recording.bitsPerSecond(at: .milliseconds(999)) == 8000)
    #expect(recording.bitsPerSecond(at: .seconds(1)) == 0)
    #expect(recording.bitsPerSecond(at: .milliseconds(11_999)) == 16_000)
    #expect(recording.bitsPerSecond(at: .seconds(12)) == 8000)
    let link = LinkSpec(recording)
    #expect(link.bitsPerSecond == 10_000)
    #expect(link.roundTripTime == .milliseconds(50))
    #expect(link.description == "10 kbit/s on average over 4 s, 50 ms")
  }

  @Test("Parcels cross steps, gaps and the end of the recording")
  func integration() throws {
    var link = bottleneck(try sample())
    #expect(link.put(500, at: .zero) == .milliseconds(500))
    // 500 bytes until 1 s, then nothing, then 500 at twice the rate.
    #expect(link.put(1000, at: .zero) == .milliseconds(2250))
    // To the last moment of a period: a rate that ends there is not waited for.
    #expect(link.put(3500, at: .zero) == .seconds(4))
    #expect(link.put(1000, at: .zero) == .seconds(5))
    // The link is asked for while there is no rate.
    #expect(link.put(2, at: .milliseconds(5500)) == .seconds(6) + .milliseconds(1))
    // Several periods at once.
    #expect(link.put(50_000, at: .seconds(8)) == .seconds(48))
    #expect(link.put(1, at: .seconds(1000)) == .seconds(1000) + .milliseconds(1))
  }

  @Test("The start is a place in the recording, modulo its period")
  func start() throws {
    for start in [Duration.seconds(2), .seconds(4002)] {
      var link = bottleneck(try sample(), start: start)
      #expect(link.put(4000, at: .zero) == .seconds(2))
      #expect(link.put(1000, at: .zero) == .seconds(3))
    }
    // The time of a clock that does not begin at 0.
    var late = LinkBottleneck(LinkSpec(try sample()), zero: .seconds(1001))
    #expect(late.put(1000, at: .seconds(1001)) == .seconds(1002))
  }

  @Test("Thousands of periods do not move a time")
  func drift() throws {
    // Rates and times that nothing divides.
    let recording = try LinkRecording(
      [
        Step(start: .zero, bitsPerSecond: 1_000_003),
        Step(start: .nanoseconds(333_333_333), bitsPerSecond: 7),
        Step(start: .nanoseconds(777_777_777), bitsPerSecond: 2_999_999),
      ], period: .nanoseconds(1_111_111_111))
    var (often, once) = (bottleneck(recording), bottleneck(recording))
    var count = 0
    while often.freeAt < .seconds(5000) {
      _ = often.put(1448, at: .zero)
      count += 1448
    }
    let end = once.put(count, at: .zero)
    #expect(count > 100_000_000)
    // An attosecond for each parcel at most.
    #expect(often.freeAt >= end)
    #expect(often.freeAt - end < .nanoseconds(1))
  }

  @Test("A million steps without a rate, or with hardly any, are not walked")
  func sparse() throws {
    let steps = (0..<500_000).map { Step(start: .milliseconds($0), bitsPerSecond: $0 % 2 == 0 ? 1 : 2) }
    let recording = try LinkRecording(steps, period: .seconds(500))
    // 750 bits in a period.
    var link = bottleneck(recording)
    for number in 1...1000 { #expect(link.put(7500, at: .zero) == .seconds(500 * 80 * number)) }
    #expect(link.put(1, at: .seconds(500_000_000)) > .seconds(500_000_005))
  }

  @Test("Scaled rates")
  func scaling() throws {
    let recording = try sample().scaled(by: 2.5)
    #expect(recording.steps.map(\.bitsPerSecond) == [20_000, 0, 40_000])
    #expect(throws: ReelError.self) { try sample().scaled(by: 1e-6) }
    #expect(throws: ReelError.self) { try sample().scaled(by: 1e12) }
  }

  @Test("Steps of one rate become one, and equal recordings are equal")
  func equality() throws {
    let recording = try LinkRecording(
      [
        Step(start: .zero, bitsPerSecond: 8000), Step(start: .milliseconds(200), bitsPerSecond: 8000),
        Step(start: .seconds(1), bitsPerSecond: 0), Step(start: .seconds(2), bitsPerSecond: 16_000),
        Step(start: .seconds(3), bitsPerSecond: 16_000),
      ], period: .seconds(4))
    #expect(try recording == sample())
    #expect(try recording.fingerprint == sample().fingerprint)
    #expect(recording.fingerprint != (try sample().scaled(by: 2)).fingerprint)
  }

  @Test("What is no recording")
  func invalid() {
    let bad: [([(Int, Int64)], Int)] = [
      ([], 1), ([(1, 5)], 2), ([(0, 5)], 0), ([(0, 5), (0, 6)], 2), ([(0, 5), (2, 6), (1, 7)], 4),
      ([(0, -1)], 1),
      ([(0, 0), (1, 0)], 2), ([(0, 10_000_000_000_001)], 1), ([(0, 5)], 1_000_001),
    ]
    for (steps, period) in bad {
      let error = #expect(throws: ReelError.self) {
        try LinkRecording(
          steps.map { Step(start: .seconds($0), bitsPerSecond: $1) }, period: .seconds(period))
      }
      #expect(error?.kind == .badManifest)
    }
  }
}
