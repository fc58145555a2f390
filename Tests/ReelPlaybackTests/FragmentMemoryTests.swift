import ReelTestSupport
import Testing

@testable import ReelReading

@Suite struct FragmentMemoryTests {
  private func moof(timed: Bool = true, flags: UInt8 = 0) -> [UInt8] {
    let header = mp4Box("tfhd", [0, 2, 0, flags, 0, 0, 0, 1])
    return mp4Box(
      "moof",
      mp4Box("mfhd", [0, 0, 0, 0])
        + mp4Box("traf", header + (timed ? mp4Box("tfdt", [0, 0, 0, 0, 0, 0, 0, 0]) : [])))
  }

  private func memory(of bytes: [UInt8], by count: Int) -> FragmentMemory {
    var memory = FragmentMemory()
    for start in stride(from: 0, to: bytes.count, by: count) {
      bytes[start..<min(start + count, bytes.count)].withUnsafeBytes { memory.record($0) }
    }
    return memory
  }

  @Test(arguments: [1, 3, 7, 16, 100, 10_000])
  func `The head of the fragment that a place lies in, however bytes come`(_ step: Int) throws {
    let opening = mp4Box("ftyp", [1, 2, 3]) + mp4Box("moov", [4, 5])
    let first = mp4Box("styp") + moof()
    let second = mp4Box("sidx", [9]) + moof()
    let media = [UInt8](repeating: 7, count: 50)
    let bytes = opening + first + mp4Box("mdat", media) + second + mp4Box("mdat", media)
    let memory = memory(of: bytes, by: step)
    let firstMedia = Int64((opening + first).count + 8)
    let secondMedia = Int64(bytes.count - 50)

    let inFirst = try #require(memory.resumption(at: firstMedia + 20))
    #expect(inFirst.head == opening + first + mp4Box("mdat", media).prefix(8))
    #expect(inFirst.skippedByteCount == 20)
    let inSecond = try #require(memory.resumption(at: secondMedia))
    #expect(inSecond.head == opening + second + mp4Box("mdat", media).prefix(8))
    #expect(inSecond.skippedByteCount == 0)
    #expect(try #require(memory.resumption(at: Int64(bytes.count))).skippedByteCount == 50)
    // In a header.
    #expect(memory.resumption(at: firstMedia + 51) == nil)
    #expect(memory.resumption(at: 3) == nil)
  }

  @Test func `No way to go on without a time, or with places that count from the file's beginning`() {
    let opening = mp4Box("ftyp") + mp4Box("moov")
    for head in [moof(timed: false), moof(flags: 1), moof() + moof(), mp4Box("free")] {
      let bytes = opening + head + mp4Box("mdat", [1, 2, 3])
      #expect(memory(of: bytes, by: 5).resumption(at: Int64(bytes.count)) == nil)
    }
  }

  @Test func `No way to go on without a header, behind media without an end, or in what is no MP4`() {
    let endless: [UInt8] = [0, 0, 0, 0] + Array("mdat".utf8) + [1, 2, 3]
    let huge: [UInt8] = [0x7f, 0, 0, 0] + Array("moov".utf8) + [1, 2, 3]
    let wrong: [UInt8] = [0, 0, 0, 4] + Array("moov".utf8) + [1, 2, 3]
    let largest = longMP4Header("mdat", byteCount: UInt64(Int64.max))
    for bytes in [
      moof() + mp4Box("mdat", [1]), mp4Box("ftyp") + mp4Box("moov") + moof() + endless, huge, wrong,
      mp4Box("ftyp") + mp4Box("moov") + moof() + largest, [UInt8](repeating: 0x47, count: 3000),
    ] {
      #expect(memory(of: bytes, by: 11).resumption(at: Int64(bytes.count)) == nil)
    }
  }

  @Test func `Only the last fragments are remembered`() {
    let opening = mp4Box("ftyp") + mp4Box("moov")
    let fragment = moof() + mp4Box("mdat", [1, 2, 3])
    let bytes = opening + Array(repeating: fragment, count: 50).flatMap { $0 }
    let memory = memory(of: bytes, by: 64)
    #expect(memory.resumption(at: Int64(opening.count + fragment.count)) == nil)
    #expect(memory.resumption(at: Int64(bytes.count - fragment.count)) != nil)
  }
}
