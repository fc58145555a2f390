import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelSources

@Suite("Worker threads", .hangLimit)
struct WorkerThreadsTests {
  /// Runs `body` on a worker and returns when it has ended.
  private func run(_ threads: WorkerThreads, _ body: @escaping @Sendable () -> Void = {}) async {
    await withCheckedContinuation { continuation in
      threads.run {
        body()
        continuation.resume()
      }
    }
  }

  @Test("Threads are used again: work that never overlaps by much makes few")
  func reuse() async {
    let threads = WorkerThreads(idleTime: HangLimit.duration)
    let count = Locked(0)
    for _ in 0..<500 { await run(threads) { count.withLock { $0 += 1 } } }
    #expect(count.withLock { $0 } == 500)
    // A thread is not idle yet when the end of its work is seen. A busy machine may leave several in that state.
    #expect(threads.count <= 50)
  }

  @Test("Work that blocks holds no other work up: as many threads as there is work")
  func blocking() async throws {
    let threads = WorkerThreads(idleTime: .milliseconds(5))
    let gate = DispatchSemaphore(value: 0)
    try await withThrowingTaskGroup { group in
      for _ in 0..<64 { group.addTask { await run(threads) { gate.wait() } } }
      group.addTask {
        try await until { threads.count >= 64 }
        for _ in 0..<64 { gate.signal() }
      }
      try await group.waitForAll()
    }
    #expect(threads.count <= 64)
  }

  @Test("Threads end when there is nothing to do, and come again")
  func ends() async throws {
    let threads = WorkerThreads(idleTime: .milliseconds(5))
    for _ in 0..<3 {
      await withTaskGroup { group in
        for _ in 0..<8 { group.addTask { await run(threads) } }
      }
      try await until { threads.count == 0 }
    }
  }

  @Test("No work is lost where threads end at the same time")
  func race() async {
    let threads = WorkerThreads(idleTime: .microseconds(50))
    let count = Locked(0)
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<500 {
            await run(threads) { count.withLock { $0 += 1 } }
            if Bool.random() { try? await Task.sleep(for: .microseconds(Int.random(in: 0...120))) }
          }
        }
      }
    }
    #expect(count.withLock { $0 } == 2000)
  }

  @Test("What work holds is let go when it has ended, not when the thread does")
  func release() async throws {
    let threads = WorkerThreads(idleTime: HangLimit.duration)
    weak var held: Locked<Int>?
    do {
      let object = Locked(0)
      held = object
      threads.run { object.withLock { $0 += 1 } }
    }
    try await until { held == nil }
    #expect(threads.count == 1)
  }

  @Test("A thread has the name of its work, and room for FFmpeg")
  func attributes() async {
    let threads = WorkerThreads(idleTime: .milliseconds(5))
    for name in ["decode", "present", "a name that is too long"] {
      let found = await withCheckedContinuation { continuation in
        threads.run(named: name) {
          withUnsafeTemporaryAllocation(byteCount: 1 << 20, alignment: 16) { buffer in
            for index in stride(from: 0, to: buffer.count, by: 4096) { buffer[index] = 1 }
          }
          continuation.resume(returning: Thread.current.name)
        }
      }
      #expect(found == String("reel.\(name)".prefix(15)))
    }
  }
}
