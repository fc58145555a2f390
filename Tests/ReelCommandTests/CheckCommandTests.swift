import Foundation
@testable import ReelCheck
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelCommand

#if canImport(FoundationXML)
  import FoundationXML
#endif

@Suite("reel check", .hangLimit)
struct CheckCommandTests {
  private static let hls = Fixtures.path("hls-fmp4/master.m3u8")

  @Test("A sound presentation passes; its record has rungs, the start and what was read")
  func sound() async throws {
    let run = try await Command.run("check", Self.hls, "--json", "--link", "lte", "--link", "3g", status: 0)
    let record = try run.object
    #expect(record["source"] as? String == Self.hls)
    #expect(record["status"] as? String == "checked")
    #expect(record["format"] as? String == "hls")
    #expect(try findings(record).allSatisfy { $0["level"] as? String == "note" })
    let start = try #require(record["start"] as? [String: [String: Any]])
    #expect(start.keys.sorted() == ["3g", "lte"])
    for (link, course) in start {
      let now = try #require(course["ms"] as? Double, "\(link)")
      let floor = try #require(course["floor_ms"] as? Double, "\(link)")
      #expect(floor > 0 && floor <= now, "\(link)")
    }
    let coverage = try #require(record["coverage"] as? [String: Any])
    #expect(coverage["rungs"] as? Int == coverage["all_rungs"] as? Int)
    #expect(try #require(coverage["frames"] as? Int) > 0)
    let rungs = try #require(record["rungs"] as? [[String: Any]])
    #expect(rungs.allSatisfy { $0["opens"] as? String == "yes" && $0["decodes"] as? String == "yes" })
    #expect(rungs.count { $0["first"] as? Bool == true } == 1)
  }

  @Test("The text has a verdict, the rungs with the start on each link, and the exit code")
  func text() async throws {
    let run = try await Command.run("check", Self.hls, "--link", "lte", "--link", "3g", status: 0)
    let lines = run.outputLines
    #expect(lines.first?.hasPrefix("\(Self.hls): plays; first frame after ") == true, "\(run.outputText)")
    #expect(lines.first?.contains(" on lte and ") == true)
    let header = try #require(lines.first { $0.hasPrefix("  rung ") })
    #expect(
      header.split(separator: " ") == ["rung", "opens", "decodes", "lte", "3g", "declared", "measured"])
    #expect(lines.last?.hasPrefix("  exit 0: ") == true)
    let quiet = try await Command.run("check", Self.hls, "--quiet", status: 0)
    #expect(quiet.outputText.isEmpty && quiet.errorText.isEmpty)
  }

  @Test("The start is that of the player that is named, in text, JSON and page, and in what is expected")
  func player() async throws {
    let folder = try TemporaryFolder()
    let ours = try await Command.run("check", Self.hls, "--json", status: 0)
    let same = try await Command.run("check", Self.hls, "--json", "--player", "reel", status: 0)
    #expect(try start(same.object) == start(ours.object) && start(ours.object)["player"] == nil)
    let page = folder.path("page.html")
    let text = try await Command.run(
      "check", Self.hls, "--player", "media3", "--report", page, "--expect", "start.lte<50ms", status: 1)
    let title = "with media3 (from documentation, not measured)"
    #expect(text.outputLines.first?.contains(title) == true, "\(text.outputText)")
    #expect(text.outputText.contains("  second frame after "))
    #expect(try folder.text("page.html").contains("Simulated \(title)"))
    let json = try start(
      try await Command.run("check", Self.hls, "--player", "hls.js", "--json", status: 0).object)
    #expect(
      json["player"]?.contains("hls.js") == true && json["second_frame_ms"] != nil && json["whole_ms"] == nil)
    #expect(json["ms"] != (try start(ours.object)["ms"]))

    let dash = try await Command.run(
      "check", Fixtures.path("dash-number/manifest.mpd"), "--player", "hls.js", "--expect", "start.lte<9s",
      status: 1)
    #expect(dash.outputLines.first?.hasSuffix("; not started: hls.js does not play DASH") == true)
    #expect(dash.outputText.contains("not checked: the start: hls.js does not play DASH"))
    #expect(
      dash.outputLines.contains { $0.contains("start.lte") && $0.hasSuffix("hls.js does not play DASH") })
    let unknown = try await Command.run("check", Self.hls, "--player", "vlc", status: 64)
    #expect(unknown.errorText.contains("\"vlc\" is not a player"))
  }

  /// The figures of the start on lte, as text.
  private func start(_ record: [String: Any]) throws -> [String: String] {
    let start = try #require(record["start"] as? [String: [String: Any]])
    return try #require(start["lte"]).filter { !($0.value is [String: Any]) }.mapValues { "\($0)" }
  }

  @Test("A segment that is not there is an error with its place, and fails the run unless it is waived")
  func missingSegment() async throws {
    let folder = try TemporaryFolder()
    for name in ["audio", "high", "low", "master.m3u8"] {
      try FileManager.default.copyItem(atPath: Fixtures.path("hls-fmp4/\(name)"), toPath: folder.path(name))
    }
    try FileManager.default.removeItem(atPath: folder.path("high/segment-1.m4s"))
    let run = try await Command.run("check", "master.m3u8", "--json", directory: folder.path, status: 1)
    let found = try #require(try findings(try run.object).first { $0["id"] as? String == "segment-missing" })
    #expect(found["kind"] as? String == "status")
    #expect(found["level"] as? String == "error")
    #expect((found["url"] as? String)?.hasSuffix("high/segment-1.m4s") == true)
    #expect(found["segment"] as? Int == 2 && found["waived"] == nil)
    #expect(!(found["fix"] as? String ?? "").isEmpty)

    // The rung alone is read faster.
    let text = try await Command.run("check", "high/index.m3u8", directory: folder.path, status: 1)
    #expect(text.outputText.contains("\n  error    segment-missing/status"))
    #expect(text.outputLines.contains { $0.hasPrefix("    ") && $0.hasSuffix("/high/segment-1.m4s") })
    #expect(text.outputLines.last?.hasPrefix("  exit 1: ") == true)
    let quiet = try await Command.run(
      "check", "high/index.m3u8", "--quiet", directory: folder.path, status: 1)
    #expect(quiet.outputText.isEmpty)
    #expect(quiet.errorLines.contains { $0.contains("error: segment-missing/status: ") })
    try await Command.run("check", "high/index.m3u8", "--fail-on", "never", directory: folder.path, status: 0)

    let waived = try await Command.run(
      "check", "high/index.m3u8", "--ignore", "segment-missing/status", "--ignore", "rung-dead", "--ignore",
      "track-missing", "--ignore", "live-stale", "--json", directory: folder.path, status: 0)
    let hidden = try #require(
      try findings(try waived.object).first { $0["id"] as? String == "segment-missing" })
    #expect(hidden["waived"] as? String == "--ignore" && hidden["known"] as? Bool == true)
    #expect(waived.errorLines.contains { $0.contains("the waiver of live-stale was not used") })
  }

  @Test("A source of which nothing is judged fails; a rung beside others only if that is wanted")
  func unjudged() async throws {
    let run = try await Command.run("check", Fixtures.path("bad/codec-png.mp4"), "--json", status: 1)
    #expect(try run.object["judged"] as? Bool == false)
    #expect(try findings(try run.object).map { $0["id"] as? String } == ["not-checked"])
    #expect(try findings(try run.object).map { $0["kind"] as? String } == ["unsupported"])
    let waived = try await Command.run(
      "check", Fixtures.path("bad/codec-png.mp4"), "--ignore", "not-checked/unsupported", status: 0)
    #expect(waived.outputText.contains("waived"))

    let folder = try TemporaryFolder()
    for name in ["audio", "high", "low", "master.m3u8"] {
      try FileManager.default.copyItem(atPath: Fixtures.path("hls-fmp4/\(name)"), toPath: folder.path(name))
    }
    try FileManager.default.copyItem(atPath: folder.path("high"), toPath: folder.path("other"))
    let master = try folder.text("master.m3u8")
    try folder.write(
      master + "#EXT-X-STREAM-INF:BANDWIDTH=5000000,CODECS=\"zzzz.1\"\nother/index.m3u8\n", to: "more.m3u8")
    let beside = try await Command.run("check", "more.m3u8", "--json", directory: folder.path, status: 0)
    #expect(try beside.object["judged"] as? Bool == true)
    let items = try #require(try beside.object["not_checked"] as? [[String: Any]])
    #expect(items.compactMap { $0["kind"] as? String } == ["unsupported"])
    for level in ["unchecked", "never,unchecked", "unchecked,warning"] {
      let wanted = try await Command.run(
        "check", "more.m3u8", "--json", "--fail-on", level, directory: folder.path, status: 1)
      #expect(try findings(try wanted.object).contains { $0["id"] as? String == "not-checked" }, "\(level)")
    }
    try await Command.run("check", Self.hls, "--fail-on", "unchecked", status: 0)
    try await Command.run("check", Self.hls, "--fail-on", "unchecked,often", status: 64)
    try await Command.run("check", Self.hls, "--fail-on", "error,warning", status: 64)
  }

  @Test("Expectations that are not met fail the run, with the floor beside them")
  func expectations() async throws {
    let run = try await Command.run(
      "check", goodSource, "--expect", "start.lte<1ms", "--expect", "errors=0", "--json", status: 1)
    let outcomes = try #require(try run.object["expectations"] as? [[String: Any]])
    #expect(outcomes.map { $0["met"] as? Bool } == [false, true])
    let text = try await Command.run("check", goodSource, "--expect", "start.lte<1ms", status: 1)
    #expect(text.outputText.contains("the floor is "))
    let none = try await Command.run(
      "check", goodSource, "--expect", "start.lte<10s", "--link", "lte", status: 0)
    #expect(none.outputText.contains("start.lte<10s: met"))
  }

  @Test("A waiver file has links, expectations, thresholds and waivers with reasons")
  func waiverFile() async throws {
    let folder = try TemporaryFolder()
    let bad = Fixtures.path("bad/text.mp4")
    try folder.write(
      """
      {"links": ["3g"], "set": {"black.run": "5s"}, "expect": ["warnings=0"],
       "ignore": [{"id": "unreachable/not-media", "url": "*/bad/*", "reason": "a test", "until": "2999-01-01"},
         {"id": "silent", "reason": "long ago", "until": "2001-01-01"}]}
      """, to: ".reel-check.json")
    let run = try await Command.run("check", bad, "--json", directory: folder.path, status: 0)
    #expect(try findings(try run.object).map { $0["waived"] as? String } == ["a test"])
    #expect((try run.object["thresholds"] as? [String: Double]) == ["black.run": 5])
    #expect(run.errorLines.contains { $0.contains("the waiver of silent has expired on 2001-01-01") })
    let good = try await Command.run("check", goodSource, "--json", directory: folder.path, status: 0)
    #expect((try good.object["start"] as? [String: Any])?.keys.sorted() == ["3g"])
  }

  @Test(
    "What can't be read of waivers, thresholds, findings and expectations is one line",
    arguments: [
      (["--ignore", "blck"], "did you mean black?"),
      (["--ignore", "black/whle"], "the kinds are whole, start, run"),
      (["--explain", "moov"], "is not a finding"),
      (["--set", "black.run"], "write NAME=VALUE"),
      (["--set", "black.rum=5s"], "did you mean black.run?"),
      (["--set", "black.run=5MB"], "is not a value of black.run"),
      (["--expect", "start.wifi<1s"], "the links are lte (--link)"),
      (["--expect", "start.lte<1MB"], "is not a value of start.lte"),
      (["--link", "nosuchlink"], "is not a link"),
      (["--sample", "0"], "--sample takes"),
      (["--rungs", "some"], "--rungs takes"),
      (["--budget", "much"], "is not a size"), (["--budget", "20"], "has no unit; write 20MB"),
      (["--fail-on", "note"], "--fail-on"),
      (["--waivers", "none.json"], "no such file"),
      (["--waivers", "text.json"], "text.json"),
      (["--waivers", "noreason.json"], "noreason.json: "),
      (["--waivers", "field.json"], "field.json: "),
      (["--baseline", "a.jsonl"], "--ignore"),
      (["--sarif", "a.sarif"], "--junit"),
    ] as [([String], String)])
  func usage(arguments: [String], words: String) async throws {
    let folder = try TemporaryFolder()
    try folder.write("text", to: "text.json")
    try folder.write(#"{"ignore": [{"id": "black"}]}"#, to: "noreason.json")
    try folder.write(#"{"ignored": []}"#, to: "field.json")
    let run = try await Command.run(["check", goodSource] + arguments, directory: folder.path, status: 64)
    #expect(run.errorText.contains(words), "\(run.errorText)")
    #expect(run.errorLines.first?.contains(words) == true || run.errorLines.count <= 3, "\(run.errorText)")
    #expect(run.outputText.isEmpty)
  }

  @Test("--explain describes a finding or one kind of it")
  func explain() async throws {
    let run = try await Command.run("check", "--explain", "timestamp-break/gap", status: 0)
    #expect(run.outputText.contains("timestamp-break"))
    #expect(run.outputText.contains("gap") && run.outputText.contains("Fix: "))
  }

  @Test("A host that does not answer is 69, unless other sources were checked; of a list, a rerun may help")
  func silence() async throws {
    let closed = "http://127.0.0.1:1/a.m3u8"
    let run = try await Command.run("check", closed, "--retries", "0", "--json", status: 69)
    #expect(try run.object["status"] as? String == "failed")
    #expect((try run.object["error"] as? [String: Any])?["exit_code"] as? Int == 69)
    try await Command.run("check", closed, "http://127.0.0.1:1/b.m3u8", "--retries", "0", status: 69)
    try await Command.run("check", closed, goodSource, "--retries", "0", status: 1)
    let folder = try TemporaryFolder()
    try folder.write("\(closed)\n\(goodSource)\n", to: "list.txt")
    let list = try await Command.run(
      "check", "--input", "list.txt", "--retries", "0", directory: folder.path, status: 75)
    let lines = try folder.text("results.jsonl").split(separator: "\n").map { try jsonObject(String($0)) }
    #expect(Set(lines.compactMap { $0["status"] as? String }) == ["checked", "failed"])
    #expect(lines.first { $0["status"] as? String == "failed" }?["permanent"] as? Bool == false)
    #expect(list.errorLines.contains { $0.hasPrefix("1 checked, 1 failed") }, "\(list.errorText)")
    // What was checked is not checked again.
    let again = try await Command.run(
      "check", "--input", "list.txt", "--retries", "0", "--resume", directory: folder.path, status: 75)
    #expect(again.errorLines.contains { $0.contains("1 checked earlier") }, "\(again.errorText)")
  }

  @Test("Of a list, there is a line for each source, and findings fail the run")
  func list() async throws {
    let folder = try TemporaryFolder()
    let bad = Fixtures.path("bad/text.mp4")
    try folder.write("\(goodSource)\n\(bad)\n", to: "list.txt")
    let run = try await Command.run("check", "--input", "list.txt", directory: folder.path, status: 1)
    #expect(
      run.outputLines.contains { $0.hasPrefix("error\tunreachable/not-media: ") && $0.hasSuffix(bad) },
      "\(run.outputText)")
    let lines = try folder.text("results.jsonl").split(separator: "\n")
    #expect(run.errorLines == ["1 error in 2 sources", "2 checked, 0 failed, 0 skipped"])
    #expect(lines.count == 2 && lines.allSatisfy { $0.contains("\"status\":\"checked\"") })
  }

  @Test(
    "JUnit has a case for each finding, and for each id without one; those that were not checked or are known are skipped"
  )
  func junit() async throws {
    let folder = try TemporaryFolder()
    let bad = Fixtures.path("bad/text.mp4")
    try await Command.run(
      "check", goodSource, bad, "--junit", "j.xml", "--expect", "errors=0", "--ignore", "moov-last",
      directory: folder.path, status: 1)
    let text = try folder.text("j.xml")
    #expect(isXML(text))
    #expect(text.components(separatedBy: "<testsuite ").count == 3)
    for id in FindingID.allCases where id != .unreachable {
      #expect(text.components(separatedBy: "name=\"\(id.rawValue)\"").count == 3, "\(id)")
    }
    #expect(text.contains("name=\"unreachable/not-media\""))
    #expect(text.contains("type=\"unreachable/not-media\""))
    #expect(text.matches(of: /name="black" time="[0-9.]+"\/>/).count == 1)
    #expect(text.contains("<skipped message=\"not checked: the source could not be opened\"/>"))
    #expect(text.contains("<failure message=\"errors=0: not met, 1\" type=\"assertion\">"))
  }

  // MARK: Values

  @Test("JUnit skips what a rung that was not read, or the end of time, leaves unknown")
  func skipped() {
    var result = CheckResult(source: "a")
    result.coverage.allRungCount = 2
    result.notChecked = [NotChecked(nil, rung: "720p", "encrypted, and no key was given")]
    var suite = CheckFiles.suite(CheckGates().verdict(on: result))
    let skipped = suite.cases.filter { $0.skipped != nil }.map(\.name)
    #expect(skipped.contains("black") && skipped.contains("segment-missing"))
    #expect(!skipped.contains("redirects") && !skipped.contains("manifest-invalid"))
    #expect(
      suite.cases.first { $0.name == "black" }?.skipped
        == "not checked: 720p: encrypted, and no key was given")

    result.notChecked = [NotChecked(nil, "the time limit was reached")]
    result.findings = [Finding(.black, "start", .warning, "black for 3 s", fix: "trim it")]
    suite = CheckFiles.suite(CheckGates().verdict(on: result))
    // What was found was checked.
    #expect(suite.cases.first { $0.name == "black/start" }?.skipped == nil)
    #expect(suite.cases.first { $0.name == "redirects" }?.skipped != nil)
    #expect(suite.cases.allSatisfy { $0.failure == nil })

    result.notChecked = [NotChecked(.silent, "there is no audio")]
    suite = CheckFiles.suite(CheckGates(failOn: .warning).verdict(on: result))
    #expect(suite.cases.filter { $0.skipped != nil }.map(\.name) == ["silent"])
    #expect(suite.cases.filter { $0.failure != nil }.map(\.name) == ["black/start"])

    // A case for each of several, which share the time of the check.
    var second = Finding(.black, "start", .warning, rung: "360p", "black for 2 s", fix: "trim it")
    second.segment = 1
    result.findings.append(second)
    let verdict = CheckGates(failOn: .warning).verdict(on: result)
    suite = CheckFiles.suite(verdict, after: .seconds(3))
    #expect(
      suite.cases.filter { $0.failure != nil }.map(\.name) == ["black/start", "black/start, 360p, segment 1"])
    #expect(suite.duration == .seconds(3))
    let sum = suite.cases.reduce(Duration.zero) { $0 + $1.duration }
    #expect(abs(sum / .seconds(1) - 3) < 0.001)
  }

  @Test("Notes fail nothing; warnings only if wanted; waivers by id, kind, rung, URL and day")
  func gates() throws {
    var result = CheckResult(source: "https://cdn.example/trailers/a.m3u8")
    var black = Finding(.black, "start", .warning, rung: "360p", "black for 3 s", fix: "trim it")
    black.segment = 1
    result.findings = [
      Finding(.segmentMissing, "status", .error, rung: "360p", "404", fix: "upload it"), black,
      Finding(.moovLast, nil, .note, "the index comes after the media", fix: "move it"),
    ]
    func failing(_ change: (inout CheckGates) throws -> Void) rethrows -> [Int] {
      var gates = CheckGates()
      gates.today = "2026-11-27"
      try change(&gates)
      return gates.verdict(on: result).failing
    }
    func waive(_ id: String, url: String? = nil, until: String? = nil) throws -> [Int] {
      try failing { gates in
        gates.failOn = .warning
        gates.waivers = [.init(pattern: try FindingPattern(parsing: id), url: url, reason: "x", until: until)]
      }
    }
    #expect(failing { _ in } == [0])
    #expect(failing { $0.failOn = .warning } == [0, 1])
    #expect(failing { $0.failOn = .note } == [0, 1])
    #expect(failing { $0.failOn = nil } == [])
    #expect(try waive("black") == [0])
    #expect(try waive("black/start@360p") == [0])
    #expect(try waive("black@720p") == [0, 1])
    #expect(try waive("black/run") == [0, 1])
    #expect(try waive("black", url: "*/trailers/*") == [0])
    #expect(try waive("black", url: "*/films/*") == [0, 1])
    #expect(try waive("black", until: "2026-11-27") == [0])
    #expect(try waive("black", until: "2026-11-26") == [0, 1])
  }

  @Test(
    "The text of a made-up result: verdict, findings with costs and fixes, bars in turn, what was not checked"
  )
  func madeUp() throws {
    var result = CheckResult(source: "a.mp4")
    result.facts.format = "mp4"
    result.facts.duration = 6.5
    result.coverage.byteCount = 2_800_000
    result.coverage.frameCount = 195
    var edit = Finding(.startBytes, "edit", .warning, "the edit list hides 5.5 s", fix: "cut at a key frame")
    edit.costs = [FindingCost(.start, 733, link: "lte", player: .reel, inTurn: 733)]
    var last = Finding(.moovLast, nil, .warning, "the index comes after the media", fix: "use +faststart")
    last.costs = [FindingCost(.start, 0, link: "lte", player: .reel, inTurn: 48)]
    result.findings = [edit, last]
    var start = StartResult(link: "lte", now: .init(milliseconds: 956), floorMilliseconds: 175)
    start.floorRequestCount = 1
    start.floorByteCount = 46_000
    start.steps = [
      .init(finding: "start-bytes/edit", milliseconds: 223), .init(finding: "moov-last", milliseconds: 175),
    ]
    result.starts = [start]
    result.notChecked = [NotChecked(.avOffset, "there is no reference")]
    let verdict = CheckGates().verdict(on: result)
    let text = CheckText(verdict: verdict, layout: .plain).text
    let lines = text.split(separator: "\n").map(String.init)
    #expect(lines.first == "a.mp4: plays, but starts in 956 ms on lte; 175 ms is possible")
    #expect(
      lines[1].hasPrefix("  MP4  6.5 s") && lines[1].contains("2.8 MB read, 195 frames decoded, none damaged")
    )
    #expect(
      lines[2].hasPrefix("  warning  start-bytes/edit") && lines[2].hasSuffix("the edit list hides 5.5 s"))
    #expect(lines[3].contains("733 ms") && lines[3].hasSuffix("cut at a key frame"))
    #expect(lines[4].contains("moov-last"))
    #expect(lines[5].contains("48 ms"))
    let bars = lines.filter { $0.contains("█") }
    #expect(bars.map { $0.count { $0 == "█" } } == [48, 11, 9])
    #expect(bars.last?.hasSuffix("1 request, 46 kB: the floor") == true)
    #expect(text.contains("  not checked: av-offset: there is no reference"))
    #expect(!verdict.fails)
    #expect(
      CheckText(verdict: verdict, layout: .plain).line
        == "warning\tstart-bytes/edit: the edit list hides 5.5 s; 1 more warning")
  }

  @Test("A place is not named twice")
  func places() {
    func placed(
      _ summary: String, _ naming: Finding.Naming = .none, rung: String? = "360p", segment: Int? = 3
    ) -> String {
      var finding = Finding(.segmentMissing, "status", .error, rung: rung, summary, fix: "upload it")
      finding.segment = segment
      finding.naming = naming
      return CheckWords.placed(finding)
    }
    #expect(placed("404") == "360p, segment 3: 404")
    #expect(placed("segment 3 (4 s to 6 s): 404", .segmentFirst) == "360p, segment 3 (4 s to 6 s): 404")
    #expect(placed("between segments 3 and 4: a gap", .segment) == "360p: between segments 3 and 4: a gap")
    #expect(placed("segment 3: 404", .segmentFirst, rung: nil) == "segment 3: 404")
    #expect(placed("360p says 1 Mbit/s", .rung, segment: nil) == "360p says 1 Mbit/s")
    #expect(placed("no sound", rung: nil, segment: nil) == "no sound")
  }

  // MARK: - Private

  private func isXML(_ text: String) -> Bool { XMLParser(data: Data(text.utf8)).parse() }

  private func findings(_ record: [String: Any]) throws -> [[String: Any]] {
    try #require(record["findings"] as? [[String: Any]])
  }
}
