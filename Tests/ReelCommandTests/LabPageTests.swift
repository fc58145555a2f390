import Foundation
import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand

#if canImport(FoundationXML)
  import FoundationXML
#endif

@Suite("Page of a lab")
struct LabPageTests {
  private static let hostile = "<script>alert(1)</script>\u{202e}\"'&\u{1b}[31m"

  private func html(_ results: [LabResult], baseline: String? = "adjacent") -> String {
    LabPage(
      summary: LabSummary(results, baseline: baseline), results: results,
      run: RunDescription(arguments: ["lab", "lab.json"]), answer: "The answer."
    ).html
  }

  private func images(of html: String) -> [String] {
    html.matches(of: /<svg.*?<\/svg>/.dotMatchesNewlines()).map { String($0.output) }
  }

  private func isXML(_ text: String) -> Bool { XMLParser(data: Data(text.utf8)).parse() }

  @Test("All sections, the same for the same results, and nothing is loaded")
  func sections() {
    let results = LabResult.lab(slots: [3, 5], groups: ["fcc", "hsdpa"])
    let html = html(results)
    #expect(html == self.html(results))
    for heading in ["Results", "Delays", "What was run"] {
      #expect(html.contains("<h2>\(heading)</h2>"), "\(heading)")
    }
    #expect(html.contains("reel lab lab.json"))
    #expect(html.contains("fcc (4), hsdpa (4)"))
    #expect(!html.contains("<h2>Failures</h2>"))
    let images = images(of: html)
    #expect(html.contains("<p>The answer.</p>"))
    #expect(html.contains("<dt>walks</dt><dd>96</dd>"))
    #expect(!images.isEmpty)
    for image in images { #expect(isXML(image), "\(image.prefix(300))") }
    #expect(html.firstMatch(of: /(src|href)="/) == nil)
    #expect(html.firstMatch(of: /url\(|@import|fetch\(/) == nil)
  }

  @Test("Names and errors are text, and secrets are left out")
  func hostile() {
    var results = LabResult.lab(policies: ["adjacent", Self.hostile], groups: ["g", Self.hostile])
    for place in results.indices where results[place].run.seed == 2 {
      results[place].run.link = "https://me:secret@host/a?token=abc"
      results[place].run.device = Self.hostile
      results[place].figures["failed"] = 2
    }
    results.append(.sample(Self.hostile, seed: 9, [:]))
    results[results.count - 1].error = "https://me:secret@host/: 404 \(Self.hostile)"
    let html = html(results)
    #expect(html.matches(of: /<script/).count == 1)
    #expect(!html.contains("alert(1)</script>"))
    #expect(!html.contains("\u{202e}"))
    #expect(!html.contains("secret"))
    #expect(!html.contains("token"))
    #expect(html.contains("<h2>Failures</h2>"))
    #expect(html.contains("the walk failed"))
    #expect(html.contains("2 items failed"))
    for image in images(of: html) { #expect(isXML(image)) }
  }

  @Test("A row for each pool, with differences from the smallest pool of the baseline")
  func rows() {
    let results = (UInt64(1)...5).flatMap { seed in
      let noise = seed % 2 == 0 ? 1.0 : -1
      return [
        LabResult.sample("adjacent", slots: 3, seed: seed, ["second_frame.p95": 900]),
        .sample("media3", slots: 3, seed: seed, ["second_frame.p95": 402 + 9 * noise]),
        .sample("adaptive", slots: 3, seed: seed, ["second_frame.p95": 400]),
        .sample("adaptive", slots: 5, seed: seed, ["second_frame.p95": 100]),
      ]
    }
    let html = html(results)
    #expect(
      html.contains("<tr><td>5 adaptive</td><td class=\"n\">5</td><td class=\"n\">100</td>"))
    #expect(html.contains("<td class=\"n delta sure met\">−800 [−800,\u{a0}−800]</td>"))
    #expect(!html.contains("<td>5 slots</td>"))
  }

  @Test("A lab of one walk, and one without results")
  func small() {
    let one = html([.sample("none", ["second_frame.p95": 1])], baseline: nil)
    #expect(one.contains("<h2>Results</h2>") && !one.contains("<th>group</th>"))
    #expect(html([], baseline: nil).contains("<h2>What was run</h2>"))
  }
}
