#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A clock that never goes backwards, with a timer.
///
/// Reel takes its clock as a parameter, so tests can control time instead of waiting.
package protocol MonotonicClock: Sendable {
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

package protocol ScheduledCall: Sendable {
  /// Cancels the call: the clock releases the handler without calling it. A handler that is already running continues.
  ///
  /// You can call this at any time, repeatedly, and from the handler itself.
  func cancel()
}

extension MonotonicClock {
  /// Suspends the current task for `duration` of this clock's time.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  package func sleep(for duration: Duration) async throws {
    let wait = TaskWait()
    let call = schedule(at: now + duration) { wait.finish(.success(())) }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wait.begin($0) }
    } onCancel: {
      call.cancel()
      wait.finish(.failure(CancellationError()))
    }
  }
}

/// Suspends a task until `finish(_:)`, which may come before.
package final class TaskWait: Sendable {
  private struct State {
    var continuation: CheckedContinuation<Void, any Error>?
    var outcome: Result<Void, any Error>?
  }

  private let state = Locked(State())

  package init() {}

  /// Suspends the task of the continuation.
  package func begin(_ continuation: CheckedContinuation<Void, any Error>) {
    let outcome = state.withLock { state in
      if state.outcome == nil { state.continuation = continuation }
      return state.outcome
    }
    if let outcome { continuation.resume(with: outcome) }
  }

  /// Suspends the current task, which throws `CancellationError` if it is cancelled.
  package func wait() async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { begin($0) }
    } onCancel: {
      finish(.failure(CancellationError()))
    }
  }

  /// Ends the wait with this outcome. Returns false if it has ended before.
  @discardableResult
  package func finish(_ outcome: Result<Void, any Error>) -> Bool {
    let (isFirst, continuation) = state.withLock { state in
      let isFirst = state.outcome == nil
      if isFirst { state.outcome = outcome }
      return (isFirst, state.continuation.take())
    }
    continuation?.resume(with: outcome)
    return isFirst
  }
}

/// The system's monotonic clock. It ignores changes to the time of day, and stops while the machine sleeps.
///
/// All instances make their calls on one shared thread.
package struct SystemMonotonicClock: MonotonicClock {
  /// Creates a clock. All instances show the same time.
  package init() {}

  package var now: Duration {
    var time = timespec()
    // The same clock as `Monitor` waits on.
    #if canImport(Darwin)
      clock_gettime(CLOCK_UPTIME_RAW, &time)
    #else
      clock_gettime(CLOCK_MONOTONIC, &time)
    #endif
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }

  @discardableResult
  package func schedule(
    at deadline: Duration, _ handler: @escaping @Sendable () -> Void
  ) -> any ScheduledCall {
    TimerThread.shared.schedule(at: deadline, handler)
  }
}

/// Makes calls at times of `SystemMonotonicClock`, on one thread, which ends when nothing has been scheduled
/// for a while and is started again for the next call.
final class TimerThread: Sendable {
  static let shared = TimerThread()

  private struct State {
    var calls = CallQueue()
    var isRunning = false
    /// The time at which the last call was made or cancelled.
    var idleSince: Duration = .zero
  }

  private let state = Monitor(State(), rank: .clock)
  private let idleTime: Duration

  init(idleTime: Duration = .seconds(1)) { self.idleTime = idleTime }

  /// True while the thread runs.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// The number of pending calls.
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

  /// Small, because the handlers do next to nothing.
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

/// A clock's scheduled calls, ordered by deadline and then by the order of scheduling.
///
/// A pure value: the clock guards it with a lock. It must release handlers outside the lock, because releasing
/// them may cancel other calls.
package struct CallQueue: Sendable {
  package typealias Handler = @Sendable () -> Void

  /// Identifies a call, and determines its place in the order.
  package struct Key: Sendable, Hashable, Comparable {
    package let deadline: Duration
    private let number: UInt64

    fileprivate init(deadline: Duration, number: UInt64) {
      self.deadline = deadline
      self.number = number
    }

    package static func < (left: Key, right: Key) -> Bool {
      (left.deadline, left.number) < (right.deadline, right.number)
    }
  }

  /// In reverse order, so that taking the next one moves no others.
  private var entries: [(key: Key, handler: Handler)] = []
  private var nextNumber: UInt64 = 0

  package init() {}

  package var count: Int { entries.count }

  /// The next call; nil if there is none.
  package var next: Key? { entries.last?.key }

  package mutating func insert(at deadline: Duration, _ handler: @escaping Handler) -> Key {
    let key = Key(deadline: deadline, number: nextNumber)
    nextNumber += 1
    entries.insert((key, handler), at: index(of: key))
    return key
  }

  /// Removes the next call, and returns its handler.
  package mutating func takeNext() -> Handler? { entries.popLast()?.handler }

  /// Removes a call, and returns its handler; nil if it was removed before.
  package mutating func remove(_ key: Key) -> Handler? {
    let index = index(of: key)
    guard index < entries.count, entries[index].key == key else { return nil }
    return entries.remove(at: index).handler
  }

  // MARK: - Private

  /// Returns the index of a call, or the index to insert it at.
  private func index(of key: Key) -> Int {
    entries.indices.bisect { entries[$0].key <= key }
  }
}

/// A call of a clock that is set, moved and cleared as times change.
///
/// It is part of a state behind a lock, so a change to it and to the rest of the state is one step. The call
/// to the clock follows when the lock is released: `Locked.carryOut`.
package struct Alarm: Sendable {
  /// The request to the clock that results from a change.
  package struct Change: Sendable {
    fileprivate let oldCall: (any ScheduledCall)?
    fileprivate let deadline: Duration?
    fileprivate let generation: Int
  }

  /// The time it is set to; nil while it is not set.
  package private(set) var deadline: Duration?

  /// The generation of the expected call. A call with an earlier generation that still comes is ignored.
  private var generation = 0
  private var call: (any ScheduledCall)?

  package init() {}

  /// Sets the alarm, or clears it if `deadline` is nil.
  package mutating func set(at deadline: Duration?) -> Change {
    let oldCall = clear()
    self.deadline = deadline
    return Change(oldCall: oldCall, deadline: deadline, generation: generation)
  }

  /// Sets the alarm, or clears it if `deadline` is nil, but leaves one that is set to an earlier time. Returns nil if
  /// there is nothing to change.
  package mutating func setUnlessEarlier(at deadline: Duration?) -> Change? {
    if let known = self.deadline, let deadline, known <= deadline { return nil }
    return deadline == self.deadline ? nil : set(at: deadline)
  }

  /// Clears the alarm. Returns the call to cancel when the lock is released.
  package mutating func clear() -> (any ScheduledCall)? {
    generation += 1
    deadline = nil
    return call.take()
  }

  /// Records that the call with a generation has come. Returns false, and changes nothing, if it is no longer
  /// expected.
  package mutating func ring(_ generation: Int) -> Bool {
    guard generation == self.generation, deadline != nil else { return false }
    deadline = nil
    call = nil
    return true
  }

  /// Returns false if the call has come already, or is no longer expected.
  fileprivate mutating func keep(_ call: any ScheduledCall, generation: Int) -> Bool {
    guard generation == self.generation, deadline != nil else { return false }
    self.call = call
    return true
  }
}

extension Locked {
  /// Makes the clock's calls for a change to an alarm. The lock must not be held.
  ///
  /// - Parameters:
  ///   - alarm: The alarm in the value.
  ///   - handler: Called at the alarm's time with the generation to pass to `Alarm.ring`.
  package func carryOut(
    _ change: Alarm.Change, of alarm: any WritableKeyPath<Value, Alarm> & Sendable,
    on clock: any MonotonicClock,
    _ handler: @escaping @Sendable (Int) -> Void
  ) {
    change.oldCall?.cancel()
    guard let deadline = change.deadline else { return }
    let generation = change.generation
    let call = clock.schedule(at: deadline) { handler(generation) }
    // The call may have come, or been replaced, before it could be kept.
    if !withLock({ $0[keyPath: alarm].keep(call, generation: generation) }) { call.cancel() }
  }
}
