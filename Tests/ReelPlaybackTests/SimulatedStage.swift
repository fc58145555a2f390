import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelLab
import ReelTesting
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelSources

/// A player in a simulation, with a record of its frames and events. They are the same however slow the machine
/// is.
final class SimulatedStage: Sendable {
  let simulation: SimulatedRuntime
  let player: Player
  let item: PlayerItem
  let recording = Recording()
  private let log = Locked<[PlayerEvent]>([])

  init(
    _ source: MediaSource, fetcher: any Fetching, in simulation: SimulatedRuntime = SimulatedRuntime(),
    configure: (inout PlayerConfiguration) -> Void = { _ in }
  ) throws {
    self.simulation = simulation
    var configuration = PlayerConfiguration()
    configuration.retryPolicy = ItemRetryPolicy(attempts: 3, baseDelay: .milliseconds(1))
    simulation.apply(to: &configuration)
    configure(&configuration)
    player = Player(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    item = PlayerItem(source)
    try player.attach(recording)
    let (events, log) = (player.events, log)
    simulation.task { for await event in events { log.withLock { $0.append(event) } } }
  }

  /// A stage that plays a fixture.
  convenience init(
    _ path: String, fetcher: any Fetching = FixtureFetcher(),
    in simulation: SimulatedRuntime = SimulatedRuntime(),
    configure: (inout PlayerConfiguration) -> Void = { _ in }
  ) throws {
    let url = try #require(URL(string: "http://fixtures.test/\(path)"))
    try self.init(.url(url), fetcher: fetcher, in: simulation, configure: configure)
  }

  var events: [PlayerEvent] { log.withLock { $0 } }
  /// The names of the events so far, without changes of rung.
  var eventNames: [String] {
    events.map { String("\($0)".prefix { $0 != "(" }) }.filter { $0 != "rungSwitched" }
  }

  /// A stage that plays a fixture as a local file, which the player reads itself.
  static func local(
    _ path: String, configure: (inout PlayerConfiguration) -> Void = { _ in }
  ) throws -> SimulatedStage {
    try SimulatedStage(try MediaSource(argument: Fixtures.path(path)), fetcher: FixtureFetcher()) {
      $0.loading.fetchesFiles = false
      configure(&$0)
    }
  }

  func begin(rate: Double = 1) {
    player.setRate(rate)
    player.replaceCurrentItem(with: item)
  }

  /// Runs the simulation until `condition` holds, and fails if it never does.
  func run(
    sourceLocation: SourceLocation = #_sourceLocation, until condition: @escaping @Sendable () -> Bool
  ) async throws {
    try #require(await simulation.run(until: condition), "\(events)", sourceLocation: sourceLocation)
  }

  /// Runs the simulation until the item has been loaded up to `stage`.
  func run(
    sourceLocation: SourceLocation = #_sourceLocation, untilLoaded stage: PreloadStage
  ) async throws {
    let item = item
    try await run(sourceLocation: sourceLocation) { item.preloadStage.value >= stage }
  }

  /// Seeks, and runs the simulation until the seek has ended.
  func seek(to time: MediaTime) async throws -> Bool {
    let player = player
    return try await simulation.run { try await player.seek(to: time) }
  }

  /// Runs the simulation until the item has ended or failed, and returns that event.
  @discardableResult
  func end(sourceLocation: SourceLocation = #_sourceLocation) async throws -> PlayerEvent {
    try await run(sourceLocation: sourceLocation) { self.events.contains { $0.isEnd } }
    return try #require(events.first { $0.isEnd }, sourceLocation: sourceLocation)
  }

  /// Ends everything that the stage has started.
  func close() async throws {
    let player = player
    try await simulation.run { await player.stopAndWait() }
    player.core.events.finish()
    await simulation.runToRest()
    #expect(simulation.bodyCount == 0)
  }
}

/// Plays a source to its end in a simulation, as fast as it goes.
func simulate(
  _ source: MediaSource, fetcher: any Fetching = FixtureFetcher(),
  configure: (inout PlayerConfiguration) -> Void = { _ in }
) async throws -> (shown: [Shown], end: PlayerEvent, item: PlayerItem) {
  let stage = try SimulatedStage(source, fetcher: fetcher, configure: configure)
  stage.begin(rate: .infinity)
  let end = try await stage.end()
  try await stage.close()
  return (stage.recording.all, end, stage.item)
}

/// The runtime of a simulation on a busy machine: each task begins late by the simulation's clock.
final class LateRuntime: PlayerRuntime {
  private let simulation: SimulatedRuntime
  private let lateness: Duration

  init(_ simulation: SimulatedRuntime, lateness: Duration) {
    self.simulation = simulation
    self.lateness = lateness
  }

  func run(named name: String, _ urgency: WorkUrgency, _ body: @escaping @Sendable () -> Void) {
    simulation.run(named: name, urgency, body)
  }

  func throwingTask<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    simulation.throwingTask { [simulation, lateness] in
      try? await simulation.sleep(for: lateness)
      return try await body()
    }
  }

  @discardableResult
  func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    simulation.task { [simulation, lateness] in
      try? await simulation.sleep(for: lateness)
      await body()
    }
  }

  func makeSemaphore() -> any BlockingSemaphore { simulation.makeSemaphore() }
}
