import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Output files under their temporary names: whoever ends the process early removes them.
enum PartialFiles {
  private static let paths = Locked<Set<String>>([])

  static func insert(_ path: String) { paths.withLock { _ = $0.insert(path) } }

  static func forget(_ path: String) { paths.withLock { _ = $0.remove(path) } }

  static func removeAll() {
    for path in paths.withLock({ $0 }) { unlink(path) }
  }
}
