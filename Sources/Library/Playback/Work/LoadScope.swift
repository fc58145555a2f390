internal import ReelCore

/// Ends everything that belongs to the loading of one source: its transfers, and the waits of its thread.
///
/// Cancelled at most once. A handler registered after that is called at once.
package final class LoadScope: Sendable {
  /// The runtime of the loading tasks.
  package let runtime: any PlayerRuntime
  /// Counts the memory that loading holds.
  package let memory: LoadingMemory

  private struct State {
    var isCancelled = false
    var nextToken = 0
    /// In the order of registration, in which they are called.
    var handlers: [(token: Int, call: @Sendable () -> Void)] = []
  }

  private let state = Locked(State())

  package init(
    runtime: any PlayerRuntime = SystemRuntime.shared, memory: LoadingMemory = LoadingMemory(account: nil)
  ) {
    self.runtime = runtime
    self.memory = memory
  }

  package var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Calls `handler` when the scope is cancelled, after handlers registered before it.
  @discardableResult
  package func onCancel(_ handler: @escaping @Sendable () -> Void) -> Int {
    let (token, isCancelled) = state.withLock { state in
      state.nextToken += 1
      if !state.isCancelled { state.handlers.append((state.nextToken, handler)) }
      return (state.nextToken, state.isCancelled)
    }
    if isCancelled { handler() }
    return token
  }

  package func forget(_ token: Int) {
    // The handler is released outside the lock, because releasing it may call this scope.
    let forgotten = state.withLock { state -> (@Sendable () -> Void)? in
      guard let index = state.handlers.lastIndex(where: { $0.token == token }) else { return nil }
      return state.handlers.remove(at: index).call
    }
    withExtendedLifetime(forgotten) {}
  }

  package func cancel() {
    let handlers = state.withLock { state in
      state.isCancelled = true
      defer { state.handlers = [] }
      return state.handlers
    }
    for handler in handlers { handler.call() }
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
