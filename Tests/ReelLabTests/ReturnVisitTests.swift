import Foundation
import ReelCore
import ReelLab
import ReelModels
import ReelPool
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("Several visits with a simulated cache", .hangLimit)
struct ReturnVisitTests {
  private static let files = [
    "/media/h264-bframes.mp4", "/media/hevc-open-gop.mp4", "/media/h264-gops.mp4",
    "/media/hevc-hev1-inband.mp4", "/media/h264-size-change.ts", "/media/h264-open-gop.ts",
  ]

  /// A walk without preloads over files, which need no manifest.
  private func report(
    _ visits: VisitPlan?, policy: any PreloadPolicy = NoPreload()
  ) async throws -> WalkReport {
    var feed = Feed(name: "files")
    for path in Self.files { feed.append(.url(try #require(URL(string: "http://origin\(path)")))) }
    let plan = try WalkPlan(
      feed, swipeCount: 5,
      spec: SwipeSpec(dwell: try DwellSpec(parsing: "fixed:1s"), shares: SwipeShares(back: 0, bursts: 0)))
    var configuration = PoolConfiguration()
    configuration.policy = policy
    let settings = WalkSettings(
      feed: "files", itemCount: Self.files.count, slotCount: 3, policy: policy.description, dwell: "fixed:1s",
      seed: 0)
    var walk = SimulatedWalk(
      Walk(feed, plan: plan, settings: settings, label: "files", configuration: configuration),
      link: try LinkSpec(parsing: "4Mbit/80ms"), fetcher: FixtureFetcher(), memory: SimulatedWalk.Memory(),
      logger: silentLogger)
    walk.visits = visits
    return try await walk.run()
  }

  @Test("A later visit fetches less and waits less; after a day it waits a round trip for each start")
  func later() async throws {
    let report = try await report(VisitPlan(byteLimit: 1 << 30, count: 2))
    let visits = try #require(report.visits)
    try #require(visits.visits.count == 2)
    let (first, second) = (visits.visits[0], visits.visits[1])
    #expect(try #require(second[.network]) < #require(first[.network]))
    #expect(try #require(second[.firstMedian]) < #require(first[.firstMedian]))
    #expect(try #require(second[.disk]) > 0)
    let without = try #require(visits.without)
    #expect(without[.disk] == 0 && without[.stored] == 0)
    #expect(try #require(visits.saved(.network)) > 0)
    #expect(visits.storedByteCount > 0)
    let day = try await self.report(VisitPlan(byteLimit: 1 << 30, count: 2, between: .seconds(86_400)))
    let late = try #require(day.visits?.visits.last)
    #expect(try #require(late[.firstMedian]) > #require(second[.firstMedian]) + 79)
    let json = try report.json()
    #expect(json.contains("\"visits\":[{\"disk_bytes\":") && json.contains("\"without_cache\":{"))
    #expect(json.contains("\"simulated_cache_bytes\":1073741824") && json.contains("\"between_ms\":3600000"))
  }

  @Test("Without a cache all visits are the same, and without the options so is the report")
  func plain() async throws {
    let twice = try await report(VisitPlan(byteLimit: 0, count: 2))
    let visits = try #require(twice.visits)
    #expect(visits.visits.count == 2 && visits.visits[0] == visits.visits[1] && visits.without == nil)
    let once = try await report(nil)
    #expect(once.swipes == twice.swipes && once.visits == nil)
    let json = try once.json()
    for field in ["visits", "cache", "between_ms", "disk_bytes"] { #expect(!json.contains("\"\(field)")) }
    let verdict = VisitPlan(byteLimit: 0, count: 2).verdict([visits])
    #expect(verdict.hasPrefix("Without a cache, each of 2 visits fetches "))
  }

  @Test("A limit smaller than the feed evicts")
  func limit() async throws {
    let limit: Int64 = 20_000
    let small = try #require(try await report(VisitPlan(byteLimit: limit, count: 2)).visits)
    let large = try #require(try await report(VisitPlan(byteLimit: 1 << 30, count: 2)).visits)
    for visit in small.visits { #expect(try #require(visit[.stored]) <= Double(limit)) }
    #expect(large.storedByteCount > small.storedByteCount)
    try #require(small.visits.count == 2 && large.visits.count == 2)
    #expect(try #require(small.visits[1][.network]) > #require(large.visits[1][.network]))
  }

  @Test("The verdict says what a cache saves and costs")
  func verdict() throws {
    func figures(_ median: Int, _ high: Int, network: Int, stored: Int) -> String {
      "{\"second_frame_p50_ms\": \(median), \"second_frame_p95_ms\": \(high), \"network_bytes\": \(network), "
        + "\"stored_bytes\": \(stored)}"
    }
    func visits(_ later: String) throws -> ReturnVisits {
      let first = figures(100, 500, network: 1_200_000, stored: 1_000_000)
      let without = figures(100, 500, network: 1_000_000, stored: 0)
      let json = "{\"visits\": [\(first), \(later)], \"without_cache\": \(without)}"
      return try JSONDecoder().decode(ReturnVisits.self, from: Data(json.utf8))
    }
    let plan = VisitPlan(byteLimit: 200_000_000, count: 2)
    let useful = try visits(figures(20, 100, network: 0, stored: 1_200_000))
    #expect(
      plan.verdict([useful])
        == "A cache of 200 MB is worth it: it saves 80 ms at p50, 400 ms at p95 and 1 MB of the network in each later "
        + "visit, for 1.2 MB on disk and 200 kB more of the network in the first visit.")
    #expect(plan.isWorth([useful]))
    let useless = try visits(figures(91, 491, network: 995_000, stored: 1_200_000))
    #expect(!plan.isWorth([useless]) && plan.verdict([useless]).contains("is not worth it"))
  }

  @Test("What makes no sense is refused by the names of options or fields")
  func usage() throws {
    #expect(try VisitPlan.plan(cache: nil, visits: nil, between: nil) == nil)
    #expect(try VisitPlan.plan(cache: "0", visits: 1, between: nil) == nil)
    #expect(
      try VisitPlan.plan(cache: "200MB", visits: 3, between: "1d")
        == VisitPlan(byteLimit: 200_000_000, count: 3, between: .seconds(86_400)))
    for (cache, visits, between, words) in [
      ("much", nil, nil, "--simulated-cache: \"much\" is not a size"),
      (nil, 0, nil, "--visits must be from 1"),
      (nil, 2, "1", "--between: \"1\" is not a time"), ("1MB", nil, "1d", "--between requires --visits"),
    ] as [(String?, Int?, String?, String)] {
      let error = #expect(throws: ReelError.self) {
        try VisitPlan.plan(cache: cache, visits: visits, between: between)
      }
      #expect(error?.kind == .usage && error?.reason.contains(words) == true, "\(words)")
    }
    let plan = VisitPlan(byteLimit: 1, count: 1)
    try plan.check(try PlayerModel(argument: "hls.js"))
    try plan.check(try PlayerModel(argument: "media3"))
    #expect(throws: ReelError.self) { try plan.check(try PlayerModel(argument: "mpv")) }
    let lab = Array(#"{"feeds": ["f"], "simulated_cache": "1MB", "visits": 0}"#.utf8)
    let error = #expect(throws: ReelError.self) { try LabConfiguration(json: lab, path: "lab.json") }
    #expect(error?.kind == .badManifest && error?.reason.contains("visits must be from 1") == true)
  }
}
