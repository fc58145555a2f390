import Foundation
@testable import ReelCheck
import ReelCore
import ReelModels
import ReelSimulation
import ReelSources
import ReelTestSupport
import ReelTesting
import ReelTransport
import Testing

@Suite("The start with the player of a model", .hangLimit)
struct ModelledStartTests {
  private func check(
    _ url: URL, _ player: PlayerModel?, _ link: LinkSpec = .lte, isNamed: Bool = false
  ) async throws -> CheckResult {
    var options = CheckOptions()
    options.links = [CheckOptions.Link(name: "link", spec: link)]
    options.areLinksNamed = isNamed
    options.player = player
    let checker = StreamChecker(
      fetcher: TransportFetcher(logger: silentLogger), configuration: LoadingConfiguration(),
      options: options, logger: silentLogger)
    return try await checker.check(.url(url))
  }

  private func file(_ path: String) -> URL { Fixtures.folder.appending(path: path) }

  private func start(_ result: CheckResult) throws -> StartResult {
    try #require(result.starts.first, "\(result.startRefusal ?? "no start")")
  }

  private static let cases = ["hls.js", "video.js", "mpv", "playbin3", "media3"].flatMap { player in
    [
      "hls-ts/master.m3u8", "hls-ts/low/index.m3u8", "hls-fmp4/master.m3u8", "dash-ondemand/manifest.mpd",
      "media/h264-faststart.mp4",
    ].map { (player, $0) }
  }

  @Test("It is the one of a walk to this item, which reads its facts by itself", arguments: cases)
  func walk(player: String, path: String) async throws {
    let model = try PlayerModel(argument: player)
    let result = try await check(file(path), model)
    let reader = ItemReader(
      fetcher: TransportFetcher(logger: silentLogger), configuration: LoadingConfiguration(),
      logger: silentLogger)
    let facts = try await reader.facts(of: .url(file(path)), reach: 600)
    guard model.start.formats.contains(facts.format) else {
      #expect(result.starts.isEmpty && result.startRefusal?.hasPrefix("\(player) does not play ") == true)
      #expect(result.notChecked.contains { $0.reason.hasPrefix("the start: \(player) does not play ") })
      return
    }
    var alone = model
    alone.preload.players = 1
    let walk = ModelledWalk(
      alone, items: [facts], link: .lte, swipes: [.init(to: 0, draggedAt: .zero, settledAt: .zero)],
      end: .seconds(60)
    ).run()
    let visit = try #require(walk.visits.first)
    let start = try start(result)
    #expect(start.player == model.title && start.wholeMilliseconds == nil)
    let shown = try #require(visit.shownAt) / .milliseconds(1)
    // The check knows where in a segment its media is.
    #expect(abs(start.now.milliseconds - shown) < 12, "\(start.now.milliseconds), the walk \(shown)")
    let second = try #require(visit.secondAt) / .milliseconds(1)
    #expect(abs(try #require(start.secondFrameMilliseconds) - second) < 30)
    let now = start.now
    let parts = now.connecting + now.answering + now.receiving + now.decoding + now.working
    #expect(abs(parts - now.milliseconds) < 0.001 && now.working > 0 && !now.requests.isEmpty)
    guard case .played(let rung, nil) = start.playback else {
      Issue.record("not played: \(start.playback)")
      return
    }
    #expect(rung.course.stalls.count == visit.stalls.count && !rung.course.isCut)
  }

  @Test("Without a model the start is Reel's own, and no player changes the floor")
  func own() async throws {
    let url = file("hls-fmp4/master.m3u8")
    let own = try start(try await check(url, nil))
    let modelled = try start(try await check(url, try PlayerModel(argument: "hls.js")))
    #expect(own.player == nil && own.secondFrameMilliseconds == nil && own.now.working == 0)
    #expect(modelled.now.milliseconds > own.now.milliseconds)
    #expect(modelled.floorByteCount == own.floorByteCount)
  }

  @Test("A finding costs what the player loses by it, and once it is mended the start is that of a good file")
  func cost() async throws {
    let model = try PlayerModel(argument: "playbin3")
    let last = try await check(file("media/h264-moov-last.mp4"), model, .threeG)
    let first = try start(try await check(file("media/h264-faststart.mp4"), model, .threeG))
    let finding = try #require(last.findings.first { $0.id == .moovLast })
    let cost = try #require(finding.costs.first)
    let now = try start(last)
    #expect(finding.costs.count == 1 && cost.player == .model("playbin3") && cost.link == "link")
    #expect(now.steps.map(\.finding) == ["moov-last"])
    #expect(abs(now.possibleMilliseconds - first.now.milliseconds) < 20)
    #expect(abs(cost.milliseconds - (now.now.milliseconds - now.possibleMilliseconds)) < 0.01)
  }

  @Test("A heavy first variant costs a player that begins with the first one, and no other")
  func order() async throws {
    let folder = try TemporaryFolder()
    let target = folder.url.appending(path: "stream")
    try FileManager.default.copyItem(at: file("hls-ts"), to: target)
    let stuffing = [UInt8]([0x47, 0x1f, 0xff, 0x10]) + [UInt8](repeating: 0xff, count: 184)
    for number in 0..<3 {
      let segment = target.appending(path: "high/segment-\(number).ts")
      let bytes = try Data(contentsOf: segment)
      try (bytes + Data((0..<1330).flatMap { _ in stuffing })).write(to: segment)
    }
    let master = target.appending(path: "heavy.m3u8")
    try Data(
      """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=4000000
      high/index.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=300000
      low/index.m3u8
      """.utf8
    ).write(to: master)
    let link = try LinkSpec(parsing: "1Mbit/20ms")
    for (player, pays) in [("hls.js", true), ("video.js", false)] {
      let result = try await check(master, try PlayerModel(argument: player), link)
      let finding = result.findings.first { $0.id == .firstRungHeavy }
      #expect((finding != nil) == pays, "\(player)")
      #expect(finding?.costs.first.map { $0.player == .model(player) } ?? !pays)
      let rung = try #require(try start(result).rung)
      let high = try #require(result.facts.rungs.first).name
      #expect((rung == high) == pays)
    }
  }

  @Test("The waits and redirects of a server count, and are not there once they are mended")
  func server() async throws {
    var configuration = Origin.Configuration(directory: Fixtures.folder)
    configuration.faults = [
      FaultRule("index.m3u8", .delay(.milliseconds(700))), FaultRule("segment-0.ts", .redirectChain(2)),
    ]
    let model = try PlayerModel(argument: "hls.js")
    let good = try start(try await check(file("hls-ts/master.m3u8"), model))
    try await Origin.use(configuration) { origin in
      let slow = try await check(origin.baseURL.appending(path: "hls-ts/master.m3u8"), model)
      let redirects = try #require(slow.findings.first { $0.id == .redirects })
      // Two hops at the same server, each a round trip.
      #expect(abs(try #require(redirects.costs.first).milliseconds - 140) < 1)
      let start = try start(slow)
      #expect(start.waitMilliseconds > 600)
      #expect(start.now.milliseconds - good.now.milliseconds > 700)
    }
  }

  @Test("Rungs that no link carries are found with this player, and stalls with its buffer")
  func stalls() async throws {
    let link = try LinkSpec(parsing: "50kbit/100ms")
    let result = try await check(
      file("hls-ts/master.m3u8"), try PlayerModel(argument: "hls.js"), link, isNamed: true)
    let heavy = try #require(result.findings.first { $0.id == .rungTooHeavy })
    #expect(heavy.name == "rung-too-heavy/all" && heavy.costs.first?.player == .model("hls.js"))
    guard case .played(let rung, nil) = try start(result).playback else {
      Issue.record("not played")
      return
    }
    #expect(rung.stalledMilliseconds > 1000 && rung.course.stalls.first.map { $0.position > 0 } == true)
  }
}
