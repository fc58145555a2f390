internal import DequeModule
public import ReelCore
internal import ReelFFmpeg
public import ReelPlayback
internal import ReelPool

/// A deterministic simulation that runs players by a simulated clock, independent of the speed of the machine.
///
/// It is the players' clock, and it runs their tasks and their blocking work. Only one of these runs at a time, in the
/// order in which they become ready, and running takes no simulated time. When nothing is ready, the clock jumps to the
/// next scheduled call. Only waiting takes time, so the same start always leads to the same course of events. The code
/// of the players is the same as in real time.
///
/// ```
///  enqueue (tasks) ---+
///  run (bodies) ------+--> ready, in order --> one at a time --> nothing ready: the next scheduled call,
///  signal (waits) ----+                                          and now = its time
/// ```
///
/// Nothing outside may act on the simulation while it runs. ``ThrottledFetcher`` brings in real bytes, for which the
/// simulation stands still. While it does not run, you can use it from any thread. Only one caller may run it at a
/// time.
///
/// Blocking work that has not ended keeps its stack. Stop all players and call ``runToRest()`` before you release the
/// simulation.
public final class SimulatedRuntime: MonotonicClock, PlayerRuntime, Sendable {
  private enum Ready: Sendable {
    case job(UnownedJob)
    case body(BlockingJob)
  }

  private struct State {
    var now = Duration.zero
    var calls = CallQueue()
    var ready: Deque<Ready> = []
    /// The running body; nil while a task or a call runs.
    var running: BlockingJob?
    var bodyCount = 0
    var isDriven = false
    /// The work that the simulation stands still for.
    var outside: Task<Void, Never>?
    var isCancelled = false
    var stepCount = 0
    /// Without work.
    var fibers: [Fiber] = []
  }

  private let state = Locked(State(), rank: .clock)
  /// Given when the running body has ended or waits.
  private let baton = Baton()
  /// For bodies where there are no fibers.
  private let threads = WorkerThreads()
  private let thread = SimulationThread()

  /// A simulation at time 0, with nothing to run.
  public init() {}

  // MARK: Running

  /// Runs everything that is due up to `time`, and leaves the clock at `time`.
  public func run(until time: Duration) async {
    await driven { simulation in
      while simulation.step(until: time) {}
      simulation.state.withLock { $0.now = max($0.now, time) }
    }
  }

  /// Runs until `condition` holds. The condition is checked before each step.
  ///
  /// - Parameters:
  ///   - limit: The simulated time at which to give up; `nil` for no limit.
  ///   - condition: Called on a thread of the simulation; must not block.
  /// - Returns: False if the condition did not hold before the limit, or before nothing was left to run.
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

  /// Runs until nothing is left to run.
  public func runToRest() async {
    await driven { simulation in
      while simulation.step(until: nil) {}
    }
  }

  /// Runs `body` in the simulation until it has ended. Cancelling the calling task cancels `body`.
  ///
  /// - Returns: The value of `body`.
  /// - Throws: The error of `body`. If nothing is left to run and `body` still waits, it is cancelled, and `ReelError`
  ///   of kind `internalFault` is thrown.
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
        // Waits that can be cancelled end now.
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
      throw ReelError(.internalFault, "the simulation stopped before its work was done")
    }
    return try result.get()
  }

  // MARK: Accounts

  /// The number of blocking bodies that have not ended.
  public var bodyCount: Int { state.withLock { $0.bodyCount } }

  /// The number of threads for bodies, including idle ones that are about to end.
  package var threadCount: Int { threads.count }

  /// The number of steps run so far: tasks, bodies and scheduled calls that ran or went on.
  public var stepCount: Int { state.withLock { $0.stepCount } }

  // MARK: MonotonicClock

  /// The simulated time since the simulation was made.
  public var now: Duration { state.withLock { $0.now } }

  /// Schedules a call of `handler` in the simulation. A deadline in the past counts as now.
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

  package var keepsAccounts: Bool { false }

  package func makeSemaphore() -> any BlockingSemaphore { SimulatedSemaphore(simulation: self) }

  /// Runs `body` in real time, while the simulation stands still.
  ///
  /// To be called within the simulation. Objects that `body` holds may be released later, on another thread, so it must
  /// hold nothing of the simulation.
  ///
  /// - Parameter limit: The real time after which `body` is cancelled, and no longer waited for.
  /// - Throws: The error of `body`; `ReelError` of kind `timedOut` at the limit.
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
      throw ReelError(.timedOut, "nothing or too little arrived within \(span)")
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

  /// Gives the baton back until the body is taken from the queue of ready work again.
  func park(_ body: BlockingJob) {
    state.withLock { $0.running = nil }
    if let fiber = body.fiber { return fiber.yield() }
    baton.give()
    body.baton.take()
  }

  func makeReady(_ body: BlockingJob) { state.withLock { $0.ready.append(.body(body)) } }

  // MARK: - Private

  /// Calls `body` on the simulation's thread, because the caller may be on one of the few cooperative threads.
  private func driven<Success: Sendable>(
    _ body: @escaping @Sendable (SimulatedRuntime) -> Success
  ) async -> Success {
    let wasDriven = state.withLock { state in
      defer { state.isDriven = true }
      return state.isDriven
    }
    precondition(!wasDriven, "a simulation is run by one at a time")
    return await withCheckedContinuation { continuation in
      thread.run {
        let result = Allocator.cachingForThread { body(self) }
        self.state.withLock { $0.isDriven = false }
        continuation.resume(returning: result)
      }
    }
  }

  private enum Step: Sendable {
    case ready(Ready)
    case call(@Sendable () -> Void)
  }

  /// Runs one step. Returns false if none is due by `limit`.
  private func step(until limit: Duration?) -> Bool {
    let step = state.withLock { state -> Step? in
      if let ready = state.ready.popFirst() {
        state.stepCount += 1
        if case .body(let body) = ready { state.running = body }
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

  /// Lets a body, which is the running one, go on until it waits or has ended.
  private func goOn(_ body: BlockingJob) {
    if let fiber = body.fiber {
      if fiber.resume() { noteEnd(of: body, on: fiber) }
    } else if let work = body.takeWork() {
      if let fiber = makeFiber() {
        body.fiber = fiber
        if fiber.start(work) { noteEnd(of: body, on: fiber) }
      } else {
        begin(work, of: body)
      }
    } else {
      body.baton.give()
      baton.take()
    }
  }

  /// An idle fiber, or a new one; nil where the system has none.
  private func makeFiber() -> Fiber? {
    guard Fiber.areAvailable else { return nil }
    return state.withLock { $0.fibers.popLast() } ?? Fiber()
  }

  private func noteEnd(of body: BlockingJob, on fiber: Fiber) {
    body.fiber = nil
    state.withLock { state in
      state.running = nil
      state.bodyCount -= 1
      state.fibers.append(fiber)
    }
  }

  /// Begins a body on a thread of its own, which gets the baton until it waits or has ended.
  private func begin(_ work: @escaping @Sendable () -> Void, of body: BlockingJob) {
    // Let go before the baton is given back: what it holds may do more as it ends.
    let work = Locked<(@Sendable () -> Void)?>(work)
    threads.run(named: body.name) {
      work.withLock { $0.take() }?()
      self.state.withLock { state in
        state.running = nil
        state.bodyCount -= 1
      }
      self.baton.give()
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
  /// Adds a job of a task to the queue of ready work.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    state.withLock { $0.ready.append(.job(job)) }
  }
}
