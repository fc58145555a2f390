import Foundation
import ReelFFmpeg
import ReelTestSupport
import Testing

@Suite("Memory of the process", .serialized, .hangLimit)
struct MemoryProcessTests {
  @Test("pages that were written to are private memory")
  func growth() throws {
    let size = 256 << 20
    let before = try #require(ProcessMemory.current)
    let memory = try #require(
      mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    memset(memory, 1, size)
    let full = try #require(ProcessMemory.current)
    munmap(memory, size)
    let after = try #require(ProcessMemory.current)
    // Other tests take and give memory meanwhile.
    #expect((size - size / 4...size + size / 4).contains(full.privateByteCount - before.privateByteCount))
    #expect(full.privateByteCount - after.privateByteCount > size / 2)
    #expect(full.anonymousByteCount - before.anonymousByteCount > size / 2)
    #expect(full.anonymousByteCount <= full.residentByteCount)
    #expect(full.residentByteCount >= full.privateByteCount)
    #expect(full.threadCount > 0)
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
