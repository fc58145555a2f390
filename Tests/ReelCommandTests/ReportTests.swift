import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand
import ReelPlayback
import ReelReading
import ReelSources

#if canImport(FoundationXML)
  import FoundationXML
#endif

@Suite("Pages and files of reports")
struct ReportTests {
  private static let hostile = "<script>alert(1)</script>\u{202e}\"'&\u{1b}[31m"

  private func isXML(_ text: String) -> Bool { XMLParser(data: Data(text.utf8)).parse() }

  private func images(of html: String) -> [String] {
    html.matches(of: /<svg.*?<\/svg>/.dotMatchesNewlines()).map { String($0.output) }
  }

  private func page(titles: [String]) -> String {
    var report = WalkReport.sample()
    report.swipes[4].waitParts = report.swipes[4].stageTimes
    report.failedItems[0].error = "https://me:secret@host/a.mp4?token=abc: 404 \(Self.hostile)"
    var outcome: [WalkAssertion.Outcome] = []
    for text in ["first_frame.p95<1ms", "failed<=1"] {
      if let assertion = try? WalkAssertion(parsing: text) { outcome.append(assertion.evaluate(report)) }
    }
    report.assertions = outcome
    var timeline = WalkTimeline()
    timeline.duration = .seconds(16)
    timeline.slotCount = 2
    timeline.bins = [.init(), .init()]
    timeline.bins[0].memory = [1_000, 2_000]
    timeline.bins[1].byteCounts = [0, 5_000]
    timeline.bins[1].frameCounts = [3]
    return WalkPage(
      report: report, timeline: timeline,
      items: titles.map { WalkPage.Item(title: Redaction.clean($0), picture: [1, 2, 3]) },
      linkRate: { _ in 1e6 }, run: RunDescription(arguments: ["feed", "feed.txt"]),
      warnings: [Self.hostile]
    ).html
  }

  @Test("A page of a walk is the same for the same values, and its images are XML")
  func walkPage() {
    let titles = (0..<12).map { "clip \($0)" }
    let html = page(titles: titles)
    #expect(html == page(titles: titles))
    let svgs = images(of: html)
    #expect(svgs.count > 10)
    for svg in svgs { #expect(isXML(svg), "\(svg.prefix(300))") }
    for heading in ["Timeline", "First frames", "Delays", "Longest waits", "Swipes", "What was run"] {
      #expect(html.contains("<h2>\(heading)</h2>"))
    }
    #expect(html.contains("reel feed feed.txt"))
    #expect(html.contains("not met"))
    // Nothing is loaded.
    #expect(html.firstMatch(of: /(src|href)="(?!data:image)/) == nil)
    #expect(html.firstMatch(of: /url\(|@import|fetch\(/) == nil)
  }

  @Test("A page of a modelled player leaves out what a model does not have")
  func modelledPage() {
    var report = WalkReport.sample()
    report.settings.player = "hls.js"
    (report.slotHighWaterByteCounts, report.poolHighWaterByteCount) = ([], nil)
    let feed = Feed(urls: [URL(filePath: "/a.mp4")])
    let recorder = TimelineRecorder(feed)
    func record(_ kind: WalkEvent.Kind, _ second: Int, _ change: (inout WalkEvent) -> Void) {
      var event = WalkEvent(kind, at: .seconds(second))
      event.item = feed.items.first?.id
      change(&event)
      recorder.record(event)
    }
    record(.assigned, 0) { $0.slot = 0 }
    for (second, kind) in [WalkEvent.Kind.request, .response, .received].enumerated() {
      record(kind, second) { ($0.request, $0.purpose, $0.byteCount) = (1, .segment, 5_000) }
    }
    for (second, stage) in [(1, PreloadStage.manifest), (2, .firstFrame)] {
      record(.reached, second) { $0.stage = stage }
    }
    let html = WalkPage(
      report: report, timeline: recorder.timeline, items: [.init(title: "a")], linkRate: { _ in 1e6 },
      run: RunDescription(arguments: ["feed"])
    ).html
    for svg in images(of: html) { #expect(isXML(svg), "\(svg.prefix(300))") }
    for words in ["Rates", "first frame", "rate of the link", "spread evenly"] {
      #expect(html.contains(words))
    }
    for words in ["First frames", "decoding", "frames decoded", "memory of slot", "Memory,", "own pool"] {
      #expect(!html.contains(words), "\(words)")
    }
  }

  @Test("Titles, errors and warnings are text, and secrets are left out")
  func hostile() {
    let html = page(titles: Array(repeating: Self.hostile, count: 12))
    #expect(html.matches(of: /<script/).count == 1)
    #expect(!html.contains("alert(1)</script>"))
    #expect(!html.contains("\u{202e}"))
    #expect(!html.contains("secret"))
    #expect(!html.contains("token"))
    for svg in images(of: html) { #expect(isXML(svg)) }
  }

  @Test("A page of a comparison has a line for each pool")
  func comparison() {
    let reports = ["1 none", "3 adjacent", "5 <b>"].map { WalkReport.sample(label: $0) }
    let page = ComparisonPage(
      reports: reports, run: RunDescription(arguments: ["feed", "f", "--compare", "1,3"]))
    #expect(page.html == page.html)
    for svg in images(of: page.html) { #expect(isXML(svg)) }
    #expect(page.html.contains("5 &lt;b&gt;"))
    #expect(page.html.contains("second_frame.p95\t"))
    #expect(!page.html.contains("<b>"))
  }

  @Test("A comparison begins with what came out")
  func answer() throws {
    func report(_ policy: String, slots: Int, _ delays: [Int], fetched: Int64, link: String = "lte")
      -> WalkReport
    {
      var report = WalkReport.sample(label: "\(slots) \(policy)")
      report.settings.policy = policy
      report.settings.slotCount = slots
      report.settings.link = link
      report.failedItems = []
      report.fetchedByteCount = fetched
      report.swipes = delays.enumerated().map { number, delay in
        var swipe = SwipeRecord(
          number: number + 1, time: .seconds(number), kind: .next, itemIndex: 0, itemID: "a",
          stage: .notLoaded)
        swipe.watched = .seconds(1)
        swipe.timeToFirstFrame = .zero
        swipe.timeToSecondFrame = .milliseconds(delay)
        return swipe
      }
      return report
    }
    let none = report("none", slots: 1, [30, 300], fetched: 1_000_000)
    let adaptive = report("adaptive", slots: 3, [30, 40], fetched: 2_500_000)
    let adjacent = report("adjacent", slots: 3, [20, 40], fetched: 3_000_000)
    func answer(_ reports: [WalkReport], planned: Int? = nil) -> String {
      reports.answer(links: "DNS", plannedCount: planned ?? reports.count)
    }
    #expect(
      answer([none, adaptive]).hasPrefix(
        "With Reel's own pool on lte, adaptive with 3 players shortens the wait at p95 by 260 ms, from 300 ms to 40 ms, "
          + "for 7.5 MB more per 10 swipes. From one walk for each choice, so without an interval. "))
    #expect(
      answer([adaptive, none]).contains("adaptive with 3 players is enough, with a wait at p95 of 40 ms"))
    #expect(
      answer([none, adaptive, adjacent]).contains(
        "; adjacent with 3 players waits the same, for 2.5 MB more per 10 swipes."))
    #expect(
      answer([none], planned: 3).hasPrefix(
        "So far, 1 of 3 walks: with Reel's own pool of 1 player on lte, none "))
    #expect(
      answer([report("none", slots: 1, [], fetched: 1)]).contains(
        ", no swipe was counted, so there are no waits."))
    let links = [
      none, adaptive, report("none", slots: 1, [50], fetched: 1_000_000, link: "3g"),
      report("adaptive", slots: 3, [60], fetched: 1_000_000, link: "3g"),
    ]
    #expect(answer(links).contains(" on lte and 3g, "), "\(answer(links))")
    #expect(answer(links).contains("From only 2 walks for each choice"), "\(answer(links))")
    var modelled = [none, adaptive]
    for place in modelled.indices { modelled[place].settings.player = "hls.js" }
    modelled[0].settings.policy = "hls.js"
    modelled[1].settings.policy = "hls.js preloading one item ahead (3 s)"
    #expect(
      answer(modelled).hasPrefix(
        "With hls.js on lte, preloading one item ahead (3 s) shortens the wait at p95 by 260 ms"))
    let page = ComparisonPage(
      reports: [none, adaptive], run: RunDescription(arguments: ["feed", "f"]), answer: "The answer."
    ).html
    #expect(page.contains("</header>\n<p>The answer.</p>"))
    #expect(page.contains("<td>second frame, p95</td>"))
    #expect(page.contains("1: none with 1 player"))
  }

  @Test(
    "What is left out of texts",
    arguments: [
      ("https://a.b/c.mp4", "https://a.b/c.mp4"), ("no URL: 3 < 4", "no URL: 3 < 4"),
      ("https://u:p@a.b/c?sig=1#x", "https://a.b/c?…"),
      ("at https://a/b?x=1: 404", "at https://a/b?…: 404"),
      ("(http://a/b?c)", "(http://a/b?…)"), ("data:text/plain;base64,QUJD", "data:…"),
      ("URI=\"data:,secret\"", "URI=\"data:…\""), ("metadata:x", "metadata:x"),
      ("https://a/@x/b", "https://a/@x/b"),
    ])
  func redaction(text: String, clean: String) { #expect(Redaction.clean(text) == clean) }

  @Test("The command line that repeats a run")
  func commandLine() {
    let outputs = RunDescription.outputOptions
    let line = Redaction.commandLine(
      [
        "feed", "my feed.txt", "--report", "a.html", "--header", "Authorization: Bearer x", "--key=00:11",
        "--assert",
        "first_frame.p95<1s", "--csv=b.csv",
      ], outputs: outputs)
    #expect(
      line == "reel feed 'my feed.txt' --header 'Authorization: …' --key … --assert 'first_frame.p95<1s'")
  }

  @Test(
    "Numbers of SVG", arguments: [(1.0, "1"), (-0.004, "0"), (-1.5, "-1.5"), (2.054, "2.05"), (.nan, "0")])
  func numbers(value: Double, text: String) { #expect(Markup.number(value) == text) }

  @Test("CSV as in RFC 4180")
  func csv() throws {
    let text = WalkCSV.text([.sample(label: "3, \"slots\"")], names: ["a\nb"])
    let lines = text.components(separatedBy: "\r\n")
    #expect(lines.count == 10)
    #expect(lines.last == "")
    #expect(lines[0].split(separator: ",").count == WalkCSV.columns.count)
    #expect(lines[1].hasPrefix("\"3, \"\"slots\"\"\",0,0,start,false,0,clip0.mp4,\"a\nb\","))
  }

  @Test("JUnit: a suite for each pool, a case for each assertion")
  func junit() throws {
    var report = WalkReport.sample(label: "3 <adjacent>")
    #expect(
      JUnitXML.text([.sample(label: "3 adjacent")]).contains("<testsuite name=\"adjacent with 3 players\""))
    for text in ["first_frame.p95<1ms", "failed<=1"] {
      report.assertions.append(try WalkAssertion(parsing: text).evaluate(report))
    }
    let text = JUnitXML.text([report])
    #expect(isXML(text))
    #expect(
      text.contains("<testsuites name=\"reel feed\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"16\">"))
    #expect(text.contains("tests=\"2\" failures=\"1\" errors=\"0\" time=\"16\">"))
    #expect(text.contains("name=\"failed&lt;=1\" time=\"0\"/>"))
    #expect(text.components(separatedBy: "<failure ").count == 2)
  }

  @Test(
    "First frames of a page: HDR is mapped to SDR", arguments: ["colour-hdr10-pq", "colour-709-limited"])
  func firstFrames(name: String) async throws {
    let feed = Feed(name: "feed", sources: [try MediaSource(argument: Fixtures.path("media/\(name).mp4"))])
    let (frames, item) = (FirstFrames(feed), try #require(feed.items.first))
    let plain = Locked<RGBImage?>(nil)
    let mapped = Locked<RGBImage?>(nil)
    _ = try await FrameExtractor(fetcher: makeFetcher()).extract(.first, from: item.source) { frame in
      frames.add(frame, of: item)
      let size = try #require(frames.all[0]).size
      let geometry = frame.geometry(target: size, gravity: .resize)
      let image = try FrameConverter().convert(frame, target: size, gravity: .resize)
      plain.withLock { $0 = image }
      let still = try StillRenderer().render(
        frame.decoded, geometry: geometry, orientation: frame.orientation)
      if case .eightBit(let pixels) = still.pixels {
        mapped.withLock { $0 = RGBImage(size: size, pixels: pixels) }
      }
    }
    let shown = try #require(frames.all[0])
    #expect(shown.pixels == mapped.withLock { $0?.pixels })
    #expect((shown.pixels == plain.withLock { $0?.pixels }) == !name.contains("hdr"))
  }

  @Test("A rung above the link is warned of, with the option that helps")
  func linkWarning() throws {
    var report = WalkReport.sample()
    #expect(LinkWarning.text([report], bitsPerSecond: 1_000_000, adapts: false) == nil)
    report.swipes[1].rungBitRate = 2_000_000
    let text = try #require(LinkWarning.text([report], bitsPerSecond: 1_600_000, adapts: false))
    #expect(text.contains("2 Mbit/s"))
    #expect(text.contains("--bandwidth 1280k"))
    #expect(LinkWarning.text([report], bitsPerSecond: 2_000_000, adapts: false) == nil)
  }

  @Test("Samples and events of a page of playback are bounded")
  func playRecorder() {
    let recorder = PlayRecorder()
    for tick in 0..<10_000 {
      recorder.record(
        PlayRecorder.Sample(time: Double(tick), buffered: 1, bandwidth: nil, rungBitRate: nil))
    }
    let samples = recorder.recording.samples
    #expect(samples.count <= PlayRecorder.sampleLimit)
    #expect(samples.count > PlayRecorder.sampleLimit / 4)
    #expect(samples.map(\.time) == samples.map(\.time).sorted())
  }
}
