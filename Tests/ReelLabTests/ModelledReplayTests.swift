import Foundation
import ReelCore
import ReelLab
import ReelModels
import ReelPool
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("Walks of modelled players as reports", .hangLimit)
struct ModelledReplayTests {
  private static let paths = [
    "hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-timeline/manifest.mpd", "media/h264-bframes.mp4",
  ]

  private func walk(
    _ model: PlayerModel, paths: [String] = Self.paths, settle: Duration = .zero, trace: WalkTrace? = nil
  ) throws -> Walk {
    var feed = Feed(name: "fixtures")
    for path in paths { feed.append(.url(try #require(URL(string: "http://origin/\(path)")))) }
    let plan = try WalkPlan(
      itemCount: paths.count, swipeCount: 12, dwell: try DwellSpec(parsing: "exp:1500ms"), settle: settle,
      seed: 3)
    let settings = WalkSettings(
      feed: "fixtures", itemCount: paths.count, slotCount: model.preload.players, policy: model.policyName,
      dwell: "exp:1500ms", seed: 3)
    return Walk(
      feed, plan: plan, settings: settings, label: "walk", configuration: PoolConfiguration(), trace: trace)
  }

  private func report(
    _ model: PlayerModel, paths: [String] = Self.paths, settle: Duration = .zero, trace: WalkTrace? = nil
  ) async throws -> WalkReport {
    let walk = try walk(model, paths: paths, settle: settle, trace: trace)
    var items = ModelledItems()
    try await items.read(
      [(walk: walk, model: model)],
      with: ItemReader(
        fetcher: FixtureFetcher(), configuration: LoadingConfiguration(), logger: silentLogger))
    return try ModelledReplay(
      walk, model: model, link: try LinkSpec(parsing: "lte,tcp,tls,dns"), items: items
    )
    .report()
  }

  @Test(
    "The same walk gives the same report, and each wait is the sum of its parts",
    arguments: PlayerModel.shippedNames)
  func report(name: String) async throws {
    let model = try PlayerModel(argument: name)
    let report = try await report(model)
    #expect(try await self.report(model).json() == report.json())
    #expect(report.swipes.filter { !$0.isPassing }.count >= 5)
    for swipe in report.swipes where !swipe.waitParts.isEmpty {
      let sum = swipe.waitParts.reduce(Duration.zero) { $0 + $1.duration }
      // An item that was left before its first frame was waited for as long as it was watched. Parts are rounded.
      let wait = swipe.timeToFirstFrame ?? swipe.watched
      #expect(abs((wait - sum) / .microseconds(1)) < 5, "\(swipe)")
    }
    let start = try #require(report.swipes.first)
    #expect(start.kind == .start && start.waitParts.contains { $0.stage == "source answer" })
    #expect(report.settings.isVirtual && report.settings.player == model.title)
  }

  @Test("What a modelled player does not have is absent, not zero")
  func absent() async throws {
    let report = try await report(try PlayerModel(argument: "mpv"))
    #expect(report.failedItems.isEmpty)
    #expect(WalkFigures["frames.decoded"].value(in: report.totals) == nil)
    #expect(WalkFigures["memory.pool"].value(in: report.totals) == nil)
    let json = try report.json()
    #expect(!json.contains("\"frames\":{") && !json.contains("\"memory\":{"))
  }

  @Test("Items of a format that a player does not have fail by name")
  func formats() async throws {
    let report = try await report(try PlayerModel(argument: "hls.js"))
    #expect(report.failedItems.map(\.index) == [2, 3])
    #expect(report.failedItems.first?.error.contains("hls.js does not play DASH") == true)
    #expect(report.swipes.filter { [2, 3].contains($0.itemIndex) }.allSatisfy { $0.timeToFirstFrame == nil })
  }

  @Test("A preloaded player hits, and costs bytes")
  func preloaded() async throws {
    let paths = [String](repeating: "hls-fmp4/master.m3u8", count: 6)
    let model = try PlayerModel(argument: "hls.js")
    let alone = try await report(model, paths: paths)
    let second = try await report(try model.using(players: 2, preload: nil), paths: paths)
    #expect(alone.totals.hitRatio() == 0)
    #expect((second.totals.hitRatio() ?? 0) >= 0.5)
    #expect(second.fetchedByteCount > alone.fetchedByteCount)
  }

  @Test("Waits count from the settle, by default the end of the drag")
  func settle() async throws {
    let model = try PlayerModel(argument: "hls.js")
    var waits: [Duration] = []
    for settle in [Duration.zero, .milliseconds(100)] {
      let report = try await report(model, settle: settle)
      #expect(report.settings.settle == settle)
      let swipe = try #require(report.swipes.first { $0.kind != .start && $0.timeToFirstFrame != nil })
      #expect(!swipe.isHit)
      waits.append(try #require(swipe.timeToFirstFrame))
    }
    #expect(waits[0] == waits[1] + .milliseconds(100))
  }

  @Test("The events of a walk are in the order of their times")
  func events() async throws {
    let events = Locked<[WalkEvent]>([])
    let trace = WalkTrace(consumers: [{ event in events.withLock { $0.append(event) } }])
    let report = try await report(try PlayerModel(argument: "media3"), trace: trace)
    let all = events.withLock { $0 }
    #expect(all.map(\.time) == all.map(\.time).sorted())
    #expect(all.filter { $0.kind == .settled }.count == report.swipes.filter { !$0.isPassing }.count)
    let received = all.filter { $0.kind == .received }.compactMap(\.byteCount).reduce(0, +)
    #expect(received == report.fetchedByteCount)
  }
}
