import Foundation

/// What this process holds, as Linux tells it.
struct ProcessResources: Sendable, CustomStringConvertible {
  let threadCount: Int
  let descriptorCount: Int
  /// Resident.
  let byteCount: Int

  static func now() -> ProcessResources {
    let files = FileManager.default
    let status = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    let pages = status.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return ProcessResources(
      threadCount: (try? files.contentsOfDirectory(atPath: "/proc/self/task"))?.count ?? 0,
      // One of them is that of the folder itself.
      descriptorCount: ((try? files.contentsOfDirectory(atPath: "/proc/self/fd"))?.count ?? 0),
      byteCount: pages * 4096)
  }

  var description: String {
    "\(threadCount) threads, \(descriptorCount) descriptors, \(byteCount >> 10) KiB"
  }
}
