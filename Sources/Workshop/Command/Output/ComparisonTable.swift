import ReelCore
import ReelReplay

/// Several walks side by side: a column for each report under its label, a row for each metric.
struct ComparisonTable: Sendable, Hashable {
  let reports: [WalkReport]

  /// The metrics that have a row, unless others are asked for.
  static let usualMetrics = [
    "ttff.p50", "ttff.p95", "ttff.p99", "ttff.max", "ttff.hit.p99", "ttff.miss.p95", "second_frame.p50",
    "second_frame.p95", "second_frame.p99",
    "second_frame.max", "second_frame.over100ms", "second_frame.over1s", "hit.ratio", "hit.ratio.buffered",
    "stall.count", "stall.total", "stall.max",
    "rebuffer.ratio", "rung.mean", "rung.switches", "bytes.fetched",
    "bytes.wasted", "frames.wasted", "slot.memory", "pool.memory", "failed", "abandoned",
  ]

  /// The names of the rows.
  let metrics: [String]

  init(_ reports: [WalkReport]) {
    self.reports = reports
    metrics = Self.usualMetrics
  }

  /// - Throws: `ReelError` of kind `usage` for a metric that there is not.
  init(_ reports: [WalkReport], metrics: [String]) throws(ReelError) {
    self.reports = reports
    var names: [String] = []
    for metric in metrics { names.append(try WalkMetric.named(metric).name) }
    self.metrics = names
  }

  /// For people: the metrics, then the items that failed. A figure that a walk does not have is a dash.
  var text: String {
    var table = TextTable([.left])
    table.add([""] + reports.map(\.label))
    let totals = reports.map(\.totals)
    for name in metrics {
      guard let metric = WalkMetric.all.first(where: { $0.name == name }) else { continue }
      table.add([name] + totals.map { metric.value(in: $0)?.description ?? "-" })
    }
    return (table.lines + reports.failureLines).joined(separator: "\n")
  }

  /// One line of JSON: `{"comparison": [...]}` with label, settings and totals of each report.
  func json() throws(ReelError) -> String {
    try JSONLine.string(["comparison": reports.map(Column.init)], of: "report")
  }

  // MARK: - Private

  private struct Column: Encodable {
    let label: String
    let settings: WalkSettings
    let totals: WalkTotals

    init(_ report: WalkReport) {
      label = report.label
      settings = report.settings
      totals = report.totals
    }
  }
}

extension [WalkReport] {
  /// A line for each item that failed, with the walks in which it did if it did not in all of them.
  var failureLines: [String] {
    var labels: [String: [String]] = [:]
    var lines: [String] = []
    for report in self {
      for line in report.failureLines {
        if labels[line] == nil { lines.append(line) }
        labels[line, default: []].append(report.label)
      }
    }
    return lines.map { line in
      guard let walks = labels[line], walks.count < count else { return line }
      return "\(line) (\(walks.joined(separator: ", ")))".printable
    }
  }
}

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
