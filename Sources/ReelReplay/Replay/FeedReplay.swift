public import Logging
public import ReelCore
public import ReelPlayback
public import ReelPool

/// Walks a feed as a person would, over a pool, and reports how long that person waited.
///
/// A swipe has two moments: the drag ends, which is when the next item's player gets the surface, and `settleTime` later
/// it settles, which is when the item plays. Waits are counted from the second. In a burst the swipes follow each other
/// before they settle; only the last one does.
///
/// In a `SimulatedRuntime` the same plan gives the same report, byte for byte.
public final class FeedReplay: Sendable {
  /// From the end of the drag to when the item stands still. 250 ms.
  public static let settleTime = Duration.milliseconds(250)

  private let feed: Feed
  private let plan: WalkPlan
  private let settings: WalkSettings
  private let label: String
  private let configuration: PoolConfiguration
  private let fetcher: any Fetching
  private let trace: WalkTrace?
  private let frames: (@Sendable (FeedItem, borrowing TimedFrame) -> Void)?
  private let logger: Logger

  /// - Parameters:
  ///   - feed: Has at least one item.
  ///   - settings: What the walk is made with, for the report.
  ///   - label: Tells the report from others.
  ///   - configuration: Of the pool; its clock is the walk's.
  ///   - fetcher: Gets manifests and media, over a modelled link or not.
  ///   - trace: Gets every event.
  ///   - frames: Gets the first frame of each swipe's item that was there, once.
  public init(
    _ feed: Feed, plan: WalkPlan, settings: WalkSettings, label: String, configuration: PoolConfiguration,
    fetcher: any Fetching, trace: WalkTrace? = nil,
    frames: (@Sendable (FeedItem, borrowing TimedFrame) -> Void)? = nil,
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
    self.logger = logger
  }

  /// Walks to the end of the plan, in a simulation where one is given.
  ///
  /// Throws `CancellationError`, and what the simulation throws.
  public func run(in simulation: SimulatedRuntime? = nil) async throws -> WalkReport {
    guard let simulation else { return try await walk() }
    let report = try await simulation.run { try await self.walk() }
    await simulation.runToRest()
    return report
  }

  // MARK: - Private

  private func walk() async throws -> WalkReport {
    let clock = configuration.player.clock
    let pool = PlayerPool(
      fetcher: trace.map { TracedFetcher(fetcher, trace: $0, clock: clock) } ?? fetcher,
      configuration: configuration, logger: logger)
    let recorder = WalkRecorder(feed, pool: pool, clock: clock, trace: trace, frames: frames)
    defer {
      pool.setObserver(nil)
      pool.setAccountant(nil)
    }
    try recorder.begin()
    let service = PlayerService(pool: pool, feeds: [feed])
    do {
      try await walk(service, recorder, clock)
    } catch {
      pool.close()
      throw error
    }
    pool.close()
    return recorder.report(label: label, settings: settings)
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
      try await clock.sleep(for: Self.settleTime)
      recorder.settles(step.target, kind: step.kind)
      service.settle()
    }
    try await look(for: plan.closingDwell, recorder, clock)
    recorder.leave()
  }

  /// Sleeps, and looks at the memory now and then.
  private func look(for dwell: Duration, _ recorder: WalkRecorder, _ clock: any MonotonicClock) async throws {
    let end = clock.now + dwell
    while clock.now < end {
      try await clock.sleep(for: min(end - clock.now, .milliseconds(250)))
      recorder.sampleMemory()
    }
  }
}
