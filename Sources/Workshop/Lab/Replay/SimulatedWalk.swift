package import Logging
package import ReelCore
internal import ReelPool
package import ReelSimulation

/// A walk through a feed in a simulation of its own.
package struct SimulatedWalk: Sendable {
  /// Caches that simulations share to avoid reading and decoding anything twice. They change only the cost of
  /// simulations.
  package struct Memory: Sendable {
    package let starts = DecodedStarts()
    package var files: FileAnswers? = FileAnswers()

    package init() {}
  }

  /// The walk, whose settings get `isVirtual` and `decodeCost`, and whose pool is put into the simulation.
  private var walk: Walk
  private let decodeCost: DecodeCost
  private let link: LinkSpec?
  private let fetcher: any Fetching
  private let limit: Duration?
  package var memory: Memory
  private let logger: Logger
  /// The visits; nil for one without a cache.
  package var visits: VisitPlan?
  /// Called with the report so far if the walk is cancelled.
  package var onInterruption: (@Sendable (WalkReport) -> Void)?

  /// - Parameters:
  ///   - link: The link; nil for transfers without delay.
  ///   - fetcher: Fetches the real bytes.
  ///   - limit: The maximum real time to wait for an answer, or for its next part.
  package init(
    _ walk: Walk, decodeCost: DecodeCost = DecodeCost(), link: LinkSpec?, fetcher: any Fetching,
    limit: Duration? = nil, memory: Memory, logger: Logger
  ) {
    (self.walk, self.decodeCost, self.link, self.fetcher) = (walk, decodeCost, link, fetcher)
    (self.limit, self.memory, self.logger) = (limit, memory, logger)
  }

  /// Performs the walk. Throws the same errors as `FeedReplay.run(in:)`.
  ///
  /// With several visits, or a cache, this is the report of the first visit, with the figures of all. Each visit has a
  /// simulation and a pool of its own.
  package func run() async throws -> WalkReport {
    guard let visits else { return try await visit(walk, on: nil) }
    var walk = walk
    walk.settings.visits = visits
    let disk = visits.byteLimit > 0 ? SimulatedDisk(byteLimit: visits.byteLimit) : nil
    var first = try await visit(walk, on: disk)
    // The events of the walk are those of the first visit.
    (walk.trace, walk.frames) = (nil, nil)
    var reports = [first]
    do {
      while reports.count < visits.count {
        disk?.endVisit(after: first.duration + visits.between)
        reports.append(try await visit(walk, on: disk))
      }
      let without = disk == nil ? nil : try await visit(walk, on: nil)
      first.visits = ReturnVisits(reports, without: without)
      return first
    } catch {
      first.isInterrupted = true
      onInterruption?(first)
      throw error
    }
  }

  // MARK: - Private

  private func visit(_ walk: Walk, on disk: SimulatedDisk?) async throws -> WalkReport {
    let simulation = SimulatedRuntime()
    var walk = walk
    walk.configuration.enter(
      simulation, decoders: ModelledDecoders(cost: decodeCost, starts: memory.starts, in: simulation))
    walk.settings.isVirtual = true
    if walk.settings.device == nil { walk.settings.decodeCost = decodeCost.frame }
    // Without a link, bytes cost nothing but must still arrive one after the other.
    let network = ThrottledFetcher(
      fetcher, link: try link ?? LinkSpec(parsing: "10Gbit/0ms"), in: simulation, limit: limit,
      files: memory.files)
    let cache = try disk.map { disk throws(ReelError) in
      try SimulatedCache(
        on: disk, inFrontOf: network, source: fetcher, in: simulation, limit: limit, files: memory.files)
    }
    let replay = FeedReplay(walk, fetcher: cache ?? network, checkingFetcher: network, logger: logger)
    do {
      return try await replay.run(in: simulation)
    } catch {
      if let report = replay.interruptedReport { onInterruption?(report) }
      throw error
    }
  }
}
