internal import Dispatch

/// The urgency of work if all cores are busy.
package enum WorkUrgency: Sendable {
  /// In turn; the caller continues first. For loading and decoding.
  case patient
  /// At once, taking a core from others. For short work that is due at a certain time.
  case prompt
}

/// Runs the work of players: blocking bodies, tasks, and the waits between them.
///
/// Players start all work through it, so that the same code runs on the system's threads (`SystemRuntime`)
/// and, one job at a time, by a simulated clock.
package protocol PlayerRuntime: AnyObject, Sendable {
  /// Starts `body`, which may block, outside Swift's cooperative threads, without waiting for it.
  func run(named name: String, _ urgency: WorkUrgency, _ body: @escaping @Sendable () -> Void)

  /// Starts a task. Use it instead of `Task`, which would not inherit the runtime of its creator.
  func throwingTask<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error>

  /// Like `throwingTask`, for a body that can't fail.
  @discardableResult
  func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never>

  /// Like `task`, for a thread that waits for the body: it may run there, up to its first suspension.
  func awaitedTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never>

  /// Makes a semaphore for bodies passed to `run`.
  func makeSemaphore() -> any BlockingSemaphore

  /// Records that a task continues after waiting for a body to end.
  func recordResumption()

  /// The maximum delay of timed work, because threads take some time to wake. A thread that is woken may also
  /// take the core of the thread that wakes it.
  var wakeLatency: Duration { get }
}

extension PlayerRuntime {
  package func awaitedTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> { task(body) }

  package func recordResumption() {}
  package var wakeLatency: Duration { .zero }

  package func run(named name: String, _ body: @escaping @Sendable () -> Void) {
    run(named: name, .patient, body)
  }
}

/// Runs work on the system's threads, as many as needed.
package final class SystemRuntime: PlayerRuntime {
  package static let shared = SystemRuntime()

  private let threads: WorkerThreads
  private let promptThreads: WorkerThreads

  package init(threads: WorkerThreads = .shared, promptThreads: WorkerThreads = .prompt) {
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

  package func awaitedTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    guard #available(macOS 26, *) else { return task(body) }
    return Task.immediate { await body() }
  }

  package func makeSemaphore() -> any BlockingSemaphore { SystemSemaphore() }
}

private final class SystemSemaphore: BlockingSemaphore {
  private let semaphore = DispatchSemaphore(value: 0)

  func wait() { semaphore.wait() }

  func signal() { semaphore.signal() }
}
