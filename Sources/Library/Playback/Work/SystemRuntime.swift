internal import Dispatch

/// Runs work on the system's threads, as many as needed.
package final class SystemRuntime: PlayerRuntime {
  package static let shared = SystemRuntime()

  private let threads: WorkerThreads
  private let promptThreads: WorkerThreads

  init(threads: WorkerThreads = .shared, promptThreads: WorkerThreads = .prompt) {
    self.threads = threads
    self.promptThreads = promptThreads
  }

  package var wakeLatency: Duration { .milliseconds(3) }

  package func run(named name: String, _ urgency: WorkUrgency, _ body: @escaping @Sendable () -> Void) {
    (urgency == .prompt ? promptThreads : threads).run(named: name, body)
  }

  package func throwingTask<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    Task { try await body() }
  }

  @discardableResult
  package func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    Task { await body() }
  }

  package func makeSemaphore() -> any BlockingSemaphore { SystemSemaphore() }
}

private final class SystemSemaphore: BlockingSemaphore {
  private let semaphore = DispatchSemaphore(value: 0)

  func wait() { semaphore.wait() }

  func signal() { semaphore.signal() }
}
