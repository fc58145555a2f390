#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A value behind a lock.
///
/// It uses a POSIX mutex instead of `Synchronization.Mutex`, whose futexes on Linux are invisible to
/// ThreadSanitizer: every use would be reported as a race, and hide real races.
package final class Locked<Value: ~Copyable>: @unchecked Sendable {
  // Sendable: `value` is accessed only in `withLock`, which holds the mutex.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var value: Value
  private let rank: LockRank

  package convenience init(_ value: consuming sending Value) { self.init(value, rank: .leaf) }

  package init(_ value: consuming sending Value, rank: LockRank) {
    self.value = value
    self.rank = rank
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Calls `body` with the value while no other thread has it. Not to be called again from within.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    if LockOrder.isChecked { LockOrder.take(rank) }
    pthread_mutex_lock(mutex)
    defer {
      pthread_mutex_unlock(mutex)
      if LockOrder.isChecked { LockOrder.give(rank) }
    }
    return try body(&value)
  }
}
