import ReelCore
import ReelFFmpeg

/// What the process holds at one time.
struct MemoryReading: Encodable, Sendable {
  /// Memory that stands for no file: what growth is told by.
  var anonymousBytes = 0
  /// All that is the process's alone.
  var privateBytes = 0
  var residentBytes = 0
  var threads = 0
  var descriptors = 0
  /// What is allocated that no player owns alone; nil where the allocator can't tell.
  var sharedBytes: Int?

  /// Zeros where the system does not tell.
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

/// What the process did of itself while its players rested.
struct MemoryRest: Encodable, Sendable {
  var ms = 0.0
  var cpuMs = 0.0

  init() {}

  init(duration: Duration, processorTime: Duration) {
    ms = duration.milliseconds
    cpuMs = processorTime.milliseconds
  }
}
