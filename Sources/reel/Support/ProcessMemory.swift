import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the process holds of the machine's memory, as the system counts it.
enum ProcessMemory {
  /// In bytes, now; nil where the system does not tell.
  static var resident: Int64? { status("VmRSS:") }

  /// The most at a time since the process began, in bytes; nil where the system does not tell.
  static var peak: Int64? {
    #if os(Linux)
      // getrusage counts what the process was before it became this program.
      return status("VmHWM:")
    #else
      var usage = rusage()
      return getrusage(RUSAGE_SELF, &usage) == 0 ? Int64(usage.ru_maxrss) : nil
    #endif
  }

  // MARK: - Private

  /// A line of `/proc/self/status`, which is in kilobytes of 1024 bytes.
  private static func status(_ name: String) -> Int64? {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
      let number = line.dropFirst(name.count).split(whereSeparator: \.isWhitespace).first
    else { return nil }
    return Int64(number).map { $0 * 1024 }
  }
}
