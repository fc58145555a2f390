import Foundation
import ReelCore
import ReelReading

// Not with a sanitizer (Package.swift).
#if canImport(ReelArenas)
  import ReelArenas
#endif

/// Settings of the process for work with many sources.
enum ProcessSettings {
  /// Enables players to measure their allocations. Call it before anything else.
  static func registerArenas() {
    #if canImport(ReelArenas)
      ReelArenas.register()
    #endif
  }

  static func apply() {
    raiseFileLimit(to: 65_536)
    // Reduces the memory for a hundred sources by a third, in the same time.
    Allocator.limitArenas(to: max(2, ProcessInfo.processInfo.activeProcessorCount))
  }

  /// Raises the limit of open files to this number, or as far as the system allows.
  ///
  /// - Returns: The limit from now on; nil if the system does not report it.
  @discardableResult
  static func raiseFileLimit(to count: Int) -> Int? {
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return nil }
    if limit.rlim_cur < min(limit.rlim_max, rlim_t(count)) {
      limit.rlim_cur = min(limit.rlim_max, rlim_t(count))
      setrlimit(resource, &limit)
      guard getrlimit(resource, &limit) == 0 else { return nil }
    }
    return Int(clamping: limit.rlim_cur)
  }
}

/// The time that the machine's processors have worked, and the part of it for this process.
struct ProcessorUse {
  private let time = SystemMonotonicClock().now
  private let own = ProcessTime.now
  /// The time of all processors together, in seconds.
  private let busy: Double

  /// Nil if the system does not report it.
  init?() {
    // `cpu user nice system idle iowait irq softirq steal …`, in ticks.
    guard let text = try? String(contentsOfFile: "/proc/stat", encoding: .utf8),
      let line = text.split(separator: "\n").first, line.hasPrefix("cpu ")
    else { return nil }
    let fields = line.split(separator: " ").dropFirst().prefix(8).map { Double($0) ?? 0 }
    let ticks = sysconf(Int32(_SC_CLK_TCK))
    guard fields.count == 8, ticks > 0 else { return nil }
    busy = (fields.reduce(0, +) - fields[3] - fields[4]) / Double(ticks)
  }

  /// Returns the share of all processors that was used since, or that this process used of what it may use, from 0 to 1.
  func share(until now: ProcessorUse) -> Double {
    let own = share(of: (now.own - own) / .seconds(1), among: Self.allowedCount, until: now)
    return max(own, share(of: now.busy - busy, until: now))
  }

  /// The same of other processes alone.
  func othersShare(until now: ProcessorUse) -> Double {
    share(of: now.busy - busy - (now.own - own) / .seconds(1), until: now)
  }

  private func share(
    of seconds: Double, among count: Double = Double(ProcessInfo.processInfo.activeProcessorCount),
    until now: ProcessorUse
  ) -> Double {
    let room = (now.time - time) / .seconds(1) * count
    return room > 0 ? min(max(seconds / room, 0), 1) : 0
  }

  /// How many processors this process may use, by its affinity and the quota of its control group.
  private static var allowedCount: Double {
    func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
    var count = Double(ProcessInfo.processInfo.activeProcessorCount)
    let mask = text("/proc/self/status").split(separator: "\n").first { $0.hasPrefix("Cpus_allowed:") }
    let bits = (mask?.dropFirst(13) ?? "").compactMap(\.hexDigitValue).map(\.nonzeroBitCount).reduce(0, +)
    if bits > 0 { count = min(count, Double(bits)) }
    // `quota period`, in microseconds; `max` for no quota.
    let quota = text("/sys/fs/cgroup/cpu.max").split { $0.isWhitespace }.compactMap { Double($0) }
    if quota.count == 2, quota[1] > 0 { count = min(count, quota[0] / quota[1]) }
    return count
  }
}
