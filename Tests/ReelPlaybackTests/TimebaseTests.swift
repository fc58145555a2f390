import ReelCore
import ReelPlayback
import Testing

@Suite("Timebases")
struct TimebaseTests {
  private static let rates = [0.25, 0.5, 0.7, 1, 1.1, 1.25, 2, 3, 8]

  @Test("It stands still at rate 0, and has no clock time then")
  func still() {
    let time = MediaTime(value: 1001, timescale: 30000)
    let timebase = Timebase(time: time, at: .seconds(7))
    #expect(timebase.rate == 0)
    #expect(timebase.time(at: .seconds(100)) == time)
    #expect(timebase.clockTime(of: time) == nil)
    #expect(timebase.clockTime(of: time + MediaTime(value: 1, timescale: 1)) == nil)
  }

  @Test("It goes as fast as its rate says", arguments: rates)
  func rate(_ rate: Double) {
    let timebase = Timebase(time: MediaTime(value: 10, timescale: 1), rate: rate, at: .seconds(100))
    #expect(timebase.time(at: .seconds(100)) == MediaTime(value: 10, timescale: 1))
    for seconds in [1, 20, 3600] {
      let expected = MediaTime(seconds: 10 + Double(seconds) * rate, timescale: 1_000_000)
      let found = timebase.time(at: .seconds(100 + seconds))
      #expect(abs((found - expected).seconds) < 1e-8, "\(found) and not \(expected) at rate \(rate)")
    }
    let earlier = timebase.time(at: .seconds(96))
    #expect(abs(earlier.seconds - (10 - 4 * rate)) < 1e-8)
  }

  @Test(
    "At the clock time of a media time it is that time, to the nanosecond and never before", arguments: rates)
  func bothWays(_ rate: Double) throws {
    let starts = [
      MediaTime.zero, MediaTime(value: 1001, timescale: 30000),
      MediaTime(value: 12_345_678_901, timescale: 90000),
      MediaTime(seconds: 86_400.123_456_789, timescale: 1_000_000_000),
    ]
    for start in starts {
      let timebase = Timebase(time: start, rate: rate, at: .nanoseconds(123_456_789_012_345))
      for index in (0..<600).map({ $0 * $0 }) {
        let time = start + MediaTime(value: Int64(index) * 1001, timescale: 24000)
        let clock = try #require(timebase.clockTime(of: time))
        let found = timebase.time(at: clock)
        #expect(found >= time)
        #expect((found - time).seconds <= 4e-9 + rate * 2e-9, "\(found) for \(time) at rate \(rate)")
      }
    }
  }

  @Test("Changes of rate and time keep what they do not change")
  func changes() {
    var timebase = Timebase()
    var now = Duration.zero
    var expected = 0.0
    for (index, rate) in (Self.rates + [0, 1, 0, 8, 0.25]).enumerated() {
      let before = timebase.time(at: now)
      timebase.setRate(rate, at: now)
      #expect(timebase.rate == rate)
      #expect(timebase.time(at: now) == before)
      now += .milliseconds(17 * index + 3)
      expected += Double(17 * index + 3) / 1000 * rate
      #expect(abs(timebase.time(at: now).seconds - expected) < 1e-6)
    }
    let target = MediaTime(value: 90001, timescale: 90000)
    timebase.setTime(target, at: now)
    #expect(timebase.time(at: now) == target)
    #expect(timebase.rate == 0.25)
  }

  @Test("A rate that makes no sense is 0", arguments: [-1, -0.001, .infinity, .nan, -.infinity])
  func senselessRates(rate: Double) {
    var timebase = Timebase(time: .zero, rate: rate)
    #expect(timebase.rate == 0)
    timebase.setRate(1, at: .zero)
    timebase.setRate(rate, at: .seconds(1))
    #expect(timebase.time(at: .seconds(9)) == MediaTime(value: 1, timescale: 1))
  }

  @Test("Times beyond what can be told are clamped")
  func extremes() throws {
    let timebase = Timebase(time: .zero, rate: 0.25)
    let late = MediaTime(value: .max, timescale: 1)
    let clock = try #require(timebase.clockTime(of: late))
    #expect(clock > .seconds(1_000_000_000))
    #expect(timebase.time(at: .seconds(Int64.max)).seconds > 1e9)
    let early = try #require(timebase.clockTime(of: MediaTime(value: .min, timescale: 1)))
    #expect(early < .seconds(-1_000_000_000))
  }
}
