internal import Dispatch
public import ReelCore

/// A monotonic clock that stands still at zero until it is told to go on, and then makes the calls that have come due.
public final class ManualMonotonicClock: MonotonicClock {
  private struct State {
    var now: Duration = .zero
    var calls = CallQueue()
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Locked(State(), rank: .clock)

  public init() {}

  public var now: Duration { state.withLock { $0.now } }

  /// The time of the next call; nil where none is scheduled.
  public var nextDeadline: Duration? { state.withLock { $0.calls.next?.deadline } }

  /// A deadline that has passed is called on a thread of Dispatch's, or by an `advance` that comes first.
  @discardableResult
  public func schedule(
    at deadline: Duration, _ handler: @escaping @Sendable () -> Void
  ) -> any ScheduledCall {
    let (key, isDue, waiters) = state.withLock { state in
      let key = state.calls.insert(at: deadline, handler)
      defer { state.waiters = [:] }
      return (key, deadline <= state.now, state.waiters)
    }
    for waiter in waiters.values { waiter.resume() }
    if isDue { DispatchQueue.global().async { self.advance(by: .zero) } }
    return Call(clock: self, key: key)
  }

  /// Goes on by a length of time; see `advance(to:)`.
  public func advance(by length: Duration) { advance(to: now + length) }

  /// Goes on to `target`, and makes the calls that come due, in the order of their deadlines and on this thread, each
  /// while `now` is its deadline. Those that are scheduled on the way are among them. The clock does not go back.
  public func advance(to target: Duration) {
    while let handler = takeDue(at: target) { handler() }
  }

  /// Returns once a call is scheduled, or the task is cancelled.
  public func waitForDeadline() async {
    let number = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let returnsAtOnce = state.withLock { state in
          guard state.calls.count == 0, !Task.isCancelled else { return true }
          state.waiters[number] = continuation
          return false
        }
        if returnsAtOnce { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
    }
  }

  // MARK: - Private

  private func takeDue(at target: Duration) -> (@Sendable () -> Void)? {
    state.withLock { state in
      guard let next = state.calls.next, next.deadline <= target else {
        state.now = max(state.now, target)
        return nil
      }
      state.now = max(state.now, next.deadline)
      return state.calls.takeNext()
    }
  }

  private func cancel(_ key: CallQueue.Key) {
    let handler = state.withLock { $0.calls.remove(key) }
    withExtendedLifetime(handler) {}
  }

  private struct Call: ScheduledCall {
    let clock: ManualMonotonicClock
    let key: CallQueue.Key

    func cancel() { clock.cancel(key) }
  }
}
