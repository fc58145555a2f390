package import Logging
package import ReelCore
package import ReelPlayback
package import ReelPool
package import ReelSimulation

/// A walk through a feed in a simulation of its own.
package struct SimulatedWalk: Sendable {
  /// What simulations share to read and decode nothing twice. It changes what they cost, not what they do.
  package struct Memory: Sendable {
    package let starts = DecodedStarts()
    package var files: FileAnswers? = FileAnswers()

    package init() {}
  }

  package var feed: Feed
  package var plan: WalkPlan
  /// For the report. `isVirtual` and `decodeCost` are set by the walk.
  package var settings: WalkSettings
  package var label: String
  /// Of the pool; the walk puts it into its simulation.
  package var configuration: PoolConfiguration
  package var decodeCost: DecodeCost
  /// Nil for one that costs nothing.
  package var link: LinkSpec?
  /// Gets the real bytes.
  package var fetcher: any Fetching
  /// The longest real time to wait for an answer, or for the next part of one.
  package var limit: Duration?
  package var memory: Memory
  package var trace: WalkTrace?
  package var frames: (@Sendable (FeedItem, borrowing TimedFrame) -> Void)?
  /// Called with the report so far if the walk is cancelled.
  package var onInterruption: (@Sendable (WalkReport) -> Void)?
  package var logger: Logger

  package init(
    _ feed: Feed, plan: WalkPlan, settings: WalkSettings, label: String, configuration: PoolConfiguration,
    decodeCost: DecodeCost = DecodeCost(), link: LinkSpec?, fetcher: any Fetching, limit: Duration? = nil,
    memory: Memory, logger: Logger = Logger(label: "reel.replay")
  ) {
    self.feed = feed
    self.plan = plan
    self.settings = settings
    self.label = label
    self.configuration = configuration
    self.decodeCost = decodeCost
    self.link = link
    self.fetcher = fetcher
    self.limit = limit
    self.memory = memory
    self.logger = logger
  }

  /// Walks. Throws as `FeedReplay.run(in:)` does.
  package func run() async throws -> WalkReport {
    let simulation = SimulatedRuntime()
    var configuration = configuration
    configuration.enter(
      simulation, decoders: ModelledDecoders(cost: decodeCost, starts: memory.starts, in: simulation))
    var settings = settings
    settings.isVirtual = true
    if settings.device == nil { settings.decodeCost = decodeCost.frame }
    // Without a link, bytes cost nothing but must come one after the other all the same.
    let network = ThrottledFetcher(
      fetcher, link: try link ?? LinkSpec(parsing: "10Gbit/0ms"), in: simulation, limit: limit,
      files: memory.files)
    let replay = FeedReplay(
      feed, plan: plan, settings: settings, label: label, configuration: configuration, fetcher: network,
      trace: trace, frames: frames, logger: logger)
    do {
      return try await replay.run(in: simulation)
    } catch {
      if let report = replay.interruptedReport { onInterruption?(report) }
      throw error
    }
  }

  /// Walks side by side, each walk as if it were alone: with the same real answers, it gives the same report.
  ///
  /// - Parameters:
  ///   - walks: The walks. They begin in this order.
  ///   - count: The walks that run at a time; nil for one a processor.
  ///   - progress: Called with the place of each walk that has ended, and its report, in the order in which they end. One
  ///     call at a time.
  /// - Returns: The reports, in the order of the walks.
  /// - Throws: The first error of a walk; the others are cancelled. `CancellationError` if the task is cancelled.
  package static func run(
    _ walks: [SimulatedWalk], concurrently count: Int? = nil,
    progress: (Int, WalkReport) -> Void = { _, _ in }
  ) async throws -> [WalkReport] {
    var reports = [WalkReport?](repeating: nil, count: walks.count)
    var waiting = walks.enumerated().makeIterator()
    try await SideBySide.run(count, next: { waiting.next() }) { place, walk in
      (place, try await walk.run())
    } ended: { _, result in
      let (place, report) = try result.get()
      reports[place] = report
      progress(place, report)
    }
    return reports.compactMap { $0 }
  }
}
