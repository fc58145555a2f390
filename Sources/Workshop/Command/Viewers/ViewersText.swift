import Foundation
import ReelCore
import ReelLab
import ReelPool

/// The text of a run of `reel viewers`.
enum ViewersText {
  /// Returns the line of progress, with the last row.
  static func progress(_ row: ViewersRow, _ summary: ViewersSummary) -> String {
    let total = summary.counts
    var parts = [
      DurationText.readable(.seconds(Int((row.time / .seconds(1)).rounded()))),
      "\(row.present.count) of \(summary.viewers) viewers",
    ]
    if let start = summary.start { parts.append("start p95 \(DurationText.readable(start.p95))") }
    parts.append(row.present.waiting > 0 ? "\(row.present.waiting) stalled" : total.stalls.counted("stall"))
    if let rebuffering = total.rebuffering { parts.append("rebuffering \(WalkValue.share(rebuffering))") }
    parts.append(WalkValue.text(bitsPerSecond: row.bitRate))
    if total.errorCount > 0 { parts.append(total.errorCount.counted("error")) }
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
    func add(_ name: String, _ value: String) {
      lines.append("  " + name.padding(toLength: 13, withPad: " ", startingAt: 0) + value)
    }
    add("at once", summary.mostPresent.counted("viewer"))
    let left = counts.starts.count < counts.views ? ", of \(counts.starts.count.counted("view"))" : ""
    add("start", summary.start.map { times($0) + left } ?? "no first frame")
    let rebuffering = counts.rebuffering.map { ", rebuffering \(WalkValue.share($0))" } ?? ""
    add("stalls", "\(counts.stalls)\(rebuffering)")
    if let latency = summary.liveLatency {
      let (half, most) = (DurationText.readable(latency.p50), DurationText.readable(latency.p95))
      add("live edge", "p50 \(half), p95 \(most) behind")
    }
    let rungs = counts.rungShares.map { rung in
      "\(WalkValue.bitRate(Double(rung.bitRate))) \(WalkValue.share(rung.share))"
    }
    if !rungs.isEmpty { add("rungs", rungs.joined(separator: ", ")) }
    let rate = summary.bitRate.map { ", \(WalkValue.bitRate($0))" } ?? ""
    add("network", "\(WalkValue.size(counts.bytes)) in \(counts.requestCount.counted("request"))\(rate)")
    let requests = requests(counts).map { "\($0.status): \($0.count)" }
    if !requests.isEmpty { add("requests", requests.joined(separator: ", ")) }
    add("machine", machine(summary.machine))
    if let bottleneck = summary.machine.bottleneck {
      lines.append(layout.styled(bottleneck, .warning))
    }
    for table in [faultTable(counts.failed, "views failed"), faultTable(counts.errors, "errors")]
    where !table.isEmpty {
      lines += [""] + table.lines
    }
    // The others are faults, for standard error.
    let met = summary.assertions.filter(\.isMet)
    return met.isEmpty ? lines : lines + [""] + met.map { $0.text(in: layout) }
  }

  private static func times(_ start: LatencySummary) -> String {
    [("p50", start.p50), ("p95", start.p95), ("p99", start.p99), ("longest", start.max)]
      .map { "\($0) \(DurationText.readable($1))" }.joined(separator: ", ")
  }

  /// The requests by status, in words.
  static func requests(_ counts: ViewersCounts) -> [(status: String, count: Int)] {
    counts.requests.sorted { $0.key < $1.key }.map { ($0 == "none" ? "no answer" : $0, $1) }
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
