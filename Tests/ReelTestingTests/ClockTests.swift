import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@Suite("The clocks")
struct ClockTests {
  @Test("A manual clock goes on when it is told to")
  func manual() {
    let clock = ManualClock(launch)
    #expect(clock.now == launch)
    clock.advance(by: seconds(3600))
    #expect(clock.now - launch == seconds(3600))
    clock.set(launch)
    #expect(clock.now == launch)
  }

  @Test("A scaled clock shows what its speed makes of real time")
  func scaled() {
    let before = ContinuousClock.now
    let clock = ScaledClock(start: launch, speed: 1000)
    let first = clock.now
    let upperBound = (ContinuousClock.now - before) * 1000
    #expect(first >= launch)
    #expect(first - launch <= MediaTime(value: upperBound.components.seconds + 1, timescale: 1))
    let still = ScaledClock(start: launch, speed: 0)
    #expect(still.now == launch)
  }
}
