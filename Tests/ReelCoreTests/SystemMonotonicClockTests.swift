import ReelTestSupport
import Testing

@testable import ReelCore

@Suite("The system's monotonic clock", .hangLimit)
struct SystemMonotonicClockTests {
  private let clock = SystemMonotonicClock()

  @Test("It goes forward, and as fast as the system's")
  func now() async throws {
    let reference = ContinuousClock.now
    let start = clock.now
    try await Task.sleep(for: .milliseconds(5))
    let end = clock.now
    #expect(end - start >= .milliseconds(5))
    #expect(end - start <= ContinuousClock.now - reference)
  }

  @Test("Every call is made once, and none too early")
  func calls() async {
    let start = clock.now
    let delays = (0..<200).map { _ in Int.random(in: 1...40) }
    let (calls, continuation) = AsyncStream.makeStream(of: (delay: Int, at: Duration).self)
    for delay in delays {
      clock.schedule(at: start + .milliseconds(delay)) {
        continuation.yield((delay, SystemMonotonicClock().now))
      }
    }
    clock.schedule(at: start + .milliseconds(60)) { continuation.finish() }
    var seen: [Int] = []
    for await call in calls {
      #expect(call.at >= start + .milliseconds(call.delay))
      seen.append(call.delay)
    }
    #expect(seen.sorted() == delays.sorted())
  }

  @Test("A deadline that has passed is called, but not from inside the call")
  func passedDeadline() async {
    let lock = Locked(0)
    await withCheckedContinuation { continuation in
      lock.withLock { count in
        count = 1
        // Would never return, were the handler called here.
        _ = clock.schedule(at: .seconds(-5)) {
          let count = lock.withLock { $0 }
          #expect(count == 1)
          continuation.resume()
        }
      }
    }
  }

  @Test("What is cancelled is not called, and not kept")
  func cancel() {
    weak var kept: Locked<Int>?
    do {
      let object = Locked(0)
      kept = object
      let calls = (0..<50).map { _ in
        clock.schedule(at: clock.now + .seconds(3600)) { object.withLock { $0 += 1 } }
      }
      for call in calls.shuffled() { call.cancel() }
      calls[0].cancel()
    }
    // Nobody can call what nobody keeps.
    #expect(kept == nil)
  }

  @Test("A handler may schedule and cancel")
  func nested() async {
    let clock = clock
    await withCheckedContinuation { continuation in
      clock.schedule(at: clock.now) {
        let other = clock.schedule(at: clock.now + .seconds(3600)) {}
        other.cancel()
        clock.schedule(at: clock.now + .milliseconds(1)) { continuation.resume() }
      }
    }
  }

  @Test("Calls from many threads, some of them cancelled, are all made or all cancelled")
  func manyThreads() async {
    let clock = clock
    let made = Locked(0)
    let cancelled = Locked(0)
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for index in 0..<300 {
            let deadline = clock.now + .microseconds(Int.random(in: -50...3000))
            if index % 3 == 0 {
              clock.schedule(at: clock.now + .seconds(3600)) { made.withLock { $0 += 1 } }.cancel()
              cancelled.withLock { $0 += 1 }
            } else {
              await withCheckedContinuation { continuation in
                clock.schedule(at: deadline) {
                  made.withLock { $0 += 1 }
                  continuation.resume()
                }
              }
            }
          }
        }
      }
    }
    #expect(made.withLock { $0 } == 1600)
    #expect(cancelled.withLock { $0 } == 800)
  }
}
