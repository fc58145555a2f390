import ReelCore

/// Real time, but for what the machine is too slow for: from one look at this clock to the next it goes on by a few
/// milliseconds at most. So what is due is late by hardly more, however long a thread waits for its turn.
final class StepClock: MonotonicClock {
  private struct State {
    /// By the system's clock, when this one was looked at last.
    var lookedAt: Duration
    var now = Duration.zero
  }

  private let base = SystemMonotonicClock()
  private let state: Locked<State>
  private static let step = Duration.milliseconds(10)

  init() { state = Locked(State(lookedAt: base.now)) }

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

  /// Comes by at every step, as the clock hardly goes on where nobody looks.
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
      /// Nil once it has been made or cancelled.
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
      // What the handler holds is let go after the lock.
      let (handler, next) = state.withLock { ($0.handler.take(), $0.next.take()) }
      next?.cancel()
      withExtendedLifetime(handler) {}
    }
  }
}
