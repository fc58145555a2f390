import ReelCore
import ReelPool
import ReelLab
import ReelSources
import Testing

@Suite("Plans of walks")
struct WalkPlanTests {
  /// The items of a walk, one after the other, its start first.
  private static func way(_ plan: WalkPlan) -> [Int] { [plan.start] + plan.steps.flatMap(\.path) }

  @Test("Rules that hold for every walk", arguments: 0..<30)
  func properties(seed: UInt64) throws {
    for itemCount in [1, 2, 3, 7, 50] {
      let plan = try WalkPlan(
        itemCount: itemCount, swipeCount: 200, dwell: .exponential(mean: .seconds(5)), seed: seed)
      #expect(plan.swipeCount == (itemCount > 1 ? 200 : 0))
      #expect(Self.way(plan).allSatisfy((0..<itemCount).contains))
      var current = plan.start
      for step in plan.steps {
        #expect(step.dwell >= .zero)
        let direction = step.path[0] - current
        for index in step.path {
          #expect(index - current == direction)
          current = index
        }
        #expect(step.target == current)
        switch step.kind {
        case .next: #expect(step.path.count == 1 && direction == 1)
        case .previous: #expect(step.path.count == 1 && direction == -1)
        case .burst: #expect((2...8).contains(step.path.count) && abs(direction) == 1)
        case .start, .jump: Issue.record("a step of the kind \(step.kind)")
        }
      }
      let looks = plan.steps.reduce(plan.closingDwell) { $0 + $1.dwell }
      #expect(plan.duration >= looks)
      #expect(
        plan.duration - looks == .milliseconds(80) * (plan.swipeCount - plan.steps.count))
    }
  }

  @Test("A long walk goes back, bursts and waits as often and as long as stated")
  func shares() throws {
    let plan = try WalkPlan(
      itemCount: 100_000, swipeCount: 60_000, dwell: .exponential(mean: .seconds(5)), seed: 11)
    let count = Double(plan.steps.count)
    let bursts = Double(plan.steps.filter { $0.kind == .burst }.count)
    let back = Double(plan.steps.filter { $0.kind == .previous }.count)
    #expect(abs(bursts / count - 0.05) < 0.005)
    #expect(abs(back / count - 0.15 * 0.95) < 0.01)
    let mean = plan.steps.reduce(Duration.zero) { $0 + $1.dwell } / .seconds(1) / count
    #expect(abs(mean - 5) < 0.1)
  }

  @Test("The direction turns round at the ends")
  func ends() throws {
    let plan = try WalkPlan(itemCount: 5, swipeCount: 400, dwell: .fixed(.seconds(1)), seed: 2)
    let way = Self.way(plan)
    #expect(way.contains(4))
    // From one end to the other and back, more than once.
    let ends = way.filter { $0 == 0 || $0 == 4 }
    #expect(zip(ends, ends.dropFirst()).filter { $0 != $1 }.count > 10)
  }

  @Test("The same numbers make the same walk, in every process")
  func fixed() throws {
    let dwell = DwellSpec.exponential(mean: .seconds(5))
    let plan = try WalkPlan(itemCount: 12, swipeCount: 30, dwell: dwell, seed: 3)
    #expect(plan == (try WalkPlan(itemCount: 12, swipeCount: 30, dwell: dwell, seed: 3)))
    #expect(plan.steps != (try WalkPlan(itemCount: 12, swipeCount: 30, dwell: dwell, seed: 2)).steps)
    // From a second implementation of the same rules.
    #expect(
      Self.way(plan) == [
        0, 1, 2, 3, 2, 3, 4, 5, 6, 7, 8, 7, 8, 7, 8, 9, 10, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2,
      ])
    #expect(plan.steps.count == 24)
    #expect(plan.steps.prefix(3).map { $0.dwell / .microseconds(1) } == [7_909_249, 4_937_853, 1_418_593])
  }

  @Test("Other dwell times, the same way")
  func sameWay() throws {
    let fixed = try WalkPlan(itemCount: 12, swipeCount: 100, dwell: .fixed(.seconds(2)), seed: 4)
    let random = try WalkPlan(itemCount: 12, swipeCount: 100, dwell: .exponential(mean: .seconds(5)), seed: 4)
    #expect(fixed.steps.map(\.path) == random.steps.map(\.path))
    #expect(fixed.steps.allSatisfy { $0.dwell == .seconds(2) })
    #expect(fixed.closingDwell == .seconds(2))
  }

  @Test("What can't be walked")
  func refused() {
    let dwell = DwellSpec.fixed(.seconds(1))
    #expect(throws: ReelError.self) { try WalkPlan(itemCount: 0, dwell: dwell) }
    #expect(throws: ReelError.self) { try WalkPlan(itemCount: 5, swipeCount: -1, dwell: dwell) }
    #expect(throws: ReelError.self) { try WalkPlan(itemCount: 5, swipeCount: .max, dwell: dwell) }
  }

  @Test("No swipes, and nowhere to go: one look")
  func none() throws {
    let still = try WalkPlan(itemCount: 5, swipeCount: 0, dwell: .fixed(.seconds(3)))
    #expect(still.steps.isEmpty)
    #expect(still.duration == .seconds(3))
    #expect(try WalkPlan(itemCount: 5, dwell: .fixed(.seconds(3))).swipeCount == 20)
  }

  // MARK: - Dwell times

  private static func feed(_ count: Int, retention: [Double]? = nil, seconds: Int? = nil) throws -> Feed {
    var feed = Feed(name: "f")
    let curve = try retention.map { try RetentionCurve($0) }
    for index in 0..<count {
      feed.append(try MediaSource(argument: "/\(index).mp4")) {
        $0.retention = curve
        $0.duration = seconds.map { .seconds($0) }
      }
    }
    return feed
  }

  private static func plan(
    _ feed: Feed, _ spec: String, swipes: Int? = nil, seed: UInt64 = 3
  ) throws -> WalkPlan {
    try WalkPlan(feed, swipeCount: swipes, spec: try SwipeSpec(parsing: spec), seed: seed)
  }

  private static func microseconds(_ plan: WalkPlan) -> [Double] {
    plan.steps.map { $0.dwell / .microseconds(1) }
  }

  @Test("Whatever the dwell times are, the same seed visits the same items")
  func paired() throws {
    let feed = try Self.feed(12, retention: [1, 0.5, 0.5, 0.2], seconds: 10)
    let plans = try ["exp:5s", "fixed:1s", "retention"].map {
      try Self.plan(feed, $0, swipes: 200)
    }
    #expect(
      plans[0]
        == (try WalkPlan(itemCount: 12, swipeCount: 200, dwell: .exponential(mean: .seconds(5)), seed: 3)))
    for plan in plans {
      #expect(plan.steps.map(\.path) == plans[0].steps.map(\.path))
      #expect(plan.steps.map(\.kind) == plans[0].steps.map(\.kind))
    }
  }

  @Test("Dwell times by retention, from a second implementation of the same rules")
  func distributions() throws {
    let feed = try Self.feed(12, retention: [1, 0.5, 0.5, 0.2], seconds: 10)
    let dwells = Self.microseconds(try Self.plan(feed, "retention"))
    #expect(
      dwells.prefix(12) == [
        411_189, 744_961, 2_843_262, 10_000_000, 10_000_000, 10_000_000, 454_607, 303_299, 2_493_321,
        2_334_305, 2_346_662, 10_000_000,
      ])
  }

  @Test("Dwell times by retention follow the curve")
  func retention() throws {
    let feed = try Self.feed(1000, retention: [0.9, 0.5, 0.5, 0.1], seconds: 8)
    let dwells = try Self.plan(feed, "retention", swipes: 40_000).steps.map { $0.dwell / .seconds(1) }
    func share(_ test: (Double) -> Bool) -> Double {
      Double(dwells.filter(test).count) / Double(dwells.count)
    }
    #expect(abs(share { $0 > 0 } - 0.9) < 0.01)
    #expect(abs(share { $0 > 0.5 } - 0.7) < 0.01)
    #expect(share { $0 > 1 && $0 < 2 } == 0)
    #expect(abs(share { $0 > 2.75 } - 0.2) < 0.01)
    #expect(abs(share { $0 == 8 } - 0.1) < 0.01)
    #expect(share { $0 > 3 && $0 < 8 || $0 > 8 } == 0)
    // A curve that goes on past the end of the item, and one that everybody leaves.
    #expect(
      try Self.plan(try Self.feed(1, retention: [1, 1, 1], seconds: 1), "retention").duration == .seconds(2))
    #expect(try Self.plan(try Self.feed(1, retention: [0]), "retention").duration == .zero)
  }

  @Test("Each dwell time is drawn from the curve of the item that is looked at")
  func ownCurve() throws {
    var feed = Feed(name: "f")
    let curve = try RetentionCurve([1])
    for index in 0..<9 {
      feed.append(try MediaSource(argument: "/\(index).mp4")) {
        $0.retention = curve
        $0.duration = .seconds(index + 1)
      }
    }
    let plan = try Self.plan(feed, "retention,bursts=20%,back=30%", swipes: 300)
    var current = plan.start
    for step in plan.steps {
      #expect(step.dwell == .seconds(current + 1))
      current = step.target
    }
    #expect(plan.closingDwell == .seconds(current + 1))
  }

  @Test("An item without a curve, or without the duration that its curve needs, is named")
  func lackingRetention() throws {
    var feed = try Self.feed(2, retention: [1, 0])
    feed.append(try MediaSource(argument: "/bare.mp4"))
    var error = #expect(throws: ReelError.self) { try Self.plan(feed, "retention", swipes: 0) }
    #expect(error?.kind == .badManifest)
    #expect(error?.location == "/bare.mp4")
    #expect(error?.reason == "item 2 has no \"retention\" to draw a dwell time from")
    error = #expect(throws: ReelError.self) {
      try Self.plan(try Self.feed(1, retention: [1, 0.5]), "retention")
    }
    #expect(error?.reason == "item 0 has no \"duration\" to draw a dwell time from")
    #expect(throws: ReelError.self) { try WalkPlan(itemCount: 3, dwell: .retention) }
    #expect(throws: Never.self) { try Self.plan(feed, "fixed:1s") }
  }

  @Test("Shares of swipes back and bursts are those stated")
  func statedShares() throws {
    let feed = try Self.feed(50_000)
    let plan = try Self.plan(feed, "fixed:9s,back=30%,bursts=10%", swipes: 60_000)
    let count = Double(plan.steps.count)
    #expect(abs(Double(plan.steps.filter { $0.kind == .burst }.count) / count - 0.1) < 0.006)
    #expect(abs(Double(plan.steps.filter { $0.kind == .previous }.count) / count - 0.27) < 0.01)
    let onward = try Self.plan(feed, "fixed:1s,back=0%,bursts=0%", swipes: 100)
    #expect(Self.way(onward) == Array(0...100))
    let all = try Self.plan(try Self.feed(10), "fixed:9s,back=100%,bursts=0%", swipes: 100)
    #expect(Set(Self.way(all)) == [0, 1])
    #expect(all.closingDwell == .seconds(9))
  }

  // MARK: - Traces

  private static func plan(_ text: String, itemCount: Int, swipes: Int? = nil) throws -> WalkPlan {
    try WalkPlan(
      itemCount: itemCount, swipeCount: swipes, dwell: .trace(try DwellTrace(text: text, name: "t")))
  }

  @Test("A trace leads where it says")
  func trace() throws {
    let plan = try Self.plan("1 +2\n2\n3 -1\n4 0\n5\n", itemCount: 6)
    #expect(Self.way(plan) == [0, 2, 3, 2, 0, 1])
    #expect(plan.steps.map(\.kind) == [.jump, .next, .previous, .jump, .next])
    #expect(plan.steps.map(\.dwell) == (1...5).map { .seconds($0) })
    // It begins again.
    #expect(plan.closingDwell == .seconds(1))
    #expect(Self.way(try Self.plan("1\n", itemCount: 3, swipes: 6)) == [0, 1, 2, 1, 0, 1, 2])
  }

  @Test("A line without a move turns round at the ends, one to the same item makes the look longer")
  func turns() throws {
    #expect(Self.way(try Self.plan("1 +2\n1\n1 -1\n1\n", itemCount: 3)) == [0, 2, 1, 0, 1])
    let stay = try Self.plan("1 0\n2 0\n4 1\n", itemCount: 3)
    #expect(Self.way(stay) == [0, 1])
    #expect(stay.steps.map(\.dwell) == [.seconds(7)])
    #expect(try Self.plan("1\n2\n", itemCount: 1).duration == .seconds(1))
  }

  @Test(
    "A move out of the feed, by index or by steps: the trace's line",
    arguments: [
      ("1\n1 3\n", 3, 2, "index 3 is outside"), ("1 -1\n", 3, 1, "-1 from item 0 leads outside"),
      ("1 +1\n1 +1\n1 +1\n", 3, 3, "+1 from item 2 leads outside"),
      // At the next time round.
      ("1 +2\n1\n", 3, 1, "+2 from item 1 leads outside"), ("1\n1 -9\n", 4, 2, "-9 leads outside"),
      ("1 +1\n", 1, 1, "+1 leads outside of the feed, which has 1 item"),
    ])
  func outside(text: String, itemCount: Int, line: Int, reason: String) {
    let error = #expect(throws: ReelError.self) { try Self.plan(text, itemCount: itemCount, swipes: 3) }
    #expect(error?.kind == .badManifest)
    #expect(error?.place == .line(line))
    #expect(error?.location == "t")
    #expect(error?.reason.contains(reason) == true, "\(error.map(\.description) ?? "")")
  }
}
