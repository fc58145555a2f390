internal import Foundation
internal import ReelCore

/// Held while outputs are called, so that a detached one is not called any more when `detach` has returned, nor any with a
/// frame of another item when that was replaced.
///
/// An output may use the player: the lock can be taken again by who has it. Players may share one: then one at a time
/// calls its outputs, and an output can go from one to another without a frame of either in between. A player can be
/// separated from those that it shares with.
package final class OutputLock: Sendable {
  /// What players share.
  private final class Shared: @unchecked Sendable {
    // Sendable: `depth` is used by who has the mutex alone.
    private let mutex = NSRecursiveLock()
    /// How often its holder has taken it.
    private(set) var depth = 0
    /// Its rank was noted when it was taken first.
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
    /// It is to be another one as soon as nobody has this one.
    var isSeparating = false
  }

  private let state: Locked<State>

  package init() { state = Locked(State()) }

  /// Shares the lock of another, until it is separated.
  package init(sharing other: OutputLock) { state = Locked(State(lock: other.state.withLock { $0.lock })) }

  package func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
    let lock = take()
    defer { lock.give() }
    return try body()
  }

  package func wait() { take().give() }

  /// From now on nobody else has this lock. What is shown under the old one ends before, also what this is called from.
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
        // It may have been separated while this waited.
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
