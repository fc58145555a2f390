internal import DequeModule
internal import Dispatch
internal import Foundation
internal import ReelCore
import ReelFFmpeg

/// Has one permit per processor, which limits how many of the open sources compute at a time.
package final class CoreGate: DecodingGate {
  fileprivate struct State {
    /// The number of free permits; negative if more are in use than exist, after one was left to a server.
    var freeCount: Int
    /// True if one permit is to be left to a server that turns out to be on this machine.
    var leavesOne: Bool
    /// Called in order, each with a permit: first those of sources that have begun.
    var begun: Deque<@Sendable () -> Void> = []
    var others: Deque<@Sendable () -> Void> = []
    /// The recent average time that work waited for bytes and threads.
    var averageWait = Duration.zero
  }

  private let state: Locked<State>

  /// - Parameters:
  ///   - permits: Nil for one per processor.
  ///   - leavesCoreToServer: True to leave one of several processors to a server on this machine. Otherwise,
  ///     the times of a source depend on how many others its server has to answer. It costs throughput.
  package init(permits: Int? = nil, leavesCoreToServer: Bool = false) {
    let count = max(1, permits ?? ProcessInfo.processInfo.activeProcessorCount)
    state = Locked(State(freeCount: count, leavesOne: leavesCoreToServer && count > 1))
  }

  package func acquire() {
    guard !takeFree() else { return }
    let semaphore = DispatchSemaphore(value: 0)
    whenFree { semaphore.signal() }
    semaphore.wait()
  }

  package func release() {
    let next = state.withLock { state -> (@Sendable () -> Void)? in
      let next = state.freeCount < 0 ? nil : state.begun.popFirst() ?? state.others.popFirst()
      if next == nil { state.freeCount += 1 }
      return next
    }
    next?()
  }

  /// Removes a permit, once, because sources come from a server on this machine.
  func leaveCoreToServer() {
    state.withLock { state in
      guard state.leavesOne else { return }
      state.leavesOne = false
      state.freeCount -= 1
    }
  }

  /// Calls `body`, which must not block, with a permit: at once, or as soon as one is released.
  ///
  /// - Parameter hasBegun: Whether the work belongs to a source that has had a permit before.
  func whenFree(hasBegun: Bool = true, _ body: @escaping @Sendable () -> Void) {
    let isFree = state.withLock { state in
      if state.takeFree() { return true }
      if hasBegun { state.begun.append(body) } else { state.others.append(body) }
      return false
    }
    if isFree { body() }
  }

  /// Whether work waits for a permit.
  var isContended: Bool { state.withLock { !$0.begun.isEmpty || !$0.others.isEmpty } }

  /// The time that a permit is kept in a wait before it is released: zero if waits are long.
  var keepingTime: Duration { state.withLock { $0.averageWait < Self.shortWait ? Self.longestKept : .zero } }

  func record(wait: Duration) {
    state.withLock { $0.averageWait += (min(wait, Self.longestNoted) - $0.averageWait) / 16 }
  }

  /// Longer waits are rare on loopback and local networks, and shorter ones on others.
  private static let shortWait = Duration.milliseconds(3)
  static let longestKept = Duration.milliseconds(5)
  /// The maximum recorded duration, so that one long wait does not dominate the average.
  private static let longestNoted = Duration.milliseconds(50)

  // MARK: - Private

  private func takeFree() -> Bool { state.withLock { $0.takeFree() } }
}

extension CoreGate.State {
  fileprivate mutating func takeFree() -> Bool {
    guard freeCount > 0 else { return false }
    freeCount -= 1
    return true
  }
}
