import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("Accounts of pumps", .hangLimit)
struct TaskLoopAccountTests {
  @Test(
    "what turns allocate belongs to their account", .enabled(if: MemoryAccount.tellsAllocationsApart))
  func turns() async throws {
    let accounts = try (0..<2).map { _ in try MemoryAccount() }
    let kept = Locked<[[UInt8]]>([])
    let taskLoops = accounts.indices.map { index in
      TaskLoop(named: "test", clock: SystemMonotonicClock(), account: accounts[index]) {
        let bytes = [UInt8](repeating: 1, count: (index + 1) << 20)
        kept.withLock { $0.append(bytes) }
        return .idle
      }
    }
    for taskLoop in taskLoops { taskLoop.wake() }
    try await until { kept.withLock { $0.count } == 2 }
    for taskLoop in taskLoops {
      taskLoop.stop()
      await taskLoop.waitUntilStopped()
    }
    let figures = MemoryAccount.figures(of: accounts)
    for index in accounts.indices {
      let used = try #require(figures[index].heap?.used)
      #expect(((index + 1) << 20..<(index + 2) << 20).contains(used))
    }
    kept.withLock { $0 = [] }
  }
}
