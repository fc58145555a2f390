#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The processor time of the calling thread since it began.
package enum ThreadTime {
  package static var now: Duration { time(of: CLOCK_THREAD_CPUTIME_ID) }
}

/// The processor time of all threads of the process since it began.
package enum ProcessTime {
  package static var now: Duration { time(of: CLOCK_PROCESS_CPUTIME_ID) }
}

/// The time that threads wait for cores used by others.
enum ThreadDelay {
  /// A number for the calling thread.
  static var thread: UInt { UInt(bitPattern: pthread_self().hashValue) }

  /// The time that the calling thread has been ready to run, but had no core, since it began. Nil if the
  /// system does not report it.
  static var now: Duration? {
    #if os(Linux)
      let descriptor = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return nil }
      defer { close(descriptor) }
      // Time on a core, time in a run queue (both in nanoseconds), and a count.
      let text = String(unsafeUninitializedCapacity: 80) {
        max(0, read(descriptor, $0.baseAddress, $0.count))
      }
      let fields = text.split(separator: " ")
      return fields.count > 1 ? Int64(fields[1]).map { .nanoseconds($0) } : nil
    #else
      return nil
    #endif
  }
}

private func time(of clock: clockid_t) -> Duration {
  var time = timespec()
  guard clock_gettime(clock, &time) == 0 else { return .zero }
  return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
}
