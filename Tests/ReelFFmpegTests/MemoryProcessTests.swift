import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@Suite("Memory of the process", .serialized, .hangLimit)
struct MemoryProcessTests {
  @Test("pages that were written to are private memory")
  func growth() throws {
    // Other tests take and give memory meanwhile: looked at until they do not.
    var growth = try Growth(byteCount: 256 << 20)
    for _ in 0..<100 where !growth.isSeen { growth = try Growth(byteCount: 256 << 20) }
    #expect(growth.isSeen)
    #expect(growth.full.anonymousByteCount <= growth.full.residentByteCount)
    #expect(growth.full.residentByteCount >= growth.full.privateByteCount)
    #expect(growth.full.threadCount > 0)
  }

  /// The process before, with and after memory that was written to.
  private struct Growth {
    let before: ProcessMemory
    let full: ProcessMemory
    let after: ProcessMemory
    let byteCount: Int

    init(byteCount: Int) throws {
      self.byteCount = byteCount
      before = try #require(ProcessMemory.current)
      let memory = try #require(
        mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
      memset(memory, 1, byteCount)
      full = try #require(ProcessMemory.current)
      munmap(memory, byteCount)
      after = try #require(ProcessMemory.current)
    }

    /// True where what was seen is this memory, within a quarter.
    var isSeen: Bool {
      let range = byteCount * 3 / 4...byteCount * 5 / 4
      return [
        full.privateByteCount - before.privateByteCount, full.privateByteCount - after.privateByteCount,
        full.anonymousByteCount - before.anonymousByteCount,
      ].allSatisfy(range.contains)
    }
  }

  @Test("the peak is not below what is in use")
  func peak() throws {
    let resident = try #require(ProcessMemory.currentResidentByteCount)
    let peak = try #require(ProcessMemory.peakResidentByteCount)
    #expect(resident > 1 << 20)
    // The system counts pages for each thread, and adds them up now and then.
    #expect(peak > resident - 8 << 20)
  }

  @Test("open files count")
  func descriptors() throws {
    let before = try #require(ProcessMemory.current)
    let handles = try (0..<200).map { _ in try #require(FileHandle(forReadingAtPath: "/dev/null")) }
    let open = try #require(ProcessMemory.current)
    #expect((150...250).contains(open.descriptorCount - before.descriptorCount))
    for handle in handles { try handle.close() }
  }
}
