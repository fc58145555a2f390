internal import Foundation
internal import ReelCore

/// Held while outputs are called, so that a detached one is not called any more when `detach` has returned, nor any with a
/// picture of another item when that was replaced.
///
/// An output may use the player: the lock can be taken again by who has it. Players may share one: then one at a time
/// calls its outputs, and an output can go from one to another without a picture of either in between. A player can be
/// separated from those that it shares with.
package final class OutputLock: Sendable {
  private let current: Locked<NSRecursiveLock>

  package init() { current = Locked(NSRecursiveLock()) }

  /// Shares the lock of another, until it is separated.
  package init(sharing other: OutputLock) { current = other.current.withLock { Locked($0) } }

  package func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
    let lock = take()
    defer { lock.unlock() }
    return try body()
  }

  package func wait() { take().unlock() }

  /// From now on nobody else has this lock. What is shown under the old one ends before.
  package func separate() {
    let old = take()
    defer { old.unlock() }
    current.withLock { $0 = NSRecursiveLock() }
  }

  // MARK: - Private

  private func take() -> NSRecursiveLock {
    while true {
      let lock = current.withLock { $0 }
      lock.lock()
      // It may have been separated while this waited.
      if current.withLock({ $0 === lock }) { return lock }
      lock.unlock()
    }
  }
}
