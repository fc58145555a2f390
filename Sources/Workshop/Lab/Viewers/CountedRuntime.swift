internal import ReelCore
internal import ReelSources

/// A runtime that counts its tasks, so that the end of a look waits for those that it has cancelled: each reports its
/// transfer when it ends.
final class CountedRuntime: PlayerRuntime {
  private struct State {
    var taskCount = 0
    /// Waits until no task is left.
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let base: any PlayerRuntime
  private let state = Locked(State())

  init(_ base: any PlayerRuntime) { self.base = base }

  /// Waits until every task has ended, even if the calling task is cancelled.
  func waitForTasks() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.taskCount > 0 { state.waiting = continuation }
        return state.taskCount == 0
      }
      if isOver { continuation.resume() }
    }
  }

  // MARK: PlayerRuntime

  func run(named name: String, _ urgency: WorkUrgency, _ body: @escaping @Sendable () -> Void) {
    base.run(named: name, urgency, body)
  }

  func throwingTask<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    begin()
    return base.throwingTask { [self] in
      defer { end() }
      return try await body()
    }
  }

  func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    begin()
    return base.task { [self] in
      await body()
      end()
    }
  }

  func awaitedTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    begin()
    return base.awaitedTask { [self] in
      await body()
      end()
    }
  }

  func makeSemaphore() -> any BlockingSemaphore { base.makeSemaphore() }

  func recordResumption() { base.recordResumption() }

  var wakeLatency: Duration { base.wakeLatency }

  // MARK: - Private

  private func begin() { state.withLock { $0.taskCount += 1 } }

  private func end() {
    let waiting = state.withLock { state in
      state.taskCount -= 1
      return state.taskCount == 0 ? state.waiting.take() : nil
    }
    waiting?.resume()
  }
}
