import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

/// Where the process's malloc is not jemalloc, as with a sanitizer, accounts know their frames only.
@Suite("Memory by account", .hangLimit)
struct MemoryAccountTests {
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

  @Test("figures are there where the allocator can tell accounts apart, and nowhere else")
  func availability() throws {
    let account = try MemoryAccount()
    #expect((account.heapByteCount != nil) == MemoryAccount.tellsAllocationsApart)
    #expect((account.figures.heap != nil) == MemoryAccount.tellsAllocationsApart)
    #expect(account.frameByteCount == 0)
  }

  @Test(
    "what is allocated inside belongs to the account until it is freed, on whatever thread",
    .enabled(if: MemoryAccount.tellsAllocationsApart))
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

  @Test("accounts may be nested", .enabled(if: MemoryAccount.tellsAllocationsApart))
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

  @Test("an error leaves the account", .enabled(if: MemoryAccount.tellsAllocationsApart))
  func throwing() throws {
    let account = try MemoryAccount()
    #expect(throws: CancellationError.self) { try account.perform { throw CancellationError() } }
    var held: [Block] = []
    // What was allocated for the error may be freed meanwhile.
    #expect(growth(of: account) { held.append(Block(byteCount: 1 << 20)) } <= 0)
  }

  @Test("what was freed is the system's after a purge", .enabled(if: MemoryAccount.tellsAllocationsApart))
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

  @Test("arenas go from one account to the next", .enabled(if: MemoryAccount.tellsAllocationsApart))
  func recycling() throws {
    let before = MemoryAccount.arenaCount
    for _ in 0..<1000 {
      let account = try MemoryAccount()
      _ = account.perform { Block(byteCount: 100) }
    }
    // Other tests have accounts meanwhile.
    #expect(MemoryAccount.arenaCount - before < 50)
  }

  @Test("an arena with something in it is taken last", .enabled(if: MemoryAccount.tellsAllocationsApart))
  func leftovers() throws {
    var accounts = try (0..<40).map { _ in try MemoryAccount() }
    let left = accounts[7].perform { Block(byteCount: 1 << 20) }
    accounts = []
    let next = try MemoryAccount()
    #expect((next.heapByteCount ?? .max) < 1 << 20)
    withExtendedLifetime(left) {}
  }

  // MARK: Frames

  private let clip = Clip("media/h264-bframes.mp4")

  /// What a frame of the clip takes: in whole pages, a little more than its pixels.
  private func frameByteCount(of frame: borrowing Frame) -> Int {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    return (frame.byteCount + page - 1) / page * page
  }

  @Test("frames count until the last owner has let them go", arguments: [1, 3])
  func frames(threads: Int) throws {
    let account = try MemoryAccount()
    var reader: ClipReader? = try account.perform {
      try makeReader(clip.bytes(), clip.format, threads: threads)
    }
    var frames: [Held] = []
    try account.perform {
      while let frame = try reader?.nextFrame(), frames.count < 5 { frames.append(Held(frame)) }
    }
    let one = try #require(frames.first.map { frameByteCount(of: $0.frame) })
    #expect(account.frameByteCount >= 5 * one)
    #expect(account.frameByteCount % one == 0)
    reader = nil
    #expect(account.frameByteCount == 5 * one)
    let clone = Held(try frames[0].frame.clone())
    for left in (0..<5).reversed() {
      frames.removeLast()
      #expect(account.frameByteCount == max(left, 1) * one)
    }
    #expect(try clone.frame.md5() == clip.golden().frames[0].md5)
    withExtendedLifetime(clone) {}
  }

  @Test("a decoder keeps few frames that nobody holds")
  func spares() throws {
    let account = try MemoryAccount()
    let reader = try account.perform { try makeReader(clip.bytes(), clip.format) }
    var frames: [Held] = []
    try account.perform {
      while let frame = try reader.nextFrame() { frames.append(Held(frame)) }
    }
    let one = try #require(frames.first.map { frameByteCount(of: $0.frame) })
    #expect(account.frameByteCount >= frames.count * one)
    frames = []
    // Up to 4 references, what is being reordered, and 3 spare ones.
    #expect(account.frameByteCount <= 16 * one)
    withExtendedLifetime(reader) {}
  }

  // MARK: Packets

  private func boxes(_ clip: Clip, _ account: MemoryAccount?) throws -> [SharedPacket] {
    func all() throws -> [SharedPacket] {
      let container = try ContainerReader(
        source: MemorySource(clip.bytes()), format: clip.format, name: clip.path, logger: silentLogger)
      var boxes: [SharedPacket] = []
      while case .video(let box) = try container.next() { boxes.append(box) }
      return boxes
    }
    guard let account else { return try all() }
    return try account.perform(all)
  }

  @Test("packets lie close together, unchanged, until the last is let go", arguments: Clip.sound)
  func packets(clip: Clip) throws {
    let account = try MemoryAccount()
    let plain = try boxes(clip, nil)
    #expect(account.packetByteCount == 0)
    var stored = try boxes(clip, account)
    let sum = stored.reduce(0) { $0 + $1.packet.byteCount + 64 + 16 }
    #expect(account.packetByteCount >= stored.reduce(0) { $0 + $1.packet.byteCount })
    #expect(account.packetByteCount <= sum + 65536)
    try #require(stored.count == plain.count)
    for (one, other) in zip(stored, plain) {
      let isSame = one.packet.withBytes { bytes in other.packet.withBytes { $0.elementsEqual(bytes) } }
      #expect(isSame)
      #expect(one.packet.presentationTicks == other.packet.presentationTicks)
    }
    let last = try #require(stored.last).packet.moved(by: 1)
    stored = []
    #expect((1...256 << 10).contains(account.packetByteCount))
    #expect(last.byteCount == plain.last?.packet.byteCount)
    _ = consume last
    #expect(account.packetByteCount == 0)
  }

  @Test("packets of several threads do not overlap")
  func packetsOfThreads() throws {
    let account = try MemoryAccount()
    let plain = try boxes(clip, nil)
    let stored = Locked<[[SharedPacket]]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      guard let all = try? boxes(clip, account) else { return }
      stored.withLock { $0.append(all) }
    }
    let all = stored.withLock { $0 }
    try #require(all.count == 8)
    for one in all {
      for (box, other) in zip(one, plain) {
        let isSame = box.packet.withBytes { bytes in other.packet.withBytes { $0.elementsEqual(bytes) } }
        #expect(isSame)
      }
    }
  }

  @Test("a packet that is larger than a piece of the account's memory stays on the heap")
  func largePacket() throws {
    let account = try MemoryAccount()
    let bytes = (0..<400_000).map { UInt8(truncatingIfNeeded: $0) }
    let box = try account.perform {
      let packet = try Packet()
      try packet.setBytes(copying: bytes[...], streamIndex: 0)
      return SharedPacket(packet)
    }
    #expect(account.packetByteCount == 0)
    #expect(box.packet.withBytes { $0.elementsEqual(bytes) })
  }

  // MARK: Others

  @Test("a decoder that is opened outside counts nowhere")
  func outside() throws {
    let account = try MemoryAccount()
    let reader = try makeReader(clip.bytes(), clip.format)
    var frames: [Held] = []
    try account.perform {
      if let frame = try reader.nextFrame() { frames.append(Held(frame)) }
    }
    #expect(frames.count == 1)
    #expect(account.frameByteCount == 0)
  }

  /// Noncopyable values do not go into an array.
  private final class Held {
    let frame: Frame

    init(_ frame: consuming Frame) { self.frame = frame }
  }
}
