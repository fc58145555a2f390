import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool
import ReelLab
import ReelReading
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

/// Players in a simulation over a modelled link, and an account of all that happens.
final class SimulatedScene: Sendable {
  let simulation = SimulatedRuntime()
  let fetcher: ThrottledFetcher
  let base: FixtureFetcher
  let gate: PriorityGate
  private let network: PriorityFetcher
  private let lines = Locked<[String]>([])

  init(link: LinkSpec = .lte, cores: Int = 2, isUneven: Bool = true) {
    base = FixtureFetcher { _, _ in isUneven ? .uneven : .none }
    fetcher = ThrottledFetcher(base, link: link, in: simulation)
    network = PriorityFetcher(fetcher, clock: simulation)
    gate = PriorityGate(permits: cores, runtime: simulation)
  }

  /// Lines of time and what happened then.
  var trace: [String] { lines.withLock { $0 } }

  func record(_ text: String) {
    let nanoseconds = Int64(simulation.now / .nanoseconds(1))
    lines.withLock { $0.append("\(nanoseconds) \(text)") }
  }

  func makePlayer(_ name: String, rank: Int = 0) throws -> Player {
    var configuration = PlayerConfiguration()
    simulation.apply(to: &configuration)
    configuration.decoders = ModelledDecoders(in: simulation)
    let player = Player(
      fetcher: NotingFetcher(base: network.makeSlot(rank: rank)) { [weak self] metrics in
        self?.record(
          "\(name) \(metrics.purpose.rawValue) \(metrics.url.lastPathComponent) \(metrics.byteCount) "
            + "\(metrics.timeToFirstByte.map { "\($0)" } ?? "-") \(metrics.transferTime) "
            + "\(metrics.reusedConnection == true)")
      }, configuration: configuration, gate: SlotGate(gate, rank: rank), account: nil, logger: silentLogger)
    try player.attach(
      CallbackOutput { [weak self] frame in self?.record("\(name) frame \(frame.time)") })
    player.attach(NotingAudio { [weak self] time, count in self?.record("\(name) sound \(time) \(count)") })
    let events = player.events
    simulation.task { [weak self] in
      for await event in events { self?.record("\(name) \(event)") }
    }
    return player
  }

  /// Plays a source to its end, in the simulation.
  func play(_ path: String, name: String = "a", rank: Int = 0) async throws {
    let player = try makePlayer(name, rank: rank)
    let item = PlayerItem(.url(try #require(URL(string: "http://origin\(path)"))))
    let events = item.events
    let stages = item.preloadStage.values
    simulation.task { [weak self] in
      for await stage in stages {
        self?.record("\(name) stage \(stage)")
        if stage == .buffered { break }
      }
    }
    player.play()
    player.replaceCurrentItem(with: item)
    for await event in events {
      if case .playedToEnd = event { break }
      if case .failed(let error) = event { throw error }
    }
    record("\(name) \(player.statistics)")
    record("\(name) \(startup(of: item))")
    await player.stopAndWait()
  }

  /// In the order of its stages: a dictionary has none.
  private func startup(of item: PlayerItem) -> String {
    guard let report = item.startup else { return "no startup" }
    let stages = StartupReport.Stage.allCases.map { "\($0.rawValue) \(report[$0])" }
    return "startup \(report.total) \(stages.joined(separator: " "))"
  }
}

/// Tells of each request how it went.
struct NotingFetcher: Fetching {
  let base: any Fetching
  let record: @Sendable (RequestMetrics) -> Void

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    request.addReport(record)
    return try await base.fetch(request)
  }
}

/// Tells of each buffer of sound when it was heard.
final class NotingAudio: AudioOutput {
  private let record: @Sendable (MediaTime, Int) -> Void

  init(_ record: @escaping @Sendable (MediaTime, Int) -> Void) { self.record = record }

  func write(_ audio: TimedAudio) throws { record(audio.time, audio.buffer.frameCount) }

  func finish() throws {}
}

extension WalkPlan {
  /// A plan for a feed of items of which nothing is known.
  init(
    itemCount: Int, swipeCount: Int? = nil, dwell: DwellSpec, settle: Duration = .zero, seed: UInt64 = 0
  ) throws {
    var feed = Feed(name: "items")
    for index in 0..<itemCount { feed.append(try MediaSource(argument: "/\(index).mp4")) }
    try self.init(
      feed, swipeCount: swipeCount, spec: try SwipeSpec(dwell: dwell), settle: settle, seed: seed)
  }
}
