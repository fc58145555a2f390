import Foundation
import HTTPTypes
import ReelCore
import ReelPlayback
import ReelPool
import ReelSources
import ReelTestSupport
import Testing

@testable import ReelCommand
@testable import ReelLab

#if canImport(FoundationXML)
  import FoundationXML
#endif

@Suite("Figures of viewers")
struct ViewersFiguresTests {
  private func event(_ time: Duration, viewer: Int = 0, _ kind: ViewerEvent.Kind) -> ViewerEvent {
    ViewerEvent(viewer: viewer, session: 0, look: 0, time: time, kind)
  }

  /// A viewer who starts after 400 ms, plays from 0.5 s on, and stalls from 2 s to 3 s.
  private var tally: ViewersTally {
    let tally = ViewersTally(ViewersSummary(viewers: 2, sources: 1), end: .seconds(60))
    tally.record(event(.zero, .began))
    tally.record(event(.milliseconds(100), .rung(ItemRung(id: "1", bitRate: 400_000))))
    tally.record(event(.milliseconds(400), .started(after: .milliseconds(400))))
    tally.record(event(.milliseconds(500), .playing))
    tally.record(event(.seconds(2), .stalled))
    tally.record(event(.seconds(3), .playing))
    return tally
  }

  @Test("Times count up to each row, and each event in one row")
  func rows() {
    let tally = tally
    let row = tally.row(at: .seconds(4), machine: MachineLoad(cores: 0.3))
    let (first, present) = (row.counts, row.present)
    #expect(row.time == .seconds(4) && row.length == .seconds(4) && row.machine.cores == 0.3)
    #expect(first.views == 1 && first.starts == [.milliseconds(400)] && first.stalls == 1)
    #expect(first.played == .milliseconds(2_500) && first.waited == .seconds(1))
    #expect(first.rebuffering == Duration.seconds(1) / .milliseconds(3_500))
    #expect(first.rungs == [400_000: .milliseconds(3_500)] && first.meanRung == 400_000)
    #expect(present.playing == 1 && present.count == 1 && present.rungs == [400_000: 1])
    let rest = tally.row(at: .seconds(5), machine: nil)
    let second = rest.counts
    #expect(rest.length == .seconds(1) && second.views == 0 && second.starts.isEmpty && second.stalls == 0)
    #expect(second.played == .seconds(1) && second.waited == .zero && second.rebuffering == 0)
    let summary = tally.summary
    #expect(summary.duration == .seconds(5) && summary.mostPresent == 1 && summary.machine.cores == 0.3)
    #expect(summary.counts.played == .milliseconds(3_500) && summary.counts.views == 1)
    #expect(tally.rows.map(\.time) == [.seconds(4), .seconds(5)])
    // A short rest belongs to the row before.
    _ = tally.row(at: .milliseconds(5_300), machine: nil)
    #expect(tally.rows.map(\.length) == [.seconds(4), .milliseconds(1_300)])
  }

  @Test("A viewer who has left is not there, and its failure has a cause and a host")
  func left() {
    let tally = tally
    tally.record(event(.seconds(4), viewer: 1, .began))
    var sums = ViewerSums(source: 0, decodes: false, began: .zero)
    sums.ending = .failed(ReelError(.server, "404 Not Found", at: "http://cdn.example/a.m3u8", status: 404))
    sums.latency = .seconds(6)
    tally.record(event(.seconds(4), viewer: 1, .left(sums)))
    let row = tally.row(at: .seconds(4), machine: nil)
    #expect(row.present.count == 1 && row.counts.views == 2)
    #expect(row.counts.failed == [.init(cause: "server 404", host: "cdn.example"): 1])
    #expect(tally.summary.latencies == [.seconds(6)] && tally.summary.mostPresent == 2)
  }

  @Test("A viewer who stays to the end is in the last row, and plays no longer")
  func end() {
    let tally = ViewersTally(ViewersSummary(viewers: 1, sources: 1), end: .seconds(2))
    tally.record(event(.zero, .began))
    tally.record(event(.seconds(1), .playing))
    let sums = ViewerSums(source: 0, decodes: false, began: .zero)
    tally.record(event(.seconds(2), .left(sums)))
    let row = tally.row(at: .milliseconds(2_004), machine: nil)
    #expect(row.present.playing == 1 && row.counts.played == .seconds(1))
  }

  @Test("Each request counts once, by the status of its own answer")
  func requests() throws {
    let tally = ViewersTally(ViewersSummary(viewers: 1, sources: 1), end: .seconds(60))
    let url = try #require(URL(string: "http://a.example/1.ts"))
    // A redirect, an attempt that failed, and the answer.
    var metrics = RequestMetrics(url: url, purpose: .segment, requestCount: 3)
    (metrics.status, metrics.redirectCount, metrics.failedAttemptCount) = (200, 1, 1)
    metrics.byteCount = 1_000
    let busy = ReelError(.server, "503 Service Unavailable", at: url.absoluteString, status: 503)
    tally.record(event(.zero, .failure(busy, .repeated(status: 503))))
    tally.record(event(.zero, .request(metrics)))
    let lost = ReelError(.network, "the connection was lost", at: url.absoluteString)
    metrics = RequestMetrics(url: url, purpose: .segment, requestCount: 1)
    metrics.outcome = .failed(lost)
    tally.record(event(.zero, .request(metrics)))
    tally.record(event(.zero, .failure(lost, .handled(.otherRung))))
    let counts = tally.row(at: .seconds(1), machine: nil).counts
    #expect(counts.requests == ["200": 1, "3xx": 1, "503": 1, "none": 1] && counts.requestCount == 4)
    #expect(counts.bytes == 1_000)
    #expect(
      counts.errors == [
        .init(cause: "server 503", host: "a.example"): 1, .init(cause: "network", host: "a.example"): 1,
      ])
  }

  @Test("The machine is a bottleneck from more than 5 % of the time on")
  func bottleneck() throws {
    var use = MachineUse()
    for second in 0..<100 { use.add(MachineLoad(cores: second < 5 ? 0.96 : 0.4)) }
    #expect(use.fullCores == 0.05 && use.bottleneck == nil)
    for _ in 0..<2 { use.add(MachineLoad(cores: 0.2, lateness: .milliseconds(300))) }
    #expect(try #require(use.bottleneck).contains("its cores were full for 7 % of the time"))
    var link = MachineUse()
    link.add(MachineLoad(link: 0.95))
    #expect(try #require(link.bottleneck).contains("its link was full for 100 % of the time"))
  }

  @Test("A machine's load is measured from one call to the next")
  func meter() {
    var meter = MachineMeter()
    let load = meter.load(lateness: .milliseconds(2))
    #expect(load.lateness == .milliseconds(2))
    #expect([load.cores, load.link].allSatisfy { $0.map { (0...1).contains($0) } ?? true })
  }

  private var summary: ViewersSummary {
    let tally = tally
    _ = tally.row(at: .seconds(4), machine: nil)
    var summary = tally.summary
    summary.counts.requests = ["200": 9, "404": 1]
    summary.counts.errors = [.init(cause: "server 404", host: "a.example"): 1]
    summary.counts.bytes = 1_000_000
    summary.mostPresent = 2
    return summary
  }

  @Test(
    "Assertions",
    arguments: [
      ("start.p95<=400ms", true), ("start.p95<400ms", false), ("failed=0", true), ("errors<11%", true),
      ("rebuffering<20%", false), ("rate=2Mbit", true), ("requests=10", true), ("live_latency.p95<9s", false),
      ("rung.mean>=400k", true), ("viewers=2", true), ("machine.cores=0%", true),
    ])
  func assertion(text: String, isMet: Bool) throws {
    #expect(try ViewersFigures.assertion(text).evaluate(summary).isMet == isMet)
  }

  @Test("A page is the same for the same values, and its images are XML")
  func page() throws {
    let tally = tally
    for second in 1...3 {
      _ = tally.row(at: .seconds(second), machine: MachineLoad(cores: second == 2 ? 1 : 0.2))
    }
    let run = RunDescription(arguments: [
      "viewers", "http://a.example/?token=SECRET", "--query", "key=SECRET",
    ])
    let page = ViewersPage(summary: summary, rows: tally.rows, run: run, facts: [("link", "lte")])
    let html = page.html
    #expect(html == page.html)
    let images = html.matches(of: /<svg.*?<\/svg>/.dotMatchesNewlines()).map { String($0.output) }
    #expect(images.count >= 8)
    for image in images { #expect(XMLParser(data: Data(image.utf8)).parse(), "\(image.prefix(300))") }
    for heading in ["Over time", "Start", "Rungs", "Requests", "Errors", "What was run"] {
      #expect(html.contains("<h2>\(heading)</h2>"), "\(heading)")
    }
    #expect(!html.contains("SECRET") && html.contains("this machine was full"))
  }

  @Test("Two rows joined have the counts of both, and the viewers of the second")
  func joined() {
    let tally = tally
    func row(_ second: Int) -> ViewersRow {
      tally.row(at: .seconds(second), machine: MachineLoad(cores: Double(second) / 10))
    }
    let (first, second) = (row(4), row(5))
    let joined = first.joined(with: second)
    #expect(joined.time == .seconds(5) && joined.length == .seconds(5))
    #expect(joined.counts.played == .milliseconds(3_500) && joined.counts.stalls == 1)
    #expect(joined.machine.cores == 0.5 && joined.perSecond(10) == 2)
  }

  @Test("A report joins views, and says if their machines were full")
  func report() throws {
    var report = ResultsReport()
    func add(viewer: Int, stalls: Int, _ more: String = "") {
      let view = "\"viewer\":\(viewer),\"session\":1,\"number\":1,\"stalls\":\(stalls)"
      let line =
        "{\"url\":\"a\",\"status\":\"watched\",\"startup\":{\"total_ms\":\(viewer * 100)},"
        + "\"view\":{\(view),\"played_ms\":900,\"waited_ms\":100\(more)}}"
      report.add(Array(line.utf8)[...])
    }
    for viewer in 1...20 { add(viewer: viewer, stalls: 1, viewer == 1 ? ",\"machine_full\":true" : "") }
    // Replaces an earlier one.
    add(viewer: 20, stalls: 3)
    let views = try #require(report.views)
    #expect(views.count == 20 && views.viewers == 20 && views.stalls == 22 && views.machineFull == 1)
    #expect(report.supersededCount == 1 && report.startup?.max == .seconds(2))
    #expect(try #require(views.rebuffering).formatted(places: 3) == "0.1")
    #expect(views.bottleneck == nil)
    add(viewer: 21, stalls: 0, ",\"machine_full\":true")
    #expect(report.views?.bottleneck?.contains("the figures are not those of the server") == true)
    #expect(report.lines.contains { $0.hasPrefix("21 views of 21 viewers: 21 watched, 0 failed") })
  }

  @Test("OpenMetrics text has a type for each name, and ends as it must")
  func openMetrics() {
    let tally = tally
    let row = tally.row(at: .seconds(4), machine: nil)
    var counts = row.counts
    counts.requests = ["200": 2]
    counts.errors = [.init(cause: "network", host: "a\"b"): 3]
    let text = ViewersMetrics(present: row.present, total: counts, machine: MachineLoad(cores: 0.5)).text
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.suffix(2) == ["# EOF", ""])
    for line in [
      "reel_viewers{state=\"playing\"} 1", "reel_viewers{state=\"waiting\"} 0", "reel_views_total 1",
      "reel_start_seconds_bucket{le=\"0.25\"} 0", "reel_start_seconds_bucket{le=\"0.5\"} 1",
      "reel_start_seconds_bucket{le=\"+Inf\"} 1", "reel_start_seconds_sum 0.4",
      "reel_played_seconds_total 2.5", "reel_requests_total{status=\"200\"} 2",
      "reel_errors_total{cause=\"network\",host=\"a\\\"b\"} 3", "reel_machine_used_ratio{part=\"cores\"} 0.5",
      "reel_rung_viewers{bit_rate=\"400000\"} 1",
    ] {
      #expect(lines.contains(Substring(line)), "\(line)")
    }
    let types = lines.filter { $0.hasPrefix("# TYPE ") }
    #expect(Set(types).count == types.count)
  }
}
