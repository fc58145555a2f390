/// How soon work begins where all cores are busy.
package enum WorkUrgency: Sendable {
  /// When its turn comes: who asks for it goes on first. Loading and decoding.
  case patient
  /// At once: it takes a core from others. What is due at a time, and short.
  case prompt
}

/// Where the work of players is done: what blocks, what is asynchronous, and the waits between the two.
///
/// Everything that a player begins goes through one of these, so that the same code runs on the system's threads
/// (`SystemRuntime`) and, one thing at a time, under a modelled clock.
package protocol PlayerRuntime: AnyObject, Sendable {
  /// Runs `body`, which may block, away from Swift's cooperative threads. Never waits for it.
  func run(named name: String, _ urgency: WorkUrgency, _ body: @escaping @Sendable () -> Void)

  /// Begins a task. To be used in place of `Task`: a task of its own does not inherit where the one runs that makes it.
  func throwingTask<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error>

  /// As `throwingTask`, for what can't fail.
  @discardableResult
  func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never>

  /// What a body given to `run` waits on.
  func makeSemaphore() -> any BlockingSemaphore

  /// So long after a call that must not be held up, what follows from it may begin: threads that are woken before it
  /// returns may take its core.
  var returnAllowance: Duration { get }
  /// So late may what is due at a time begin, as threads take some time to wake.
  var wakeAllowance: Duration { get }
}

extension PlayerRuntime {
  package var returnAllowance: Duration { .zero }
  package var wakeAllowance: Duration { .zero }

  package func run(named name: String, _ body: @escaping @Sendable () -> Void) {
    run(named: name, .patient, body)
  }
}
