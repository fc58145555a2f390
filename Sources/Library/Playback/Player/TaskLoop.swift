package import ReelCore
package import ReelSources

/// Runs work in turns, one at a time. Each turn runs on a worker thread and is started by `wake()`.
///
/// A task loop that is released without `stop()` ends with its current turn, and a timed turn is not run.
package final class TaskLoop: Sendable {
  /// The result of a turn.
  package enum Next: Sendable, Equatable {
    /// No turn until `wake()`.
    case idle
    /// Another turn soon.
    case again
    /// A turn at this time of the clock, or at an earlier `wake()`.
    case at(Duration)
  }

  fileprivate enum Phase {
    case idle
    /// A turn is about to begin.
    case begun
    case inTurn
  }

  fileprivate struct State {
    var phase = Phase.idle
    /// True if `wake()` was called during a turn.
    var isWoken = false
    var isStopped = false
    /// Nil once the last turn has ended.
    var turn: (@Sendable () -> Next)?
    /// The alarm for the next timed turn.
    var alarm = Alarm()
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Locked<State>
  private let name: String
  private let urgency: WorkUrgency
  private let runtime: any PlayerRuntime
  private let clock: any MonotonicClock
  private let account: MemoryAccount?

  /// - Parameters:
  ///   - name: The name of the thread during a turn.
  ///   - urgency: How soon a turn begins.
  ///   - runtime: Runs the turns.
  ///   - account: Counts the allocations of turns.
  ///   - turn: The work of a turn. May block. It may call `wake()` and `stop()`.
  package init(
    named name: String, _ urgency: WorkUrgency = .patient, runtime: any PlayerRuntime = SystemRuntime.shared,
    clock: any MonotonicClock, account: MemoryAccount? = nil, turn: @escaping @Sendable () -> Next = { .idle }
  ) {
    self.name = name
    self.urgency = urgency
    self.runtime = runtime
    self.account = account
    self.clock = clock
    state = Locked(State(turn: turn))
  }

  deinit { state.withLock { $0.alarm.clear() }?.cancel() }

  /// Sets the work of a turn, for an owner that must exist before the work can refer to it. Call it before `wake()`.
  package func setTurn(_ turn: @escaping @Sendable () -> Next) {
    state.withLock { state in if !state.isStopped { state.turn = turn } }
  }

  /// Requests a turn that begins after this call: a running turn does not count, one that is about to begin
  /// does. Callable on any thread; never waits for a turn.
  package func wake() {
    let (begins, call) = state.withLock { state -> (Bool, (any ScheduledCall)?) in
      guard !state.isStopped else { return (false, nil) }
      switch state.phase {
      case .idle:
        state.phase = .begun
        return (true, state.alarm.clear())
      case .begun:
        return (false, nil)
      case .inTurn:
        state.isWoken = true
        return (false, nil)
      }
    }
    call?.cancel()
    if begins { begin() }
  }

  /// Like `wake()`, but an idle task loop begins its turn after a pause, unless an earlier turn is planned.
  package func wake(after pause: Duration) {
    guard pause > .zero else { return wake() }
    let deadline = clock.now + pause
    let change = state.withLock { state -> Alarm.Change? in
      guard !state.isStopped, state.phase != .begun else { return nil }
      guard state.phase == .idle else {
        state.isWoken = true
        return nil
      }
      return state.alarm.setUnlessEarlier(at: deadline)
    }
    if let change { carryOut(change) }
  }

  /// Cancels a timed turn.
  package func forgetTime() {
    let call = state.withLock { $0.phase == .idle ? $0.alarm.clear() : nil }
    call?.cancel()
  }

  /// Prevents further turns, without waiting for a running one. `turn` is released after the last one.
  package func stop() {
    let (call, ending) = state.withLock { state in
      state.isStopped = true
      let call = state.alarm.clear()
      return (call, state.phase == .idle ? state.takeEnding() : nil)
    }
    call?.cancel()
    end(ending)
  }

  /// Waits until the task loop is stopped and no turn is running. Cancelling the task does not end the wait,
  /// because a turn can't be interrupted.
  package func waitUntilStopped() async {
    await withCheckedContinuation { continuation in
      let hasEnded = state.withLock { state in
        if state.isStopped, state.turn == nil { return true }
        state.waiters.append(continuation)
        return false
      }
      if hasEnded { continuation.resume() }
    }
  }

  // MARK: - Private

  private func begin() {
    runtime.run(named: name, urgency) { self.runTurns() }
  }

  private func runTurns() {
    while let next = runTurn(), continues(after: next) {}
  }

  /// Returns nil if the task loop was stopped.
  private func runTurn() -> Next? {
    let (turn, ending) = state.withLock { state -> ((@Sendable () -> Next)?, Ending?) in
      guard !state.isStopped else {
        state.phase = .idle
        return (nil, state.takeEnding())
      }
      state.phase = .inTurn
      state.isWoken = false
      return (state.turn, nil)
    }
    end(ending)
    guard let turn else { return nil }
    guard let account else { return turn() }
    return account.perform(turn)
  }

  /// Returns true if another turn follows on this thread.
  private func continues(after next: Next) -> Bool {
    let (step, ending) = state.withLock { state -> (Step, Ending?) in
      if state.isStopped {
        state.phase = .idle
        return (.rest, state.takeEnding())
      }
      if state.isWoken || next == .again {
        state.phase = .begun
        return (.goOn, nil)
      }
      state.phase = .idle
      guard case .at(let deadline) = next else { return (.rest, nil) }
      return (.wait(state.alarm.set(at: deadline)), nil)
    }
    end(ending)
    switch step {
    case .goOn: return true
    case .rest: return false
    case .wait(let change):
      carryOut(change)
      return false
    }
  }

  private enum Step {
    case goOn
    case rest
    case wait(Alarm.Change)
  }

  private func carryOut(_ change: Alarm.Change) {
    state.carryOut(change, of: \.alarm, on: clock) { [weak self] in self?.timerFired($0) }
  }

  private func timerFired(_ generation: Int) {
    let begins = state.withLock { state in
      guard state.phase == .idle, !state.isStopped, state.alarm.ring(generation) else { return false }
      state.phase = .begun
      return true
    }
    if begins { begin() }
  }

  private func end(_ ending: Ending?) {
    guard var ending else { return }
    // Release the turn's captures before resuming the waiters.
    ending.turn = nil
    for waiter in ending.waiters { waiter.resume() }
  }
}

/// The closure to release and the waiters to resume after the last turn.
private struct Ending: Sendable {
  var turn: (@Sendable () -> TaskLoop.Next)?
  let waiters: [CheckedContinuation<Void, Never>]
}

extension TaskLoop.State {
  fileprivate mutating func takeEnding() -> Ending {
    defer { waiters = [] }
    return Ending(turn: turn.take(), waiters: waiters)
  }
}
