#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The system's monotonic clock. It ignores changes to the time of day, and stops while the machine sleeps.
///
/// All instances make their calls on one shared thread.
public struct SystemMonotonicClock: MonotonicClock {
  /// Creates a clock. All instances tell the same time.
  public init() {}

  public var now: Duration {
    var time = timespec()
    // The same clock as `Monitor` waits on.
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
