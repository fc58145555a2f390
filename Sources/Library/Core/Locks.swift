#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A value behind a lock (`RankedMutex`).
package final class Locked<Value: ~Copyable>: @unchecked Sendable {
  // Sendable: `value` is accessed only in `withLock`, which holds the mutex.
  private let mutex: RankedMutex
  private var value: Value

  package convenience init(_ value: consuming sending Value) { self.init(value, rank: .leaf) }

  package init(_ value: consuming sending Value, rank: LockRank) {
    self.value = value
    mutex = RankedMutex(rank)
  }

  /// Calls `body` with the value while no other thread has access. Must not be called from within `body`.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    mutex.lock()
    defer { mutex.unlock() }
    return try body(&value)
  }
}

/// A POSIX mutex that reports its rank to `LockOrder`.
///
/// It is used instead of `Synchronization.Mutex`, whose futexes on Linux are invisible to ThreadSanitizer,
/// which would report every use as a race and so hide real races.
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

/// The place of a lock in the order in which locks are taken: a thread that holds a lock takes only locks of a higher
/// rank. So no two threads can wait for each other.
///
/// The order is checked in debug builds, and in other builds if the environment has `REEL_CHECK_LOCKS`:
/// taking a lock out of order ends the process with a message that names the ranks held.
package struct LockRank: Sendable {
  fileprivate let place: UInt8
  fileprivate let name: StaticString

  private init(_ place: UInt8, _ name: StaticString) {
    self.place = place
    self.name = name
  }

  /// Held while outputs are called, which may use the player, the pool and the service.
  package static let outputs = LockRank(2, "outputs")
  /// Several feeds under one pool.
  package static let service = LockRank(4, "service")
  package static let pool = LockRank(8, "pool")
  /// Held while a player tells its observers.
  package static let telling = LockRank(16, "telling")
  package static let player = LockRank(24, "player")
  /// The body of an answer, over the transfers that bring it, and an output over another one.
  package static let body = LockRank(42, "body")
  /// One transfer or file, and other objects that call closures or values that they were given.
  package static let transfer = LockRank(44, "transfer")
  /// An observed property or a channel of events.
  package static let observation = LockRank(48, "observation")
  /// All other locks. The only lock that may be taken under one is a clock's.
  package static let leaf = LockRank(56, "leaf")
  package static let clock = LockRank(60, "clock")
}

/// The ranks of the locks that this thread holds.
package enum LockOrder {
  package static let isChecked: Bool = {
    #if DEBUG
      true
    #else
      getenv("REEL_CHECK_LOCKS") != nil
    #endif
  }()

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
  }()

  /// Call this before waiting for the lock.
  static func take(_ rank: LockRank) {
    let held = held
    guard held >> UInt(rank.place) == 0 else {
      // A programming error, reported in every configuration.
      fatalError("the lock \(rank.name) (\(rank.place)) is taken under locks of the ranks \(held.places)")
    }
    set(held | 1 << UInt(rank.place))
  }

  /// The same for a recursive lock. Returns true if the caller must call `give` later.
  package static func takeAgain(_ rank: LockRank) -> Bool {
    guard held >> UInt(rank.place) & 1 == 0 else { return false }
    take(rank)
    return true
  }

  /// Replaces the ranks that this thread holds, for work that moves between threads; returns the previous
  /// ones.
  package static func exchange(_ new: Held) -> Held {
    guard isChecked else { return Held(places: 0) }
    defer { set(new.places) }
    return Held(places: held)
  }

  /// The ranks that a thread holds.
  package struct Held: Sendable {
    fileprivate let places: UInt

    package static let none = Held(places: 0)
  }

  package static func give(_ rank: LockRank) { set(held & ~(1 << UInt(rank.place))) }

  // MARK: - Private

  /// A bit for each rank.
  private static var held: UInt { UInt(bitPattern: pthread_getspecific(key)) }

  private static func set(_ held: UInt) { pthread_setspecific(key, UnsafeRawPointer(bitPattern: held)) }
}

extension UInt {
  /// The places of its bits.
  fileprivate var places: String {
    (0..<UInt(UInt.bitWidth)).filter { self >> $0 & 1 == 1 }.map(String.init).joined(separator: ", ")
  }
}

/// A value behind a lock, and a thread that waits for changes of it: a POSIX mutex and a condition variable
/// whose deadlines are times of `SystemMonotonicClock`.
package final class Monitor<Value: ~Copyable>: @unchecked Sendable {
  /// The next step of a wait.
  package enum Step<Result> {
    case end(Result)
    /// Checks again after a `signal()`, or at this time; nil for no time.
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

  /// Calls `body` with the value while no other thread has access. Must not be called from within `body`.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    mutex.lock()
    defer { mutex.unlock() }
    return try body(&value)
  }

  /// Blocks this thread until `body`, which is called with the value as by `withLock`, ends the wait. `body`
  /// is called at once, and again after each possible change.
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

  /// Lets one waiting thread check again.
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
