package import ReelCore
internal import Synchronization

/// Ends everything that belongs to the loading of one source: its transfers, and the waits of its thread.
///
/// Cancelled at most once. A handler registered after that is called at once.
package final class LoadScope: Sendable {
  /// The runtime of the loading tasks.
  package let runtime: any PlayerRuntime
  /// Counts the memory that loading holds.
  package let memory: LoadingMemory

  private struct State {
    var nextToken = 0
    /// In the order of registration, in which they are called.
    var handlers: [(token: Int, call: @Sendable () -> Void)] = []
  }

  private let state = Locked(State())
  /// Set under the lock of `state`. A reader or decoder asks it for each packet.
  private let hasEnded = Atomic(false)

  package init(
    runtime: any PlayerRuntime = SystemRuntime.shared, memory: LoadingMemory = LoadingMemory(account: nil)
  ) {
    self.runtime = runtime
    self.memory = memory
  }

  package var isCancelled: Bool { hasEnded.load(ordering: .acquiring) }

  /// Calls `handler` when the scope is cancelled, after handlers registered before it.
  @discardableResult
  package func onCancel(_ handler: @escaping @Sendable () -> Void) -> Int {
    let (token, isCancelled) = state.withLock { state in
      state.nextToken += 1
      if !self.isCancelled { state.handlers.append((state.nextToken, handler)) }
      return (state.nextToken, self.isCancelled)
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

  /// Runs `body` in a task of its own, which is cancelled with the scope and with the calling task.
  ///
  /// A task keeps the memory of its deepest call until it ends, some 30 KiB after a request. The calling task does not.
  package func perform<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    let task = runtime.throwingTask(body)
    let token = onCancel { task.cancel() }
    defer { forget(token) }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  package func cancel() {
    let handlers = state.withLock { state in
      hasEnded.store(true, ordering: .releasing)
      defer { state.handlers = [] }
      return state.handlers
    }
    for handler in handlers { handler.call() }
  }
}

/// Holds the outcome of a task for a thread that waits for it.
package final class ResultBox<Value: Sendable>: Sendable {
  private let result = Locked<Result<Value, any Error>?>(nil)

  package func set(_ value: Result<Value, any Error>) { result.withLock { $0 = value } }

  package func get() throws -> Value {
    guard let result = result.withLock({ $0 }) else { throw CancellationError() }
    return try result.get()
  }
}

/// The memory that the loading of one item holds outside of its buffers: bytes on their way, and its manifest.
package final class LoadingMemory: Sendable {
  private let account: MemoryAccount?
  private let inFlight = Atomic(0)
  private let manifest = Atomic(0)

  package init(account: MemoryAccount?) { self.account = account }

  /// The number of bytes that have arrived and have not been taken by a demuxer yet.
  package var inFlightByteCount: Int { inFlight.load(ordering: .relaxed) }

  /// The memory that manifests occupy; 0 if the allocator does not report it.
  package var manifestByteCount: Int { manifest.load(ordering: .relaxed) }

  package func addInFlight(_ byteCount: Int) { inFlight.add(byteCount, ordering: .relaxed) }

  /// Runs `body`, whose result stays in memory.
  package func readingManifest<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
    -> Result
  {
    guard let account else { return try body() }
    let before = account.heapByteCount
    let result = try account.perform(body)
    if let before, let after = account.heapByteCount {
      manifest.add(max(0, after - before), ordering: .relaxed)
    }
    return result
  }
}
