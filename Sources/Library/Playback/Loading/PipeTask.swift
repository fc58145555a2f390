internal import ReelCore

/// A pipe and the task that writes to it. Both end with the scope, or with this object.
final class PipeTask: Sendable {
  let pipe: BytePipe
  private let task: Task<Void, Never>
  /// The scopes that end it, each with its handler.
  private let endings: Locked<[(scope: LoadScope, token: Int)]>

  /// - Parameters:
  ///   - capacity: The number of unread bytes at which the task waits.
  ///   - body: Writes into the pipe, which ends when it returns. Reads throw its error.
  init(
    in scope: LoadScope, capacity: Int = BytePipe.usualCapacity,
    _ body: @escaping @Sendable (BytePipe) async throws -> Void
  ) {
    let pipe = BytePipe(capacity: capacity, runtime: scope.runtime, memory: scope.memory)
    let task = scope.runtime.task {
      do {
        try await body(pipe)
        pipe.finish()
      } catch {
        pipe.fail(error)
      }
    }
    self.pipe = pipe
    self.task = task
    endings = Locked([])
    end(with: scope)
  }

  deinit {
    task.cancel()
    pipe.close()
    for ending in endings.withLock({ $0 }) { ending.scope.forget(ending.token) }
  }

  /// Ends the pipe and the task with this scope too.
  func end(with scope: LoadScope) {
    let (task, pipe) = (task, pipe)
    let token = scope.onCancel {
      task.cancel()
      pipe.close()
    }
    endings.withLock { $0.append((scope, token)) }
  }
}
