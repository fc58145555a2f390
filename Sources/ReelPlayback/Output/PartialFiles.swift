internal import Foundation
internal import ReelCore

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Output files that stand under their temporary names, of the whole process: whoever ends it before they are whole
/// removes them.
///
/// An output that is let go of before it is finished removes its own; a process that is ended by a signal has no time
/// for that.
package enum PartialFiles {
  private static let paths = Locked<Set<String>>([])

  /// Removes all that are there. For a process that ends at once: outputs that still write are not told.
  package static func removeAll() {
    for path in paths.withLock({ $0 }) { unlink(path) }
  }

  static func insert(_ path: String) { paths.withLock { _ = $0.insert(path) } }

  static func forget(_ path: String) { paths.withLock { _ = $0.remove(path) } }
}
