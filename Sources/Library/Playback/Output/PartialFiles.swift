internal import Foundation
internal import ReelCore

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The incomplete output files of the process, under their temporary names. Code that ends the process early
/// removes them.
///
/// An output that is released before it is finished removes its own file. A process ended by a signal has no
/// time for that.
package enum PartialFiles {
  private static let paths = Locked<Set<String>>([])

  /// Removes all of them. For a process that ends at once: outputs that are still writing are not informed.
  package static func removeAll() {
    for path in paths.withLock({ $0 }) { unlink(path) }
  }

  static func insert(_ path: String) { paths.withLock { _ = $0.insert(path) } }

  static func forget(_ path: String) { paths.withLock { _ = $0.remove(path) } }
}
