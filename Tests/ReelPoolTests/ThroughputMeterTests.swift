import ReelPool
import Testing

@Suite("Throughput of the pool")
struct ThroughputMeterTests {
  private var meter = ThroughputMeter()
  private var now = Duration.seconds(100)

  /// Receives pieces one after the other.
  private mutating func receive(
    _ receiver: inout ThroughputMeter.Receiver, byteCount: Int, in duration: Duration, times: Int = 1
  ) {
    for _ in 0..<times {
      meter.begin(&receiver, at: now)
      now += duration
      meter.end(&receiver, byteCount: byteCount, at: now)
    }
  }

  @Test("A steady link has a mean and no deviation, whatever the pauses are")
  mutating func steady() throws {
    var receiver = ThroughputMeter.Receiver()
    #expect(meter.estimate == nil)
    receive(&receiver, byteCount: 10_000, in: .milliseconds(10))
    #expect(meter.estimate == nil)
    receive(&receiver, byteCount: 10_000, in: .milliseconds(10))
    #expect(try #require(meter.estimate).mean.rounded() == 8_000_000)
    receive(&receiver, byteCount: 10_000, in: .milliseconds(10), times: 200)
    now += .seconds(30)
    // What came during the pause is there at once, and does not count.
    receive(&receiver, byteCount: 500_000, in: .zero)
    receive(&receiver, byteCount: 9_000, in: .milliseconds(9))
    receive(&receiver, byteCount: 10_000, in: .milliseconds(10), times: 200)
    let estimate = try #require(meter.estimate)
    #expect(estimate.mean.rounded() == 8_000_000)
    #expect(estimate.standardDeviation < 1000)
    #expect(estimate.roundTripTime == nil)
  }

  @Test("Two transfers at once share the time")
  mutating func shared() throws {
    var (first, second) = (ThroughputMeter.Receiver(), ThroughputMeter.Receiver())
    for _ in 0..<100 {
      meter.begin(&first, at: now)
      meter.begin(&second, at: now)
      now += .milliseconds(10)
      meter.end(&first, byteCount: 5_000, at: now)
      meter.end(&second, byteCount: 5_000, at: now)
    }
    // A sample may end between the two.
    #expect(abs(try #require(meter.estimate).mean - 8e6) < 0.1e6)
  }

  @Test("A link that changes deviates, and the latest rate weighs most")
  mutating func changing() throws {
    var receiver = ThroughputMeter.Receiver()
    for round in 0..<40 {
      receive(&receiver, byteCount: round % 2 == 0 ? 5_000 : 15_000, in: .milliseconds(10), times: 25)
    }
    var estimate = try #require(meter.estimate)
    #expect(abs(estimate.mean - 8e6) < 0.2e6)
    #expect(abs(estimate.standardDeviation - 4e6) < 0.2e6)
    let low = estimate.rate(atDeviations: -1)
    #expect(low > 0 && low < estimate.mean)
    receive(&receiver, byteCount: 1_000, in: .milliseconds(10), times: 2000)
    estimate = try #require(meter.estimate)
    #expect(abs(estimate.mean - 0.8e6) < 0.5e6)
  }

  @Test("Round trips are averaged, those of the handshakes shared out")
  mutating func roundTrips() throws {
    meter.addRoundTrips(2, in: .milliseconds(100))
    meter.addRoundTrips(1, in: .milliseconds(90))
    meter.addRoundTrips(0, in: .milliseconds(90))
    var receiver = ThroughputMeter.Receiver()
    receive(&receiver, byteCount: 100_000, in: .milliseconds(100))
    let time = try #require(meter.estimate?.roundTripTime)
    #expect(abs(time / .milliseconds(1) - 55) < 0.01)
  }
}
