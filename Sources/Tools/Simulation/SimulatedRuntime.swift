internal import DequeModule
public import ReelCore
internal import ReelFFmpeg
public import ReelPlayback
public import ReelPool
public import ReelSources

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
/// Each body has a thread. A body that waits runs the others' steps on its thread until its own turn comes,
/// so few steps need a switch of threads.
///
/// Nothing outside may act on the simulation while it runs. ``ThrottledFetcher`` delivers real bytes, for
/// which the simulation pauses. While it does not run, you can use it from any thread. Only one caller may
/// run it at a time.
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
    /// The current run; nil while the simulation is paused.
    var run: Run?
    /// The work for which the simulation is paused.
    var outside: Task<Void, Never>?
    var isCancelled = false
    var stepCount = 0
  }

  /// The limits of a run.
  private struct Run: Sendable {
    /// The simulated time of the last step; nil for no limit.
    let limit: Duration?
    /// True if the run is over. Called before each step.
    let isOver: @Sendable () -> Bool
    /// Called once, with the last result of `isOver`.
    let end: @Sendable (Bool) -> Void
  }

  private let state = Locked(State(), rank: .clock)
  private let threads = WorkerThreads()

  /// A simulation at time 0, with nothing to run.
  public init() {}

  // MARK: Running

  /// Runs everything that is due up to `time`, and leaves the clock at `time`.
  public func run(until time: Duration) async {
    await drive(until: time) { false }
    state.withLock { $0.now = max($0.now, time) }
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
    await drive(until: limit, condition)
  }

  /// Runs until nothing is left to run.
  public func runToRest() async { await drive { false } }

  /// Runs `body` like ``run(_:)``, and then what it has left behind: work that has not ended keeps its threads, after an
  /// error too.
  package func runToRest<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    let result: Result<Success, any Error>
    do { result = .success(try await run(body)) } catch { result = .failure(error) }
    await runToRest()
    return try result.get()
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
      if await drive({ outcome.withLock { $0 != nil } }) { return true }
      // Waits that can be cancelled end now.
      task.cancel()
      await drive { outcome.withLock { $0 != nil } }
      return false
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

  /// Waits until this much simulated time has passed.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  public func sleep(for duration: Duration) async throws {
    try await (self as any MonotonicClock).sleep(for: duration)
  }

  // MARK: Accounts

  /// The number of blocking bodies that have not ended.
  package var bodyCount: Int { state.withLock { $0.bodyCount } }

  /// The number of threads, including idle ones that are about to end.
  package var threadCount: Int { threads.count }

  /// The number of steps run so far: tasks, bodies and scheduled calls that started or continued.
  package var stepCount: Int { state.withLock { $0.stepCount } }

  // MARK: MonotonicClock

  /// The simulated time since the simulation was created.
  public var now: Duration { state.withLock { $0.now } }

  /// Schedules a call of `handler` in the simulation. A deadline in the past counts as now.
  @discardableResult
  package func schedule(
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

  /// Runs `body` in real time, while the simulation is paused.
  ///
  /// Call it within the simulation. Objects that `body` holds may be released later, on another thread, so it
  /// must hold nothing of the simulation.
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

  /// Runs the rest of the simulation on this thread until `body`, which runs on it, is taken from the queue
  /// of ready work again.
  func park(_ body: BlockingJob) {
    state.withLock { $0.running = nil }
    let held = LockOrder.exchange(.none)
    step(for: body)
    _ = LockOrder.exchange(held)
  }

  func makeReady(_ body: BlockingJob) { state.withLock { $0.ready.append(.body(body)) } }

  // MARK: - Private

  /// Runs the simulation until `isOver`, or until nothing is left to run by `limit`. The calling task may be
  /// on one of the few cooperative threads, so this happens on threads of the simulation.
  ///
  /// - Returns: The last result of `isOver`.
  @discardableResult
  private func drive(until limit: Duration? = nil, _ isOver: @escaping @Sendable () -> Bool) async -> Bool {
    await withCheckedContinuation { continuation in
      let run = Run(limit: limit, isOver: isOver) { continuation.resume(returning: $0) }
      let wasDriven = state.withLock { state in
        defer { state.run = run }
        return state.run != nil
      }
      precondition(!wasDriven, "a simulation is run by one at a time")
      beginThread(for: nil)
    }
  }

  /// Lets a thread run `body`, and then the simulation.
  private func beginThread(for body: BlockingJob?) {
    threads.run(named: body?.name ?? "simulation") {
      Allocator.cachingForThread {
        var body = body
        repeat {
          if let body { self.begin(body) }
          body = self.step(for: nil)
        } while body != nil
      }
    }
  }

  /// Runs a body until it has ended. Its captures are released first, because that may cause more work.
  private func begin(_ body: BlockingJob) {
    body.takeWork()?()
    state.withLock { state in
      state.running = nil
      state.bodyCount -= 1
    }
  }

  /// Runs steps on this thread, the only one to do so, until the run is over or another body continues.
  ///
  /// - Parameter waiting: The body that waits on this thread; nil for none. Returns when it continues.
  /// - Returns: A new body, to be run on this thread; nil if another thread runs the simulation now, or none
  ///   does.
  @discardableResult
  private func step(for waiting: BlockingJob?) -> BlockingJob? {
    while let next = nextStep() {
      switch next {
      case .ready(.job(let job)): job.runSynchronously(on: asUnownedTaskExecutor())
      case .call(let handler): handler()
      case .ready(.body(let body)):
        if body === waiting { return nil }
        if !body.hasBegun {
          if waiting == nil { return body }
          beginThread(for: body)
        } else {
          body.baton.give()
        }
        waiting?.baton.take()
        return nil
      }
    }
    waiting?.baton.take()
    return nil
  }

  private enum Step: Sendable {
    case ready(Ready)
    case call(@Sendable () -> Void)
  }

  /// Returns the next step. Ends the run if it is over, or if nothing is due by its limit, and then returns
  /// nil.
  private func nextStep() -> Step? {
    guard let run = state.withLock({ $0.run }) else { return nil }
    let isOver = run.isOver()
    let step = isOver ? nil : takeStep(until: run.limit)
    if step == nil {
      state.withLock { $0.run = nil }
      run.end(isOver)
    }
    return step
  }

  private func takeStep(until limit: Duration?) -> Step? {
    state.withLock { state -> Step? in
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

extension SimulatedRuntime {
  /// Puts players made with `configuration` into this simulation: they run in it, and use its clock.
  ///
  /// They read local files through their fetcher, so that a modelled link applies to files too.
  public func apply(to configuration: inout PlayerConfiguration) {
    configuration.clock = self
    configuration.runtime = self
    configuration.loading.clock = SimulatedWallClock(self)
    configuration.loading.fetchesFiles = true
  }
}

final class SimulatedSemaphore: BlockingSemaphore {
  private struct State {
    var count = 0
    var waiting: Deque<BlockingJob> = []
  }

  private let simulation: SimulatedRuntime
  private let state = Locked(State())

  init(simulation: SimulatedRuntime) { self.simulation = simulation }

  func wait() {
    let body = simulation.running
    let waits = state.withLock { state in
      if state.count > 0 {
        state.count -= 1
        return false
      }
      state.waiting.append(body)
      return true
    }
    if waits { simulation.park(body) }
  }

  func signal() {
    let body = state.withLock { state in
      if let first = state.waiting.popFirst() { return first as BlockingJob? }
      state.count += 1
      return nil
    }
    if let body { simulation.makeReady(body) }
  }
}

/// The time of day in a simulation: its own clock, starting at a fixed day.
package struct SimulatedWallClock: WallClock {
  private let simulation: SimulatedRuntime
  private let beginning: WallTime

  /// - Parameter beginning: The time of day when the simulation's clock shows zero.
  package init(_ simulation: SimulatedRuntime, beginning: WallTime = Self.defaultBeginning) {
    self.simulation = simulation
    self.beginning = beginning
  }

  /// 2030-01-01T00:00:00Z.
  package static let defaultBeginning = WallTime(nanosecondsSince1970: 1_893_456_000_000_000_000)

  package var now: WallTime {
    let (seconds, attoseconds) = simulation.now.components
    let whole = beginning + MediaTime(value: seconds, timescale: 1)
    return whole + MediaTime(value: attoseconds / 1_000_000_000, timescale: 1_000_000_000)
  }

  package func sleep(for duration: Duration) async throws { try await simulation.sleep(for: duration) }
}

/// Work that may block. It runs on a thread of its own, but only in its turn.
final class BlockingJob: @unchecked Sendable {
  // Sendable: `work` is used by the one thread that runs the simulation.
  let name: String
  private var work: (@Sendable () -> Void)?
  /// Passed to the thread that it waits on.
  let baton = Baton()

  init(name: String, _ body: @escaping @Sendable () -> Void) {
    self.name = name
    work = body
  }

  var hasBegun: Bool { work == nil }

  /// Returns nil once it has begun.
  func takeWork() -> (@Sendable () -> Void)? { work.take() }
}

/// Lets one waiting thread continue.
final class Baton: Sendable {
  private let isThere = Monitor(false)

  func give() {
    isThere.withLock { $0 = true }
    isThere.signal()
  }

  /// Returns when the baton has been passed, and takes it.
  func take() {
    isThere.wait { isThere -> Monitor<Bool>.Step<Void> in
      guard isThere else { return .wait(until: nil) }
      isThere = false
      return .end(())
    }
  }
}

extension PoolConfiguration {
  /// Puts a pool with this configuration into a simulation.
  ///
  /// Its players use the simulation's clock, and decode on as many modelled cores as the device has, or else this machine. After each
  /// start, of an item or after a seek, they decode two frames. All other frames come at their modelled
  /// times, but have the pixels of the last decoded one, and damage is not detected in them.
  ///
  /// ``PlayerPool/memory`` is computed from the sizes of packets and frames, which are the same in every run.
  /// It leaves out the figures of the allocator. A decoder holds the frame that it decodes, and either the
  /// frames held back for their order or its references, whichever are more.
  ///
  /// - Parameters:
  ///   - simulation: The simulation, in which the pool must be used.
  ///   - decodeCost: The simulated time that decoding costs.
  public mutating func enter(_ simulation: SimulatedRuntime, decodeCost: DecodeCost = DecodeCost()) {
    enter(simulation, decoders: ModelledDecoders(cost: decodeCost, in: simulation))
  }

  package mutating func enter(_ simulation: SimulatedRuntime, decoders: ModelledDecoders) {
    simulation.apply(to: &player)
    player.decoders = decoders
    keepsAccounts = false
  }

  /// Puts a pool with this configuration into a simulation of a device: with its limits, its cores, and its
  /// costs of decoding.
  ///
  /// - Parameters:
  ///   - simulation: The simulation, in which the pool must be used.
  ///   - device: The device.
  public mutating func enter(_ simulation: SimulatedRuntime, device: DeviceModel) {
    apply(limitsOf: device)
    enter(simulation, decodeCost: device.decodeCost)
  }
}
