import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import ReelLab
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("Plans of preload policies, in a simulation", .hangLimit)
struct PreloadPlanWalkTests {
  /// Plans as it is told, and counts how often it is asked.
  private struct ToldPolicy: PreloadPlanning {
    let plan: Locked<PreloadPlan>
    let asked = Locked<[PoolSituation]>([])

    init(_ plan: PreloadPlan) { self.plan = Locked(plan) }

    func plan(in situation: PoolSituation) -> PreloadPlan {
      asked.withLock { $0.append(situation) }
      return plan.withLock { $0 }
    }

    var description: String { "told" }
  }

  /// A paused pool at the first of three items, over a slow link.
  private final class Scene: Sendable {
    let simulation = SimulatedRuntime()
    let base = FixtureFetcher()
    let pool: PlayerPool
    private let reached = Locked<[String: Duration]>([:])

    init(
      _ policy: any PreloadPolicy, slots: Int = 2, link: String = "300kbit/50ms",
      firstRung: FirstRung = .adapted
    ) throws {
      var configuration = PoolConfiguration()
      configuration.slotCount = slots
      configuration.policy = policy
      configuration.firstRung = firstRung
      configuration.enter(simulation)
      let fetcher = ThrottledFetcher(base, link: try LinkSpec(parsing: link), in: simulation)
      pool = PlayerPool(fetcher: fetcher, configuration: configuration, logger: silentLogger)
      let (simulation, reached) = (simulation, reached)
      pool.setObserver { event in
        guard case .reached(let id, _, let stage, _) = event else { return }
        reached.withLock { $0["\(id.source) \(stage)"] = simulation.now }
      }
    }

    func time(of stage: PreloadStage, _ path: String) throws -> Duration {
      try #require(reached.withLock { $0["http://origin\(path) \(stage)"] })
    }

    /// Runs `body` at the first item, then to the end of everything.
    func run(_ body: @escaping @Sendable (Scene) async throws -> Void) async throws {
      var feed = Feed(name: "feed")
      for path in PreloadPlanWalkTests.paths {
        feed.append(.url(try #require(URL(string: "http://origin\(path)"))))
      }
      let snapshot = FeedSnapshot(feed)
      try await simulation.run { [self] in
        pool.pause()
        _ = pool.show(0, of: snapshot)
        try await body(self)
        pool.close()
      }
      await simulation.runToRest()
      #expect(simulation.bodyCount == 0)
    }

    /// No request was sent twice.
    func expectNoRepetition() {
      let keys = base.keys
      #expect(Set(keys).count == keys.count, "\(keys)")
    }
  }

  fileprivate static let paths = [
    "/hls-ts/master.m3u8", "/hls-fmp4/master.m3u8", "/dash-number/manifest.mpd",
  ]

  private static func plan(_ bound: Duration?, next: PreloadTarget = .buffered) -> PreloadPlan {
    PreloadPlan(
      neighbours: [PreloadPlan.Neighbour(distance: 1, target: next)],
      current: LoadingBounds(forwardBufferDuration: bound), reviewInterval: .milliseconds(100))
  }

  @Test("While the current item's buffer is bounded, the neighbour loads")
  func bound() async throws {
    var times: [Duration] = []
    for bound in [nil, Duration.seconds(1)] {
      let scene = try Scene(ToldPolicy(Self.plan(bound)))
      try await scene.run { try await $0.simulation.sleep(for: .seconds(10)) }
      times.append(try scene.time(of: .firstFrame, Self.paths[1]))
      scene.expectNoRepetition()
    }
    // Two of the current item's three segments, of 23 kB each, are more than 1 s at 300 kbit/s.
    #expect(times[1] + .milliseconds(800) < times[0])
  }

  @Test("A bound that is lifted loads on, and a target that is raised too; nothing is fetched twice")
  func changes() async throws {
    let policy = ToldPolicy(
      Self.plan(.seconds(1), next: PreloadTarget(stage: .buffered, bufferDuration: .seconds(1))))
    let scene = try Scene(policy)
    try await scene.run { scene in
      try await scene.simulation.sleep(for: .seconds(10))
      var slots = scene.pool.slotReadiness
      #expect(slots[0].bufferedDuration < .seconds(2.5))
      #expect(slots[1].bufferedDuration < .seconds(2.5))
      let middle = scene.base.requests.count
      policy.plan.withLock { $0 = Self.plan(.seconds(3), next: PreloadTarget(stage: .buffered)) }
      try await scene.simulation.sleep(for: .seconds(10))
      slots = scene.pool.slotReadiness
      #expect(slots[0].bufferedDuration > .seconds(2.9))
      #expect(slots[1].bufferedDuration > .seconds(2.9))
      #expect(scene.base.requests.count > middle)
      // Less than is there is wanted: it stays.
      policy.plan.withLock {
        $0 = Self.plan(.seconds(1), next: PreloadTarget(stage: .firstFrame, peakBitRate: 1))
      }
      try await scene.simulation.sleep(for: .seconds(10))
      policy.plan.withLock { $0 = Self.plan(nil) }
      try await scene.simulation.sleep(for: .seconds(10))
      #expect(scene.pool.slotReadiness[1].bufferedDuration > .seconds(2.9))
    }
    scene.expectNoRepetition()
    let situation = try #require(policy.asked.withLock { $0.last })
    #expect(situation.current.isLoadedToEnd)
    #expect(situation.current.rungs.map(\.bitRate) == [400_000, 900_000])
    #expect(situation.current.segmentDuration == .seconds(1))
    #expect(situation[distance: 1]?.stage == .buffered)
    let throughput = try #require(situation.throughput)
    #expect(abs(throughput.mean - 300_000) < 15_000)
    #expect(throughput.standardDeviation < 60_000)
    #expect(try #require(throughput.roundTripTime) >= .milliseconds(40))
  }

  @Test("A peak bit rate that changes counts from the next segment on")
  func peak() async throws {
    let policy = ToldPolicy(
      PreloadPlan(
        current: LoadingBounds(forwardBufferDuration: .milliseconds(500), peakBitRate: 1),
        reviewInterval: .milliseconds(100)))
    let scene = try Scene(policy, slots: 1)
    try await scene.run { scene in
      try await scene.simulation.sleep(for: .seconds(5))
      policy.plan.withLock { $0 = PreloadPlan() }
      try await scene.simulation.sleep(for: .seconds(5))
      #expect(scene.pool.slotReadiness[0].bufferedDuration > .seconds(2.9))
    }
    scene.expectNoRepetition()
    let segments = scene.base.requests.map(\.url.path).filter { $0.hasSuffix(".ts") }
    #expect(segments.first == "/hls-ts/low/segment-0.ts")
    #expect(segments.last == "/hls-ts/high/segment-2.ts")
    // Each segment is had once, whatever its rung is.
    #expect(Set(segments.map { $0.suffix(12) }).count == segments.count)
  }

  @Test("The first rung is low, and the next segment is of the usual one")
  func firstRung() async throws {
    let scene = try Scene(NoPreload(), slots: 1, firstRung: .low)
    try await scene.run { try await $0.simulation.sleep(for: .seconds(10)) }
    let segments = scene.base.requests.map(\.url.path).filter { $0.hasSuffix(".ts") }
    #expect(
      segments == [
        "/hls-ts/low/segment-0.ts", "/hls-ts/high/segment-1.ts", "/hls-ts/high/segment-2.ts",
      ])
  }

  @Test("However soon a plan is to be reviewed, the policy is not asked in a loop")
  func reviews() async throws {
    var plan = Self.plan(nil)
    plan.reviewInterval = .zero
    let policy = ToldPolicy(plan)
    let scene = try Scene(policy)
    try await scene.run { try await $0.simulation.sleep(for: .seconds(10)) }
    let count = policy.asked.withLock { $0.count }
    // Each 50 ms, and for what happens: stages, and a full buffer.
    #expect((150...300).contains(count))
    let unasked = ToldPolicy(PreloadPlan())
    let quiet = try Scene(unasked)
    try await quiet.run { try await $0.simulation.sleep(for: .seconds(10)) }
    #expect(unasked.asked.withLock { $0.count } < 20)
  }

  @Test("Policies that plan take the same course each time", arguments: ["media3", "adaptive"])
  func course(name: String) async throws {
    var courses: [[String]] = []
    for _ in 0..<2 {
      let scene = try Scene(try PreloadPolicies.parse(name), slots: 3, link: "2Mbit/50ms")
      try await scene.run { scene in
        scene.pool.play()
        try await scene.simulation.sleep(for: .seconds(1))
        scene.pool.show(1)
        try await scene.simulation.sleep(for: .seconds(2))
      }
      courses.append(scene.base.keys + ["\(scene.simulation.now)", "\(scene.simulation.stepCount)"])
    }
    #expect(courses[0] == courses[1])
    #expect(courses[0].count > 10)
  }
}
