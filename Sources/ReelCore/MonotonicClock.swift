/// Time that only goes forward, and calls at a time: injected, so that what is paced by time is tested without waiting.
/// Zero is any instant.
public protocol MonotonicClock: Sendable {
  var now: Duration { get }

  /// Calls `handler` once at `deadline` or as soon after as can be, on a thread of the clock's own: it must not block.
  /// A deadline that has passed is called soon, never from inside of this call.
  @discardableResult
  func schedule(at deadline: Duration, _ handler: @escaping @Sendable () -> Void) -> any ScheduledCall
}

/// A call that a clock will make.
public protocol ScheduledCall: Sendable {
  /// After this the handler may still be running, but is not begun any more, and the clock does not hold it. May be
  /// called at any time, as often as one likes, and from the handler itself. A call that is let go without this is
  /// made all the same.
  func cancel()
}

extension MonotonicClock {
  /// Returns after `duration` of this clock's time. Throws `CancellationError`.
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

/// A task that waits for a call of a clock.
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
