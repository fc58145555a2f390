import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Memory by account", .hangLimit)
struct MemoryAccountTests {
  private let clip = Clip("media/h264-bframes.mp4")

  /// What a frame of the clip takes: in whole pages, a little more than its pixels.
  private func frameByteCount(of frame: Frame) -> Int {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    return (frame.byteCount + page - 1) / page * page
  }

  @Test("frames count until the last owner has let them go", arguments: [1, 3])
  func frames(threads: Int) throws {
    let account = try MemoryAccount()
    var reader: ClipReader? = try account.perform {
      try makeReader(clip.bytes(), clip.format, threads: threads)
    }
    var frames: [Frame] = []
    try account.perform {
      while let frame = try reader?.nextFrame(), frames.count < 5 { frames.append(frame) }
    }
    let one = try #require(frames.first.map { frameByteCount(of: $0) })
    #expect(account.frameByteCount >= 5 * one)
    #expect(account.frameByteCount % one == 0)
    reader = nil
    #expect(account.frameByteCount == 5 * one)
    let kept = frames[0]
    for left in (0..<5).reversed() {
      frames.removeLast()
      #expect(account.frameByteCount == max(left, 1) * one)
    }
    #expect(try kept.md5() == clip.golden().frames[0].md5)
    withExtendedLifetime(kept) {}
  }

  @Test("a decoder keeps few frames that nobody holds")
  func spares() throws {
    let account = try MemoryAccount()
    let reader = try account.perform { try makeReader(clip.bytes(), clip.format) }
    var frames: [Frame] = []
    try account.perform {
      while let frame = try reader.nextFrame() { frames.append(frame) }
    }
    let one = try #require(frames.first.map { frameByteCount(of: $0) })
    #expect(account.frameByteCount >= frames.count * one)
    frames = []
    // Up to 4 references, what is being reordered, and 3 spare ones.
    #expect(account.frameByteCount <= 16 * one)
    withExtendedLifetime(reader) {}
  }

  // MARK: Packets

  private func packets(of clip: Clip, _ account: MemoryAccount?) throws -> [Packet] {
    guard let account else { return try videoUnits(clip).packets }
    return try account.perform { try videoUnits(clip).packets }
  }

  @Test("packets lie close together, unchanged, until the last is let go", arguments: Clip.sound)
  func packets(clip: Clip) throws {
    let account = try MemoryAccount()
    let plain = try packets(of: clip, nil)
    #expect(account.packetByteCount == 0)
    var stored = try packets(of: clip, account)
    let sum = stored.reduce(0) { $0 + $1.byteCount + 64 + 16 }
    #expect(account.packetByteCount >= stored.reduce(0) { $0 + $1.byteCount })
    #expect(account.packetByteCount <= sum + 65536)
    try #require(stored.count == plain.count)
    for (one, other) in zip(stored, plain) {
      let isSame = one.withBytes { bytes in other.withBytes { $0.elementsEqual(bytes) } }
      #expect(isSame)
      #expect(one.presentationTicks == other.presentationTicks)
    }
    var last = stored.last
    stored = []
    #expect((1...256 << 10).contains(account.packetByteCount))
    #expect(last?.byteCount == plain.last?.byteCount)
    last = nil
    #expect(account.packetByteCount == 0)
  }

  @Test("packets of several threads do not overlap")
  func packetsOfThreads() throws {
    let account = try MemoryAccount()
    let plain = try packets(of: clip, nil)
    let stored = Locked<[[Packet]]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      guard let all = try? packets(of: clip, account) else { return }
      stored.withLock { $0.append(all) }
    }
    let all = stored.withLock { $0 }
    try #require(all.count == 8)
    for one in all {
      for (packet, other) in zip(one, plain) {
        let isSame = packet.withBytes { bytes in other.withBytes { $0.elementsEqual(bytes) } }
        #expect(isSame)
      }
    }
  }

  @Test("a packet that is larger than a piece of the account's memory stays on the heap")
  func largePacket() throws {
    let account = try MemoryAccount()
    let bytes = (0..<400_000).map { UInt8(truncatingIfNeeded: $0) }
    let packet = try Packet()
    try packet.setBytes(copying: bytes[...], streamIndex: 0)
    account.perform { packet.store() }
    #expect(account.packetByteCount == 0)
    #expect(packet.withBytes { $0.elementsEqual(bytes) })
  }

  // MARK: Others

  @Test("a decoder that is opened outside counts nowhere")
  func outside() throws {
    let account = try MemoryAccount()
    let reader = try makeReader(clip.bytes(), clip.format)
    var frames: [Frame] = []
    try account.perform {
      if let frame = try reader.nextFrame() { frames.append(frame) }
    }
    #expect(frames.count == 1)
    #expect(account.frameByteCount == 0)
  }
}
