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

  /// Calls `body` with the value while no other thread has it. Not to be called again from within.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    mutex.lock()
    defer { mutex.unlock() }
    return try body(&value)
  }
}
