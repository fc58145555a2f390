import Foundation
@testable import ReelCheck
import ReelCore
import ReelManifest
import ReelPlayback
import ReelSimulation
import ReelSources
import ReelTestSupport
import ReelTransport
import Testing

/// What `check` says of stalls, beside Reel's own player on the same link.
@Suite("Playing on over a link", .hangLimit)
struct RungPlaybackTests {
  private func check(
    _ url: URL, _ links: [(name: String, spec: LinkSpec)], areNamed: Bool = true,
    sample: CheckOptions.Sample = .edges, bandwidth: Int? = nil
  ) async throws -> CheckResult {
    var options = CheckOptions()
    options.links = links.map { CheckOptions.Link(name: $0.name, spec: $0.spec) }
    options.areLinksNamed = areNamed
    options.sample = sample
    var configuration = LoadingConfiguration()
    if let bandwidth { configuration.preferredPeakBitRate = bandwidth }
    let checker = StreamChecker(
      fetcher: TransportFetcher(logger: silentLogger), configuration: configuration, options: options,
      logger: silentLogger)
    return try await checker.check(.url(url))
  }

  private func played(_ result: CheckResult, _ index: Int = 0) throws -> PlayedRung {
    try #require(result.starts.indices.contains(index))
    guard case .played(let rung, _) = result.starts[index].playback else {
      throw ReelError(.internalFault, "not played: \(result.starts[index].playback)")
    }
    return rung
  }

  /// The stalls of Reel's player, which plays to the end in simulated time.
  private func stalled(_ url: URL, on link: LinkSpec, bandwidth: Int? = nil) async throws -> (Duration, Int) {
    let simulation = SimulatedRuntime()
    var configuration = PlayerConfiguration()
    simulation.apply(to: &configuration)
    configuration.loading.fetchesFiles = true
    if let bandwidth { configuration.loading.preferredPeakBitRate = bandwidth }
    let fetcher = ThrottledFetcher(TransportFetcher(logger: silentLogger), link: link, in: simulation)
    let player = Player(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    let events = player.events
    player.play()
    try await simulation.run {
      player.replaceCurrentItem(with: PlayerItem(url: url))
      for await event in events {
        if case .playedToEnd = event { break }
        if case .failed(let error) = event { throw error }
      }
    }
    let statistics = player.statistics
    try await simulation.run { await player.stopAndWait() }
    await simulation.runToRest()
    return (statistics.stallDuration, statistics.stallCount)
  }

  private static let paths = [
    "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "hls-byterange-fmp4/index.m3u8", "hls-packed/aac.m3u8",
    "dash-number/manifest.mpd", "dash-timeline/manifest.mpd", "dash-ondemand/manifest.mpd",
    "dash-periods/manifest.mpd", "media/h264-long.mp4", "media/h264-faststart.mp4",
    "media/h264-moov-last.mp4",
  ]

  @Test(
    "A rung stalls as long as Reel's player does that plays it", arguments: paths, [0.4, 0.7, 1.6])
  func player(path: String, share: Double) async throws {
    let url = Fixtures.folder.appending(path: path)
    let rate = try played(try await check(url, [("wifi", .wifi)], areNamed: false)).bitsPerSecond
    let link = try LinkSpec(bitsPerSecond: Int64(rate * share), roundTripTime: .milliseconds(100))
    let rung = try played(try await check(url, [("slow", link)]))
    let (duration, count) = try await stalled(url, on: link)
    let expected = duration / .seconds(1)
    let difference = abs(rung.course.stalled / .seconds(1) - expected)
    #expect(
      difference <= max(0.2 * expected, 0.3),
      "\(path): \(rung.course.stalled) in \(rung.course.stalls.count), the player \(duration) in \(count)")
    #expect(rung.estimatedCount == 0)
  }

  @Test(
    "A link that carries no rung is an error that says how long and where; a link that was not named is none")
  func none() async throws {
    let url = Fixtures.folder.appending(path: "hls-ts/master.m3u8")
    let slow = try LinkSpec(parsing: "50kbit/100ms")
    let result = try await check(url, [("slow", slow)])
    let finding = try #require(result.findings.first { $0.id == .rungTooHeavy })
    #expect(finding.name == "rung-too-heavy/all" && finding.level == .error)
    #expect(finding.summary.contains("slow brings 50 kbit/s") && finding.summary.contains("the first after"))
    let cost = try #require(finding.costs.first)
    #expect(cost.kind == .stall && cost.link == "slow" && cost.milliseconds > 1000)
    let both = try await check(url, [("slow", slow), ("wifi", .wifi)])
    #expect(both.findings.filter { $0.id == .rungTooHeavy }.map(\.level) == [.warning])
    for (links, named) in [([("slow", slow)], false), ([("wifi", LinkSpec.wifi)], true)] {
      let quiet = try await check(url, links, areNamed: named)
      #expect(quiet.findings.allSatisfy { $0.id != .rungTooHeavy })
    }
  }

  @Test("A rung that none of the links carries is a warning beside one that is carried")
  func ladder() async throws {
    let folder = try TemporaryFolder()
    let target = folder.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: "hls-ts"), to: target)
    // The other rung with 2 Mbit/s of null packets.
    let stuffing = [UInt8]([0x47, 0x1f, 0xff, 0x10]) + [UInt8](repeating: 0xff, count: 184)
    for number in 0..<3 {
      let segment = target.appending(path: "low/segment-\(number).ts")
      let bytes = try Data(contentsOf: segment)
      try (bytes + Data((0..<1330).flatMap { _ in stuffing })).write(to: segment)
    }
    let url = target.appending(path: "ladder.m3u8")
    try Data(
      """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=400000
      high/index.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=2500000
      low/index.m3u8
      """.utf8
    ).write(to: url)
    let link = try LinkSpec(bitsPerSecond: 600_000, roundTripTime: .milliseconds(20))
    let result = try await check(url, [("middle", link)], bandwidth: 400_000)
    let heavy = result.findings.filter { $0.id == .rungTooHeavy }
    #expect(heavy.allSatisfy { $0.name == "rung-too-heavy/rung" && $0.level == .warning })
    #expect(heavy.count == 1, "\(heavy.map(\.summary))")
    #expect(try played(result).stalledMilliseconds == 0)
  }

  @Test("Sizes that are not known are estimated, and no rung is judged by them")
  func unknown() async throws {
    let url = Fixtures.folder.appending(path: "hls-ts/master.m3u8")
    let start = try await check(url, [("3g", .threeG)], sample: .start)
    let rung = try played(start)
    #expect(rung.estimatedCount > 0)
    #expect(start.findings.allSatisfy { $0.id != .rungTooHeavy })
  }
}
