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

private func time(of clock: clockid_t) -> Duration {
  var time = timespec()
  guard clock_gettime(clock, &time) == 0 else { return .zero }
  return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
}
