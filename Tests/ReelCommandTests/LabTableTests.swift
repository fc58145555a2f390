import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Table of a lab")
struct LabTableTests {
  private func table(_ results: [LabResult], baseline: String? = "adjacent") -> [String] {
    LabTable(LabSummary(results, baseline: baseline)).text.split(
      separator: "\n", omittingEmptySubsequences: false
    ).map(String.init)
  }

  @Test("Figures of each pool, and differences from the baseline with intervals")
  func small() throws {
    let results = (1...3).flatMap { seed in
      [
        LabResult.sample(
          "adjacent", seed: seed,
          [
            "second_frame.p95": 800, "rebuffering": 0.0125, "bytes.wasted": 8_200_000,
            "rung.mean": 1_234_000,
          ]),
        LabResult.sample(
          "adaptive", seed: seed,
          [
            "second_frame.p95": 300 - Double(seed), "rebuffering": 0, "bytes.wasted": 1_000_000,
            "rung.mean": 1_234_000,
          ]),
      ]
    }
    let lines = table(results)
    #expect(lines[0] == "6 walks: 1 feed, 1 link, 1 viewer, 1 device, 3 slots, 2 policies, 3 seeds")
    #expect(lines.contains { $0.split(separator: " ") == ["p95", "ms", "rebuf.", "Mbit/s", "wasted"] })
    #expect(
      lines.contains { $0.split(separator: " ") == ["adjacent", "800", "1.25", "%", "1.23", "8.2", "MB"] })
    #expect(
      lines.contains { $0.split(separator: " ") == ["adaptive", "298", "0", "%", "1.23", "1", "MB", "*"] })
    #expect(lines.contains("  Difference from adjacent: means of pairs, 95 % intervals"))
    #expect(
      lines.contains {
        $0.split(separator: " ").joined(separator: " ")
          == "adaptive -502 [-503, -501] -1.25 [-1.25, -1.25] -7.2 [-7.2, -7.2]"
      })
  }

  @Test("At most 100 columns, and a line for each of many groups")
  func many() {
    let results = LabResult.lab(
      policies: ["adjacent", "media3", "a policy with a very long name indeed, that needs its place"],
      slots: [3, 5], groups: ["fcc", "hsdpa", "oboe", "puffer"])
    let lines = table(results)
    #expect(lines.allSatisfy { $0.count <= 100 }, "\(lines.filter { $0.count > 100 })")
    #expect(lines.contains("  --json and --report have all figures of each group."))
    #expect(lines.count { $0.hasPrefix("  puffer, 5 slots ") } == 1)
    #expect(lines.contains("  Pool sizes: means of pairs and 95 % intervals"))
    #expect(lines == table(results))
  }

  @Test("With one pool, the groups are compared: a line for each, without marks")
  func onePool() {
    let feeds = [("old", 300.0), ("new", 200)]
    let results = feeds.flatMap { feed, delay in
      [UInt64(1), 2].map { LabResult.sample("adaptive", seed: $0, feed: feed, ["second_frame.p95": delay]) }
    }
    let lines = table(results, baseline: nil)
    #expect(lines.contains("Groups: means over walks"))
    for (feed, delay) in [("old", "300"), ("new", "200")] {
      #expect(lines.contains { $0.split(separator: " ") == [Substring(feed), Substring(delay)] }, "\(lines)")
    }
    #expect(!lines.contains { $0.contains("*") || $0.contains("pairs") })
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
