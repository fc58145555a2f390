/// Makes calls at times of `SystemMonotonicClock`, on one thread, which ends when nothing has been scheduled for a
/// while and is started again for the next call.
final class TimerThread: Sendable {
  static let shared = TimerThread()

  private struct State {
    var calls = CallQueue()
    var isRunning = false
    /// When the last call was made or cancelled.
    var idleSince: Duration = .zero
  }

  private let state = Monitor(State(), rank: .clock)
  private let idleTime: Duration

  init(idleTime: Duration = .seconds(1)) { self.idleTime = idleTime }

  /// True while there is a thread.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// The number of calls to come.
  var callCount: Int { state.withLock { $0.calls.count } }

  func schedule(at deadline: Duration, _ handler: @escaping @Sendable () -> Void) -> any ScheduledCall {
    let (key, isNext, needsThread) = state.withLock { state in
      let key = state.calls.insert(at: deadline, handler)
      let needsThread = !state.isRunning
      state.isRunning = true
      return (key, key == state.calls.next, needsThread)
    }
    if needsThread {
      NativeThread.start(named: "reel.timer", stackSize: Self.stackSize) { self.run() }
    } else if isNext {
      state.signal()
    }
    return Call(timer: self, key: key)
  }

  // MARK: - Private

  /// The handlers do next to nothing.
  private static let stackSize = 256 << 10

  private func run() {
    NativeThread.endWaitsAtOnce()
    let clock = SystemMonotonicClock()
    while true {
      let handler = state.wait { state -> Monitor<State>.Step<CallQueue.Handler?> in
        let now = clock.now
        guard let next = state.calls.next else {
          let idleEnd = state.idleSince + idleTime
          guard now >= idleEnd else { return .wait(until: idleEnd) }
          state.isRunning = false
          return .end(nil)
        }
        guard now >= next.deadline else { return .wait(until: next.deadline) }
        return .end(state.calls.takeNext())
      }
      guard let handler else { return }
      handler()
      state.withLock { $0.idleSince = clock.now }
    }
  }

  private func cancel(_ key: CallQueue.Key) {
    let (handler, isIdle) = state.withLock { state -> (CallQueue.Handler?, Bool) in
      guard let handler = state.calls.remove(key) else { return (nil, false) }
      state.idleSince = SystemMonotonicClock().now
      return (handler, state.calls.count == 0)
    }
    // The thread waits for that call, and would otherwise not end before its time.
    if isIdle { state.signal() }
    withExtendedLifetime(handler) {}
  }

  private struct Call: ScheduledCall {
    let timer: TimerThread
    let key: CallQueue.Key

    func cancel() { timer.cancel(key) }
  }
}
