import ReelReplay
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
            .secondFrameP95: 800, .rebufferingRatio: 0.0125, .wastedByteCount: 8_200_000,
            .meanBitRate: 1_234_000,
          ]),
        LabResult.sample(
          "adaptive", seed: seed,
          [
            .secondFrameP95: 300 - Double(seed), .rebufferingRatio: 0, .wastedByteCount: 1_000_000,
            .meanBitRate: 1_234_000,
          ]),
      ]
    }
    let lines = table(results)
    #expect(lines[0] == "6 walks: 1 feed, 1 link, 1 viewer, 1 device, 3 slots, 2 policies, 3 seeds")
    #expect(lines.contains { $0.split(separator: " ") == ["p95", "ms", "rebuf.", "wasted", "Mbit/s"] })
    #expect(
      lines.contains { $0.split(separator: " ") == ["adjacent", "800", "1.25", "%", "8.2", "MB", "1.23"] })
    #expect(
      lines.contains { $0.split(separator: " ") == ["adaptive", "298", "0", "%", "1", "MB", "1.23", "*"] })
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

  @Test("An interval that excludes 0 has decimals that show it")
  func decimals() throws {
    let results = [(UInt64(1), 0.0004), (2, 0.03)].flatMap { seed, stalled in
      [
        LabResult.sample("a", seed: seed, [.rebufferingRatio: 0]),
        .sample("b", seed: seed, [.rebufferingRatio: stalled / 10]),
      ]
    }
    let overall = try #require(LabSummary(results, baseline: "a").overall)
    let difference = try #require(overall.differences.first?.figures[.rebufferingRatio])
    #expect(LabResult.Figure.rebufferingRatio.plain(difference) == "0.152 [0.004, 0.3]")
    #expect(LabResult.Figure.secondFrameP95.plain([-0.01, 1234.6]) == ["0", "1235"])
  }

  @Test("Names are printable, and a lab without results has a line")
  func edges() {
    #expect(!table([.sample("\u{1b}[31m", [.secondFrameP95: 1])]).joined().contains("\u{1b}"))
    #expect(table([])[0].hasPrefix("0 walks"))
  }
}
