#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A POSIX mutex that reports its rank to `LockOrder`.
///
/// It is used instead of `Synchronization.Mutex`, whose futexes on Linux are invisible to ThreadSanitizer: every use
/// would be reported as a race, and hide real races.
struct RankedMutex: ~Copyable {
  let native: UnsafeMutablePointer<pthread_mutex_t>
  private let rank: LockRank

  init(_ rank: LockRank) {
    self.rank = rank
    native = .allocate(capacity: 1)
    native.initialize(to: pthread_mutex_t())
    pthread_mutex_init(native, nil)
  }

  deinit {
    pthread_mutex_destroy(native)
    native.deallocate()
  }

  func lock() {
    if LockOrder.isChecked { LockOrder.take(rank) }
    pthread_mutex_lock(native)
  }

  func unlock() {
    pthread_mutex_unlock(native)
    if LockOrder.isChecked { LockOrder.give(rank) }
  }
}
