import Foundation
import ReelCore
import ReelPlayback
import ReelSimulation
import ReelSources
import ReelTestSupport
import ReelTesting
import Testing

@Suite("A live item", .hangLimit)
struct LiveTests {
  private static let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)

  private static func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value, timescale: 1000) }

  /// One broadcast, and from a time on another in its place; some segments are refused.
  private struct Broadcast: DynamicResource {
    let parts: [DASHLiveSimulation]
    let isSecond: @Sendable () -> Bool
    let refused: Locked<String?>

    func response(at path: String) -> Origin.Response? {
      if let refused = refused.withLock({ $0 }), path.hasSuffix(refused) { return nil }
      return parts[isSecond() ? parts.count - 1 : 0].response(at: path)
    }
  }

  /// A player of a broadcast that began 100 s before, two seconds behind its edge.
  ///
  /// - Parameter restart: The number of seconds after which the broadcast restarts.
  private func stage(
    restart: Double? = nil, refused: Locked<String?> = Locked(nil),
    addressing: DASHLiveSimulation.Addressing = .timeline, updates: MediaTime? = seconds(1)
  ) throws -> Stage {
    let simulation = SimulatedRuntime()
    let wall = SimulatedWallClock(simulation, beginning: Self.launch + Self.seconds(100))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "dash-number/manifest.mpd"))
    let options = DASHLiveSimulation.Options(
      addressing: addressing, periods: .single, minimumUpdatePeriod: updates,
      suggestedPresentationDelay: Self.seconds(2))
    let starts = [Self.launch] + (restart.map { [Self.launch + Self.seconds(100 + $0)] } ?? [])
    let parts = try starts.map { start in
      try DASHLiveSimulation(material, start: start, options: options) { wall.now }
    }
    let broadcast = Broadcast(
      parts: parts, isSecond: { restart.map { simulation.now >= .seconds($0 + 6) } ?? false },
      refused: refused)
    let stage = try Stage(fetcher: SimulationFetcher(resource: broadcast), in: simulation) {
      $0.loading.clock = wall
    }
    try stage.load(String(parts[0].manifestPath.dropFirst()))
    stage.player.play()
    return stage
  }

  private static func expectRising(_ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation) {
    let shown = stage.shown
    let isRising = zip(shown, shown.dropFirst()).allSatisfy { $0.time < $1.time }
    #expect(isRising, "\(stage.events)", sourceLocation: sourceLocation)
  }

  @Test(
    "After a pause of ten minutes it jumps once towards the edge, and plays on there",
    arguments: [
      (.timeline, seconds(1)), (.number, seconds(1)), (.number, nil),
    ] as [(DASHLiveSimulation.Addressing, MediaTime?)])
  func pause(addressing: DASHLiveSimulation.Addressing, updates: MediaTime?) async throws {
    let stage = try stage(addressing: addressing, updates: updates)
    await stage.run(for: .seconds(5))
    stage.player.pause()
    await stage.run(for: .seconds(20))
    let (count, steps) = (stage.screen.count, stage.simulation.stepCount)
    let jumps = stage.eventNames.count { $0 == "jumpedToLive" }
    await stage.run(for: .seconds(580))
    #expect(stage.screen.count == count)
    // A paused player whose buffer is full reads nothing.
    #expect(stage.simulation.stepCount - steps < 2500)
    stage.player.play()
    await stage.run(for: .seconds(10))
    #expect(stage.screen.count > count + 200)
    #expect(stage.eventNames.count { $0 == "jumpedToLive" } - jumps == 1, "\(stage.events)")
    let latency = try #require(stage.item.liveLatency.value)
    #expect(latency < .seconds(8), "\(latency)")
    Self.expectRising(stage)
    try await stage.close()
  }

  @Test("A segment that is refused is left out, and the rest goes on", arguments: [1, 2])
  func refusedSegment(count: Int) async throws {
    let refused = Locked<String?>(nil)
    let stage = try stage(refused: refused)
    await stage.run(for: .seconds(4))
    refused.withLock { $0 = ".m4s" }
    await stage.run(for: .milliseconds(count * 1000))
    refused.withLock { $0 = nil }
    await stage.run(for: .seconds(20))
    #expect(stage.player.timeControlStatus.value == .playing, "\(stage.events)")
    #expect(stage.item.status.value == .readyToPlay)
    #expect(stage.screen.count > 20 * 30 * 3 / 4)
    Self.expectRising(stage)
    try await stage.close()
  }

  @Test("A broadcast that begins anew is followed on")
  func restart() async throws {
    let stage = try stage(restart: 8)
    await stage.run(for: .seconds(40))
    #expect(stage.item.status.value == .readyToPlay, "\(stage.events)")
    #expect(stage.screen.count > 25 * 30, "\(stage.screen.count) \(stage.events)")
    Self.expectRising(stage)
    try await stage.close()
  }
}
