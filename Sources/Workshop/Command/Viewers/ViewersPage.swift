import ReelCore
import ReelLab
import ReelPool

/// A run of `reel viewers` as a page.
struct ViewersPage {
  let summary: ViewersSummary
  let rows: [ViewersRow]
  let run: RunDescription
  /// The settings of the run.
  let facts: [(name: String, value: String)]

  var html: String {
    let counts = summary.counts
    var page = ReportPage(
      title: "\(summary.viewers.counted("viewer")) of \(summary.sources.counted("source"))",
      subtitle: subtitle)
    page.add(ReportPage.list([summary.machine.bottleneck].compactMap { $0?.titled }, "alert bad"))
    page.add(
      ReportPage.tiles(
        ViewersFigures.all.filter { $0.places.contains(.page) }.compactMap { figure in
          figure.text(in: summary).map { (name: figure.title, value: $0) }
        }))
    page.add(
      "Over time", ReportPage.charts(courses),
      note: "Red: seconds in which the cores or the link of this machine were full.")
    page.add("Start", starts, note: "The share of views by the time to their first frame.")
    page.add("Rungs", rungs)
    page.add("Requests", requests)
    page.add(
      "Errors", ViewersText.faultTable(counts.errors, "cause").html(),
      note: "What could not be loaded at first: retried, replaced or lost.")
    page.add("Failed views", ViewersText.faultTable(counts.failed, "cause").html())
    page.add("Assertions", Table(assertions: summary.assertions).html())
    page.add("What was run", run.html(facts + [("machine", ViewersText.machine(summary.machine))]))
    return page.html
  }

  // MARK: - Private

  private var subtitle: String {
    DurationText.readable(summary.duration) + (summary.isInterrupted ? ", interrupted" : "")
  }

  private var courses: [String] {
    let duration = summary.duration / .seconds(1)
    let marks = rows.filter(\.machine.isFull).map { row in
      let end = row.time / .seconds(1)
      return (from: end - row.length / .seconds(1), to: end, title: "this machine was full")
    }
    func course(_ title: String, unit: String = "", _ value: (ViewersRow) -> Double?) -> String? {
      let points = rows.compactMap { row in value(row).map { (time: row.time / .seconds(1), value: $0) } }
      guard !points.isEmpty else { return nil }
      return Charts.course(title, points, duration: duration, unit: unit, marks: marks)
    }
    return [
      course("Viewers") { Double($0.present.count) },
      course("Starts per second") { $0.perSecond(Double($0.counts.starts.count)) },
      course("Start, p95", unit: " s") { row in
        LatencySummary(row.counts.starts).map { $0.p95 / .seconds(1) }
      },
      course("Stalls per second") { $0.perSecond(Double($0.counts.stalls)) },
      course("Rebuffering", unit: " %") { row in row.counts.rebuffering.map { $0 * 100 } },
      course("Behind the live edge, p95", unit: " s") { row in
        LatencySummary(row.present.latencies).map { $0.p95 / .seconds(1) }
      },
      course("Mean rung, in Mbit/s") { row in row.counts.meanRung.map { $0 / 1e6 } },
      course("Received, in Mbit/s") { $0.bitRate / 1e6 },
      course("Requests per second") { $0.perSecond(Double($0.counts.requestCount)) },
      course("Errors per second") { $0.perSecond(Double($0.counts.errorCount)) },
      course("Cores of this machine", unit: " %") { row in row.machine.cores.map { $0 * 100 } },
      course("Link of this machine", unit: " %") { row in row.machine.link.map { $0 * 100 } },
    ].compactMap(\.self)
  }

  private var starts: String {
    guard !summary.counts.starts.isEmpty else { return "" }
    let values = summary.counts.starts.map(\.milliseconds)
    return ReportPage.charts([
      Charts.delays("Time to the first frame", [.init(name: "", values: values)], axis: "time")
    ])
  }

  private var rungs: String {
    let rows = summary.counts.rungShares.map { bitRate, played, share in
      ["\(WalkValue.bitRate(Double(bitRate)))", DurationText.readable(played), "\(WalkValue.share(share))"]
    }
    return Table(["rung", "played", "share"], rows).html()
  }

  private var requests: String {
    Table(["status", "requests"], ViewersText.requests(summary.counts).map { [$0.status, "\($0.count)"] })
      .html()
  }
}
