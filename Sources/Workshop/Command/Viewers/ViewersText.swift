import Foundation
import ReelCore
import ReelLab
import ReelPool

/// The text of a run of `reel viewers`.
enum ViewersText {
  /// Returns the line of progress.
  ///
  /// - Parameter total: All rows so far.
  static func progress(_ row: ViewersRow, of viewers: Int, total: ViewersCounts) -> String {
    var parts = [
      DurationText.readable(.seconds(Int((row.time / .seconds(1)).rounded()))),
      "\(row.present.count) of \(viewers) viewers",
    ]
    if let start = LatencySummary(total.starts) {
      parts.append("start p95 \(DurationText.readable(start.p95))")
    }
    parts.append(row.present.waiting > 0 ? "\(row.present.waiting) stalled" : total.stalls.counted("stall"))
    if let rebuffering = total.rebuffering { parts.append("rebuffering \(WalkValue.share(rebuffering))") }
    parts.append(WalkValue.text(bitsPerSecond: row.bitRate))
    let faults = total.errorCount + total.failedCount
    if faults > 0 { parts.append(total.errorCount.counted("error")) }
    if row.machine.isFull { parts.append("this machine is full") }
    return parts.joined(separator: "  ")
  }

  static func lines(_ summary: ViewersSummary) -> [String] {
    let (layout, counts) = (Terminal.layout, summary.counts)
    let failed = counts.failedCount
    var lines = [
      "\(summary.viewers.counted("viewer")) of \(summary.sources.counted("source")), "
        + "\(DurationText.readable(summary.duration)): \(counts.views.counted("view")), "
        + layout.styled("\(failed) failed", failed > 0 ? .bad : nil)
        + (summary.isInterrupted ? ", interrupted" : "")
    ]
    for (name, value) in rows(summary) {
      lines.append("  " + name.padding(toLength: 13, withPad: " ", startingAt: 0) + value)
    }
    if let bottleneck = summary.machine.bottleneck {
      lines.append(layout.styled(bottleneck, .warning))
    }
    for table in [faultTable(counts.failed, "views failed"), faultTable(counts.errors, "errors")]
    where !table.isEmpty {
      lines += [""] + table.lines
    }
    if !summary.assertions.isEmpty { lines.append("") }
    for outcome in summary.assertions {
      lines.append(layout.styled("\(outcome)", outcome.isMet ? .good : .bad))
    }
    return lines
  }

  /// The names and values below the first line.
  private static func rows(_ summary: ViewersSummary) -> [(String, String)] {
    let counts = summary.counts
    var rows: [(String, String)] = [("at once", summary.mostPresent.counted("viewer"))]
    rows.append(
      (
        "start",
        summary.start.map { start in
          let times = [("p50", start.p50), ("p95", start.p95), ("p99", start.p99), ("longest", start.max)]
          return times.map { "\($0) \(DurationText.readable($1))" }.joined(separator: ", ")
        } ?? "no first frame"
      ))
    rows.append(
      (
        "stalls",
        "\(counts.stalls)" + (counts.rebuffering.map { ", rebuffering \(WalkValue.share($0))" } ?? "")
      ))
    if let latency = summary.liveLatency {
      rows.append(
        (
          "live edge",
          "p50 \(DurationText.readable(latency.p50)), p95 \(DurationText.readable(latency.p95)) behind"
        ))
    }
    let watched = counts.rungs.values.reduce(.zero, +)
    if watched > .zero {
      let rungs = counts.rungs.sorted { $0.key < $1.key }.map { rung, time in
        "\(WalkValue.bitRate(Double(rung))) \(WalkValue.share(time / watched))"
      }
      rows.append(("rungs", rungs.joined(separator: ", ")))
    }
    let rate = summary.bitRate.map { ", \(WalkValue.bitRate($0))" } ?? ""
    rows.append(
      ("network", "\(WalkValue.size(counts.bytes)) in \(counts.requestCount.counted("request"))\(rate)"))
    if !counts.requests.isEmpty { rows.append(("requests", statuses(counts))) }
    rows.append(("machine", machine(summary.machine)))
    return rows
  }

  static func statuses(_ counts: ViewersCounts) -> String {
    counts.requests.sorted { $0.key < $1.key }.map { status, count in
      "\(status == "none" ? "no answer" : status): \(count)"
    }.joined(separator: ", ")
  }

  static func machine(_ use: MachineUse) -> String {
    var parts: [String] = []
    if let cores = use.cores { parts.append("cores used \(WalkValue.share(cores))") }
    parts.append("full for \(WalkValue.share(use.fullCores)) of the time")
    if let link = use.link { parts.append("link used up to \(WalkValue.share(link))") }
    return parts.joined(separator: ", ")
  }

  static func faultTable(_ faults: [ViewersCounts.Fault: Int], _ heading: String) -> Table {
    var table = Table([.left, .left, .right])
    table.add([heading, "host", "count"])
    for (fault, count) in ViewersCounts.sorted(faults) {
      table.add([fault.cause.spelledOut, fault.host.isEmpty ? "-" : fault.host, "\(count)"])
    }
    return table
  }
}
