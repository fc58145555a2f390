import Foundation
import Logging
import Reel
import ReelLab
import ReelSimulation
import ReelTestSupport
import ReelTesting
import Testing

// The examples of Docs/Testing.md, word for word.

/// The requests that it takes to open a stream whose server refuses each playlist once.
func requests(toOpen path: String, in folder: URL) async throws -> [String] {
  let origin = try await Origin.start(
    Origin.Configuration(
      directory: folder, link: .lte, faults: try FaultRule.parse("*.m3u8=status:503x1")))
  let source = try MediaSource(argument: origin.url(path).absoluteString)
  try await FrameExtractor(logger: Logger(label: "example")).extract(.first, from: source) { _ in }
  await origin.stop()
  return origin.requestLog.map { "\($0.path) \($0.status ?? 0)" }
}

/// The index that plays after the first of three items has failed.
func indexAfterFailure() throws -> Int? {
  let sources = try (0..<3).map { try MediaSource(argument: "https://example.com/\($0).mp4") }
  let feed = Feed(name: "recommended", sources: sources)
  let pool = FakePlayerPool(stage: .firstFrame)
  let service = PlayerService(pool: pool, feeds: [feed], failureRule: .skip)
  service.playFirst()
  pool.fail(feed.items[0].id)
  return service.nowPlaying.value?.index
}

/// A viewer of 20 items, in simulated time.
func simulatedWalk(through feed: Feed, over link: LinkSpec, seed: UInt64) async throws -> WalkReport {
  let simulation = SimulatedRuntime()
  var configuration = PoolConfiguration()
  configuration.slotCount = 3
  configuration.policy = AdaptivePreload()
  configuration.enter(simulation)

  let (count, dwell) = (feed.items.count, DwellSpec.exponential(mean: .seconds(3)))
  let plan = try WalkPlan(itemCount: count, swipeCount: 20, dwell: dwell, seed: seed)
  let settings = WalkSettings(
    feed: feed.name, itemCount: count, slotCount: 3, policy: "adaptive", dwell: "\(dwell)", seed: seed,
    isVirtual: true)
  let replay = FeedReplay(
    feed, plan: plan, settings: settings, label: "example", configuration: configuration,
    fetcher: ThrottledFetcher(TransportFetcher(), link: link, in: simulation))
  return try await replay.run(in: simulation)
}

@Suite("Docs/Testing.md", .hangLimit)
struct TestingExampleTests {
  @Test("A server with faults: each playlist is asked for twice")
  func faults() async throws {
    let requests = try await requests(toOpen: "hls-fmp4/master.m3u8", in: Fixtures.folder)
    #expect(requests.filter { $0 == "/hls-fmp4/master.m3u8 503" }.count == 1)
    #expect(requests.filter { $0 == "/hls-fmp4/master.m3u8 200" }.count == 1)
  }

  @Test("A pool without players: the next item plays")
  func fakePool() throws {
    #expect(try indexAfterFailure() == 1)
  }

  @Test("A simulated walk is the same each time")
  func simulation() async throws {
    let sources = try ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"].map {
      try MediaSource(argument: Fixtures.path($0))
    }
    let feed = Feed(name: "feed", sources: sources)
    let first = WalkTotals(try await simulatedWalk(through: feed, over: .lte, seed: 1))
    #expect(first.swipeCount == 20)
    #expect(WalkTotals(try await simulatedWalk(through: feed, over: .lte, seed: 1)) == first)
    #expect(WalkTotals(try await simulatedWalk(through: feed, over: .lte, seed: 2)) != first)
  }
}
