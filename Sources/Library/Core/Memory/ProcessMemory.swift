internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#endif

/// The resources that the process uses at one time, as the system counts them.
package struct ProcessMemory: Sendable, Hashable {
  /// The bytes of memory of this process alone, which its end would free. On Linux the private pages of
  /// `/proc/self/smaps_rollup`, on macOS the physical footprint.
  package var privateByteCount: Int
  /// The bytes of memory not backed by a file: allocations, stacks and frames. Use it to measure growth.
  /// Whether pages of programs and libraries are in `privateByteCount` depends on whether another process has
  /// them too, and on whether the file was just written. The same as `privateByteCount` on macOS, whose
  /// footprint excludes those.
  package var anonymousByteCount: Int
  /// The bytes of memory in use here, including shared libraries and files.
  package var residentByteCount: Int
  /// The bytes that the kernel keeps for the process, and that a cgroup counts too: page tables, and the stacks of
  /// threads in the kernel. 0 on macOS.
  package var kernelByteCount: Int
  /// The number of threads of the process.
  package var threadCount: Int
  /// The number of open files, sockets and the like.
  package var descriptorCount: Int

  /// The current values; nil if the system does not report them.
  package static var current: ProcessMemory? {
    #if os(Linux)
      linux
    #elseif canImport(Darwin)
      darwin
    #else
      nil
    #endif
  }

  /// The current `residentByteCount`, read with less effort than `current`; nil if the system does not report
  /// it.
  package static var currentResidentByteCount: Int? {
    #if os(Linux)
      kilobytes(in: statusPath)?["VmRSS"].map { $0 * 1024 }
    #else
      nil
    #endif
  }

  /// The maximum number of bytes in use since the process began; nil if the system does not report it.
  package static var peakResidentByteCount: Int? {
    #if os(Linux)
      // getrusage includes the process before it executed this program.
      return kilobytes(in: statusPath)?["VmHWM"].map { $0 * 1024 }
    #elseif canImport(Darwin)
      var usage = rusage()
      return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : nil
    #else
      return nil
    #endif
  }

  // MARK: - Private

  #if os(Linux)
    private static let statusPath = "/proc/self/status"
    /// THREAD_SIZE of 64-bit kernels for x86 and Arm.
    private static let kernelStackByteCount = 16 << 10

    private static var linux: ProcessMemory? {
      guard let maps = kilobytes(in: "/proc/self/smaps_rollup"), let resident = maps["Rss"],
        let clean = maps["Private_Clean"], let dirty = maps["Private_Dirty"],
        let anonymous = maps["Anonymous"],
        let status = kilobytes(in: statusPath), let threads = status["Threads"], let tables = status["VmPTE"],
        let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
      else { return nil }
      // One of the descriptors belongs to the folder itself.
      return ProcessMemory(
        privateByteCount: (clean + dirty) * 1024, anonymousByteCount: anonymous * 1024,
        residentByteCount: resident * 1024, kernelByteCount: tables * 1024 + threads * kernelStackByteCount,
        threadCount: threads,
        descriptorCount: descriptors.count - 1)
    }

    /// Returns the numbers of lines such as `Rss: 1234 kB`, by their names.
    private static func kilobytes(in path: String) -> [String: Int]? {
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
      var values: [String: Int] = [:]
      for line in text.split(separator: "\n") {
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, let number = parts[1].split(whereSeparator: \.isWhitespace).first else {
          continue
        }
        if let value = Int(number) { values[String(parts[0])] = value }
      }
      return values
    }
  #endif

  #if canImport(Darwin)
    private static var darwin: ProcessMemory? {
      var usage = task_vm_info_data_t()
      var count = mach_msg_type_number_t(MemoryLayout.size(ofValue: usage) / MemoryLayout<integer_t>.size)
      let code = withUnsafeMutablePointer(to: &usage) { pointer in
        pointer.withMemoryRebound(to: integer_t.self, capacity: Int(count)) {
          task_info(mach_task_self_, task_flavor_t(TASK_VM_INFO), $0, &count)
        }
      }
      guard code == KERN_SUCCESS else { return nil }
      var threads: thread_act_array_t?
      var threadCount: mach_msg_type_number_t = 0
      guard task_threads(mach_task_self_, &threads, &threadCount) == KERN_SUCCESS, let threads else {
        return nil
      }
      for index in 0..<Int(threadCount) { mach_port_deallocate(mach_task_self_, threads[index]) }
      vm_deallocate(
        mach_task_self_, vm_address_t(UInt(bitPattern: threads)),
        vm_size_t(Int(threadCount) * MemoryLayout<thread_act_t>.size))
      let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd")
      return ProcessMemory(
        privateByteCount: Int(usage.phys_footprint), anonymousByteCount: Int(usage.phys_footprint),
        residentByteCount: Int(usage.resident_size), kernelByteCount: 0,
        threadCount: Int(threadCount), descriptorCount: (descriptors?.count ?? 1) - 1)
    }
  #endif
}
