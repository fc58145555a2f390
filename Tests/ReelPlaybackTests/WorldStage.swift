import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelReplay
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelPlayback

/// A player in a virtual world, with a record of its frames and events. They are the same however slow the machine
/// is.
final class WorldStage: Sendable {
  let world: VirtualWorld
  let player: Player
  let item: PlayerItem
  let recording = Recording()
  private let log = Locked<[PlayerEvent]>([])

  init(
    _ source: MediaSource, fetcher: any Fetching, in world: VirtualWorld = VirtualWorld(),
    configure: (inout PlayerConfiguration) -> Void = { _ in }
  ) throws {
    self.world = world
    var configuration = PlayerConfiguration()
    configuration.retryPolicy = ItemRetryPolicy(attempts: 3, baseDelay: .milliseconds(1))
    world.apply(to: &configuration)
    configure(&configuration)
    player = Player(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    item = PlayerItem(source)
    try player.attach(recording)
    let (events, log) = (player.events.events, log)
    world.task { for await event in events { log.withLock { $0.append(event) } } }
  }

  /// A stage that plays a fixture.
  convenience init(
    _ path: String, fetcher: FixtureFetcher, in world: VirtualWorld = VirtualWorld(),
    configure: (inout PlayerConfiguration) -> Void = { _ in }
  ) throws {
    let url = try #require(URL(string: "http://fixtures.test/\(path)"))
    try self.init(.url(url), fetcher: fetcher, in: world, configure: configure)
  }

  var events: [PlayerEvent] { log.withLock { $0 } }
  /// The names of the events so far, without changes of rung.
  var eventNames: [String] {
    events.map { String("\($0)".prefix { $0 != "(" }) }.filter { $0 != "rungSwitched" }
  }

  func begin(rate: Double = 1) {
    player.setRate(rate)
    player.replaceCurrentItem(with: item)
  }

  /// Runs the world until `condition` holds, and fails if it never does.
  func run(
    sourceLocation: SourceLocation = #_sourceLocation, until condition: @escaping @Sendable () -> Bool
  ) async throws {
    try #require(await world.run(until: condition), "\(events)", sourceLocation: sourceLocation)
  }

  /// Runs the world until the item has ended or failed, and returns that event.
  @discardableResult
  func end(sourceLocation: SourceLocation = #_sourceLocation) async throws -> PlayerEvent {
    try await run(sourceLocation: sourceLocation) { self.events.contains { $0.isEnd } }
    return try #require(events.first { $0.isEnd }, sourceLocation: sourceLocation)
  }

  /// Ends everything that the stage has started.
  func close() async throws {
    let player = player
    try await world.run { await player.stopAndWait() }
    player.events.finish()
    await world.runToRest()
    #expect(world.bodyCount == 0)
  }
}

/// Fetches directly from a simulated live stream, without a server.
struct SimulationFetcher: Fetching {
  let resource: any DynamicResource

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard let response = resource.response(at: request.url.path), response.status == 200 else {
      throw ReelError(.server, "404", at: request.url.absoluteString, status: 404)
    }
    let bytes = response.bytes
    let start = min(Int(clamping: request.range?.offset ?? 0), bytes.count)
    let end = min(Int(clamping: request.range?.end ?? Int64(bytes.count)), bytes.count)
    let rest = Locked(bytes[start..<max(start, end)])
    return FetchResponse(
      url: request.url, contentType: response.contentType, bodyOffset: Int64(start),
      bodyByteCount: Int64(max(start, end) - start), resourceByteCount: Int64(bytes.count),
      supportsRanges: true,
      body: FetchBody {
        rest.withLock { rest in
          let chunk = Array(rest.prefix(16 << 10))
          rest.removeFirst(chunk.count)
          return chunk.isEmpty ? nil : chunk
        }
      })
  }
}

/// The execution of a world on a busy machine: each task begins late by the world's clock.
final class LateExecution: Execution {
  private let world: VirtualWorld
  private let lateness: Duration

  init(_ world: VirtualWorld, lateness: Duration) {
    self.world = world
    self.lateness = lateness
  }

  func run(named name: String, _ urgency: WorkUrgency, _ body: @escaping @Sendable () -> Void) {
    world.run(named: name, urgency, body)
  }

  func throwingTask<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    world.throwingTask { [world, lateness] in
      try? await world.sleep(for: lateness)
      return try await body()
    }
  }

  @discardableResult
  func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    world.task { [world, lateness] in
      try? await world.sleep(for: lateness)
      await body()
    }
  }

  func makeSignal() -> any WorkSignal { world.makeSignal() }
}
