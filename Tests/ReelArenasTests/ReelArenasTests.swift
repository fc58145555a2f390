import Foundation
import ReelArenas
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg
@testable import ReelPlayback

@Suite("Arenas of accounts", .hangLimit)
struct ReelArenasTests {
  init() throws { try #require(ReelArenas.register()) }

  /// Freed with the last reference.
  private final class Block: @unchecked Sendable {
    // Sendable: never written to after it was made.
    let bytes: UnsafeMutableRawPointer

    init(byteCount: Int) {
      bytes = .allocate(byteCount: byteCount, alignment: 16)
      memset(bytes, 1, byteCount)
    }

    deinit { bytes.deallocate() }
  }

  /// Some small, some large; together about `byteCount`.
  private func blocks(byteCount: Int) -> [Block] {
    var (all, left, size) = ([Block](), byteCount, 40)
    while left > 0 {
      all.append(Block(byteCount: min(size, left)))
      left -= size
      size = size > 100_000 ? 40 : size * 3 / 2
    }
    return all
  }

  /// The bytes of a fresh account after `body`, less what it had before.
  private func growth(of account: MemoryAccount, _ body: () throws -> Void) rethrows -> Int {
    let before = account.heapByteCount ?? 0
    try body()
    return (account.heapByteCount ?? 0) - before
  }

  @Test("what is allocated inside belongs to the account until it is freed, on whatever thread")
  func allocations() throws {
    let account = try MemoryAccount()
    let other = try MemoryAccount()
    var held: [Block] = []
    let grown = growth(of: account) {
      #expect(growth(of: other) { held = account.perform { blocks(byteCount: 3_000_000) } } == 0)
    }
    #expect(grown >= 3_000_000)
    // jemalloc's sizes are at most a fifth larger than what is asked for; small ones are few here.
    #expect(grown < 3_700_000)
    #expect(growth(of: account) { held += blocks(byteCount: 1_000_000) } == 0)
    let box = Locked<[Block]>(held)
    held = []
    let done = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      box.withLock { $0 = [] }
      done.signal()
    }
    done.wait()
    #expect(abs(account.heapByteCount ?? .max) <= 4096)
  }

  @Test("accounts may be nested")
  func nesting() throws {
    let (outer, inner) = (try MemoryAccount(), try MemoryAccount())
    var held: [Block] = []
    outer.perform {
      inner.perform {
        inner.perform { held.append(Block(byteCount: 1 << 20)) }
        held.append(Block(byteCount: 1 << 20))
      }
      held.append(Block(byteCount: 3 << 20))
    }
    held.append(Block(byteCount: 8 << 20))
    let figures = MemoryAccount.figures(of: [outer, inner])
    #expect((3 << 20..<4 << 20).contains(figures[0].heap?.used ?? 0))
    #expect((2 << 20..<3 << 20).contains(figures[1].heap?.used ?? 0))
  }

  @Test("an error leaves the account")
  func throwing() throws {
    let account = try MemoryAccount()
    #expect(throws: CancellationError.self) { try account.perform { throw CancellationError() } }
    var held: [Block] = []
    // What was allocated for the error may be freed meanwhile.
    #expect(growth(of: account) { held.append(Block(byteCount: 1 << 20)) } <= 0)
  }

  @Test("what was freed is the system's after a purge")
  func purging() throws {
    let account = try MemoryAccount()
    account.purge()
    let empty = try #require(account.figures.heap)
    var held = account.perform { blocks(byteCount: 8 << 20) }
    let full = try #require(account.figures.heap)
    #expect(!held.isEmpty)
    #expect(full.resident - empty.resident >= 8 << 20)
    #expect(full.resident >= full.used)
    held = []
    account.purge()
    let left = try #require(account.figures.heap)
    #expect(left.used <= empty.used + 4096)
    #expect(left.resident <= empty.resident + 512 << 10)
  }

  @Test("arenas go from one account to the next")
  func recycling() throws {
    let before = ReelArenas.count
    for _ in 0..<1000 {
      let account = try MemoryAccount()
      _ = account.perform { Block(byteCount: 100) }
    }
    // Other tests have accounts meanwhile.
    #expect(ReelArenas.count - before < 50)
  }

  @Test("an arena with something in it is taken last")
  func leftovers() throws {
    var accounts = try (0..<40).map { _ in try MemoryAccount() }
    let left = accounts[7].perform { Block(byteCount: 1 << 20) }
    accounts = []
    let next = try MemoryAccount()
    #expect((next.heapByteCount ?? .max) < 1 << 20)
    withExtendedLifetime(left) {}
  }

  @Test("an encoder of stills leaves nothing behind", arguments: [StillFormat.jpeg, .png])
  func stills(format: StillFormat) throws {
    let account = try MemoryAccount()
    let still = Still(
      size: PixelSize(width: 64, height: 64), pixels: .eightBit([UInt8](repeating: 128, count: 64 * 64 * 3)),
      color: .sRGB)
    func encode(_ count: Int) throws {
      try account.perform { for _ in 0..<count { _ = try StillEncoder.encode(still, as: format) } }
    }
    // Some tables are made once for the process.
    try encode(1)
    // One matrix for each file would be 12,800 bytes.
    #expect(try growth(of: account) { try encode(100) } < 4096)
  }

  @Test("what turns of task loops allocate belongs to their account")
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
