import Dispatch
import Foundation
import ReelTestSupport
import Testing

@testable import ReelCore

@Suite("The thread of the monotonic clock", .hangLimit)
struct TimerThreadTests {
  @Test("It ends when there is nothing to wait for, and begins anew")
  func idle() async throws {
    let timer = TimerThread(idleTime: .milliseconds(5))
    #expect(!timer.isRunning)
    for _ in 0..<3 {
      await withCheckedContinuation { continuation in
        _ = timer.schedule(at: SystemMonotonicClock().now + .milliseconds(1)) { continuation.resume() }
      }
      try await until { !timer.isRunning }
    }
  }

  #if os(Linux)
    @Test("The kernel does not put its wakes together with others")
    func slack() async {
      let timer = TimerThread(idleTime: .zero)
      let slack = await withCheckedContinuation { continuation in
        _ = timer.schedule(at: .zero) {
          let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
          let number = link?.split(separator: "/").last ?? ""
          continuation.resume(
            returning: try? String(contentsOfFile: "/proc/\(number)/timerslack_ns", encoding: .utf8))
        }
      }
      #expect(slack == "1\n")
    }
  #endif

  @Test("Calls that are due are made in the order of their deadlines, then of their scheduling")
  func order() async {
    let timer = TimerThread(idleTime: .zero)
    // Holds the thread up until all is scheduled.
    let gate = DispatchSemaphore(value: 0)
    _ = timer.schedule(at: .seconds(-1)) { gate.wait() }
    let deadlines = (0..<300).map { _ in Int.random(in: 0..<50) }
    let (calls, continuation) = AsyncStream.makeStream(of: [Int].self)
    var cancelled: Set<Int> = []
    for (number, deadline) in deadlines.enumerated() {
      let call = timer.schedule(at: .nanoseconds(deadline)) { continuation.yield([deadline, number]) }
      guard number % 4 == 0 else { continue }
      call.cancel()
      cancelled.insert(number)
    }
    _ = timer.schedule(at: .nanoseconds(50)) { continuation.finish() }
    gate.signal()
    var seen: [[Int]] = []
    for await call in calls { seen.append(call) }
    let expected = deadlines.enumerated().filter { !cancelled.contains($0.offset) }.map {
      [$0.element, $0.offset]
    }
    #expect(seen == expected.sorted { $0.lexicographicallyPrecedes($1) })
  }

  @Test("It stays while there is a call to come, and no longer")
  func busy() async throws {
    let timer = TimerThread(idleTime: .zero)
    let far = timer.schedule(at: SystemMonotonicClock().now + .seconds(3600)) {}
    await withCheckedContinuation { continuation in
      _ = timer.schedule(at: .zero) { continuation.resume() }
    }
    #expect(timer.isRunning)
    #expect(timer.callCount == 1)
    far.cancel()
    #expect(timer.callCount == 0)
    try await until { !timer.isRunning }
  }
}
