import Foundation
import Logging
import Reel
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

/// The waits for the first frames of a viewer who watches each item for 3 s, in simulated time.
func waits(through feed: Feed, over link: LinkSpec) async throws -> [Duration] {
  let simulation = SimulatedRuntime()
  var configuration = PoolConfiguration()
  configuration.policy = AdjacentPreload()
  configuration.enter(simulation)
  let fetcher = ThrottledFetcher(TransportFetcher(), link: link, in: simulation)
  let pool = PlayerPool(feed: feed, fetcher: fetcher, configuration: configuration)
  let waits = try await simulation.run {
    pool.play()
    var waits: [Duration] = []
    for index in feed.items.indices {
      waits.append(try await pool.show(index).firstFrame().duration.value)
      try await simulation.sleep(for: .seconds(3))
    }
    return waits
  }
  pool.close()
  await simulation.runToRest()
  return waits
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

  @Test("In simulated time, waits are the same each time, and none after the first")
  func simulation() async throws {
    let urls = ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"].map {
      Fixtures.folder.appending(path: $0)
    }
    let first = try await waits(through: Feed(urls: urls), over: .lte)
    #expect(first.count == 3 && first[0] > .milliseconds(70))
    #expect(first.dropFirst().allSatisfy { $0 == .zero })
    #expect(try await waits(through: Feed(urls: urls), over: .lte) == first)
  }
}
