import Foundation
import Logging
import ReelCore
import ReelLab
import ReelModels
import ReelPlayback
import ReelSimulation
import ReelSources
import ReelTestSupport
import ReelTesting

/// A source over a modelled link in a simulation, watched by a viewer that counts and by one that decodes.
struct ViewerScene: Sendable {
  /// What answers requests, and the path of the source.
  typealias Server = @Sendable (SimulatedRuntime) throws -> (fetcher: any Fetching, path: String)

  /// What came of a look.
  struct Outcome: Sendable {
    let ending: ViewerSums.Ending
    let sums: ViewerSums
    let events: [ViewerEvent.Kind]
    /// The requested URLs, in order.
    let urls: [String]

    /// The URLs of a track: those whose paths contain a word.
    func urls(of word: String) -> [String] { urls.filter { $0.contains(word) } }

    /// What followed failures, in order.
    var consequences: [ViewerEvent.Consequence] {
      events.compactMap { if case .failure(_, let consequence) = $0 { consequence } else { nil } }
    }

    var isLive: Bool { events.contains { if case .latency = $0 { true } else { false } } }
  }

  var link = "5Mbit/40ms"
  var duration = Duration.seconds(60)
  var model: PlayerModel?
  /// Nil for that of the settings.
  var buffer: Duration?
  /// Nil for the rung that fits the link.
  var peakBitRate: Int? = 500_000
  let server: Server

  func watch(decodes: Bool) async throws -> Outcome {
    let simulation = SimulatedRuntime()
    let (fetcher, path) = try server(simulation)
    let base = OrderedFetcher(base: fetcher)
    let network = ThrottledFetcher(base, link: try LinkSpec(parsing: link), in: simulation)
    var settings = try Self.settings(in: simulation, model: model)
    if let buffer { settings.buffer = buffer }
    if let peakBitRate {
      settings.player.adaptsBitRate = false
      settings.player.loading.preferredPeakBitRate = peakBitRate
    }
    let events = Locked<[ViewerEvent.Kind]>([])
    let end = simulation.now + duration
    let ending = try await simulation.runToRest { [settings] in
      let source = MediaSource.url(URL(string: "http://origin\(path)") ?? URL(fileURLWithPath: "/"))
      let look = ViewerLook(
        at: 0, session: "1", access: ViewerAccess(fetcher: network) { _ in source }, settings: settings,
        until: end, logger: silentLogger
      ) { event, _ in events.withLock { $0.append(event) } }
      return decodes ? await DecodedViewer(look).run() : await Viewer(look).run()
    }
    let all = events.withLock { $0 }
    let sums = all.compactMap { if case .left(let sums) = $0 { sums } else { nil } }
    return Outcome(ending: ending, sums: sums[0], events: all, urls: base.urls.withLock { $0 })
  }

  /// The settings of viewers whose decoders take no time.
  static func settings(in simulation: SimulatedRuntime, model: PlayerModel? = nil) throws -> ViewerSettings {
    var player = PlayerConfiguration()
    simulation.apply(to: &player)
    player.decoders = ModelledDecoders(cost: DecodeCost(frame: .zero), in: simulation)
    return try ViewerSettings(player, model: model)
  }

  // MARK: Servers

  /// The fixtures.
  static func fixture(
    _ path: String, fault: @escaping @Sendable (FetchRequest, Int) -> FixtureFetcher.Fault = { _, _ in .none }
  ) -> Server {
    { simulation in (FixtureFetcher(clock: simulation, fault: fault), path) }
  }

  /// A fixture that is played over and over, live, or from its beginning for a number of segments.
  ///
  /// - Parameter stall: A time in which nothing new is published.
  static func loop(
    _ manifest: String, segmentCount: Int? = nil, stall: LiveDisturbances.Stall? = nil
  ) -> Server {
    { simulation in
      let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: manifest))
      let wall = SimulatedWallClock(simulation)
      let age = MediaTime(value: segmentCount == nil ? 60 : 3600, timescale: 1)
      let start = SimulatedWallClock.defaultBeginning - age
      let disturbances = LiveDisturbances(stalls: stall.map { [$0] } ?? [])
      if manifest.hasSuffix(".mpd") {
        let options = DASHLiveSimulation.Options(
          addressing: .timeline, periods: .single, minimumUpdatePeriod: MediaTime(value: 1, timescale: 1),
          suggestedPresentationDelay: MediaTime(value: 3, timescale: 1), disturbances: disturbances)
        let live = try DASHLiveSimulation(material, start: start, options: options) { wall.now }
        return (SimulationFetcher(resource: live), live.manifestPath)
      }
      let options = HLSLiveSimulation.Options(
        isEvent: segmentCount != nil, segmentCount: segmentCount, disturbances: disturbances)
      let live = try HLSLiveSimulation(material, start: start, options: options) { wall.now }
      return (SimulationFetcher(resource: live), live.manifestPath)
    }
  }
}

/// Notes the requested URLs in their order.
private struct OrderedFetcher: Fetching {
  let base: any Fetching
  let urls = Locked<[String]>([])

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    urls.withLock { $0.append(request.url.absoluteString + (request.range.map { " \($0.offset)" } ?? "")) }
    return try await base.fetch(request)
  }
}
