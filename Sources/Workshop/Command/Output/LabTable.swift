import ReelCore
import ReelReplay

/// The results of a lab as text of at most 100 columns, or as many as the terminal has.
struct LabTable {
  private let summary: LabSummary

  /// Up to this many groups are printed in full; of more, one line each.
  private static let groupLimit = 4
  private static let nameLimit = 19
  private static let width = 100
  /// The groups that have a line.
  private static let lineLimit = 200

  init(_ summary: LabSummary) {
    self.summary = summary
  }

  var text: String {
    ([summary.extent] + sections).joined(separator: "\n\n")
  }

  // MARK: - Private

  /// Figures that a table has, with their headings.
  private static let columns: [(figure: LabResult.Figure, head: String)] = [
    (.secondFrameP50, "p50 ms"), (.secondFrameP95, "p95 ms"), (.secondFrameP99, "p99 ms"),
    (.secondFrameOver100ms, ">100 ms"), (.rebufferingRatio, "rebuf."), (.fetchedByteCount, "fetched"),
    (.wastedByteCount, "wasted"), (.meanBitRate, "Mbit/s"), (.peakMemory, "memory"),
  ]

  private static let differenceColumns: [(figure: LabResult.Figure, head: String)] = [
    (.secondFrameP95, "p95 ms"), (.rebufferingRatio, "rebuf. %"), (.wastedByteCount, "wasted MB"),
    (.peakMemory, "memory MB"),
  ]

  private var sections: [String] {
    guard let overall = summary.overall else { return [] }
    var parts = [full(overall, "All walks")]
    let margins = summary.groups(.dimension)
    let cells = summary.groups(.cell)
    let groups = margins + (cells.count > 1 ? cells : [])
    if groups.count <= Self.groupLimit {
      parts += groups.map { full($0, summary.name(of: $0.key)) }
    } else {
      parts.append(lines(groups))
    }
    parts.append(Self.notes)
    return parts
  }

  private func full(_ group: LabGroup, _ title: String) -> String {
    let walks = group.runCount.counted("walk")
    var lines = ["\(title): \(walks), means over walks"] + figures(group).lines
    let groups = Dictionary(grouping: group.rows) { $0.runCount }
    if groups.count > 1 {
      let counts = group.rows.map { "\(name($0.pool)) \($0.runCount)" }
      lines.append("  Pools have different numbers of walks: \(counts.joined(separator: ", "))")
    }
    if let baseline = summary.baseline, !group.differences.isEmpty {
      lines.append("  Difference from \(Redaction.clean(baseline).printable): means of pairs, 95 % intervals")
      lines += differences(group.differences) { name($0.pool) }
    }
    if !group.sizeDifferences.isEmpty {
      lines.append("  Pool sizes: means of pairs and 95 % intervals")
      lines += differences(group.sizeDifferences) { difference in
        "\(name(difference.pool)) - \(difference.baseline.slotCount)"
      }
    }
    return lines.joined(separator: "\n")
  }

  private func figures(_ group: LabGroup) -> TextTable {
    var table = TextTable([.left], indentation: 2)
    let columns = Self.columns.filter { column in group.rows.contains { $0.mean(column.figure) != nil } }
    table.add([""] + columns.map(\.head))
    for row in group.rows {
      let cells = columns.map { figure, _ in
        row.mean(figure).map { value in
          figure.unit == .time || figure.unit == .bitRate ? figure.plain(value) : figure.text(value)
        } ?? "-"
      }
      table.add([name(row.pool)] + cells + [row.isOnFront ? "*" : ""])
    }
    return table
  }

  /// Has as many of the figures as fit.
  private func differences(_ differences: [LabDifference], name: (LabDifference) -> String) -> [String] {
    var columns = Self.differenceColumns.filter { column in
      differences.contains { $0.figures[column.figure] != nil }
    }
    while true {
      var table = TextTable([.left], indentation: 2)
      table.add([""] + columns.map(\.head))
      for difference in differences {
        table.add(
          [name(difference)]
            + columns.map { figure, _ in difference.figures[figure].map { figure.plain($0) } ?? "-" })
      }
      let lines = table.lines
      // A terminal has its own width, to which the table is fitted.
      guard Terminal.layout.width == nil, columns.count > 1, lines.contains(where: { $0.count > Self.width })
      else { return lines }
      columns.removeLast()
    }
  }

  /// A line for each group: the pool with the lowest p95, and how it differs from the baseline.
  private func lines(_ groups: [LabGroup]) -> String {
    var table = TextTable([.left, .right, .left], indentation: 2)
    let hasBaseline = summary.baseline != nil
    table.add(
      ["group", "walks", "lowest p95", "ms"]
        + (hasBaseline ? ["less \(TextLayout.truncated(summary.baseline ?? "", to: Self.nameLimit))"] : []))
    for group in groups.prefix(Self.lineLimit) {
      let best = zip(group.rows, group.standings(.secondFrameP95)).first { $1 == .best }?.0
      let mean = best?.mean(.secondFrameP95).map { LabResult.Figure.secondFrameP95.plain($0) }
      let difference = group.differences.first { $0.pool == best?.pool }?.figures[.secondFrameP95]
      table.add(
        [
          TextLayout.truncated(summary.name(of: group.key), to: 42), "\(group.runCount)",
          best.map { name($0.pool) } ?? "-", mean ?? "-",
        ] + (hasBaseline ? [difference.map { LabResult.Figure.secondFrameP95.plain($0) } ?? "-"] : []))
    }
    var lines = table.lines
    let more = groups.count - Self.lineLimit
    if more > 0 { lines.append("  and \(more.counted("more group"))") }
    return (lines + ["  --json and --report have all figures of each group."]).joined(separator: "\n")
  }

  private static let notes = """
    * on the Pareto front of p95, rebuffering, wasted bytes and memory
    p50, p95, p99, >100 ms: delay of the second frame; pairs: walks that differ only in the pool
    """

  private func name(_ pool: LabPool) -> String {
    TextLayout.truncated(summary.name(of: pool), to: Self.nameLimit)
  }
}
