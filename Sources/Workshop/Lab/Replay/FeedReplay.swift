internal import Foundation
package import Logging
package import ReelCore
internal import ReelPlayback
package import ReelPool
package import ReelReading
package import ReelSimulation
internal import ReelSources

/// A walk to perform, and what gets its events.
package struct Walk: Sendable {
  /// The feed, with as many items as the plan was made for.
  package let feed: Feed
  package let plan: WalkPlan
  package var settings: WalkSettings
  /// Distinguishes the report from others.
  package let label: String
  /// The settings of the pool. Its clock is also that of the walk.
  package var configuration: PoolConfiguration
  /// Gets every event of the walk.
  package var trace: WalkTrace?
  /// Called with the first frame shown of each item, once per item.
  package var frames: (@Sendable (FeedItem, VideoFrame) -> Void)?

  package init(
    _ feed: Feed, plan: WalkPlan, settings: WalkSettings, label: String, configuration: PoolConfiguration,
    trace: WalkTrace? = nil, frames: (@Sendable (FeedItem, VideoFrame) -> Void)? = nil
  ) {
    (self.feed, self.plan, self.settings, self.label) = (feed, plan, settings, label)
    self.settings.settle = plan.settle
    (self.configuration, self.trace, self.frames) = (configuration, trace, frames)
  }
}

/// Swipes through a feed on a pool as a viewer would, and reports how long the viewer waited.
///
/// A swipe has two moments: the end of the drag, when the surface moves to the next item's player, and the settle, when
/// the item plays: at the same time, unless the plan has a ``WalkPlan/settle``. Waits are measured from the settle. A hit
/// is a frame that was decoded when the drag ended. In a burst, swipes follow each other before they settle, and only the
/// last one does.
///
/// An item that was loaded and left before its first frame may be dead or slow. After the walk, it is opened
/// again without the viewer, which costs the walk neither time nor bytes. If that fails, the item has failed
/// (``WalkReport/failedItems``).
///
/// In a `SimulatedRuntime` the same plan gives the same report, byte for byte.
package final class FeedReplay: Sendable {
  private let walk: Walk
  private let fetcher: any Fetching
  private let checkingFetcher: any Fetching
  private let patience: Duration
  private let logger: Logger
  private let interrupted = Locked<WalkReport?>(nil)

  /// - Parameters:
  ///   - fetcher: Fetches manifests and media, for instance over a modelled link (`ThrottledFetcher`).
  ///   - checkingFetcher: Opens items after the walk; nil for `fetcher`.
  ///   - patience: The time to wait, after the walk, for an item that the viewer left before its first frame,
  ///     to determine whether it failed or was slow. In a simulation, up to 10 simulated minutes.
  ///   - logger: Gets the messages of the pool and its players.
  package init(
    _ walk: Walk, fetcher: any Fetching, checkingFetcher: (any Fetching)? = nil,
    patience: Duration = .seconds(30), logger: Logger
  ) {
    (self.walk, self.fetcher, self.patience, self.logger) = (walk, fetcher, patience, logger)
    self.checkingFetcher = checkingFetcher ?? fetcher
  }

  /// Performs the plan from its beginning to its end, on a pool that is closed afterwards.
  ///
  /// - Parameter simulation: The simulation to run in, which the configuration must have entered
  ///   (`PoolConfiguration.enter(_:decodeCost:)`); `nil` for real time.
  /// - Throws: `CancellationError` if the task was cancelled, and the errors of `SimulatedRuntime.run(_:)`.
  package func run(in simulation: SimulatedRuntime? = nil) async throws -> WalkReport {
    guard let simulation else { return try await perform(patience: patience) }
    return try await simulation.runToRest { try await self.perform(patience: Self.simulatedPatience) }
  }

  /// The report of the walk up to the moment at which its task was cancelled; `nil` for a walk that was not.
  package var interruptedReport: WalkReport? { interrupted.withLock { $0 } }

  // MARK: - Private

  /// The wait in a simulation, longer than any recorded link is without a connection.
  private static let simulatedPatience = Duration.seconds(600)

  private func perform(patience: Duration) async throws -> WalkReport {
    let clock = walk.configuration.player.clock
    let waits = WaitRecorder()
    let traffic = Locked(WalkReport.Traffic())
    let trace = (walk.trace ?? WalkTrace(consumers: [])).appending { event in
      waits.record(event)
      guard event.kind == .chunk, let byteCount = event.byteCount else { return }
      traffic.withLock { traffic in
        if event.isStored {
          traffic.diskByteCount += byteCount
        } else {
          traffic.networkByteCount += byteCount
        }
      }
    }
    let traced = TracedFetcher(base: fetcher, trace: trace, clock: clock)
    let store = fetcher as? any MediaStoring
    let network: any Fetching = store.map { TracedStore(traced: traced, store: $0) } ?? traced
    let pool = PlayerPool(fetcher: network, configuration: walk.configuration, logger: logger)
    let recorder = WalkRecorder(
      walk.feed, pool: pool, clock: clock, trace: trace, waits: waits, frames: walk.frames)
    defer {
      pool.setObserver(nil)
      pool.setAccountant(nil)
    }
    try recorder.begin()
    let service = PlayerService(pool: pool, feeds: [walk.feed])
    do {
      try await swipe(service, recorder, clock)
    } catch {
      recorder.leave()
      pool.close()
      throw recordInterruption(of: recorder.report(label: walk.label, settings: walk.settings), error)
    }
    pool.close()
    var report = recorder.report(label: walk.label, settings: walk.settings)
    report.traffic = traffic.withLock { $0 }
    report.traffic.storedByteCount = store?.storedByteCount ?? 0
    let unopened = recorder.unopenedIndices
    guard !unopened.isEmpty else { return report }
    trace.record(.check, at: clock.now) { $0.count = unopened.count }
    let check = FirstFrameCheck(
      fetcher: checkingFetcher, configuration: walk.configuration.player, limit: patience, logger: logger)
    do {
      report.recordFailures(try await check.failures(of: unopened, in: walk.feed))
    } catch {
      throw recordInterruption(of: report, error)
    }
    return report
  }

  /// Keeps the report of a walk that was cancelled.
  private func recordInterruption(of report: WalkReport, _ error: any Error) -> any Error {
    guard error is CancellationError else { return error }
    var report = report
    report.isInterrupted = true
    interrupted.withLock { $0 = report }
    return error
  }

  private func swipe(
    _ service: PlayerService, _ recorder: WalkRecorder, _ clock: any MonotonicClock
  ) async throws {
    let plan = walk.plan
    recorder.settles(plan.start, kind: .start)
    service.go(to: plan.start)
    for step in plan.steps {
      try await look(for: step.dwell, recorder, clock)
      for (number, index) in step.path.enumerated() {
        if number > 0 { try await clock.sleep(for: WalkPlan.burstInterval) }
        recorder.drags(
          to: index, kind: step.kind, isPassing: index != step.target || number + 1 < step.path.count)
        // In real time, the wait includes the call.
        if plan.settle == .zero, number + 1 == step.path.count {
          recorder.settles(step.target, kind: step.kind)
        }
        service.endDrag(to: index)
      }
      if plan.settle > .zero {
        try await clock.sleep(for: plan.settle)
        recorder.settles(step.target, kind: step.kind)
      }
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

/// Runs jobs in parallel, a limited number at a time.
package enum SideBySide {
  /// Runs a job for each input.
  ///
  /// - Parameters:
  ///   - count: The number of concurrent jobs; nil for one per processor.
  ///   - next: Returns the next input; nil if there are no more. It is called when a job can begin.
  ///   - job: The job.
  ///   - ended: Called for each job that has ended, in the order in which they end, one call at a time. If it
  ///     throws, all jobs are cancelled.
  /// - Throws: The errors of `next` and `ended`; `CancellationError` if the task is cancelled: `ended` is
  ///   then called for the jobs that ended before.
  package static func run<Input: Sendable, Output: Sendable>(
    _ count: Int? = nil, next: () throws -> Input?,
    job: @escaping @Sendable (Input) async throws -> Output,
    ended: (Input, Result<Output, any Error>) throws -> Void
  ) async throws {
    let count = max(1, count ?? ProcessInfo.processInfo.activeProcessorCount)
    try await withThrowingTaskGroup(of: (Input, Result<Output, any Error>).self) { group in
      func begin() throws {
        guard !Task.isCancelled, let input = try next() else { return }
        group.addTask {
          do {
            return (input, .success(try await job(input)))
          } catch {
            return (input, .failure(error))
          }
        }
      }
      for _ in 0..<count { try begin() }
      while let (input, result) = try await group.next() {
        // The failure of a job that was cancelled is not its own.
        if case .failure = result, Task.isCancelled { continue }
        try ended(input, result)
        try begin()
      }
    }
    try Task.checkCancellation()
  }
}

/// Opens items that the viewer of a walk left before their first frame, as if the viewer had waited.
///
/// Each item gets a player of its own, which loads it up to the first frame with the usual retries. An item
/// that fails is dead; one that shows a frame was only slow. One that does neither within the limit is slow
/// as long as its media arrives without errors, and dead otherwise.
struct FirstFrameCheck: Sendable {
  /// The number of items opened at a time.
  static let concurrency = 4

  let fetcher: any Fetching
  let configuration: PlayerConfiguration
  /// The maximum time for an item, by the clock of the configuration.
  let limit: Duration
  let logger: Logger

  /// Returns the items that fail, in the order of the feed.
  ///
  /// - Parameter indices: The indices of the items to open.
  /// - Throws: `CancellationError` if the task is cancelled.
  func failures(of indices: [Int], in feed: Feed) async throws -> [WalkReport.FailedItem] {
    var waiting = indices.makeIterator()
    var failures: [WalkReport.FailedItem] = []
    try await SideBySide.run(Self.concurrency, next: { waiting.next() }) { index in
      await error(of: feed.items[index])
    } ended: { index, result in
      guard let error = try result.get() else { return }
      failures.append(
        WalkReport.FailedItem(
          index: index, id: feed.items[index].id.description, error: error.description))
    }
    return failures.sorted { $0.index < $1.index }
  }

  // MARK: - Private

  /// Returns the error of an item that is dead; nil for any other, or if the task was cancelled.
  private func error(of item: FeedItem) async -> ReelError? {
    let traffic = OpeningTraffic(fetcher)
    let player = Player(fetcher: traffic, configuration: configuration, logger: logger)
    let playerItem = PlayerItem(item.source, headers: item.headers)
    let error = await player.loadFirstFrame(of: playerItem) { await lateError(of: playerItem, traffic) }
    return error?.located(at: item.source.name)
  }

  /// Waits for the limit, and returns the error of an item that is dead by then.
  private func lateError(of item: PlayerItem, _ traffic: OpeningTraffic) async -> ReelError? {
    do {
      try await configuration.clock.sleep(for: limit / 2)
      let byteCount = traffic.mediaByteCount
      try await configuration.clock.sleep(for: limit / 2)
      // The item is being retried.
      if item.remainingRetries.value < configuration.retryPolicy.attempts, let entry = item.errorLog.last {
        return entry.error
      }
      if traffic.mediaByteCount > byteCount { return nil }
      return traffic.lastFailure
        ?? ReelError(
          .timedOut, "no frame within \(DurationText.readable(limit))",
          advice: "allow more time with --timeout")
    } catch {
      return nil
    }
  }
}

/// Counts the bytes of media, and keeps the error of the last attempt that failed.
private final class OpeningTraffic: Fetching {
  private struct State {
    var mediaByteCount = 0
    var lastFailure: ReelError?
  }

  private let base: any Fetching
  private let state = Locked(State())

  init(_ base: any Fetching) { self.base = base }

  var mediaByteCount: Int { state.withLock { $0.mediaByteCount } }
  var lastFailure: ReelError? { state.withLock { $0.lastFailure } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    request.addFailedAttempt { [self] error, _ in record(error) }
    let isMedia = request.purpose != .manifest && request.purpose != .clock
    do {
      return try await base.fetch(request).wrappingBody { [self] body in
        do {
          let chunk = try await body.next()
          if let chunk, isMedia { state.withLock { $0.mediaByteCount += chunk.count } }
          return chunk
        } catch {
          record(error)
          throw error
        }
      }
    } catch {
      record(error)
      throw error
    }
  }

  private func record(_ error: any Error) {
    guard let error = error as? ReelError else { return }
    state.withLock { $0.lastFailure = error }
  }
}
