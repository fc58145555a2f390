internal import Foundation
internal import ReelCore

/// A lock that is held while outputs are called. When `detach` has returned, a detached output is not called
/// any more, and when an item has been replaced, no output gets a frame of it.
///
/// The lock is recursive, so an output may use the player. Players may share one: then only one of them calls
/// outputs at a time, and an output can move from one player to another without a frame of either in between.
/// A player can be separated from the others.
package final class OutputLock: Sendable {
  /// The mutex that players share.
  private final class Shared: @unchecked Sendable {
    // Sendable: only the holder of the mutex uses `depth`.
    private let mutex = NSRecursiveLock()
    /// The number of times that the holder has taken the mutex.
    private(set) var depth = 0
    /// True if the rank was recorded when the holder first took the mutex.
    private var isRanked = false

    func take() {
      let isFirst = LockOrder.isChecked && LockOrder.takeAgain(.outputs)
      mutex.lock()
      depth += 1
      if isFirst { isRanked = true }
    }

    func give() {
      depth -= 1
      let isLast = depth == 0 && isRanked
      if isLast { isRanked = false }
      mutex.unlock()
      if isLast { LockOrder.give(.outputs) }
    }
  }

  private struct State {
    var lock = Shared()
    /// True if the players separate when nobody holds the lock.
    var isSeparating = false
  }

  private let state: Locked<State>

  package init() { state = Locked(State()) }

  /// Shares the lock of another player, until it is separated.
  package init(sharing other: OutputLock) { state = Locked(State(lock: other.state.withLock { $0.lock })) }

  package func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
    let lock = take()
    defer { lock.give() }
    return try body()
  }

  package func wait() { take().give() }

  /// Stops sharing the lock. Calls of outputs under the shared lock end first, including one that calls this.
  package func separate() {
    let lock = take()
    defer { lock.give() }
    state.withLock { state in
      if lock.depth == 1 { state.lock = Shared() } else { state.isSeparating = true }
    }
  }

  // MARK: - Private

  private func take() -> Shared {
    while true {
      let lock = state.withLock { $0.lock }
      lock.take()
      let isCurrent = state.withLock { state in
        // The lock may have been separated while this waited.
        guard state.lock === lock else { return false }
        guard state.isSeparating, lock.depth == 1 else { return true }
        state = State()
        return false
      }
      if isCurrent { return lock }
      lock.give()
    }
  }
}
