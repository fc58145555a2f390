import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Table of a lab")
struct LabTableTests {
  private func table(_ results: [LabResult], baseline: String? = "adjacent") -> [String] {
    LabTable(summary: LabSummary(results, baseline: baseline), answer: "The answer.").text.split(
      separator: "\n", omittingEmptySubsequences: false
    ).map(String.init)
  }

  @Test(
    "The answer, the extent, and a row for each pool with differences from the baseline and their intervals")
  func small() throws {
    let results = (1...3).flatMap { seed in
      [
        LabResult.sample(
          "adjacent", seed: seed,
          [
            "second_frame.p95": 800, "rebuffering": 0.0125, "bytes.fetched": 8_200_000,
            "rung.mean": 1_234_000,
          ]),
        LabResult.sample(
          "adaptive", seed: seed,
          [
            "second_frame.p95": 300 - Double(seed), "rebuffering": 0, "bytes.fetched": 9_000_000,
            "rung.mean": 1_234_000,
          ]),
      ]
    }
    let lines = table(results)
    #expect(lines[0] == "The answer.")
    #expect(lines[2] == "6 walks: 1 feed, 1 link, 1 dwell time, 1 device, 3 slots, 2 policies, 3 seeds")
    let rows = lines[4...9].map { $0.split(separator: " ").joined(separator: " ") }
    #expect(
      rows == [
        "pool walks p95 ms Δ p95 ms rebuf. % Δ rebuf. % rung Mbit/s fetched MB",
        "adjacent 3 800 - 1.25 - 1.23 8.2",
        "adaptive 3 298 −502 [−503, −501] 0 −1.25 [−1.25, −1.25] 1.23 9",
        "pool Δ fetched MB", "adjacent -", "adaptive 0.8 [0.8, 0.8]",
      ])
    #expect(lines.last?.hasPrefix("Δ: minus adjacent, mean over pairs of walks") == true)
  }

  @Test("Pools with different numbers of walks are named")
  func uneven() {
    let results = (UInt64(1)...6).flatMap { seed in
      ["none", "adjacent", "adaptive"].map { LabResult.sample($0, seed: seed, ["second_frame.p95": 300]) }
    }
    let lines = table(Array(results.dropLast()), baseline: "adaptive")
    #expect(lines.contains { $0.hasSuffix("differences are. none: 6, adjacent: 6, adaptive: 5") })
  }

  @Test("Failed items are named, with the walks in which they failed")
  func failures() {
    var results = (UInt64(1)...2).map { LabResult.sample("none", seed: $0, ["second_frame.p95": 300]) }
    results[0].failedItems = [.init(index: 6, id: "a", error: "404\nnot found")]
    results[1].failedItems = [results[0].failedItems?[0], .init(index: 7, id: "b", error: "gone")].compactMap(
      \.self)
    let lines = table(results, baseline: nil)
    #expect(lines.contains("failed: item 6, 404\\u{a}not found"))
    #expect(lines.contains("failed: item 7, gone (in 1 of 2 walks)"))
  }

  @Test("A lab of pools alone has a row for each pool, once")
  func pools() {
    let results = [3, 5].map { LabResult.sample("adaptive", slots: $0, ["second_frame.p95": 300]) }
    let rows = table(results, baseline: "adaptive").filter { $0.contains("adaptive") && $0.contains("300") }
    #expect(rows.count == 2, "\(rows)")
  }

  @Test("At most 100 columns, and a limit to the rows")
  func many() {
    let results = LabResult.lab(
      policies: ["adjacent", "media3", "a policy with a very long name indeed, that needs its place"],
      slots: [3, 5], groups: ["fcc", "hsdpa", "oboe", "puffer"])
    let lines = table(results)
    let rows = lines[4...].prefix { !$0.isEmpty }
    #expect(rows.count > 30 && rows.allSatisfy { $0.count <= 100 }, "\(rows.filter { $0.count > 100 })")
    #expect(lines.contains { $0.hasPrefix("oboe, 5 slots ") && $0.contains("5 a policy with") })
    let long = table(LabResult.lab(groups: (1...20).map { "g\($0)" }))
    #expect(long.contains("and 23 more rows, which --json and --report have"))
    #expect(lines == table(results))
  }

  @Test("With one pool, the groups are compared: a line for each")
  func onePool() {
    let feeds = [("old", 300.0), ("new", 200)]
    let results = feeds.flatMap { feed, delay in
      [UInt64(1), 2].map { LabResult.sample("adaptive", seed: $0, feed: feed, ["second_frame.p95": delay]) }
    }
    let lines = table(results, baseline: nil)
    for row in ["group walks p95 ms", "all walks 4 250", "old 2 300", "new 2 200"] {
      #expect(lines.contains { $0.split(separator: " ").joined(separator: " ") == row }, "\(lines)")
    }
    #expect(!lines.contains { $0.contains("Δ") })
  }

  @Test("An interval that excludes 0 has decimals that show it")
  func decimals() throws {
    let results = [(UInt64(1), 0.0004), (2, 0.03)].flatMap { seed, stalled in
      [
        LabResult.sample("a", seed: seed, ["rebuffering": 0]),
        .sample("b", seed: seed, ["rebuffering": stalled / 10]),
      ]
    }
    let overall = try #require(LabSummary(results, baseline: "a").overall)
    let difference = try #require(overall.differences.first?.figures["rebuffering"])
    #expect(WalkFigures["rebuffering"].plain(difference) == "0.152 [0.004, 0.3]")
    #expect(WalkFigures["second_frame.p95"].plain([-0.01, 1234.6]) == ["0", "1235"])
  }

  @Test("Names are printable, and a lab without results has a line")
  func edges() {
    #expect(!table([.sample("\u{1b}[31m", ["second_frame.p95": 1])]).joined().contains("\u{1b}"))
    #expect(table([])[0].hasPrefix("0 walks"))
  }
}
