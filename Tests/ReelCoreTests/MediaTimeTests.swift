import ReelCore
import Testing

@Suite("Media time")
struct MediaTimeTests {
  @Test("Twelve hours of NTSC frames end at the exact tick")
  func longSum() {
    let frame = MediaTime(value: 1001, timescale: 30000)
    let count: Int64 = 12 * 3600 * 30000 / 1001
    var sum = MediaTime.zero
    for _ in 0..<count { sum = sum + frame }
    #expect(sum == frame * count)
    #expect(sum.value == 1001 * count)
    #expect(sum.timescale == 30000)
    // What floating point would have made of it.
    #expect(sum.ticks(timescale: 30000) == 1001 * count)
    #expect(sum.ticks(timescale: 90000) == 3003 * count)
  }

  @Test("Sums over timescales that do not divide each other are exact")
  func mixedSum() {
    // 1024 samples at 48 kHz and 1001/30000 s have 1/240000 s in common.
    var sum = MediaTime.zero
    let count: Int64 = 100_000
    for _ in 0..<count {
      sum = sum + MediaTime(value: 1001, timescale: 30000)
      sum = sum - MediaTime(value: 1024, timescale: 48000)
    }
    #expect(sum == MediaTime(value: (1001 * 8 - 1024 * 5) * count, timescale: 240_000))
  }

  @Test("The finer timescale is kept where the common one does not fit", arguments: [Int64(1), -1])
  func commonTimescaleTooLarge(sign: Int64) {
    // Two primes: their product needs 60 bits.
    let left = MediaTime(value: sign, timescale: 1_000_000_007)
    let right = MediaTime(value: sign * 10, timescale: 999_999_937)
    let sum = left + right
    #expect(sum.timescale == 1_000_000_007)
    // 1 + 10 * 1000000007 / 999999937 is a little more than 11, and is rounded down.
    #expect(sum.value == (sign > 0 ? 11 : -12))
    #expect(right + left == sum)
  }

  @Test("Ticks are rounded down, also below zero")
  func ticks() {
    #expect(MediaTime(value: 1, timescale: 3).ticks(timescale: 10) == 3)
    #expect(MediaTime(value: -1, timescale: 3).ticks(timescale: 10) == -4)
    #expect(MediaTime(value: -3, timescale: 3).ticks(timescale: 10) == -10)
    #expect(MediaTime(value: .max, timescale: 1).ticks(timescale: 90000) == .max)
    #expect(MediaTime(value: .min, timescale: 1).ticks(timescale: 90000) == .min)
  }

  @Test("What does not fit into 64 bits is clamped")
  func clamping() {
    let largest = MediaTime(value: .max, timescale: 1000)
    let smallest = MediaTime(value: .min, timescale: 1000)
    let one = MediaTime(value: 1, timescale: 1000)
    #expect((largest + one).value == .max)
    #expect((smallest - one).value == .min)
    #expect((largest * 2).value == .max)
    #expect((largest * -2).value == .min)
    #expect((smallest * -1).value == .max)
    #expect((largest + MediaTime(value: 1, timescale: 90000)).value == .max)
    #expect((smallest - MediaTime(value: 1, timescale: 90000)).value == .min)
  }

  @Test("From seconds")
  func seconds() {
    #expect(MediaTime(seconds: 1.5) == MediaTime(value: 3, timescale: 2))
    #expect(MediaTime(seconds: 0.1, timescale: 90000).value == 9000)
    #expect(MediaTime(seconds: -0.5, timescale: 3).value == -2)
    #expect(MediaTime(seconds: .infinity).value == .max)
    #expect(MediaTime(seconds: -.infinity).value == .min)
    #expect(MediaTime(seconds: 1e300).value == .max)
    #expect(MediaTime(seconds: .nan) == .zero)
    #expect(MediaTime(seconds: 2, timescale: 0).timescale == 1)
    #expect(MediaTime(value: 5, timescale: -7).timescale == 1)
    #expect(MediaTime(value: 45045, timescale: 30000).seconds == 1.5015)
  }

  @Test("Order by instant, not by ticks")
  func comparison() {
    #expect(MediaTime(value: 1, timescale: 3) > MediaTime(value: 333_333, timescale: 1_000_000))
    #expect(MediaTime(value: 1, timescale: 3) < MediaTime(value: 333_334, timescale: 1_000_000))
    #expect(MediaTime(value: -1, timescale: 3) < MediaTime(value: -333_333, timescale: 1_000_000))
    #expect(MediaTime(value: .max, timescale: 2) < MediaTime(value: .max, timescale: 1))
    #expect(MediaTime(value: .min, timescale: 1) < MediaTime(value: .min, timescale: .max))
    // Doubles could not tell these two apart.
    #expect(MediaTime(value: .max - 1, timescale: 7) < MediaTime(value: .max, timescale: 7))
    #expect([3, 1, 2].map { MediaTime(value: $0, timescale: 5) }.max() == MediaTime(value: 3, timescale: 5))
  }

  @Test(
    "Equal instants are equal and hash equally",
    arguments: [
      (MediaTime(value: 1, timescale: 2), MediaTime(value: 45000, timescale: 90000)),
      (MediaTime(value: 0, timescale: 7), MediaTime(value: 0, timescale: 90000)),
      (MediaTime(value: -3, timescale: 9), MediaTime(value: -1, timescale: 3)),
      (MediaTime(value: 1001, timescale: 30000), MediaTime(value: 3003, timescale: 90000)),
      (MediaTime(value: .min, timescale: 2), MediaTime(value: .min / 2, timescale: 1)),
    ])
  func hashing(left: MediaTime, right: MediaTime) {
    #expect(left == right)
    #expect(left.hashValue == right.hashValue)
    #expect(Set([left, right]).count == 1)
    #expect(!(left < right) && !(right < left))
  }

  @Test("Near instants differ")
  func inequality() {
    #expect(MediaTime(value: 1001, timescale: 30000) != MediaTime(value: 3004, timescale: 90000))
    #expect(MediaTime(value: .max, timescale: 3) != MediaTime(value: .max - 1, timescale: 3))
    #expect(MediaTime(value: 1, timescale: 2) != MediaTime(value: -1, timescale: 2))
  }

  @Test("A sum and its difference come back, for many pairs of timescales")
  func roundTrips() {
    var generator = SystemRandomNumberGenerator()
    let timescales: [Int32] = [1, 24, 25, 90, 600, 1000, 30000, 44100, 48000, 60000, 90000]
    for _ in 0..<500 {
      let left = MediaTime(
        value: .random(in: -1 << 40...1 << 40, using: &generator), timescale: timescales.randomElement()!)
      let right = MediaTime(
        value: .random(in: -1 << 40...1 << 40, using: &generator), timescale: timescales.randomElement()!)
      #expect(left + right - right == left, "\(left) and \(right)")
      #expect(left + right == right + left, "\(left) and \(right)")
      #expect((left < right) == (left - right < .zero), "\(left) and \(right)")
    }
  }

  @Test(
    "Prints seconds, and in a debugger its ticks",
    arguments: [
      (MediaTime.zero, "0 s", "0/1"), (MediaTime(value: 5944, timescale: 90000), "0.066044 s", "5944/90000"),
      (MediaTime(value: -3, timescale: 2), "-1.5 s", "-3/2"),
      (MediaTime(value: 7200, timescale: 2), "3600 s", "7200/2"),
    ])
  func text(time: MediaTime, description: String, debugDescription: String) {
    #expect("\(time)" == description)
    #expect(String(reflecting: time) == debugDescription)
  }

  @Test("A duration is a time to the microsecond, and a time a duration to the nanosecond")
  func durations() {
    #expect(MediaTime(Duration.milliseconds(2500)) == .seconds(2.5))
    #expect(MediaTime(Duration.milliseconds(-2500)) == .seconds(-2.5))
    #expect(MediaTime(Duration.nanoseconds(1_500)) == MediaTime(value: 2, timescale: 1_000_000))
    #expect(MediaTime(Duration.seconds(Int64.max)).value == .max)
    #expect(MediaTime(value: 1, timescale: 3).duration == .nanoseconds(333_333_333))
    #expect(MediaTime(value: -1, timescale: 3).duration == .nanoseconds(-333_333_334))
    #expect(MediaTime(value: .max, timescale: 1).duration == .seconds(Int64.max))
    #expect(MediaTime(Duration.seconds(90)).duration == .seconds(90))
  }
}
