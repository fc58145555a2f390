internal import DequeModule
public import ReelCore
public import ReelPlayback
internal import ReelPool

/// A simulation in which one thing happens at a time, and time passes only where nothing is left to do: the code of players
/// runs in it unchanged, and the same beginning has the same course, however fast the machine is.
///
/// It is the players' clock (what happens takes no time by itself: only what is waited for does), it runs their tasks,
/// and it runs their work that blocks, on threads of which one at a time is let go on. Whoever can go on does so in the
/// order in which they could; when nobody can, the clock jumps to the next call that is scheduled.
///
/// ```
///  enqueue (tasks) ---+
///  run (bodies) ------+--> ready, in order --> one at a time --> nothing ready: the next scheduled call,
///  signal (waits) ----+                                          and now = its time
/// ```
///
/// Nothing from outside may come while the simulation runs, but through `outside`, for which it stands still. While it does
/// not run, it may be used from any thread.
///
/// Work that never ends holds its thread: players are stopped, and the simulation is run until it rests, before it is let
/// go.
public final class SimulatedRuntime: MonotonicClock, PlayerRuntime, Sendable {
  private enum Ready: Sendable {
    case job(UnownedJob)
    case body(BlockingJob)
  }

  private struct State {
    var now = Duration.zero
    var calls = CallQueue()
    var ready: Deque<Ready> = []
    /// The body that runs; nil while a task or a call does.
    var running: BlockingJob?
    var bodyCount = 0
    var isDriven = false
    /// What the simulation stands still for.
    var outside: Task<Void, Never>?
    var isCancelled = false
    var stepCount = 0
  }

  private let state = Locked(State(), rank: .clock)
  /// Given when the body that ran has ended or waits.
  private let baton = Baton()
  private let threads = WorkerThreads()

  public init() {}

  // MARK: Running

  /// Lets all happen that happens up to `time` of the simulation's clock, which then shows it.
  public func run(until time: Duration) async {
    await driven { simulation in
      while simulation.step(until: time) {}
      simulation.state.withLock { $0.now = max($0.now, time) }
    }
  }

  /// Lets things happen until `condition` holds, which is asked after each of them.
  ///
  /// - Parameter limit: the time at which it is given up; nil for none.
  /// - Returns: false where the limit was reached, or nothing is left to happen.
  @discardableResult
  public func run(
    by limit: Duration? = nil, until condition: @escaping @Sendable () -> Bool
  ) async -> Bool {
    await driven { simulation in
      while !condition() {
        if !simulation.step(until: limit) { return condition() }
      }
      return true
    }
  }

  /// Lets things happen until nothing is left to happen.
  public func runToRest() async {
    await driven { simulation in
      while simulation.step(until: nil) {}
    }
  }

  /// Runs `body` in the simulation, and the simulation until `body` has ended. Cancelling the task that waits cancels `body`.
  ///
  /// Throws what `body` threw, or `ReelError` of kind `internalFault` where nothing is left to happen and `body` has not
  /// ended: it waits for what never comes, and is cancelled.
  public func run<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    let outcome = Locked<Result<Success, any Error>?>(nil)
    let task = task {
      let result: Result<Success, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      outcome.withLock { $0 = result }
    }
    let hasEnded = await withTaskCancellationHandler {
      await driven { simulation in
        while outcome.withLock({ $0 == nil }), simulation.step(until: nil) {}
        guard outcome.withLock({ $0 == nil }) else { return true }
        // What can be cancelled ends now.
        task.cancel()
        while outcome.withLock({ $0 == nil }), simulation.step(until: nil) {}
        return false
      }
    } onCancel: {
      task.cancel()
      let outside = state.withLock { state in
        state.isCancelled = true
        return state.outside
      }
      outside?.cancel()
    }
    state.withLock { $0.isCancelled = false }
    guard hasEnded, let result = outcome.withLock({ $0 }) else {
      throw ReelError(.internalFault, "the modelled simulation has come to rest before its work was done")
    }
    return try result.get()
  }

  // MARK: Accounts

  /// Bodies that have begun and not ended: each has a thread.
  public var bodyCount: Int { state.withLock { $0.bodyCount } }

  /// Threads that there are for bodies, those included that end soon for want of any.
  package var threadCount: Int { threads.count }

  /// Things that have happened.
  public var stepCount: Int { state.withLock { $0.stepCount } }

  // MARK: MonotonicClock

  public var now: Duration { state.withLock { $0.now } }

  /// The handler is called in the simulation, in its turn.
  @discardableResult
  public func schedule(
    at deadline: Duration, _ handler: @escaping @Sendable () -> Void
  ) -> any ScheduledCall {
    state.withLock { state in
      Call(simulation: self, key: state.calls.insert(at: max(deadline, state.now), handler))
    }
  }

  // MARK: PlayerRuntime

  package func run(named name: String, _: WorkUrgency, _ body: @escaping @Sendable () -> Void) {
    let body = BlockingJob(name: name, body)
    state.withLock { state in
      state.bodyCount += 1
      state.ready.append(.body(body))
    }
  }

  package func throwingTask<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    Task(executorPreference: self) { try await body() }
  }

  @discardableResult
  package func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    Task(executorPreference: self) { await body() }
  }

  package func makeSemaphore() -> any BlockingSemaphore { SimulatedSemaphore(simulation: self) }

  /// Does something real, for which the simulation stands still: no time passes in it.
  ///
  /// Only in the simulation. What `body` holds may be let go later, on another thread: nothing of the simulation.
  ///
  /// - Parameter limit: Of real time: then `body` is cancelled, and not waited for.
  /// - Throws: what `body` throws; `ReelError.timedOut` at the limit.
  package func outside<Success: Sendable>(
    within limit: Duration? = nil, _ body: @escaping @Sendable () async throws -> Success
  ) throws -> Success {
    let deadline = limit.map { SystemMonotonicClock().now + $0 }
    let outcome = Monitor<Result<Success, any Error>?>(nil)
    let task = Task.detached {
      let result: Result<Success, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      outcome.withLock { $0 = result }
      outcome.signal()
    }
    let isCancelled = state.withLock { state in
      state.outside = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    defer { state.withLock { $0.outside = nil } }
    let result = outcome.wait {
      outcome -> Monitor<Result<Success, any Error>?>.Step<Result<Success, any Error>?> in
      if let outcome { return .end(outcome) }
      if let deadline, SystemMonotonicClock().now >= deadline { return .end(nil) }
      return .wait(until: deadline)
    }
    guard let result else {
      task.cancel()
      let span = DurationText.readable(limit ?? .zero)
      throw ReelError(.timedOut, "nothing, or too little, has come within \(span)")
    }
    return try result.get()
  }

  // MARK: - Internal

  /// The body that runs on this thread.
  var running: BlockingJob {
    guard let body = state.withLock({ $0.running }) else {
      preconditionFailure("a wait outside of a body: it would never end")
    }
    return body
  }

  /// Gives the baton back until the body is taken from the ready ones again.
  func park(_ body: BlockingJob) {
    state.withLock { $0.running = nil }
    baton.give()
    body.baton.take()
  }

  func makeReady(_ body: BlockingJob) { state.withLock { $0.ready.append(.body(body)) } }

  // MARK: - Private

  /// Calls `body` on a thread of its own: who waits may be on one of the few that tasks outside have.
  private func driven<Success: Sendable>(
    _ body: @escaping @Sendable (SimulatedRuntime) -> Success
  ) async -> Success {
    await withCheckedContinuation { continuation in
      WorkerThreads.shared.run(named: "simulation") {
        let wasDriven = self.state.withLock { state in
          defer { state.isDriven = true }
          return state.isDriven
        }
        precondition(!wasDriven, "a simulation is run by one at a time")
        let result = body(self)
        self.state.withLock { $0.isDriven = false }
        continuation.resume(returning: result)
      }
    }
  }

  private enum Step: Sendable {
    case ready(Ready)
    case call(@Sendable () -> Void)
  }

  /// Lets the next thing happen; false where there is none by `limit`.
  private func step(until limit: Duration?) -> Bool {
    let step = state.withLock { state -> Step? in
      if let ready = state.ready.popFirst() {
        state.stepCount += 1
        return .ready(ready)
      }
      guard let next = state.calls.next, limit.map({ next.deadline <= $0 }) ?? true,
        let handler = state.calls.takeNext()
      else { return nil }
      state.stepCount += 1
      state.now = max(state.now, next.deadline)
      return .call(handler)
    }
    switch step {
    case .ready(.job(let job)): job.runSynchronously(on: asUnownedTaskExecutor())
    case .ready(.body(let body)): goOn(body)
    case .call(let handler): handler()
    case nil: return false
    }
    return true
  }

  /// Gives a body the baton, and waits until it gives it back.
  private func goOn(_ body: BlockingJob) {
    state.withLock { $0.running = body }
    if let work = body.takeWork() {
      threads.run(named: body.name) {
        work.run()
        self.state.withLock { state in
          state.running = nil
          state.bodyCount -= 1
        }
        self.baton.give()
      }
    } else {
      body.baton.give()
    }
    baton.take()
  }

  private func cancel(_ key: CallQueue.Key) {
    let handler = state.withLock { $0.calls.remove(key) }
    withExtendedLifetime(handler) {}
  }

  private struct Call: ScheduledCall {
    let simulation: SimulatedRuntime
    let key: CallQueue.Key

    func cancel() { simulation.cancel(key) }
  }
}

extension SimulatedRuntime: TaskExecutor {
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    state.withLock { $0.ready.append(.job(job)) }
  }
}
