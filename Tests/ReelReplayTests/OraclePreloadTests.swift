import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool
import ReelReplay
import ReelTestSupport
import Testing

@Suite("The policy oracle, and what no policy can go below", .hangLimit)
struct OraclePreloadTests {
  /// Twelve items of 3 s: HLS in TS and fMP4, and DASH.
  private static func feed() throws -> Feed {
    let paths = [
      "/hls-fmp4/master.m3u8", "/hls-ts/master.m3u8", "/dash-number/manifest.mpd",
      "/dash-timeline/manifest.mpd",
    ]
    return Feed(
      name: "fixtures",
      urls: try (0..<12).map { try #require(URL(string: "http://origin\(paths[$0 % paths.count])")) })
  }

  private static func walk(
    _ policy: any PreloadPolicy, _ link: LinkSpec, seed: UInt64, slotCount: Int = 3
  ) async throws -> SimulatedWalk {
    let feed = try feed()
    let plan = try WalkPlan(
      feed, swipeCount: 30,
      viewer: ViewerSpec(
        dwell: try DwellSpec(parsing: "exp:1500ms"),
        shares: SwipeShares(flicks: 0.2, back: 0.15, bursts: 0.05)),
      seed: seed)
    var configuration = PoolConfiguration()
    configuration.slotCount = slotCount
    configuration.policy = policy
    configuration.decodingPermits = 2
    configuration.player.adaptsBitRate = true
    let settings = WalkSettings(
      feed: "fixtures", itemCount: feed.items.count, slotCount: slotCount, policy: policy.description,
      dwell: "exp:1500ms", seed: seed)
    var walk = SimulatedWalk(
      feed, plan: plan, settings: settings, label: policy.description, configuration: configuration,
      link: link, fetcher: FixtureFetcher(), memory: SimulatedWalk.Memory(decodesFirstFramesOnly: true),
      logger: silentLogger)
    walk.chunks = try await FeedChunks.measure(
      plan, of: feed, fetcher: FixtureFetcher(), logger: silentLogger)
    return walk
  }

  private static func delays(_ report: WalkReport) -> [Duration] {
    report.swipes.filter(\.isCounted).map { $0.timeToSecondFrame ?? $0.watched }
  }

  @Test(
    "On recorded links no other policy's second frames come sooner, and none's sooner than the bound",
    arguments: ["hsdpa-train.txt", "fcc-2.txt", "puffer-2.txt"])
  func recordings(name: String) async throws {
    var link = LinkSpec(
      try LinkRecording(path: Fixtures.path("links/\(name)")), roundTripTime: .milliseconds(60))
    (link.modelsTCP, link.modelsTLS, link.modelsDNS) = (true, true, true)
    var sums: [String: Duration] = [:]
    for policy in ["oracle", "adjacent", "none", "adaptive"] {
      for seed in 1...3 as ClosedRange<UInt64> {
        let report = try await Self.walk(try ReplayPolicies.parse(policy), link, seed: seed).run()
        let delays = Self.delays(report)
        #expect(delays.count > 15)
        sums[policy, default: .zero] += delays.reduce(.zero, +)
        let bound = try #require(report.secondFrameBound)
        let summary = try #require(LatencySummary(delays))
        #expect(bound.p50 <= summary.p50)
        #expect(bound.p95 <= summary.p95)
        #expect(bound.mean <= delays.reduce(.zero, +) / delays.count)
        #expect(report.totals.secondFrameBound == bound)
      }
    }
    let oracle = try #require(sums["oracle"])
    for policy in ["adjacent", "none", "adaptive"] {
      // It plans by a model of the pool without handshakes, and may lose a little by that: giving an item up closes
      // the connections of its requests, and the next item has to open others.
      #expect(oracle <= (sums[policy] ?? .zero) * 1.02, "\(policy): \(sums)")
    }
  }

  @Test("The same walk takes the same course each time, and fetches one rung only")
  func course() async throws {
    let link = try LinkSpec(parsing: "700kbit/60ms")
    let first = try await Self.walk(OraclePreload(), link, seed: 5).run()
    let again = try await Self.walk(OraclePreload(), link, seed: 5).run()
    #expect(try first.json() == again.json())
    #expect(first.settings.policy == "oracle")
    #expect(first.totals.rungSwitchCount == 0)
    let bitRates = Set(first.swipes.flatMap(\.rungs).compactMap(\.bitRate))
    #expect(bitRates.isSubset(of: [400_000, 300_000, 250_000, 200_000]), "\(bitRates)")
    let decoded = try JSONDecoder().decode(WalkReport.self, from: Data(try first.json().utf8))
    #expect(decoded.secondFrameBound == first.secondFrameBound)
  }

  @Test("Without knowledge of a walk, only the current item loads")
  func unknown() throws {
    let policy = try ReplayPolicies.parse(" Oracle ")
    #expect(policy.description == "oracle")
    let plan = policy.plan(in: PoolSituation(slotCount: 3, itemCount: 10, currentIndex: 4))
    #expect(plan.neighbours.isEmpty)
    #expect(ReplayPolicies.forms.last?.form == "oracle")
    #expect(throws: ReelError.self) { try ReplayPolicies.parse("oracles") }
  }

  @Test("The bound of small walks is no more than what the oracle's schedules reach")
  func bound() throws {
    var aboveZero = 0
    for seed in 0..<300 as Range<UInt64> {
      var random = SplitMix64(seed: seed)
      let chunks = (0..<4).map { _ in
        let start = Int64(2000 + random.next() % 60_000)
        return ItemChunks(
          manifestByteCount: random.next() % 2 == 0 ? 0 : 500,
          rungs: [
            ItemChunks.Rung(
              id: "0", bitRate: 400_000, headerByteCount: 800, headerRequestCount: Int(random.next() % 3),
              chunks: [
                ItemChunks.Chunk(
                  duration: .seconds(1), byteCount: start + Int64(random.next() % 3) * 5000,
                  startByteCount: start)
              ])
          ])
      }
      let plan = try WalkPlan(
        itemCount: 4, swipeCount: 4,
        dwell: .fixed(.milliseconds(Int64(200 + random.next() % 1000))), seed: seed)
      let link = try LinkSpec(
        bitsPerSecond: Int64(150_000 + random.next() % 1_500_000),
        roundTripTime: .milliseconds(Int64(random.next() % 100)))
      let (slotCount, frame) = (1 + Int(random.next() % 3), Duration.milliseconds(4))
      let bound = SecondFrameBound(
        plan, chunks: { chunks[$0] }, link: link, decodeCost: DecodeCost(frame: frame), slotCount: slotCount)
      let problem = OracleProblem(
        plan, chunks: { chunks[$0] }, link: link, slotCount: slotCount, decodeTime: 8000)
      let solution = try #require(OracleSolver.solve(problem, nodeLimit: 2000))
      let delays = zip(problem.stops, solution.delays).compactMap { stop, delay in
        stop.isCounted ? delay.map { Duration.microseconds($0) } : nil
      }
      #expect(delays.count == bound.delays.count)
      for (least, delay) in zip(bound.delays, delays) { #expect(least <= delay, "seed \(seed)") }
      guard let figures = bound.figures, let summary = LatencySummary(delays) else { continue }
      #expect(figures.p50 <= summary.p50, "seed \(seed)")
      #expect(figures.p95 <= summary.p95, "seed \(seed)")
      #expect(figures.mean <= delays.reduce(.zero, +) / delays.count, "seed \(seed)")
      // As starts compete, the bound of all is no less than that of each.
      #expect(figures.p95 + .microseconds(2) >= LatencySummary(bound.delays)?.p95 ?? .zero)
      if figures.p95 > .zero { aboveZero += 1 }
    }
    #expect(aboveZero > 100)
  }

  @Test("A bound by hand: round trips, bytes, decoding, and starts that compete")
  func boundByHand() throws {
    // 100 kB/s; 50 kB before the second frame.
    let chunks = ItemChunks(
      manifestByteCount: 1000,
      rungs: [
        ItemChunks.Rung(
          id: "0", bitRate: 400_000, headerByteCount: 900, headerRequestCount: 2,
          chunks: [ItemChunks.Chunk(duration: .seconds(2), byteCount: 90_000, startByteCount: 50_000)])
      ])
    let link = try LinkSpec(bitsPerSecond: 800_000, roundTripTime: .milliseconds(100))
    let trace = try DwellTrace(text: "1\n0.2\n0.2\n5", name: "trace")
    let plan = try WalkPlan(itemCount: 4, swipeCount: 3, dwell: .trace(trace))
    let cost = DecodeCost(
      opening: .milliseconds(30), codecs: [:], others: DecodeCost.Frame(constant: .milliseconds(5)))
    func bound(_ slotCount: Int) -> SecondFrameBound {
      SecondFrameBound(plan, chunks: { _ in chunks }, link: link, decodeCost: cost, slotCount: slotCount)
    }
    // With one slot, loading begins at the end of the drag, 250 ms before the settle: three round trips, 51 kB, a frame.
    // The first two items are left after 200 ms.
    #expect(bound(1).delays == [.milliseconds(200), .milliseconds(200), .milliseconds(565)])
    #expect(abs((bound(1).figures?.p95 ?? .zero) / .milliseconds(1) - 565) < 0.1)
    // With four, everything can begin at the start, and each start alone is in time. The three together take 1.5 s after
    // 0.3 s of round trips; the last settles after 2.15 s.
    #expect(bound(4).delays == [.zero, .zero, .zero])
    #expect(bound(4).figures?.p95 == .zero)
    // With two, each start can begin when the item before becomes the current one.
    #expect(bound(2).delays == [.zero, .milliseconds(115), .milliseconds(115)])
    // The last one's bytes can begin to cross after 1.75 s, but those of the one before take until 1.8 s.
    #expect(abs((bound(2).figures?.p95 ?? .zero) / .milliseconds(1) - 155) < 0.1)
    #expect(abs((bound(2).figures?.p50 ?? .zero) / .milliseconds(1) - 115) < 0.1)
  }
}
