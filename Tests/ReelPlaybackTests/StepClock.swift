import ReelCore

/// A real-time clock that advances by at most 10 ms between two readings. So nothing is late by much more than that,
/// however long a thread waits for its turn.
final class StepClock: MonotonicClock {
  private struct State {
    /// The system clock's time when this clock was last read.
    var lookedAt: Duration
    var now = Duration.zero
  }

  private let base = SystemMonotonicClock()
  private let state: Locked<State>
  private static let step = Duration.milliseconds(10)

  init() { state = Locked(State(lookedAt: base.now), rank: .clock) }

  var now: Duration {
    state.withLock { state in
      let time = base.now
      state.now += min(Self.step, time - state.lookedAt)
      state.lookedAt = time
      return state.now
    }
  }

  @discardableResult
  func schedule(
    at deadline: Duration, _ handler: @escaping @Sendable () -> Void
  ) -> any ScheduledCall {
    let call = Call(deadline: deadline, handler: handler)
    wait(for: call)
    return call
  }

  // MARK: - Private

  /// Reads the clock at every step, because it hardly advances unless somebody reads it.
  private func wait(for call: Call) {
    let pause = min(Self.step, call.deadline - now)
    let next = base.schedule(at: base.now + pause) { [self] in
      if now < call.deadline { wait(for: call) } else { call.make() }
    }
    call.setNext(next)
  }

  private final class Call: ScheduledCall {
    let deadline: Duration
    private let state: Locked<State>

    private struct State {
      /// Nil once the call was made or cancelled.
      var handler: (@Sendable () -> Void)?
      var next: (any ScheduledCall)?
    }

    init(deadline: Duration, handler: @escaping @Sendable () -> Void) {
      self.deadline = deadline
      state = Locked(State(handler: handler))
    }

    func make() { state.withLock { $0.handler.take() }?() }

    func setNext(_ next: any ScheduledCall) {
      let isOver = state.withLock { state in
        if state.handler != nil { state.next = next }
        return state.handler == nil
      }
      if isOver { next.cancel() }
    }

    func cancel() {
      // The handler's references are released outside the lock.
      let (handler, next) = state.withLock { ($0.handler.take(), $0.next.take()) }
      next?.cancel()
      withExtendedLifetime(handler) {}
    }
  }
}
