import ReelCore
import ReelPool
import ReelReplay
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
        for index in step.path {
          #expect(index - current == step.direction)
          current = index
        }
        #expect(step.target == current)
        switch step.kind {
        case .next: #expect(step.path.count == 1 && step.direction == 1)
        case .previous: #expect(step.path.count == 1 && step.direction == -1)
        case .burst: #expect((2...8).contains(step.path.count))
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
