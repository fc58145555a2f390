import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("The lock of outputs", .hangLimit)
struct OutputLockTests {
  @Test("Players that share it call their outputs one at a time, a separated one beside them")
  func separation() {
    let first = OutputLock()
    let second = OutputLock(sharing: first)
    let free = first.withLock {
      let free = whenFree(second)
      #expect(free.wait(timeout: .now() + Self.moment) == .timedOut)
      return free
    }
    free.wait()
    second.separate()
    first.withLock { whenFree(second).wait() }
    second.withLock { whenFree(first).wait() }
  }

  @Test("One that is separated from within a call is waited for until that call has ended")
  func separationWithin() {
    let first = OutputLock()
    let second = OutputLock(sharing: first)
    let free = second.withLock {
      second.separate()
      // Who detaches an output of it waits for this call.
      let free = whenFree(second)
      #expect(free.wait(timeout: .now() + Self.moment) == .timedOut)
      return free
    }
    free.wait()
    first.withLock { whenFree(second).wait() }
  }

  private static let moment = DispatchTimeInterval.milliseconds(50)

  /// Signalled when another thread has had the lock.
  private func whenFree(_ lock: OutputLock) -> DispatchSemaphore {
    let done = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      lock.wait()
      done.signal()
    }
    return done
  }
}
