import Foundation
import ReelCore
@testable import ReelLab
import ReelTestSupport
import Testing

@Suite("Summary of a lab")
struct LabSummaryTests {
  private func pool(_ policy: String, _ slots: Int = 3) -> LabPool {
    LabPool(slotCount: slots, policy: policy)
  }

  @Test("Differences are those of walks that differ only in the policy")
  func pairing() throws {
    let results: [LabResult] = [
      .sample("adjacent", link: "a", seed: 1, ["second_frame.p95": 100, "memory.pool": 5]),
      .sample("adaptive", link: "a", seed: 1, ["second_frame.p95": 90]),
      .sample("adjacent", link: "a", seed: 2, ["second_frame.p95": 200, "memory.pool": 5]),
      .sample("adaptive", link: "a", seed: 2, ["second_frame.p95": 170, "memory.pool": 4]),
      // Without a partner: another link, another device.
      .sample("adjacent", link: "b", seed: 1, ["second_frame.p95": 9_000]),
      .sample("adaptive", link: "a", seed: 1, device: "low", ["second_frame.p95": 7_000]),
      // Repeated.
      .sample("adaptive", link: "a", seed: 1, ["second_frame.p95": 0]),
    ]
    let summary = LabSummary(results, baseline: "adjacent")
    #expect(summary.runCount == 6)
    let overall = try #require(summary.overall)
    #expect(overall.rows.map(\.pool) == [pool("adjacent"), pool("adaptive")])
    #expect(overall.rows.map(\.runCount) == [3, 3])
    let difference = try #require(overall.differences.first)
    #expect(overall.differences.count == 1)
    #expect(difference.pool == pool("adaptive"))
    #expect(difference.baseline == pool("adjacent"))
    #expect(difference.pairCount == 2)
    let p95 = try #require(difference.figures["second_frame.p95"])
    #expect(p95.mean == -20)
    #expect(p95.pairCount == 2 && p95.leftOutCount == 0)
    #expect(p95.interval == .init(lower: -30, upper: -10))
    #expect(p95.excludesZero)
    let memory = try #require(difference.figures["memory.pool"])
    #expect(memory.mean == -1)
    #expect(memory.pairCount == 1 && memory.leftOutCount == 1)
    #expect(memory.interval == nil)
    #expect(difference.figures["rebuffering"] == nil)
    // On demand, and the other way round.
    let reverse = try #require(overall.difference(of: pool("adjacent"), minus: pool("adaptive")))
    #expect(reverse.figures["second_frame.p95"]?.mean == 20)
    #expect(overall.difference(of: pool("none"), minus: pool("adaptive")) == nil)
  }

  @Test("Mean, median and 95th percentile of figures")
  func distributions() throws {
    let results = (1...40).map {
      LabResult.sample("none", seed: $0, $0 % 2 == 0 ? ["stalls.count": Double($0)] : ["stalls.count": .nan])
    }
    let row = try #require(LabSummary(results, baseline: nil).overall?.rows.first)
    let stalls = try #require(row.figures["stalls.count"])
    #expect(row.runCount == 40)
    #expect(stalls.count == 20)
    #expect(stalls.mean == 21)
    #expect(stalls.median == 20)
    #expect(stalls.p95 == 38)
    #expect(row.figures["memory.pool"] == nil)
  }

  @Test("Groups: all walks, those of one dimension, those of all dimensions")
  func groups() throws {
    let one = LabSummary(LabResult.lab(slots: [5, 3], groups: ["x", "y"]), baseline: "adjacent")
    #expect(one.dimensions.slotCounts == [3, 5])
    #expect(one.dimensions.policies == ["adjacent", "media3", "adaptive"])
    #expect(one.groups.map(\.extent) == [.all, .cell, .cell, .cell, .cell])
    #expect(one.groups.map(\.key.linkGroup) == [nil, "x", "x", "y", "y"])
    #expect(one.groups.map(\.key.slotCount) == [nil, 3, 5, 3, 5])
    #expect(one.groups.map(\.runCount) == [96, 24, 24, 24, 24])
    #expect(one.groups[1].rows.map(\.pool.policy) == ["adjacent", "media3", "adaptive"])
    #expect(one.groups[0].rows.map(\.pool.slotCount) == [3, 3, 3, 5, 5, 5])
    // Each pool is compared with the smallest of the baseline's in its group.
    #expect(one.groups.map(\.reference) == [3, 3, 5, 3, 5].map { pool("adjacent", $0) })
    #expect(one.groups[0].differences.map(\.baseline) == Array(repeating: pool("adjacent"), count: 5))
    #expect(one.groups[2].differences.map(\.pool) == [pool("media3", 5), pool("adaptive", 5)])
    let memory = one.groups[0].differences.first { $0.pool == pool("adjacent", 5) }?.figures["memory.pool"]
    #expect(memory?.mean == 1e7)
    #expect(memory?.interval == .init(lower: 1e7, upper: 1e7))

    let lab = LabResult.lab(groups: ["x", "y"])
    let two = LabSummary(
      lab
        + lab.map { result in
          var result = result
          result.run.device = "low"
          return result
        }, baseline: "nothing")
    #expect(two.baseline == nil)
    #expect(two.groups(.dimension).map(\.key.linkGroup) == ["x", "y", nil, nil])
    #expect(two.groups(.dimension).map(\.key.device) == [nil, nil, "mid", "low"])
    #expect(two.groups(.cell).count == 4)
    #expect(two.groups.allSatisfy { $0.differences.isEmpty })
  }

  @Test("The order of the results does not change the figures")
  func order() throws {
    let results = LabResult.lab(groups: ["x", "y"])
    let summary = LabSummary(results, baseline: "adjacent")
    let reversed = LabSummary(results.reversed(), baseline: "adjacent")
    for group in summary.groups {
      let other = try #require(reversed.groups.first { $0.key == group.key })
      #expect(Set(group.rows) == Set(other.rows))
      #expect(Set(group.differences) == Set(other.differences))
    }
    #expect(try JSONLine.string(summary) == JSONLine.string(LabSummary(results, baseline: "adjacent")))
  }

  @Test("JSON has the documented keys")
  func json() throws {
    let text = try JSONLine.string(LabSummary(LabResult.lab(slots: [3, 5]), baseline: "adjacent"))
    let root = try jsonObject(text)
    #expect(
      Set(root.keys) == [
        "baseline", "runs", "planned", "resamples", "feeds", "links", "link_groups", "dwells", "devices",
        "slots", "policies", "seeds", "groups",
      ])
    let groups = try #require(root["groups"] as? [[String: Any]])
    #expect(
      groups.map { Set($0.keys) } == [
        ["runs", "pools", "differences"],
        ["feed", "link_group", "dwell", "device", "slots", "runs", "pools", "differences"],
        ["feed", "link_group", "dwell", "device", "slots", "runs", "pools", "differences"],
      ])
    let row = try #require((groups[0]["pools"] as? [[String: Any]])?.first)
    #expect(Set(row.keys) == ["slots", "policy", "runs", "failed", "figures"])
    let figures = try #require(row["figures"] as? [String: [String: Any]])
    #expect(Set(figures["second_frame.p95"]?.keys ?? [:].keys) == ["runs", "mean", "median", "p95"])
    let difference = try #require((groups[0]["differences"] as? [[String: Any]])?.first)
    #expect(
      Set(difference.keys) == ["slots", "policy", "minus_slots", "minus_policy", "pairs", "figures"])
    let differences = try #require(difference["figures"] as? [String: [String: Any]])
    #expect(
      Set(differences["bytes.wasted"]?.keys ?? [:].keys) == [
        "pairs", "left_out", "mean", "lower", "upper", "excludes_zero",
      ])
  }

  @Test("No results have no groups")
  func empty() throws {
    let summary = LabSummary([], baseline: "adjacent")
    #expect(summary.groups.isEmpty)
    #expect(try JSONLine.string(summary).contains("\"groups\":[]"))
  }
}
