import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Table of a lab")
struct LabTableTests {
  private func table(_ results: [LabResult], baseline: String? = "adjacent") -> [String] {
    LabTable(summary: LabSummary(results, baseline: baseline)).text.split(
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
    #expect(
      lines[0] == "adaptive has the shortest wait at p95: 298 ms to the second frame. "
        + "Against adjacent: -502 [-503, -501] ms, +0.8 [0.8, 0.8] MB fetched.")
    #expect(lines[2] == "6 walks: 1 feed, 1 link, 1 viewer, 1 device, 3 slots, 2 policies, 3 seeds")
    let rows = lines[4...9].map { $0.split(separator: " ").joined(separator: " ") }
    #expect(
      rows == [
        "pool walks p95 ms Δ p95 ms rebuf. % Δ rebuf. % rung Mbit/s fetched MB",
        "adjacent 3 800 - 1.25 - 1.23 8.2",
        "adaptive 3 298 -502 [-503, -501] 0 -1.25 [-1.25, -1.25] 1.23 9",
        "pool Δ fetched MB", "adjacent -", "adaptive 0.8 [0.8, 0.8]",
      ])
    #expect(lines.last?.hasPrefix("Δ: minus adjacent, mean over pairs of walks") == true)
  }

  @Test("Pools that can't be told from the best are named, and an uneven lab says so")
  func answers() {
    let results = (UInt64(1)...6).flatMap { seed in
      let noise = seed % 2 == 0 ? 5.0 : -5
      return [
        LabResult.sample("none", seed: seed, ["second_frame.p95": 900]),
        .sample("adjacent", seed: seed, ["second_frame.p95": 301 + noise]),
        .sample("adaptive", seed: seed, ["second_frame.p95": 300]),
      ]
    }
    let lines = table(results, baseline: "none")
    #expect(
      lines[0]
        == "No wait at p95 is shorter than that of adaptive, 300 ms to the second frame, but these can't be told "
        + "from it: adjacent. Against none: -600 [-600, -600] ms.")
    let uneven = table(Array(results.dropLast()), baseline: "adaptive")
    #expect(uneven.contains { $0.hasSuffix("differences are. none: 6, adjacent: 6, adaptive: 5") })
    let single = table(Array(results.prefix(3)), baseline: "adaptive")
    #expect(
      single[0]
        == "adjacent has the shortest wait at p95 of this walk: 296 ms to the second frame. Against adaptive: -4 ms."
    )
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
    #expect(lines[0] == "adaptive: 250 ms to the second frame at p95.")
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
