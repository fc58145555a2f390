import Foundation

/// The most memory that this process has held so far, in bytes. On Linux it is read from /proc: what `getrusage` tells is
/// never less than what the process held that started this one.
func peakMemory() -> Int {
  #if canImport(Darwin)
    var usage = rusage()
    getrusage(RUSAGE_SELF, &usage)
    return usage.ru_maxrss
  #else
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
    else { return 0 }
    return (Int(line.filter(\.isNumber)) ?? 0) * 1024
  #endif
}

/// Milliseconds that this process has had a core for. What is measured has one thread and waits for nothing, so that this
/// is how long it takes on a machine that does nothing else.
func coreTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return Double(time.tv_sec) * 1e3 + Double(time.tv_nsec) / 1e6
}
