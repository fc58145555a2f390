import Foundation
import ReelCheck
import ReelCore
import Testing

@testable import ReelCommand

@Suite("Files of a check: SARIF and pages")
struct CheckReportTests {
  private func collected(_ sources: [CheckedSource]) -> CheckedSources {
    sources.reduce(into: CheckedSources()) { $0.add($1) }
  }

  private func page(_ sources: [CheckedSource], _ arguments: [String] = []) -> String {
    CheckPage(sources: collected(sources), run: RunDescription(arguments: ["check"] + arguments)).html
  }

  private func run(of sources: [CheckedSource]) throws -> [String: Any] {
    let text = try SARIF(collected(sources)).text
    let log = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    #expect(log["version"] as? String == "2.1.0")
    return try #require((log["runs"] as? [[String: Any]])?.first)
  }

  private func results(of run: [String: Any]) throws -> [[String: Any]] {
    try #require(run["results"] as? [[String: Any]])
  }

  private func location(of result: [String: Any]) throws -> [String: Any] {
    try #require((result["locations"] as? [[String: Any]])?.first)
  }

  @Test("A SARIF log has a rule for each id, with its level, its explanation and its source")
  func rules() throws {
    let driver = try #require((try run(of: [])["tool"] as? [String: Any])?["driver"] as? [String: Any])
    let rules = try #require(driver["rules"] as? [[String: Any]])
    #expect(rules.compactMap { $0["id"] as? String } == FindingID.allCases.map(\.rawValue) + ["expectation"])
    for rule in rules.dropLast() {
      #expect((rule["helpUri"] as? String)?.hasPrefix("https://") == true)
      #expect((rule["help"] as? [String: String])?["text"]?.contains("\nMeasured: ") == true)
    }
    let stale = try #require(rules.first { $0["id"] as? String == "live-stale" })
    #expect((stale["defaultConfiguration"] as? [String: String])?["level"] == "error")
  }

  @Test("Results name their rule, level, place, fingerprint, waiver and baseline; the worst come first")
  func resultFields() throws {
    let results = try results(of: run(of: [CheckSample.healthy(), CheckSample.faulty()]))
    let names = results.compactMap { $0["ruleId"] as? String }
    #expect(Set(names.prefix(3)) == ["expectation", "segment-missing/status", "timestamp-break/gap"])
    #expect(names.dropFirst(3) == ["black/start", "manifest-invalid", "redirects"])
    #expect(
      results.compactMap { $0["level"] as? String }.prefix(4) == ["error", "error", "error", "warning"])
    func result(_ name: String) throws -> [String: Any] {
      try #require(results.first { $0["ruleId"] as? String == name })
    }
    #expect(try result("timestamp-break/gap")["baselineState"] as? String == "unchanged")
    #expect(try result("black/start")["baselineState"] as? String == "new")
    let missing = try location(of: result("segment-missing/status"))
    let physical = try #require(missing["physicalLocation"] as? [String: Any])
    let artifact = try #require(physical["artifactLocation"] as? [String: Any])
    #expect(artifact["uri"] as? String == "cdn.example/show/high/s3.m4s")
    #expect(physical["region"] as? [String: Int] == ["byteOffset": 4096])
    let logical = try #require(missing["logicalLocations"] as? [[String: String]])
    #expect(logical.map { $0["fullyQualifiedName"] } == ["360p", "360p/segment 3"])
    let line = try location(of: result("manifest-invalid"))["physicalLocation"] as? [String: Any]
    #expect(line?["region"] as? [String: Int] == ["startLine": 7])
    let suppressions = try #require(try result("redirects")["suppressions"] as? [[String: String]])
    #expect(suppressions.first?["justification"] == "the login needs it & stays")
    #expect(try (result("black/start")["suppressions"] as? [Any])?.isEmpty == true)
    let prints = results.compactMap { ($0["partialFingerprints"] as? [String: String])?["reelFinding/v1"] }
    #expect(Set(prints).count == results.count)
  }

  @Test("Files have no secrets, and are the same in every run")
  func secrets() throws {
    let sources = [CheckSample.faulty()]
    let sarif = try SARIF(collected(sources)).text
    #expect(try SARIF(collected(sources)).text == sarif)
    for text in [sarif, page(sources, [CheckSample.url]), page(sources + [CheckSample.healthy()])] {
      for secret in ["user:", "secret", "token", "sig=1"] { #expect(!text.contains(secret)) }
    }
  }

  @Test("A log keeps the worst of many results")
  func limit() throws {
    var result = CheckResult(source: "a.m3u8")
    let note = Finding(.manifestInvalid, nil, .note, "a note", fix: "mend it")
    let error = Finding(.liveStale, nil, .error, "stale", fix: "mend it")
    result.findings = [Finding](repeating: note, count: SARIF.resultLimit) + [error]
    let results = try results(of: run(of: [CheckedSource(result)]))
    #expect(results.count == SARIF.resultLimit)
    #expect(results.first?["ruleId"] as? String == "live-stale")
  }

  @Test("The page of a source has its findings, costs, rungs, starts, and what was not checked")
  func onePage() {
    let still = CheckStill(finding: 2, rung: "360p", time: 1.5, jpeg: [0xff, 0xd8, 0xff])
    let html = page([CheckSample.faulty(stills: [still])])
    for text in [
      "segment-missing/status", "404 &lt;Not Found&gt;", "2 s lost",
      "Waived: the login needs it &amp; stays", "Start on 3g", "without redirects", "live-stale",
      "black.run 5 s, usually 2 s", "not met, 387 ms", "data:image/jpeg;base64,/9j/",
    ] { #expect(html.contains(text), "\(text)") }
  }

  @Test("The page of a list counts sources, findings and hosts, and keeps the worst")
  func listPage() {
    let sources = (0..<200).map { number in
      number % 2 == 0 ? CheckSample.faulty() : CheckSample.healthy("clip \(number).mp4")
    }
    let all = collected(sources)
    #expect(all.sourceCount == 200 && all.cleanCount == 100 && all.levels == [.error: 100])
    #expect(all.worst.count == CheckedSources.sourceLimit)
    #expect(all.hosts.map(\.name) == ["cdn.example"])
    #expect(!all.causes.map(\.name).contains("redirects"))
    #expect(page(sources).contains("These are the worst 64 sources."))
  }

  @Test("The waiver file of the example can be read")
  func exampleFile() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = try CheckFile(path: folder.appendingPathComponent("Examples/Check/.reel-check.json").path)
    #expect(file.links == ["lte", "3g"] && file.expect.count == 2 && file.set == ["black.start": "3s"])
    #expect(file.ignore.map(\.pattern.id) == [.redirects])
  }

  @Test("A report counts checked sources by their worst finding, and findings by name")
  func results() {
    var report = ResultsReport()
    func add(_ url: String, _ findings: String) {
      let line = #"{"url":"\#(url)","status":"checked","index":0,"host":"h","findings":[\#(findings)]}"#
      report.add(Array(line.utf8)[...])
    }
    let gap = #"{"id":"timestamp-break","kind":"gap","level":"error"}"#
    let waived = #"{"id":"redirects","level":"warning","waived":"known"}"#
    let last = #"{"id":"moov-last","level":"warning"}"#
    add("a", last)
    add("a", "\(gap),\(gap),\(waived)")
    add("b", "\(last),\(#"{"id":"timestamp-break","kind":"gap","level":"warning"}"#)")
    add("c", waived)
    #expect(report.checkedCount == 3)
    #expect([.error, .warning, .note, nil].map { report.checkedCount($0) } == [1, 1, 0, 1])
    #expect(report.findings.map(\.finding) == ["timestamp-break/gap", "moov-last"])
    #expect(report.findings.map(\.sources) == [2, 1] && report.findings.map(\.count) == [3, 1])
    let text = report.lines.joined(separator: "\n")
    #expect(text.hasPrefix("3 sources: 3 checked, 0 failed"))
    #expect(text.contains("1 with errors, 1 with warnings only, 1 without findings"))
    let html = ResultsPage(report: report, files: ["checks.jsonl"]).html
    #expect(html.contains("timestamp-break/gap") && html.contains("with warnings only"))
  }
}
