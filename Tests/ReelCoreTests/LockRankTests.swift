import Foundation
import ReelCore
import ReelTestSupport
import Testing

/// Each test has a process of its own, which checks locks whatever the environment says.
@Suite("The ranks of locks", .hangLimit)
struct LockRankTests {
  @Test("Locks may be taken in order, and again once they are given back")
  func inOrder() async {
    await #expect(processExitsWith: .success) {
      setenv("REEL_CHECK_LOCKS", "1", 1)
      let (pool, player) = (Locked(0, rank: .pool), Locked(0, rank: .player))
      let (transfer, clock) = (Monitor(0, rank: .transfer), Locked(0, rank: .clock))
      for _ in 0..<2 {
        pool.withLock { _ in
          player.withLock { _ in transfer.withLock { _ in clock.withLock { $0 += 1 } } }
          transfer.withLock { $0 += 1 }
          player.withLock { $0 += 1 }
        }
      }
      // What one thread holds is nothing to another.
      transfer.withLock { _ in
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
          pool.withLock { $0 += 1 }
          done.signal()
        }
        done.wait()
      }
    }
  }

  @Test("A lock of a lower rank ends the process, and the message names both ranks")
  func outOfOrder() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      setenv("REEL_CHECK_LOCKS", "1", 1)
      let (pool, player) = (Locked(0, rank: .pool), Locked(0, rank: .player))
      player.withLock { _ in pool.withLock { $0 += 1 } }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("the lock pool (8) is taken under locks of the ranks 24"), "\(text)")
  }

  @Test("So does a lock of the same rank: a leaf is taken under no other leaf")
  func sameRank() async {
    await #expect(processExitsWith: .failure) {
      setenv("REEL_CHECK_LOCKS", "1", 1)
      let (first, second) = (Locked(0), Monitor(0))
      first.withLock { _ in second.withLock { $0 += 1 } }
    }
  }

  @Test("And a monitor that is waited for under a higher rank")
  func waiting() async {
    await #expect(processExitsWith: .failure) {
      setenv("REEL_CHECK_LOCKS", "1", 1)
      let (clock, monitor) = (Locked(0, rank: .clock), Monitor(0))
      clock.withLock { _ in monitor.wait { _ in .end(()) } }
    }
  }

  @Test("A lock that its holder takes again counts once")
  func again() async {
    await #expect(processExitsWith: .success) {
      setenv("REEL_CHECK_LOCKS", "1", 1)
      let pool = Locked(0, rank: .pool)
      precondition(LockOrder.takeAgain(.outputs))
      precondition(!LockOrder.takeAgain(.outputs))
      pool.withLock { $0 += 1 }
      LockOrder.give(.outputs)
      precondition(LockOrder.takeAgain(.outputs))
      LockOrder.give(.outputs)
    }
  }
}
