import Foundation
import ReelFFmpeg

// Not with a sanitizer (Package.swift).
#if canImport(ReelArenas)
  import ReelArenas
#endif
#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Settings of the process for work with many sources.
enum ProcessSettings {
  /// Lets players know what they allocate. To be called before anything else.
  static func registerArenas() {
    #if canImport(ReelArenas)
      ReelArenas.register()
    #endif
  }

  static func apply() {
    raiseFileLimit()
    // Takes a third less memory for a hundred sources, in the same time.
    Allocator.limitArenas(to: max(2, ProcessInfo.processInfo.activeProcessorCount))
  }

  /// Raises the limit of open files as far as the system allows.
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
