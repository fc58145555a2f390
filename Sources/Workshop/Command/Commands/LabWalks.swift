import Logging
import ReelCore
import ReelPlayback
import ReelPool
import ReelReplay

/// Makes and performs the walks of a lab. They share what they read and decode.
struct LabWalks: Sendable {
  private let inputs: LabInputs
  private let loading: LoadingConfiguration
  private let fetcher: any Fetching
  private let limit: Duration
  private let memory = SimulatedWalk.Memory()
  private let logger: Logger

  /// - Parameters:
  ///   - loading: Headers and keys; the configuration states the rungs.
  ///   - limit: The longest real time to wait for an answer.
  init(
    _ inputs: LabInputs, loading: LoadingConfiguration, fetcher: any Fetching, limit: Duration,
    logger: Logger
  ) {
    self.inputs = inputs
    var loading = loading
    loading.bandwidthCap = inputs.configuration.bandwidth ?? LoadingConfiguration().bandwidthCap
    loading.maximumHeight = inputs.configuration.maximumHeight
    self.loading = loading
    self.fetcher = fetcher
    self.limit = limit
    self.logger = logger
  }

  /// Performs the walk of a run.
  ///
  /// - Parameter places: Those of the run.
  /// - Throws: As `SimulatedWalk.run()`.
  func result(of run: LabRun, at places: LabRuns.Places) async throws -> LabResult {
    LabResult(run: run, report: try await walk(run, places).run())
  }

  // MARK: - Private

  private func walk(_ run: LabRun, _ places: LabRuns.Places) throws(ReelError) -> SimulatedWalk {
    let configuration = inputs.configuration
    let (feed, link) = (inputs.feeds[places.feed].feed, inputs.links[places.link])
    let (viewer, device) = (inputs.viewers[places.viewer].spec, inputs.devices[places.device])
    var pool = PoolConfiguration(
      walkingWith: run.slotCount, configuration.policies[places.policy],
      firstRung: configuration.firstRung, loading: loading, adaptsBitRate: configuration.bandwidth == nil)
    pool.apply(limitsOf: device)
    var settings = WalkSettings(
      feed: run.feed, itemCount: feed.items.count, slotCount: run.slotCount, policy: run.policy,
      link: link.text, dwell: viewer.dwell.description, shares: viewer.reportedShares, seed: run.seed)
    settings.device = run.device
    settings.firstRung = configuration.firstRung
    return SimulatedWalk(
      feed,
      plan: try WalkPlan(feed, swipeCount: configuration.swipeCount, viewer: viewer, seed: run.seed),
      settings: settings, label: run.policy, configuration: pool, decodeCost: device.decodeCost,
      link: link.spec.seeded(with: run.seed), fetcher: fetcher, limit: limit, memory: memory,
      logger: logger)
  }
}
