import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@Suite("A monotonic clock that is moved by hand", .hangLimit)
struct ManualMonotonicClockTests {
  private let clock = ManualMonotonicClock()
  private let log = Locked<[String]>([])

  private func schedule(_ name: String, at deadline: Duration) -> any ScheduledCall {
    let (clock, log) = (clock, log)
    return clock.schedule(at: deadline) {
      let line = "\(name) \(clock.now.components.seconds)"
      log.withLock { $0.append(line) }
    }
  }

  @Test("It stands still until it is moved, and does not go back")
  func moves() {
    #expect(clock.now == .zero)
    clock.advance(by: .seconds(2))
    clock.advance(to: .seconds(5))
    clock.advance(to: .seconds(1))
    #expect(clock.now == .seconds(5))
  }

  @Test("Calls are made in order, each at its time, in the call that moves the clock")
  func order() {
    _ = schedule("c", at: .seconds(3))
    _ = schedule("a", at: .seconds(1))
    _ = schedule("d", at: .seconds(3))
    _ = schedule("b", at: .seconds(2))
    _ = schedule("later", at: .seconds(9))
    #expect(clock.nextDeadline == .seconds(1))
    clock.advance(to: .seconds(4))
    #expect(log.withLock { $0 } == ["a 1", "b 2", "c 3", "d 3"])
    #expect(clock.now == .seconds(4))
    #expect(clock.nextDeadline == .seconds(9))
  }

  @Test("What is scheduled on the way is made on the way")
  func nested() {
    let (clock, log) = (clock, log)
    @Sendable func tick() {
      let second = clock.now.components.seconds
      log.withLock { $0.append("\(second)") }
      clock.schedule(at: clock.now + .seconds(1), tick)
    }
    clock.schedule(at: .seconds(1), tick)
    clock.advance(to: .milliseconds(4500))
    #expect(log.withLock { $0 } == ["1", "2", "3", "4"])
    #expect(clock.nextDeadline == .seconds(5))
  }

  @Test("What is cancelled is not called, and not kept")
  func cancel() {
    let call = schedule("never", at: .seconds(1))
    _ = schedule("other", at: .seconds(1))
    call.cancel()
    call.cancel()
    clock.advance(to: .seconds(2))
    #expect(log.withLock { $0 } == ["other 1"])
    #expect(clock.nextDeadline == nil)
  }

  @Test("A deadline that has passed is called without moving the clock")
  func passedDeadline() async {
    clock.advance(to: .seconds(3))
    await withCheckedContinuation { continuation in
      clock.schedule(at: .seconds(1)) { continuation.resume() }
    }
    #expect(clock.now == .seconds(3))
  }

  @Test("Waiting for a deadline ends with one, or with the task")
  func waiting() async {
    let clock = clock
    let first = Task { await clock.waitForDeadline() }
    let second = Task { await clock.waitForDeadline() }
    second.cancel()
    await second.value
    await Task.yield()
    _ = schedule("a", at: .seconds(1))
    await first.value
    await clock.waitForDeadline()
    #expect(clock.nextDeadline == .seconds(1))
  }
}
