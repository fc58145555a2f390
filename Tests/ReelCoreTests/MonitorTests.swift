import ReelTestSupport
import Testing

@testable import ReelCore

@Suite("Monitors", .hangLimit)
struct MonitorTests {
  @Test("A wait ends with what it waits for, whoever brings it")
  func values() async {
    let monitor = Monitor<[Int]>([])
    async let received = withCheckedContinuation { continuation in
      NativeThread.start(named: "test") {
        let values = (0..<1000).map { _ in
          monitor.wait { values -> Monitor<[Int]>.Step<Int> in
            values.isEmpty ? .wait(until: nil) : .end(values.removeFirst())
          }
        }
        continuation.resume(returning: values)
      }
    }
    for value in 0..<1000 {
      monitor.withLock { $0.append(value) }
      monitor.signal()
    }
    #expect(await received == Array(0..<1000))
  }

  @Test("A wait with a deadline ends at the deadline, and not before", arguments: [-1, 0, 1, 20])
  func deadline(milliseconds: Int) async {
    let clock = SystemMonotonicClock()
    let deadline = clock.now + .milliseconds(milliseconds)
    let end = await withCheckedContinuation { continuation in
      NativeThread.start(named: "test", stackSize: 256 << 10) {
        let monitor = Monitor(0)
        continuation.resume(
          returning: monitor.wait { looks -> Monitor<Int>.Step<Duration> in
            looks += 1
            let now = clock.now
            return now >= deadline ? .end(now) : .wait(until: deadline)
          })
      }
    }
    #expect(end >= deadline)
  }
}
