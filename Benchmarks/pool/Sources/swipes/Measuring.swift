internal import Foundation

/// Milliseconds, as the reports have them.
func milliseconds(_ duration: Duration) -> Double {
  let (seconds, attoseconds) = duration.components
  return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
}

/// How long this thread has had a core for, in milliseconds: without what other threads took in between.
func threadTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) * 1e3 + Double(time.tv_nsec) / 1e6
}

/// How often this thread has given its core away, as it waited for something, and how often it was taken from it.
func threadSwitches() -> (waits: Int, preemptions: Int) {
  var usage = rusage()
  #if canImport(Glibc)
    getrusage(__rusage_who_t(1), &usage)
  #endif
  return (usage.ru_nvcsw, usage.ru_nivcsw)
}

/// Uses a core for so long, about as long as a swipe does, and calls something halfway: how long that takes is what such a call
/// costs on this machine, with its other work.
func spin(milliseconds limit: Double, calling halfway: () -> Void = {}) -> Double {
  let began = ContinuousClock.now
  for part in 0..<2 {
    let core = threadTime()
    while threadTime() - core < limit / 2 {}
    if part == 0 { halfway() }
  }
  return milliseconds(.now - began)
}

/// Prints one object to standard output, on a line of its own.
func report(_ fields: [String: any Encodable & Sendable]) {
  let parts = fields.sorted { $0.key < $1.key }.map { name, value in
    "\"\(name)\": \(value is String ? "\"\(value)\"" : "\(value)")"
  }
  print("{\(parts.joined(separator: ", "))}")
  fflush(nil)
}

/// Asks every millisecond until it is so. False where that is not before the limit.
func wait(
  for limit: Duration = .seconds(60), until isSo: () -> Bool
) async throws -> Bool {
  let clock = ContinuousClock()
  let deadline = clock.now + limit
  while !isSo() {
    guard clock.now < deadline else { return false }
    try await clock.sleep(for: .milliseconds(1))
  }
  return true
}

/// What this process takes, as Linux tells it; zeros elsewhere.
func processFigures() -> (threads: Int, descriptors: Int, anonymousBytes: Int) {
  let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  return (
    figure("Threads", in: "/proc/self/status"), descriptors ?? 0,
    figure("Anonymous", in: "/proc/self/smaps_rollup") * 1024
  )
}

/// The number of a line `name: number` of a file.
private func figure(_ name: String, in path: String) -> Int {
  let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
  let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") } ?? ""
  return line.split { !$0.isNumber }.first.flatMap { Int($0) } ?? 0
}

/// The same numbers for the same seed (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
