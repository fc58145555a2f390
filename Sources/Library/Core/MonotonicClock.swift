/// A clock that never goes backwards, with a timer.
///
/// Reel takes its clock as a parameter, so tests can control time instead of waiting.
public protocol MonotonicClock: Sendable {
  /// The time since the clock's origin, an arbitrary instant.
  var now: Duration { get }

  /// Calls `handler` once, at `deadline` or as soon as possible after it.
  ///
  /// If `deadline` has passed, the clock calls `handler` soon, but never from within `schedule`.
  ///
  /// - Parameters:
  ///   - deadline: The time of the call, in terms of `now`.
  ///   - handler: Runs on a thread that the clock chooses, and must not block.
  /// - Returns: The scheduled call. Discarding it does not cancel the call.
  @discardableResult
  func schedule(at deadline: Duration, _ handler: @escaping @Sendable () -> Void) -> any ScheduledCall
}

/// A call scheduled on a clock.
public protocol ScheduledCall: Sendable {
  /// Cancels the call: the clock releases the handler without calling it. A handler that is already running continues.
  ///
  /// You can call this at any time, repeatedly, and from the handler itself.
  func cancel()
}

extension MonotonicClock {
  /// Suspends the current task for `duration` of this clock's time.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  public func sleep(for duration: Duration) async throws {
    let wait = ClockWait()
    let call = schedule(at: now + duration) { wait.finish(.success(())) }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wait.begin($0) }
    } onCancel: {
      call.cancel()
      wait.finish(.failure(CancellationError()))
    }
  }
}

/// Suspends a task until a clock calls it.
private final class ClockWait: Sendable {
  private struct State {
    var continuation: CheckedContinuation<Void, any Error>?
    var outcome: Result<Void, any Error>?
  }

  private let state = Locked(State())

  func begin(_ continuation: CheckedContinuation<Void, any Error>) {
    let outcome = state.withLock { state in
      if state.outcome == nil { state.continuation = continuation }
      return state.outcome
    }
    if let outcome { continuation.resume(with: outcome) }
  }

  func finish(_ outcome: Result<Void, any Error>) {
    let continuation = state.withLock { state in
      if state.outcome == nil { state.outcome = outcome }
      return state.continuation.take()
    }
    continuation?.resume(with: outcome)
  }
}
