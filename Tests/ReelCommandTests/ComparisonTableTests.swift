import Foundation
import ReelCore
import ReelReplay
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Walks side by side")
struct ComparisonTableTests {
  @Test("A column for each report, a dash for what it has not")
  func text() throws {
    let table = try ComparisonTable(
      [.sample(label: "three slots"), .empty],
      metrics: ["ttff.p95", "TTFF.hit.max", "stall.count", "slot.memory"])
    #expect(
      table.text == """
                      three slots  empty
        ttff.p95              2 s      -
        ttff.hit.max      0.02 ms      -
        stall.count             3      0
        slot.memory         11 MB      -
        failed: item 6, 404\\u{a}not found (three slots)
        """)
  }

  @Test("The usual rows are metrics that there are")
  func usual() throws {
    for name in ComparisonTable.usualMetrics { #expect(try WalkMetric.named(name).name == name) }
    let lines = ComparisonTable([.empty]).text.split(separator: "\n")
    #expect(lines.count == ComparisonTable.usualMetrics.count + 1)
    #expect(throws: ReelError.self) { try ComparisonTable([], metrics: ["ttff"]) }
  }

  @Test("As JSON")
  func json() throws {
    let json = try ComparisonTable([.sample(label: "a"), .empty]).json()
    let root = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: [[String: Any]]]
    let columns = try #require(root?["comparison"])
    #expect(columns.map { $0["label"] as? String } == ["a", "empty"])
    try #require(!columns.isEmpty)
    #expect((columns[0]["totals"] as? [String: Any])?["stalls"] as? Int == 3)
  }
}
