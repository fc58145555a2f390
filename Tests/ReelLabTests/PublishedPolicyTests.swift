import ReelPlayback
import Testing

@testable import ReelPool
@testable import ReelLab

@Suite("Policies after published ones")
struct PublishedPolicyTests {
  private static let rungs = [400_000, 1_000_000, 2_500_000].map { ItemRung(id: "\($0)", bitRate: $0) }

  /// - Parameter retention: Of the current item and of those ahead.
  private static func situation(
    slots: Int = 3, retention: [[Double]], throughput: Double? = nil, rungs: [ItemRung] = []
  ) -> PoolSituation {
    var situation = PoolSituation(slotCount: slots, itemCount: 100, currentIndex: 50)
    situation.throughput = throughput.map { ThroughputEstimate(mean: $0) }
    situation.items = retention.enumerated().map { distance, curve in
      var item = PoolSituation.Item(index: 50 + distance, distance: distance)
      item.retention = curve
      item.duration = .seconds(curve.count)
      item.rungs = rungs
      return item
    }
    return situation
  }

  @Test("media3 goes by distance")
  func media3() {
    let situation = PoolSituation(slotCount: 9, itemCount: 100, currentIndex: 50)
    let demo = Media3Preload().plan(in: situation).neighbours
    #expect(demo.map(\.distance) == [1, -1, 2, -2, 3, -3])
    #expect(demo.allSatisfy { $0.target.stage == .buffered && $0.target.bufferDuration == .seconds(1) })
    let compose = Media3Preload(.compose).plan(in: situation).neighbours
    #expect(compose.map(\.distance) == [1, -1, 2, -2])
    #expect(compose.map(\.target.bufferDuration) == [3, 3, 1, 1].map { Duration.seconds($0) })
    let guide = Media3Preload(.guide).plan(in: situation).neighbours
    #expect(guide.map(\.distance) == [1, -1, 2, -2, 3, -3, 4, -4])
    #expect(
      guide.map(\.target.stage) == [
        .buffered, .buffered, .initialization, .initialization, .manifest, .manifest, .manifest, .manifest,
      ])
    #expect(guide[0].target.bufferDuration == .seconds(3))
  }

  @Test("Retention between its seconds, for those who have watched, and after its end")
  func watching() {
    var item = PoolSituation.Item(index: 0, distance: 0)
    item.retention = [0.8, 0.8, 0.4, 0.6, 0]
    let model = WatchModel(item, history: ViewingHistory())
    #expect(model.survival(-1) == 1)
    #expect(model.survival(1) == 1)
    #expect(model.survival(1.5) == 0.75)
    #expect(model.survival(3) == 0.5)
    #expect(model.survival(1, after: 2) == 1)
    #expect(model.survival(1.5, after: 2) == 0.5)
    #expect(model.survival(1000) == 0)
    #expect(model.survival(1, after: 1000) == 0)
    item.retention = nil
    item.duration = .seconds(20)
    let unknown = WatchModel(item, history: ViewingHistory())
    #expect(abs(unknown.survival(10) - 0.3679) < 0.001)
    #expect(unknown.survival(20) == 0)
  }

  @Test("pdas: the buffer ends where watching on is too unlikely for the throughput")
  func pdasBuffers() {
    #expect(abs(PDASPreload.leastProbability(rate: 1) - 0.2128) < 0.0001)
    #expect(abs(PDASPreload.leastProbability(rate: 10) - 0.7299) < 0.0001)
    let retention = [[1, 1, 1, 0.5, 0.5, 0.1, 0], [1, 0.9, 0.4, 0.1, 0], [1, 0.1, 0]]
    let fast = PDASPreload().plan(in: Self.situation(retention: retention, throughput: 10e6))
    #expect(fast.current.forwardBufferDuration == .seconds(3))
    #expect(fast.neighbours.map(\.distance) == [1, 2])
    #expect(fast.neighbours.map(\.target.bufferDuration) == [.seconds(2), .seconds(1)])
    #expect(fast.reviewInterval == .milliseconds(500))
    let slow = PDASPreload().plan(in: Self.situation(retention: retention, throughput: 1e6))
    #expect(slow.current.forwardBufferDuration == .seconds(5))
    #expect(slow.neighbours.map(\.target.bufferDuration) == [.seconds(3), .seconds(1)])
    // Unmeasured: 0.65, and no rung.
    let unknown = PDASPreload().plan(in: Self.situation(retention: retention, rungs: Self.rungs))
    #expect(unknown.current == LoadingBounds(forwardBufferDuration: .seconds(3)))
  }

  @Test("pdas: nothing is wanted beyond what is loaded, and a loaded item keeps its slot")
  func pdasLoaded() {
    var situation = Self.situation(retention: [[1, 0.9, 0.1, 0], [1, 0.1, 0]], throughput: 10e6)
    situation.items[0].isLoadedToEnd = true
    situation.items[0].bufferedDuration = .seconds(2)
    situation.items[0].position = .seconds(2)
    situation.items[1].stage = .buffered
    situation.items[1].bufferedDuration = .milliseconds(1500)
    let plan = PDASPreload().plan(in: situation)
    #expect(plan.current.forwardBufferDuration == .seconds(2))
    #expect(plan.neighbours.first?.target.bufferDuration == .milliseconds(1500))
  }

  @Test("pdas: the rung with the best expected score")
  func pdasRungs() {
    let sure = [Double](repeating: 1, count: 30)
    let fast = PDASPreload().plan(
      in: Self.situation(
        retention: [sure, [1, 0.1, 0.1, 0.1, 0.1, 0.1, 0]], throughput: 20e6, rungs: Self.rungs))
    #expect(fast.current.peakBitRate == 2_500_000)
    // Most of it is never watched: bytes cost more than they give.
    #expect(fast.neighbours.first?.target.peakBitRate == 400_000)
    let slow = PDASPreload().plan(
      in: Self.situation(retention: [sure], throughput: 1e6, rungs: Self.rungs))
    #expect(slow.current.peakBitRate == 1_000_000)
  }

  @Test("dashlet: a current item that is watched for sure goes first, and alone")
  func dashletSure() {
    let plan = DashletPreload().plan(
      in: Self.situation(
        retention: [[Double](repeating: 1, count: 12), [1, 0.5, 0.5, 0]], throughput: 10e6, rungs: Self.rungs)
    )
    // The order looks 10 s ahead, and the next item begins after 12 s.
    #expect(plan.current.forwardBufferDuration == .seconds(10))
    #expect(plan.neighbours.isEmpty)
  }

  @Test("dashlet: the next item's first chunk goes before unlikely ones of the current item")
  func dashletFlick() throws {
    let plan = DashletPreload().plan(
      in: Self.situation(
        retention: [[1, 0.1, 0.1, 0.1, 0], [1, 0.8, 0.5, 0.2, 0], [1, 0.8, 0.5, 0.2, 0]], throughput: 10e6,
        rungs: Self.rungs))
    #expect(plan.current.forwardBufferDuration == .seconds(1))
    #expect(plan.neighbours.first?.distance == 1)
    #expect(try #require(plan.neighbours.first).target.bufferDuration >= .seconds(1))
    #expect(plan.neighbours.map(\.distance).sorted() == [1, 2])
    let slow = DashletPreload().plan(
      in: Self.situation(retention: [[1, 0.1, 0.1, 0]], throughput: 1e5, rungs: Self.rungs))
    #expect(slow.current.peakBitRate == 400_000)
  }

  @Test("dashlet: what is loaded is not wanted again, and keeps its slot")
  func dashletLoaded() {
    var situation = Self.situation(retention: [[1, 1, 0], [1, 1, 0], [1, 1, 0]], throughput: 10e6)
    for index in situation.items.indices {
      situation.items[index].stage = .buffered
      situation.items[index].isLoadedToEnd = true
      situation.items[index].bufferedDuration = .seconds(3)
    }
    let plan = DashletPreload().plan(in: situation)
    #expect(plan.current.forwardBufferDuration == .seconds(3))
    #expect(plan.neighbours.map(\.target.bufferDuration) == [.seconds(3), .seconds(3)])
    // Nothing known, no feed data, no slots but one: a plan all the same.
    let bare = PoolSituation(slotCount: 1, itemCount: 1, currentIndex: 0)
    #expect(DashletPreload().plan(in: bare).neighbours.isEmpty)
    #expect(PDASPreload().plan(in: bare).neighbours.isEmpty)
  }

  @Test("The rung of a first segment")
  func firstRung() {
    let start = Duration.milliseconds(500)
    func peak(_ rung: FirstRung, _ isAwaited: Bool, _ rate: Double?) -> Int? {
      rung.peakBitRate(
        isAwaited: isAwaited, throughput: rate.map { ThroughputEstimate(mean: $0) }, start: start)
    }
    #expect(peak(.adapted, true, 1e6) == nil)
    #expect(peak(.low, false, 1e9) == 1)
    #expect(peak(.auto, true, nil) == 1)
    #expect(peak(.auto, false, nil) == nil)
    #expect(peak(.auto, true, 10e6) == 2_000_000)
    #expect(peak(.auto, false, 10e6) == 10_000_000)
  }
}
