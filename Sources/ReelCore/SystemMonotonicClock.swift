#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// This machine's clock, which does not follow changes of the time of day, and stands while the machine sleeps. All
/// values share one thread of the process for their calls.
public struct SystemMonotonicClock: MonotonicClock {
  public init() {}

  public var now: Duration {
    var time = timespec()
    // The clock that `Monitor` waits on.
    #if canImport(Darwin)
      clock_gettime(CLOCK_UPTIME_RAW, &time)
    #else
      clock_gettime(CLOCK_MONOTONIC, &time)
    #endif
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }

  @discardableResult
  public func schedule(
    at deadline: Duration, _ handler: @escaping @Sendable () -> Void
  ) -> any ScheduledCall {
    TimerThread.shared.schedule(at: deadline, handler)
  }
}
