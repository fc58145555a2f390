internal import ReelCore

/// What has to end when the loading of one source ends: its transfers, and the waits of its thread.
///
/// Cancelled at most once; what is registered after that is cancelled at once.
final class LoadScope: Sendable {
  private struct State {
    var isCancelled = false
    var nextToken = 0
    var handlers: [Int: @Sendable () -> Void] = [:]
  }

  private let state = Locked(State())

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Calls `handler` when the scope is cancelled.
  @discardableResult
  func onCancel(_ handler: @escaping @Sendable () -> Void) -> Int {
    let (token, isCancelled) = state.withLock { state in
      state.nextToken += 1
      if !state.isCancelled { state.handlers[state.nextToken] = handler }
      return (state.nextToken, state.isCancelled)
    }
    if isCancelled { handler() }
    return token
  }

  func forget(_ token: Int) { state.withLock { _ = $0.handlers.removeValue(forKey: token) } }

  func cancel() {
    let handlers = state.withLock { state in
      state.isCancelled = true
      defer { state.handlers = [:] }
      return state.handlers
    }
    for handler in handlers.values { handler() }
  }
}

/// Holds the outcome of a task for a thread that waits for it.
final class ResultBox<Value: Sendable>: Sendable {
  private let result = Locked<Result<Value, any Error>?>(nil)

  func set(_ value: Result<Value, any Error>) { result.withLock { $0 = value } }

  func get() throws -> Value {
    guard let result = result.withLock({ $0 }) else { throw CancellationError() }
    return try result.get()
  }
}
