#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A value behind a lock, and a thread that waits for it to change: a POSIX mutex and a condition variable whose
/// deadlines are times of `SystemMonotonicClock`.
package final class Monitor<Value: ~Copyable>: @unchecked Sendable {
  /// The next step of a wait.
  package enum Step<Result> {
    case end(Result)
    /// Looks again after a `signal()`, or when the time has come; nil for no time.
    case wait(until: Duration?)
  }

  // Sendable: `value` is accessed only in `withLock` and `wait`, which hold the mutex.
  private let mutex: RankedMutex
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var value: Value

  package init(_ value: consuming sending Value, rank: LockRank = .leaf) {
    self.value = value
    mutex = RankedMutex(rank)
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    #if canImport(Darwin)
      pthread_cond_init(condition, nil)
    #else
      var attributes = pthread_condattr_t()
      pthread_condattr_init(&attributes)
      pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
      pthread_cond_init(condition, &attributes)
      pthread_condattr_destroy(&attributes)
    #endif
  }

  deinit {
    pthread_cond_destroy(condition)
    condition.deallocate()
  }

  /// Calls `body` with the value while no other thread has it. Not to be called again from within.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    mutex.lock()
    defer { mutex.unlock() }
    return try body(&value)
  }

  /// Blocks this thread until `body`, which is called with the value as `withLock` does it, ends the wait. It is called
  /// at once, and again whenever there may be something new.
  package func wait<Result>(
    for body: (inout sending Value) -> sending Step<Result>
  ) -> sending Result {
    mutex.lock()
    defer { mutex.unlock() }
    while true {
      switch body(&value) {
      case .end(let result): return result
      case .wait(until: nil): pthread_cond_wait(condition, mutex.native)
      case .wait(until: let deadline?): waitOnce(until: deadline)
      }
    }
  }

  /// Lets one thread that waits look again.
  package func signal() { pthread_cond_signal(condition) }

  // MARK: - Private

  private func waitOnce(until deadline: Duration) {
    #if canImport(Darwin)
      var length = timespec(max(deadline - SystemMonotonicClock().now, .zero))
      pthread_cond_timedwait_relative_np(condition, mutex.native, &length)
    #else
      var time = timespec(max(deadline, .zero))
      pthread_cond_timedwait(condition, mutex.native, &time)
    #endif
  }
}

extension timespec {
  /// A non-negative duration, rounded up to the nanosecond so that no wait ends early.
  fileprivate init(_ duration: Duration) {
    let (seconds, attoseconds) = (duration + .nanoseconds(1)).components
    self.init(tv_sec: time_t(clamping: seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
  }
}
