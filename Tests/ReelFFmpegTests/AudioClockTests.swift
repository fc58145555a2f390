import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Times of samples")
struct AudioClockTests {
  @Test("Lengths that are no whole number of ticks do not drift")
  func exact() {
    var clock = AudioClock(timeBase: Rational(1, 90000))
    clock.set(1000)
    // 1024 samples at 44.1 kHz are 2089.795… ticks; 441 frames of them 921600.
    for _ in 0..<(441 * 1000) { clock.advance(sampleCount: 1024, sampleRate: 44100) }
    #expect(clock.ticks == 921_601_000)
  }

  @Test("Every time is rounded down from the exact one")
  func rounding() {
    var clock = AudioClock(timeBase: Rational(1, 1000))
    clock.set(0)
    for count in 1...100 {
      clock.advance(sampleCount: 1152, sampleRate: 44100)
      #expect(clock.ticks == Int64(count * 1_152_000 / 44100))
    }
  }

  @Test("What is left over is kept when the rate changes")
  func rateChange() {
    var clock = AudioClock(timeBase: Rational(1, 1000))
    clock.set(0)
    // Two half milliseconds.
    clock.advance(sampleCount: 24, sampleRate: 48000)
    #expect(clock.ticks == 0)
    clock.advance(sampleCount: 16, sampleRate: 32000)
    #expect(clock.ticks == 1)
  }

  @Test("Nothing is known before a time is set, after a reset, and of rates that are none")
  func unknown() {
    var clock = AudioClock(timeBase: Rational(1, 1000))
    clock.advance(sampleCount: 48000, sampleRate: 48000)
    #expect(clock.ticks == nil)
    clock.set(5)
    clock.reset()
    #expect(clock.ticks == nil)
    clock.set(5)
    clock.advance(sampleCount: 1, sampleRate: 0)
    #expect(clock.ticks == nil)
    var noBase = AudioClock(timeBase: Rational(0, 1))
    noBase.set(5)
    noBase.advance(sampleCount: 1, sampleRate: 48000)
    #expect(noBase.ticks == nil)
  }

  @Test("Times at the end of what 64 bits hold stay there")
  func overflow() {
    var clock = AudioClock(timeBase: Rational(1, 90000))
    clock.set(.max - 1)
    clock.advance(sampleCount: 1024, sampleRate: 48000)
    #expect(clock.ticks == .max)
  }
}
