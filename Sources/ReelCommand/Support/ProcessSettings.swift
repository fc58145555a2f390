import Foundation
import ReelFFmpeg

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the process asks of the system for work with many sources.
enum ProcessSettings {
  static func apply() {
    raiseFileLimit()
    // A third less memory for a hundred sources, in the same time.
    Allocator.limitArenas(to: max(2, ProcessInfo.processInfo.activeProcessorCount))
  }

  /// As many open files as the system lets a process have.
  private static func raiseFileLimit() {
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
    limit.rlim_cur = min(limit.rlim_max, 65536)
    setrlimit(resource, &limit)
  }
}
