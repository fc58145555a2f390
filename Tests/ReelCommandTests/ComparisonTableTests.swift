import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Walks side by side")
struct ComparisonTableTests {
  @Test("A column for each report, a dash for what it has not")
  func text() throws {
    let reports: [WalkReport] = [.sample(label: "three slots"), .empty]
    let lines = reports.table(corner: "players and policy").lines + reports.failureLines
    #expect(lines.count == WalkFigures.all(in: .comparison).count + 2)
    #expect(lines[0] == "players and policy       three slots  empty")
    for line in [
      "first_frame.p95                  2 s      -", "first_frame.hit.p99          0.02 ms      -",
      "stalls.count                       3      0", "memory.slot                    11 MB      -",
      "failed: item 6, 404\\u{a}not found (three slots)",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
  }
}
