public import Logging
public import ReelCore
public import ReelPlayback
public import ReelPool

/// Swipes through a feed on a pool as a viewer would, and reports how long the viewer waited.
///
/// A swipe has two moments: the end of the drag, when the surface goes to the next item's player, and the settle
/// ``WalkPlan/settleTime`` later, when the item plays. Waits are measured from the settle. In a burst, swipes follow each other
/// before they settle, and only the last one does.
///
/// An item that was loaded and left before its first frame may be dead or slow. After the walk, it is opened again without
/// the viewer, which costs the walk neither time nor bytes. If that fails, the item has failed
/// (``WalkReport/failedItems``).
///
/// In a ``SimulatedRuntime`` the same plan gives the same report, byte for byte.
public final class FeedReplay: Sendable {
  private let feed: Feed
  private let plan: WalkPlan
  private let settings: WalkSettings
  private let label: String
  private let configuration: PoolConfiguration
  private let fetcher: any Fetching
  private let trace: WalkTrace?
  private let frames: (@Sendable (FeedItem, borrowing TimedFrame) -> Void)?
  private let patience: Duration
  private let logger: Logger
  private let interrupted = Locked<WalkReport?>(nil)

  /// A walk that ``run(in:)`` performs.
  ///
  /// - Parameters:
  ///   - feed: The feed, with as many items as the plan was made for.
  ///   - plan: The swipes and dwell times.
  ///   - settings: The settings of the walk, for the report.
  ///   - label: Distinguishes the report from others.
  ///   - configuration: The settings of the pool. Its clock is also that of the walk.
  ///   - fetcher: Fetches manifests and media, for instance over a modelled link (``ThrottledFetcher``).
  ///   - trace: Gets every event of the walk.
  ///   - frames: Called with the first frame shown of each item, once per item.
  ///   - patience: How long an item that the viewer left before its first frame is waited for after the walk, to tell
  ///     whether it failed or was slow. In a simulation, it is waited for up to 10 simulated minutes.
  ///   - logger: Gets the messages of the pool and its players.
  public init(
    _ feed: Feed, plan: WalkPlan, settings: WalkSettings, label: String, configuration: PoolConfiguration,
    fetcher: any Fetching, trace: WalkTrace? = nil,
    frames: (@Sendable (FeedItem, borrowing TimedFrame) -> Void)? = nil, patience: Duration = .seconds(30),
    logger: Logger = Logger(label: "reel.replay")
  ) {
    self.feed = feed
    self.plan = plan
    self.settings = settings
    self.label = label
    self.configuration = configuration
    self.fetcher = fetcher
    self.trace = trace
    self.frames = frames
    self.patience = patience
    self.logger = logger
  }

  /// Performs the plan from its beginning to its end, on a pool that is closed afterwards.
  ///
  /// - Parameter simulation: The simulation to run in, which the configuration must have entered
  ///   (``ReelPool/PoolConfiguration/enter(_:decodeCost:)``); `nil` for real time.
  /// - Throws: `CancellationError` if the task was cancelled, and the errors of ``SimulatedRuntime/run(_:)``.
  public func run(in simulation: SimulatedRuntime? = nil) async throws -> WalkReport {
    guard let simulation else { return try await walk(patience: patience) }
    let report = try await simulation.run { try await self.walk(patience: Self.simulatedPatience) }
    await simulation.runToRest()
    return report
  }

  /// The report of the walk up to the moment at which its task was cancelled; `nil` for a walk that was not.
  package var interruptedReport: WalkReport? { interrupted.withLock { $0 } }

  // MARK: - Private

  /// Longer than a recorded link is ever without a connection.
  private static let simulatedPatience = Duration.seconds(600)

  private func walk(patience: Duration) async throws -> WalkReport {
    let clock = configuration.player.clock
    let waits = WaitRecorder()
    let trace = (trace ?? WalkTrace(consumers: [])).appending { waits.note($0) }
    let pool = PlayerPool(
      fetcher: TracedFetcher(fetcher, trace: trace, clock: clock), configuration: configuration,
      logger: logger)
    let recorder = WalkRecorder(
      feed, pool: pool, clock: clock, trace: trace, waits: waits, frames: frames)
    defer {
      pool.setObserver(nil)
      pool.setAccountant(nil)
    }
    try recorder.begin()
    let service = PlayerService(pool: pool, feeds: [feed])
    do {
      try await walk(service, recorder, clock)
    } catch {
      recorder.leave()
      pool.close()
      throw noteInterruption(of: recorder.report(label: label, settings: settings), error)
    }
    pool.close()
    var report = recorder.report(label: label, settings: settings)
    let unopened = recorder.unopenedIndices
    guard !unopened.isEmpty else { return report }
    trace.note(check: unopened.count, at: clock.now)
    let check = FirstFrameCheck(
      fetcher: fetcher, configuration: configuration.player, limit: patience, logger: logger)
    do {
      report.noteFailures(try await check.failures(of: unopened, in: feed))
    } catch {
      throw noteInterruption(of: report, error)
    }
    return report
  }

  /// Keeps the report of a walk that was cancelled.
  private func noteInterruption(of report: WalkReport, _ error: any Error) -> any Error {
    guard error is CancellationError else { return error }
    var report = report
    report.isInterrupted = true
    interrupted.withLock { $0 = report }
    return error
  }

  private func walk(
    _ service: PlayerService, _ recorder: WalkRecorder, _ clock: any MonotonicClock
  ) async throws {
    recorder.settles(plan.start, kind: .start)
    service.go(to: plan.start)
    for step in plan.steps {
      try await look(for: step.dwell, recorder, clock)
      for (number, index) in step.path.enumerated() {
        if number > 0 { try await clock.sleep(for: WalkPlan.burstInterval) }
        recorder.drags(
          to: index, kind: step.kind, isPassing: index != step.target || number + 1 < step.path.count)
        service.beginSwipe(to: index)
      }
      try await clock.sleep(for: WalkPlan.settleTime)
      recorder.settles(step.target, kind: step.kind)
      service.settle()
    }
    try await look(for: plan.closingDwell, recorder, clock)
    recorder.leave()
  }

  /// Sleeps, and samples the memory every 250 ms.
  private func look(for dwell: Duration, _ recorder: WalkRecorder, _ clock: any MonotonicClock) async throws {
    let end = clock.now + dwell
    while clock.now < end {
      try await clock.sleep(for: min(end - clock.now, .milliseconds(250)))
      recorder.sampleMemory()
    }
  }
}
