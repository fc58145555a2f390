import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

/// A pool in a simulation, with a surface that keeps all frames.
final class PoolStage: Sendable {
  let simulation = SimulatedRuntime()
  let network: Network
  let pool: PlayerPool
  let feed: Feed
  let surface: Screen
  private let log = Locked<[PoolEvent]>([])

  /// - Parameter held: Whether a path is not answered until the network is whole again.
  init(
    _ paths: [String], held: @escaping @Sendable (String) -> Bool = { _ in false },
    describe: (Int, inout FeedItem) -> Void = { _, _ in },
    configure: (inout PoolConfiguration) -> Void = { _ in }
  ) throws {
    var configuration = PoolConfiguration()
    configuration.decodingPermits = 2
    configuration.player.loading.decoderThreads = 1
    configuration.player.retryPolicy = ItemRetryPolicy(attempts: 2, baseDelay: .seconds(1))
    simulation.apply(to: &configuration.player)
    configure(&configuration)
    var feed = Feed(name: "feed")
    for (index, path) in paths.enumerated() {
      feed.append(try MediaSource(argument: "http://fixtures.test/\(path)")) { describe(index, &$0) }
    }
    self.feed = feed
    network = Network(clock: simulation, isHeld: held)
    surface = Screen(clock: simulation)
    pool = PlayerPool(fetcher: network, configuration: configuration, logger: silentLogger)
    let (events, log) = (pool.events, log)
    Task(executorPreference: simulation) { for await event in events { log.withLock { $0.append(event) } } }
    try pool.setSurface(surface)
  }

  var shown: [Shown] { surface.all }
  var events: [PoolEvent] { log.withLock { $0 } }
  var states: [PictureInPictureState] {
    events.compactMap { if case .pinned(_, let state) = $0 { state } else { nil } }
  }

  @discardableResult
  func show(_ index: Int, phase: SwipePhase = .settled) throws -> Handover {
    let handover = pool.show(index, of: FeedSnapshot(feed), phase: phase)
    if let error = handover.error, error.kind == .usage { throw error }
    return handover
  }

  func run(for duration: Duration) async { await simulation.run(until: simulation.now + duration) }

  func run(untilStep count: Int) async {
    let simulation = simulation
    await simulation.run { simulation.stepCount >= count }
  }

  func run(
    sourceLocation: SourceLocation = #_sourceLocation, until condition: @escaping @Sendable () -> Bool
  ) async throws {
    let holds = await simulation.run(by: simulation.now + .seconds(600), until: condition)
    try #require(holds, "\(pool.slotReadiness)", sourceLocation: sourceLocation)
  }

  /// Closes the pool, and expects that nothing is left of it.
  func close(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    pool.close()
    await simulation.runToRest()
    #expect(simulation.bodyCount == 0, sourceLocation: sourceLocation)
    #expect(network.fixtures.heldCount == 0, sourceLocation: sourceLocation)
    #expect(surface.isFinished && surface.lateCount == 0, sourceLocation: sourceLocation)
    #expect(pool.memory.byteCount == 0, sourceLocation: sourceLocation)
  }
}
