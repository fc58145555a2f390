internal import Dispatch
package import ReelCore

/// A wall clock that only moves when told to, so that an hour of a live stream takes a test no longer than
/// its requests.
package final class ManualClock: WallClock {
  private let time: Locked<WallTime>

  package init(_ time: WallTime) {
    self.time = Locked(time, rank: .clock)
  }

  package var now: WallTime { time.withLock { $0 } }

  package func advance(by length: MediaTime) {
    time.withLock { $0 = $0 + length }
  }

  /// Advances the clock and returns at once, so a single sleeper takes no real time.
  package func sleep(for duration: Duration) async throws {
    try Task.checkCancellation()
    advance(by: MediaTime(seconds: duration / .seconds(1), timescale: 1_000_000_000))
    await Task.yield()
  }

  package func set(_ time: WallTime) {
    self.time.withLock { $0 = time }
  }
}

/// A monotonic clock for tests. It starts at zero, moves only when advanced, and then makes the calls that are due.
package final class ManualMonotonicClock: MonotonicClock {
  private struct State {
    var now: Duration = .zero
    var calls = CallQueue()
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Locked(State(), rank: .clock)

  /// Creates a clock at zero.
  package init() {}

  /// The current time of the clock.
  package var now: Duration { state.withLock { $0.now } }

  /// The deadline of the next call; nil if none is scheduled.
  package var nextDeadline: Duration? { state.withLock { $0.calls.next?.deadline } }

  /// The number of scheduled calls.
  package var callCount: Int { state.withLock { $0.calls.count } }

  /// Schedules a call of `handler` at `deadline`.
  ///
  /// If `deadline` has passed, the call is made soon on a Dispatch thread, or by an `advance` that comes first.
  @discardableResult
  package func schedule(
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

  /// Advances the clock by `length`, like `advance(to:)`.
  package func advance(by length: Duration) { advance(to: now + length) }

  /// Advances the clock to `target` and makes the calls that become due, including those scheduled meanwhile.
  ///
  /// The calls run on the current thread in order of their deadlines; during each, `now` is its deadline. A `target` in
  /// the past does not move the clock.
  package func advance(to target: Duration) {
    while let handler = takeDue(at: target) { handler() }
  }

  /// Suspends until a call is scheduled, or the task is cancelled. Returns at once if one is already scheduled.
  package func waitForDeadline() async {
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

/// A wall clock that runs faster or slower than this machine's, starting when it is created.
package struct ScaledClock: WallClock {
  private let start: WallTime
  private let speed: Double
  private let origin = ContinuousClock.now

  /// Creates a clock that shows `start` now and runs `speed` times as fast as real time.
  package init(start: WallTime = .now, speed: Double) {
    self.start = start
    self.speed = speed
  }

  package var now: WallTime {
    let (seconds, attoseconds) = (ContinuousClock.now - origin).components
    let elapsed = Double(seconds) + Double(attoseconds) / 1e18
    return start + MediaTime(seconds: elapsed * speed, timescale: 1_000_000_000)
  }

  package func sleep(for duration: Duration) async throws {
    try await Task.sleep(for: duration / speed)
  }
}
