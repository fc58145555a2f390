@testable import ReelLab
import ReelTestSupport
import Testing

@Suite("The answer of a lab")
struct LabAnswerTests {
  private typealias Arm = (policy: String, waits: [Double], bytes: Double)

  /// The walks of some pools of one size: the waits of each seed, and the bytes of 20 swipes.
  private func results(_ arms: [Arm], slots: Int = 3, link: String = "lte") -> [LabResult] {
    arms.flatMap { arm in
      arm.waits.enumerated().map { number, wait in
        LabResult.sample(
          arm.policy, slots: slots, link: link, group: link, seed: UInt64(number + 1),
          ["second_frame.mean": wait, "second_frame.p95": wait, "bytes.fetched": arm.bytes, "swipes": 20])
      }
    }
  }

  private static let preloads = [
    "none": "preloading nothing", "ahead:1": "preloading one item ahead (3 s)",
    "ahead:2": "preloading two items ahead (3 s each)",
  ]

  private func answer(_ results: [LabResult], player: String? = "hls.js", planned: Int? = nil) -> String {
    let summary = LabSummary(results, baseline: results.first?.run.policy, plannedCount: planned)
    var scene = LabScene(player: player, links: "slow start, TLS, DNS", settle: .milliseconds(250))
    for result in results where player != nil {
      let pool = LabPool(slotCount: result.run.slotCount, policy: result.run.policy)
      scene.preloads[pool] = Self.preloads[result.run.policy]
    }
    return LabAnswer(summary, scene).text
  }

  private static let conditions =
    "Simulated (links: slow start, TLS, DNS): waits from the settle, 250 ms after the drag, to the second frame."

  @Test("The choice that is worth its bytes, its gain, and what the next one adds")
  func choice() {
    let noise: [Double] = [-6, 4, -9, 2, -8, 1, -5, 3]
    let found = results([
      ("none", noise.map { 1100 + 10 * $0 }, 10e6), ("ahead:1", noise.map { _ in 130 }, 12.4e6),
      ("ahead:2", noise.map { 130 + 2 * $0 }, 15e6),
    ])
    let text = answer(found)
    #expect(
      text.hasPrefix(
        "With hls.js on lte, preloading one item ahead (3 s) shortens the wait at p95 by 948 ms ["))
    #expect(
      text.contains(
        "], from 1.08 s to 130 ms, for 1.2 MB more per 10 swipes; a second item ahead saves another 4"))
    #expect(
      text.contains(
        ", which can't be told from 0, for 1.3 MB more per 10 swipes. From 8 walks for each choice,"))
    #expect(text.hasSuffix("with 95 % intervals. \(Self.conditions)"))
  }

  @Test("Few walks are not sure, and one has no interval")
  func certainty() {
    func found(_ count: Int) -> String {
      answer(
        results([
          ("none", (0..<count).map { 900 + Double($0) }, 10e6),
          ("ahead:1", (0..<count).map { _ in 100 }, 12e6),
        ]))
    }
    #expect(
      found(1).hasPrefix(
        "With hls.js on lte, preloading one item ahead (3 s) shortens the wait at p95 by 800 ms, from 900 ms to 100 ms, "
          + "for 1 MB more per 10 swipes. From one walk for each choice, so without an interval."))
    #expect(found(3).contains(" by 801 ms [800, 802], "))
    #expect(
      found(3).contains(
        ". From only 3 walks for each choice, so the 95 % intervals are too narrow to rely on."))
    #expect(found(6).contains(". From 6 walks for each choice, with 95 % intervals."))
  }

  @Test("Equal waits are the same, whatever they cost")
  func same() {
    let equal = [120.0, 130, 140]
    #expect(
      answer(results([("none", equal, 10e6), ("ahead:1", equal, 12e6)])).hasPrefix(
        "With hls.js on lte, the wait at p95 is the same, 130 ms, with preloading nothing and preloading one item ahead (3 s); "
          + "preloading nothing fetches least."))
    let text = answer(results([("none", [900], 1e7), ("ahead:1", [120], 1e7), ("ahead:2", [120], 1e7)]))
    #expect(
      text.contains("to 120 ms, for the same bytes; a second item ahead waits the same, for the same bytes."),
      "\(text)")
    #expect(!text.contains("told"))
  }

  @Test("A gain that no viewer notices is not worth bytes")
  func unnoticed() {
    let text = answer(results([("none", [108, 108], 10e6), ("ahead:1", [100, 100], 12e6)]))
    #expect(
      text.hasPrefix(
        "With hls.js on lte, preloading nothing is enough, with a wait at p95 of 108 ms; "
          + "preloading one item ahead (3 s) saves 8 ms [8, 8], for 1 MB more per 10 swipes."), "\(text)")
  }

  @Test("The mean wait decides, and for as many bytes the wait at p95")
  func median() {
    func found(_ policy: String, p50: Double, p95: Double, bytes: Double) -> [LabResult] {
      [-40.0, 40, -30, 30, -20, 20].enumerated().map { number, noise in
        .sample(
          policy, link: "lte", group: "lte", seed: UInt64(number + 1),
          [
            "second_frame.mean": p50, "second_frame.p50": p50,
            "second_frame.p95": p95 + (policy == "none" ? noise : 0),
            "bytes.fetched": bytes, "swipes": 20,
          ])
      }
    }
    let text = answer(
      found("none", p50: 740, p95: 970, bytes: 10e6) + found("ahead:1", p50: 120, p95: 965, bytes: 12e6))
    #expect(
      text.hasPrefix(
        "With hls.js on lte, preloading one item ahead (3 s) waits 965 ms at p95, which can't be told from 970 ms of "
          + "preloading nothing, and saves 620 ms at p50, for 1 MB more per 10 swipes."), "\(text)")
    let equal = answer(
      found("none", p50: 120, p95: 970, bytes: 10e6) + found("ahead:1", p50: 120, p95: 930, bytes: 10.05e6))
    #expect(equal.contains("from 970 ms to 930 ms, for about the same bytes."), "\(equal)")
  }

  @Test("One pool states its players, its wait and its bytes")
  func single() {
    #expect(
      answer(results([("adaptive", [1020], 10e6)]), player: nil)
        == "With Reel's own pool of 3 players on lte, adaptive leaves a wait at p95 of 1.02 s and fetches 5 MB per 10 swipes. "
        + "From one walk, so without an interval. \(Self.conditions)")
    let sizes = results([("adaptive", [900], 10e6)]) + results([("adaptive", [90], 12e6)], slots: 5)
    #expect(
      answer(sizes, player: nil).hasPrefix(
        "With Reel's own pool on lte, adaptive with 5 players shortens the wait at p95 by 810 ms, from 900 ms to 90 ms, "
          + "for 1 MB more per 10 swipes."))
  }

  @Test("An interrupted lab says how far it came")
  func interrupted() {
    let text = answer(results([("none", [900], 1e7), ("ahead:1", [120], 1e7)]), planned: 144)
    #expect(
      text.hasPrefix("So far, 2 of 144 walks: with hls.js on lte, preloading one item ahead"), "\(text)")
  }

  @Test("Links are named up to four")
  func links() {
    let names = ["3g", "lte", "wifi", "dsl", "fibre"]
    func text(_ count: Int) -> String {
      answer(names.prefix(count).flatMap { results([("none", [9], 1e6)], link: $0) })
    }
    #expect(
      text(3).hasPrefix("With hls.js on 3g, lte and wifi, preloading nothing leaves a wait at p95 of 9 ms"))
    #expect(text(5).hasPrefix("With hls.js on 5 links, "))
  }

  @Test("Failed items and walks are named, and nothing else is said if all failed")
  func failures() {
    var found = results([("none", [900, 900], 1e7), ("ahead:1", [120, 120], 1e7)])
    for place in found.indices {
      found[place].failedItems = [3, 5].map { .init(index: $0, id: "\($0)", error: "404") }
    }
    #expect(answer(found).hasSuffix(" 2 items failed and have no waits: item 3 and item 5."))
    for place in found.indices { found[place].figures = ["failed": 2] }
    #expect(
      answer(found)
        == "With hls.js on lte, nothing could be played, so there are no waits. \(Self.conditions) "
        + "2 items failed and have no waits: item 3 and item 5.")
    found = results([("none", [900, 900], 1e7)])
    found[1].figures = [:]
    found[1].error = "no link"
    #expect(answer(found).hasSuffix(" 1 of 2 walks failed and is left out."))
    found[0] = found[1]
    #expect(
      answer([found[0]]).hasPrefix("With hls.js on lte, nothing could be played, so there are no waits."))
    #expect(answer([]).isEmpty)
  }

  @Test(
    "Times",
    arguments: [
      (1020.0, "1.02 s"), (999.6, "1 s"), (999.4, "999 ms"), (4.24, "4.2 ms"), (-0.01, "0 ms"),
      (-70.6, "−71 ms"),
    ])
  func times(milliseconds: Double, text: String) { #expect(LabAnswer.time(milliseconds) == text) }
}
