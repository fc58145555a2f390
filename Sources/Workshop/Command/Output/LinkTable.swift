import ReelCore
import ReelReplay

/// Walks over several links: a row for each report under its label, a column for each of a few metrics.
struct LinkTable: Sendable, Hashable {
  let reports: [WalkReport]

  static let metrics = [
    "ttff.p50", "second_frame.p50", "second_frame.p95", "hit.ratio", "stall.count", "stall.total",
    "bytes.fetched",
    "bytes.wasted", "failed", "abandoned",
  ]

  init(_ reports: [WalkReport]) { self.reports = reports }

  /// For people: the figures, then the items that failed. A figure that a walk does not have is a dash.
  var text: String {
    var table = TextTable([.left])
    table.add(["link and pool"] + Self.metrics)
    let metrics = Self.metrics.compactMap { name in WalkMetric.all.first { $0.name == name } }
    for report in reports {
      let totals = report.totals
      table.add([report.label] + metrics.map { $0.value(in: totals)?.description ?? "-" })
    }
    return (table.lines + reports.failureLines).joined(separator: "\n")
  }
}
