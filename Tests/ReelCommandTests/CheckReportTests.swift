import Foundation
@testable import ReelCheck
import ReelCore
import ReelFFmpeg
import ReelManifest
import Testing

@testable import ReelCommand

@Suite("The page of a check")
struct CheckReportTests {
  static let url = "https://me:secret@cdn.example:8443/show/master.m3u8?token=abc"
  static let hostile = "<script>alert(1)</script>\u{1b}[31m\"'&"

  // MARK: Samples

  /// A source with a start that can be mended, and with findings of each level.
  static func sample(_ source: String = url) -> CheckedSource {
    var result = CheckResult(source: source)
    result.facts.format = "hls"
    result.facts.duration = 12
    result.facts.url = URL(string: source)
    var low = RungFacts(name: "180p", kind: .video)
    low.declared = Rung(
      id: "0", bitsPerSecond: 433_000, codecs: ["avc1.64000d", "mp4a.40.2"],
      size: PixelSize(width: 320, height: 180),
      media: .segments(SegmentList([])))
    low.samples[0] = SegmentFacts(index: 0)
    low.content = [content(PixelSize(width: 320, height: 180))]
    var high = RungFacts(name: "360p", kind: .video)
    high.declared = Rung(
      id: "1", bitsPerSecond: 566_637, codecs: ["avc1.64001e", "mp4a.40.2"],
      size: PixelSize(width: 640, height: 360),
      media: .segments(SegmentList([])))
    high.samples[0] = SegmentFacts(index: 0)
    high.content = [content(PixelSize(width: 640, height: 360))]
    result.facts.rungs = [low, high, RungFacts(name: "english", kind: .audio)]
    result.facts.start = StartFacts()
    result.facts.start?.rung = "180p"
    var missing = Finding(
      .segmentMissing, "status", .error, rung: "360p", segment: 3,
      url: "https://cdn.example:8443/show/high/s3.m4s?token=abc",
      "404 for high/s3.m4s, also on the second try",
      fix: "upload it again, or mark it with EXT-X-GAP")
    missing.time = 6...8
    missing.costs = [FindingCost(.lost, 2000)]
    missing.evidence = [("status", .number(404)), ("tries", .number(2))]
    var black = Finding(
      .black, "start", .warning, "both rungs are black for 3 s (frames 0 to 89), then show a picture",
      fix: "trim the black, or start after it with EXT-X-START:TIME-OFFSET=3")
    black.time = 0...3
    black.costs = [FindingCost(.start, 3000)]
    var rate = Finding(
      .bandwidthMismatch, "understated", .warning, rung: "360p",
      "the manifest says 566637 bit/s, and the peak is 1133275 (\(hostile))", fix: "write BANDWIDTH=1133275")
    rate.line = 7
    rate.costs = [FindingCost(.stall, 6000)]
    rate.evidence = [("declared_bps", .number(566_637)), ("measured_bps", .number(1_133_275))]
    var bytes = Finding(
      .startBytes, "edit", .warning,
      "the edit list hides 5.5 s: 165 frames, 1.1 MB, are fetched and decoded before the first one is shown",
      fix: "cut at a key frame: encode 5.5 s to 6 s again, copy the rest")
    bytes.byte = 48
    bytes.costs = [
      FindingCost(.start, 733, link: "lte", player: .reel, inTurn: 733),
      FindingCost(.start, 1733, link: "lte", player: .whole),
    ]
    var index = Finding(
      .moovLast, nil, .warning, "the index comes after the media",
      fix: "ffmpeg -i in.mp4 -c copy -movflags +faststart out.mp4")
    index.costs = [FindingCost(.start, 0, link: "lte", player: .reel, inTurn: 48)]
    let note = Finding(
      .redirects, nil, .note, "the source answers with 1 redirect", fix: "use the final URL")
    result.findings = [missing, black, rate, bytes, index, note]
    result.starts = [start("lte", scale: 1), start("3g", scale: 2.6)]
    result.notChecked = [
      NotChecked(nil, "whether sound and picture are in time, which needs a reference"),
      NotChecked(.black, rung: "english", "it has no pictures"),
    ]
    result.coverage.rungCount = 3
    result.coverage.allRungCount = 3
    result.coverage.segmentCount = 17
    result.coverage.allSegmentCount = 18
    result.coverage.byteCount = 1_512_345
    result.coverage.frameCount = 660
    result.coverage.audioDuration = 11.4
    result.thresholds[.blackRun] = 5
    result.findings[1].stills = [
      CheckStill(rung: "180p", time: 0.5, jpeg: [0xff, 0xd8, 0xff, 0xe0]),
      CheckStill(rung: "360p", time: 1.5, jpeg: [0xff, 0xd8, 0xff, 0xe1]),
    ]
    result.findings[5].waiver = "the redirect counts viewers, ticket 4711"
    return CheckedSource(result)
  }

  private static func content(_ size: PixelSize) -> ContentFacts {
    var content = ContentFacts(segments: 0..<1)
    content.frames = [
      FrameFacts(
        time: 0, duration: 0.04, segment: 0, isDamaged: false, darkShare: 0, change: 1, luma: [],
        lumaSize: size,
        size: size, presentationSize: size)
    ]
    return content
  }

  private static func start(_ link: String, scale: Double) -> StartResult {
    func request(
      _ url: String, _ purpose: FetchPurpose, _ began: Double, _ first: Double, _ end: Double, _ bytes: Int64
    ) -> StartResult.Request {
      .init(
        url: "https://cdn.example:8443/show/\(url)?token=abc", purpose: purpose, began: began * scale,
        firstByte: first * scale, end: end * scale, byteCount: bytes)
    }
    var now = StartResult.Course(milliseconds: 956 * scale)
    now.connecting = 70 * scale
    now.answering = 70 * scale
    now.receiving = 148 * scale
    now.decoding = 668 * scale
    now.requests = [
      request("master.m3u8", .source, 0, 70, 72, 812),
      request("low/index.m3u8", .manifest, 72, 107, 108, 1_204),
      request("low/init.mp4", .initialization, 108, 143, 144, 1_230),
      request(
        "low/a-rather-long-name-of-a-segment-that-must-not-spill-000001.m4s", .segment, 108, 180, 288,
        1_148_000),
    ]
    var result = StartResult(link: link, now: now, floorMilliseconds: 171 * scale)
    result.wholeMilliseconds = 1_956 * scale
    result.floorRequestCount = 3
    result.floorByteCount = 46_000
    result.steps = [
      .init(finding: "start-bytes/edit", milliseconds: 223 * scale),
      .init(finding: "moov-last", milliseconds: 175 * scale),
    ]
    var mended = StartResult.Course(milliseconds: 175 * scale)
    mended.connecting = 35 * scale
    mended.answering = 70 * scale
    mended.receiving = 40 * scale
    mended.decoding = 30 * scale
    mended.requests = [
      request("master.m3u8", .source, 0, 70, 72, 812),
      request("low/000001.m4s", .segment, 72, 107, 145, 46_000),
    ]
    result.mended = mended
    return result
  }

  // MARK: Page

  @Test("A page of one source has its verdict, its ladder, its start and its findings, and no secrets")
  func singlePage() throws {
    var sources = CheckedSources()
    var source = Self.sample()
    source.unmet = ["start.lte<800ms: 956 ms"]
    sources.add(source)
    let html = CheckPage(sources: sources, run: RunDescription(arguments: ["check", Self.url])).html
    for secret in ["secret", "token=abc", "<script>alert"] {
      let isThere = html.contains(secret)
      #expect(!isThere, "\(secret)")
    }
    for text in [
      "2 errors, 4 warnings; first frame after 956 ms on lte and 2.49 s on 3g; known: 1 waived",
      "segment-missing/status", "360p, segment 3 (6 s to 8 s)", "2 s lost",
      "nothing alone on lte, 48 ms after larger savings", "Fixed in turn",
      "without start-bytes/edit",
      "and moov-last", "175 ms", "segment 3 missing",
      "A known note, waived: the redirect counts viewers, ticket 4711",
      "black.run 5 s, usually 2 s", "start.lte&lt;800ms: 956 ms", "data:image/jpeg;base64,",
      "black, english: it has no pictures",
    ] {
      let isThere = html.contains(text)
      #expect(isThere, "\(text)")
    }
    // Nothing is loaded from elsewhere.
    #expect(html.matches(of: /(?:src|href)="(?!data:)/).isEmpty)
  }

  @Test("A page of a list keeps the worst 64 sources, whatever the order in which they were checked")
  func listPage() throws {
    var items = (0..<300).map { index in
      var result = CheckResult(source: "https://host\(index % 3).example/\(index).m3u8")
      result.thresholds[.blackRun] = 5
      return CheckedSource(result)
    }
    for index in stride(from: 0, to: 300, by: 3) {
      items[index] = Self.sample("https://host0.example/\(index).m3u8")
    }
    var (one, other) = (CheckedSources(), CheckedSources())
    for item in items { one.add(item) }
    for item in items.reversed() { other.add(item) }
    one.addFailure()
    other.addFailure()
    #expect((one.sourceCount, one.levels[.error], one.cleanCount, one.failureCount) == (301, 100, 200, 1))
    #expect(one.worst.count == CheckedSources.sourceLimit)
    #expect(one.hosts.map(\.name) == ["host0.example", "host1.example", "host2.example"])
    #expect(one.causes.first?.name == "segment-missing/status")
    #expect(one.causes.first?.sourceCount == 100)
    let run = RunDescription(arguments: ["check"])
    let isSamePage = CheckPage(sources: one, run: run).html == CheckPage(sources: other, run: run).html
    #expect(isSamePage)
  }

  @Test(
    "The verdict says what a person wants to know first",
    arguments: [
      ([FindingLevel.error], true, "1 error; first frame after 956 ms on lte"),
      ([.warning], true, "plays, but starts in 956 ms on lte; 175 ms is possible"),
      ([], true, "plays, but starts in 956 ms on lte; 175 ms is possible"),
      ([.warning, .warning], false, "2 warnings; no frame was decoded"),
    ] as [([FindingLevel], Bool, String)])
  func verdict(levels: [FindingLevel], starts: Bool, expected: String) {
    var result = CheckResult(source: "a.mp4")
    result.findings = levels.map { Finding(.black, "run", $0, "it is black", fix: "") }
    if starts { result.starts = [Self.start("lte", scale: 1)] }
    #expect(CheckedSource(result).verdict == expected)
  }

}

@Suite("Results of checks in a report")
struct CheckedResultsTests {
  @Test("Checked sources are counted by their worst finding, and by findings; waived ones do not count")
  func counts() throws {
    var report = ResultsReport(keepsWorst: true)
    for line in [
      #"{"url":"https://a.example/1","status":"checked","host":"a.example","findings":[]}"#,
      #"{"url":"https://a.example/2","status":"checked","host":"a.example","findings":[{"id":"black","kind":"run","level":"warning"},{"id":"black","kind":"run","level":"error"},{"id":"moov-last","kind":null,"level":"warning"}]}"#,
      #"{"url":"https://b.example/3","status":"checked","host":"b.example","findings":[{"id":"moov-last","level":"warning"},{"id":"black","kind":"whole","level":"error","waived":"known"}]}"#,
      #"{"url":"https://b.example/5","status":"checked","host":"b.example","findings":[{"id":"moov-last","level":"note"}]}"#,
      #"{"url":"https://b.example/4","status":"failed","permanent":false,"host":"b.example","error":{"kind":"timed_out","message":"late"}}"#,
      // Replaces the line of the first source.
      #"{"url":"https://a.example/1","status":"checked","host":"a.example","findings":[{"id":"redirects","level":"note","waived":false}]}"#,
    ] { report.add(Array(line.utf8)[...]) }
    let checked = try #require(report.checked)
    #expect((checked.errors, checked.warnings, checked.notes, checked.clean) == (1, 1, 2, 0))
    let findings = try #require(report.findings)
    #expect(findings.map(\.finding) == ["black/run", "moov-last", "moov-last", "redirects"])
    #expect(findings.map(\.level) == ["error", "warning", "note", "note"])
    #expect(findings.map(\.sources) == [1, 2, 1, 1])
    #expect(report.hosts.map(\.errors) == [0, 1])
    #expect(report.lines.first == "5 sources: 4 checked (1 with errors, 1 with warnings only), 1 failed")
    // Notes make no stream a bad one.
    #expect(report.worst?.faultiest.map(\.url) == ["https://a.example/2", "https://b.example/3"])
    let html = ResultsPage(report: report, files: ["results.jsonl"]).html
    for text in ["Worst streams", "black/run, moov-last", "with errors"] {
      let isThere = html.contains(text)
      #expect(isThere, "\(text)")
    }
  }

  @Test("A report of other commands does not mention checks")
  func none() {
    var report = ResultsReport()
    report.add(Array(#"{"url":"a.mp4","status":"written"}"#.utf8)[...])
    #expect(report.checked == nil && report.findings == nil)
    #expect(report.lines.first == "1 source: 1 written, 0 failed")
  }
}
