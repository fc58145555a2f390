import Foundation
import Testing

@testable import ReelPlayback

@Suite struct FragmentMemoryTests {
  /// A box with this body.
  private func box(_ type: String, _ body: [UInt8] = []) -> [UInt8] {
    let count = UInt32(body.count + 8)
    return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + Array(type.utf8) + body
  }

  private func moof(timed: Bool = true, flags: UInt8 = 0) -> [UInt8] {
    let header = box("tfhd", [0, 2, 0, flags, 0, 0, 0, 1])
    return box("moof", box("mfhd", [0, 0, 0, 0]) + box("traf", header + (timed ? box("tfdt", [0]) : [])))
  }

  private func memory(of bytes: [UInt8], by count: Int) -> FragmentMemory {
    var memory = FragmentMemory()
    for start in stride(from: 0, to: bytes.count, by: count) {
      bytes[start..<min(start + count, bytes.count)].withUnsafeBytes { memory.note($0) }
    }
    return memory
  }

  @Test(arguments: [1, 3, 7, 16, 100, 10_000])
  func `The head of the fragment that a place lies in, however bytes come`(_ step: Int) throws {
    let opening = box("ftyp", [1, 2, 3]) + box("moov", [4, 5])
    let first = box("styp") + moof()
    let second = box("sidx", [9]) + moof()
    let media = [UInt8](repeating: 7, count: 50)
    let bytes = opening + first + box("mdat", media) + second + box("mdat", media)
    let memory = memory(of: bytes, by: step)
    let firstMedia = Int64((opening + first).count + 8)
    let secondMedia = Int64(bytes.count - 50)

    let inFirst = try #require(memory.resumption(at: firstMedia + 20))
    #expect(inFirst.head == opening + first + box("mdat", media).prefix(8))
    #expect(inFirst.skippedByteCount == 20)
    let inSecond = try #require(memory.resumption(at: secondMedia))
    #expect(inSecond.head == opening + second + box("mdat", media).prefix(8))
    #expect(inSecond.skippedByteCount == 0)
    #expect(try #require(memory.resumption(at: Int64(bytes.count))).skippedByteCount == 50)
    // In a header.
    #expect(memory.resumption(at: firstMedia + 51) == nil)
    #expect(memory.resumption(at: 3) == nil)
  }

  @Test func `No way to go on without a time, or with places that count from the file's beginning`() {
    let opening = box("ftyp") + box("moov")
    for head in [moof(timed: false), moof(flags: 1), moof() + moof(), box("free")] {
      let bytes = opening + head + box("mdat", [1, 2, 3])
      #expect(memory(of: bytes, by: 5).resumption(at: Int64(bytes.count)) == nil)
    }
  }

  @Test func `No way to go on without a header, behind media without an end, or in what is no MP4`() {
    let endless: [UInt8] = [0, 0, 0, 0] + Array("mdat".utf8) + [1, 2, 3]
    let huge: [UInt8] = [0x7f, 0, 0, 0] + Array("moov".utf8) + [1, 2, 3]
    let wrong: [UInt8] = [0, 0, 0, 4] + Array("moov".utf8) + [1, 2, 3]
    let largest: [UInt8] = [0, 0, 0, 1] + Array("mdat".utf8) + [0x7f] + [UInt8](repeating: 0xff, count: 7)
    for bytes in [
      moof() + box("mdat", [1]), box("ftyp") + box("moov") + moof() + endless, huge, wrong,
      box("ftyp") + box("moov") + moof() + largest, [UInt8](repeating: 0x47, count: 3000),
    ] {
      #expect(memory(of: bytes, by: 11).resumption(at: Int64(bytes.count)) == nil)
    }
  }

  @Test func `Only the last fragments are remembered`() {
    let opening = box("ftyp") + box("moov")
    let fragment = moof() + box("mdat", [1, 2, 3])
    let bytes = opening + Array(repeating: fragment, count: 50).flatMap { $0 }
    let memory = memory(of: bytes, by: 64)
    #expect(memory.resumption(at: Int64(opening.count + fragment.count)) == nil)
    #expect(memory.resumption(at: Int64(bytes.count - fragment.count)) != nil)
  }
}
