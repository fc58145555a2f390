import ReelCore
import ReelFFmpeg

/// The memory of the process at one time.
struct MemoryReading: Encodable, Sendable {
  /// Memory without a file. Growth is measured by it.
  var anonymousBytes = 0
  /// All memory that is private to the process.
  var privateBytes = 0
  var residentBytes = 0
  var threads = 0
  var descriptors = 0
  /// What the allocator takes for memory that belongs to no single player; nil if the allocator can't tell. An upper
  /// bound, as pages that were never written count (`stats.arenas.<i>.resident` of jemalloc(3)).
  var sharedBytes: Int?

  /// Zeros if the system has no figures.
  init(_ memory: ProcessMemory?, sharedBytes: Int?) {
    self.sharedBytes = sharedBytes
    guard let memory else { return }
    anonymousBytes = memory.anonymousByteCount
    privateBytes = memory.privateByteCount
    residentBytes = memory.residentByteCount
    threads = memory.threadCount
    descriptors = memory.descriptorCount
  }
}

/// The activity of the process while its players are idle.
struct MemoryRest: Encodable, Sendable {
  var ms = 0.0
  var cpuMs = 0.0

  init() {}

  init(duration: Duration, processorTime: Duration) {
    ms = duration.milliseconds
    cpuMs = processorTime.milliseconds
  }
}
