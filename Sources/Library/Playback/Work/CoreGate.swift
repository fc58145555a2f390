internal import DequeModule
internal import Dispatch
internal import Foundation
internal import ReelCore
import ReelFFmpeg

/// Has one permit per processor, so that however many sources are open, no more of them compute at a time.
package final class CoreGate: DecodingGate {
  fileprivate struct State {
    /// Below 0 where more are in use than there are, since one was left to a server.
    var freeCount: Int
    /// True if one is to be left to a server that is found to be on this machine.
    var leavesOne: Bool
    /// Called in order, each with a permit: first those of sources that have begun.
    var begun: Deque<@Sendable () -> Void> = []
    var others: Deque<@Sendable () -> Void> = []
    /// How long work has waited for bytes and threads lately, on average.
    var averageWait = Duration.zero
  }

  private let state: Locked<State>

  /// - Parameters:
  ///   - permits: Nil for one per processor.
  ///   - leavesCoreToServer: True if a server on this machine is left one of several processors. Otherwise the times of a
  ///     source depend on how many others its server has to answer. It costs throughput.
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

  /// Takes a permit away, once, because sources come from a server on this machine.
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

  /// How long a permit is kept in a wait before it is released: not at all if waits are long.
  var keepingTime: Duration { state.withLock { $0.averageWait < Self.shortWait ? Self.longestKept : .zero } }

  /// Notes how long a wait took.
  func record(wait: Duration) {
    state.withLock { $0.averageWait += (min(wait, Self.longestNoted) - $0.averageWait) / 16 }
  }

  /// Longer waits of loopback and local networks are rare, and shorter ones of others.
  private static let shortWait = Duration.milliseconds(3)
  static let longestKept = Duration.milliseconds(5)
  /// So that one long wait does not count for many.
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
