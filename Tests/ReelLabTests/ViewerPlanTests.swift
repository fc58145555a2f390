import ReelCore
import ReelLab
import ReelPool
import ReelSources
import ReelTestSupport
import Testing

@Suite("The plan of viewers", .hangLimit)
struct ViewerPlanTests {
  private func plan(
    viewers: Int = 1000, stay: DwellSpec? = nil, _ choice: ViewerPlan.Choice = .inOrder(count: 3),
    decodeShare: Double = 0, seed: UInt64 = 0, shard: (index: Int, count: Int) = (0, 1)
  ) throws -> ViewerPlan {
    try ViewerPlan(
      viewerCount: viewers, ramp: .seconds(30), duration: .seconds(600), stay: stay, choice: choice,
      decodeShare: decodeShare, seed: seed, shard: shard)
  }

  private func feed(_ count: Int) throws -> Feed {
    var feed = Feed(name: "items")
    for index in 0..<count { feed.append(try MediaSource(argument: "/\(index).mp4")) }
    return feed
  }

  @Test("A viewer comes and watches the same in any shard, and each is in one shard")
  func shards() throws {
    let stay = DwellSpec.exponential(mean: .seconds(90))
    let choice = ViewerPlan.Choice.weighted([3, 1, 2])
    let whole = try plan(viewers: 100, stay: stay, choice, decodeShare: 0.1)
    var viewers: [Int] = []
    for index in 0..<3 {
      let part = try plan(viewers: 100, stay: stay, choice, decodeShare: 0.1, shard: (index, 3))
      viewers += part.viewers
      for viewer in part.viewers {
        #expect(part.arrival(of: viewer) == whole.arrival(of: viewer))
        #expect(part.decodes(viewer) == whole.decodes(viewer))
        #expect(part.session(2, of: viewer) == whole.session(2, of: viewer))
      }
    }
    #expect(viewers.sorted() == Array(0..<100))
    #expect(Array(whole.viewers) == Array(0..<100))
  }

  @Test("Viewers come evenly within the ramp")
  func ramp() throws {
    let plan = try plan(viewers: 60)
    #expect(plan.viewers.map { plan.arrival(of: $0) } == (0..<60).map { .milliseconds(500 * $0) })
  }

  @Test("Sources come in the order of the list, also for a viewer that comes again")
  func order() throws {
    let plan = try plan(viewers: 4)
    #expect((0..<4).map { plan.session(0, of: $0).looks.map(\.source) } == [[0], [1], [2], [0]])
    #expect((0..<4).map { plan.session($0, of: 1).looks.map(\.source) } == [[1], [2], [0], [1]])
    #expect(plan.session(0, of: 0).looks.map(\.dwell) == [nil])
    #expect(plan.session(0, of: 0).stay == nil)
  }

  @Test("Sources are drawn by their weights")
  func weights() throws {
    let plan = try plan(.weighted([3, 0, 1]))
    let sources = plan.viewers.flatMap { plan.session(0, of: $0).looks.map(\.source) }
    #expect(sources.count == 1000)
    #expect(!sources.contains(1))
    #expect((680...820).contains(sources.count { $0 == 0 }))
  }

  @Test("A share of the viewers decodes, to the nearest whole number")
  func decoding() throws {
    for (share, count) in [(0.0, 0), (0.01, 10), (0.0304, 30), (1, 1000)] {
      let plan = try plan(decodeShare: share)
      #expect(plan.viewers.count { plan.decodes($0) } == count)
    }
    let (one, other) = (try plan(decodeShare: 0.1), try plan(decodeShare: 0.1, seed: 1))
    #expect(one.viewers.filter { one.decodes($0) } != other.viewers.filter { other.decodes($0) })
  }

  @Test("Sessions last as long as the stay says")
  func sessions() throws {
    let fixed = try plan(stay: .fixed(.seconds(5)))
    #expect(fixed.session(0, of: 7).stay == .seconds(5))
    let drawn = try plan(stay: .exponential(mean: .seconds(90)))
    let sessions = drawn.viewers.map { drawn.session(0, of: $0) }
    let mean = sessions.compactMap(\.stay).reduce(.zero, +) / sessions.count
    #expect(mean > .seconds(80) && mean < .seconds(100))
  }

  @Test("A feed is swiped through once, with the times of its swipes")
  func swipes() throws {
    let swipes = try SwipeSpec(
      dwell: .fixed(.seconds(2)), shares: try SwipeShares(back: 0, bursts: 0))
    let plan = try plan(.feed(try feed(4), swipes))
    for viewer in [0, 999] {
      let looks = plan.session(0, of: viewer).looks
      #expect(looks.map(\.source) == [0, 1, 2, 3])
      #expect(looks.map(\.dwell) == [Duration?](repeating: .seconds(2), count: 4))
    }
    // Each viewer draws times of its own.
    let drawn = try SwipeSpec(
      dwell: .exponential(mean: .seconds(2)), shares: try SwipeShares(back: 0, bursts: 0))
    let other = try self.plan(.feed(try feed(4), drawn))
    #expect(other.session(0, of: 0).looks != other.session(0, of: 1).looks)
  }

  @Test("What can't be planned is refused")
  func refusals() throws {
    func expectRefusal(_ body: () throws -> ViewerPlan) {
      #expect(throws: ReelError.self) { try body() }
    }
    expectRefusal { try plan(viewers: 0) }
    expectRefusal { try plan(.inOrder(count: 0)) }
    expectRefusal { try plan(.weighted([1, -1])) }
    expectRefusal { try plan(.weighted([0, 0])) }
    expectRefusal { try plan(.weighted([])) }
    expectRefusal { try plan(stay: .retention) }
    // Its items have no curves.
    let swipes = try SwipeSpec(dwell: .retention)
    expectRefusal { try plan(.feed(try feed(2), swipes)) }
    expectRefusal { try plan(.feed(try feed(0), try SwipeSpec(dwell: .fixed(.seconds(1))))) }
  }
}
