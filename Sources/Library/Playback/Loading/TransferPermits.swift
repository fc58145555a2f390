internal import ReelCore

/// Limits the number of concurrent transfers. Waiting ones begin in order, each as soon as another one ends.
final class TransferPermits: Sendable {
  private struct State {
    var freeCount: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Locked<State>

  init(_ count: Int) { state = Locked(State(freeCount: count)) }

  /// Waits for a permit, and returns it when `body` ends. A cancelled task also waits for the others to end.
  func run(_ body: () async throws -> Void) async throws {
    await acquire()
    defer { release() }
    try Task.checkCancellation()
    try await body()
  }

  // MARK: - Private

  private func acquire() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isFree = state.withLock { state in
        guard state.freeCount > 0 else {
          state.waiting.append(continuation)
          return false
        }
        state.freeCount -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  private func release() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if !state.waiting.isEmpty { return state.waiting.removeFirst() }
      state.freeCount += 1
      return nil
    }
    next?.resume()
  }
}
