import Foundation
import ReelCore
import ReelPool
import ReelLab

/// The results of a lab as text of at most 100 columns, or as many as the terminal has.
struct LabTable {
  private let summary: LabSummary

  /// The maximum number of groups that are printed in full; if there are more, each has one line.
  private static let groupLimit = 4
  private static let nameLimit = 19
  private static let width = 100
  /// The maximum number of groups with a line.
  private static let lineLimit = 200

  init(_ summary: LabSummary) {
    self.summary = summary
  }

  var text: String {
    ([summary.extent] + sections).joined(separator: "\n\n")
  }

  // MARK: - Private

  private var sections: [String] {
    guard let overall = summary.overall else { return [] }
    var parts = [full(overall, "All walks")]
    let groups = summary.partialGroups
    if overall.rows.count == 1 {
      parts += groups.isEmpty ? [] : [onePool(groups)]
    } else if groups.count <= Self.groupLimit {
      parts += groups.map { full($0, summary.name(of: $0.key)) }
    } else {
      parts.append(lines(groups))
    }
    parts.append(
      overall.rows.count == 1 ? Self.delayNote : "\(Self.frontNote)\n\(Self.delayNote); \(Self.pairNote)")
    return parts
  }

  private func full(_ group: LabGroup, _ title: String) -> String {
    let walks = group.runCount.counted("walk")
    var lines =
      ["\(title): \(walks), means over walks"] + figures(group.rows.map { (name($0.pool), $0) }).lines
    let groups = Dictionary(grouping: group.rows) { $0.runCount }
    if groups.count > 1 {
      let counts = group.rows.map { "\(name($0.pool)) \($0.runCount)" }
      lines.append("  Pools have different numbers of walks: \(counts.joined(separator: ", "))")
    }
    if let baseline = summary.baseline, !group.differences.isEmpty {
      lines.append("  Difference from \(Redaction.clean(baseline)): means of pairs, 95 % intervals")
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

  /// Returns a line for each group of a lab with one pool, which compares feeds, links, viewers or devices.
  private func onePool(_ groups: [LabGroup]) -> String {
    let rows = groups.prefix(Self.lineLimit).flatMap { group in
      group.rows.map { (TextLayout.truncated(summary.name(of: group.key), to: Self.nameLimit), $0) }
    }
    let more = groups.count - Self.lineLimit
    return
      (["Groups: means over walks"] + figures(rows).lines
      + (more > 0 ? ["  and \(more.counted("more group"))"] : [])).joined(separator: "\n")
  }

  private func figures(_ rows: [(name: String, row: LabGroup.Row)]) -> Table {
    var table = Table([.left], indentation: 2)
    let columns = WalkFigures.all(in: .means).filter { figure in
      figure.heading != nil && rows.contains { $0.row.mean(figure) != nil }
    }
    table.add([""] + columns.map { "\($0.heading ?? "")\($0.costKind == .time ? " ms" : "")" })
    let isCompared = Set(rows.map(\.row.pool)).count > 1
    for (name, row) in rows {
      let cells = columns.map { figure in
        row.mean(figure).map { value in
          figure.costKind == .time || figure.costKind == .bitRate ? figure.plain(value) : figure.text(value)
        } ?? "-"
      }
      table.add([name] + cells + [row.isOnFront && isCompared ? "*" : ""])
    }
    return table
  }

  /// Returns a table with as many of the figures as fit.
  private func differences(_ differences: [LabDifference], name: (LabDifference) -> String) -> [String] {
    var columns = WalkFigures.all(in: .front).filter { figure in
      differences.contains { $0.figures[figure.name] != nil }
    }
    while true {
      var table = Table([.left], indentation: 2)
      table.add([""] + columns.map { "\($0.heading ?? "") \($0.costKind.unit)" })
      for difference in differences {
        table.add(
          [name(difference)]
            + columns.map { figure in difference.figures[figure.name].map { figure.plain($0) } ?? "-" })
      }
      let lines = table.lines
      // A terminal has its own width, to which the table is fitted.
      guard Terminal.layout.width == nil, columns.count > 1, lines.contains(where: { $0.count > Self.width })
      else { return lines }
      columns.removeLast()
    }
  }

  /// Returns a line for each group: the pool with the lowest p95, and its difference from the baseline.
  private func lines(_ groups: [LabGroup]) -> String {
    var table = Table([.left, .right, .left], indentation: 2)
    let (hasBaseline, delay) = (summary.baseline != nil, WalkFigures["second_frame.p95"])
    table.add(
      ["group", "walks", "lowest p95", "ms"]
        + (hasBaseline
          ? ["difference from \(TextLayout.truncated(summary.baseline ?? "", to: Self.nameLimit))"] : []))
    for group in groups.prefix(Self.lineLimit) {
      let best = zip(group.rows, group.standings(delay)).first { $1 == .best }?.0
      let mean = best?.mean(delay).map { delay.plain($0) }
      let difference = group.differences.first { $0.pool == best?.pool }?.figures[delay.name]
      table.add(
        [
          TextLayout.truncated(summary.name(of: group.key), to: 42), "\(group.runCount)",
          best.map { name($0.pool) } ?? "-", mean ?? "-",
        ] + (hasBaseline ? [difference.map { delay.plain($0) } ?? "-"] : []))
    }
    var lines = table.lines
    let more = groups.count - Self.lineLimit
    if more > 0 { lines.append("  and \(more.counted("more group"))") }
    return (lines + ["  --json and --report have all figures of each group."]).joined(separator: "\n")
  }

  private static let frontNote =
    "* on the Pareto front of \(WalkFigures.all(in: .front).compactMap(\.heading).joined(separator: ", "))"
  private static let delayNote = "p50, p95, p99, >100 ms: delay of the second frame"
  private static let pairNote = "pairs: walks that differ only in the pool"

  private func name(_ pool: LabPool) -> String {
    TextLayout.truncated(summary.name(of: pool), to: Self.nameLimit)
  }
}

extension WalkValue.Kind {
  /// The unit of a table's numbers; empty for none.
  var unit: String {
    switch self {
    case .time: "ms"
    case .share: "%"
    case .size: "MB"
    case .bitRate: "Mbit/s"
    case .count: ""
    }
  }

  /// One of ``unit``.
  var scale: Double {
    switch self {
    case .time, .count: 1
    case .share: 0.01
    case .size, .bitRate: 1e6
    }
  }
}

extension WalkFigure {
  /// The title with the unit of a table's numbers.
  var head: String { costKind.unit.isEmpty ? title : "\(title), \(costKind.unit)" }

  private func withUnit(_ plain: String) -> String {
    costKind.unit.isEmpty ? plain : "\(plain) \(costKind.unit)"
  }

  /// A value with its unit: `93.2 ms`, `3.5 MB`, `97.5 %`.
  func text(_ value: Double) -> String { withUnit(plain(value)) }

  /// Returns a value with its unit and enough decimals to distinguish it from values that differ by `step`.
  func text(_ value: Double, step: Double) -> String {
    let digits = step > 0 ? Int((-log10(step / costKind.scale)).rounded(.up)) : 0
    return withUnit((value / costKind.scale).formatted(places: min(max(digits, 0), 6)))
  }

  /// A value in the unit of tables, with fewer decimals for larger values.
  func plain(_ value: Double) -> String { plain([value])[0] }

  /// Values in the unit of tables, with as many decimals as suit the largest.
  ///
  /// - Parameter moreDecimals: The number of additional decimals.
  func plain(_ values: [Double], moreDecimals: Int = 0) -> [String] {
    let scaled = values.map { $0 / costKind.scale }
    let most = scaled.map(\.magnitude).max() ?? 0
    // A rate's second decimal is 10 kbit/s.
    let places = (most >= 100 ? 0 : most >= 10 || costKind == .time ? 1 : 2) + moreDecimals
    return scaled.map { value in
      let text = value.formatted(places: places)
      return text == "-0" ? "0" : text
    }
  }

  /// A difference with its interval, in the unit of tables: `-501 [-640, -372]`; without an interval, `-501`.
  func plain(_ difference: LabDifference.Figure) -> String {
    guard let interval = difference.interval else { return plain(difference.mean) }
    let values = [difference.mean, interval.lower, interval.upper]
    var texts = plain(values)
    // An interval that excludes 0 must not print as if it ended there.
    for more in 1...3 where interval.excludesZero && texts.contains("0") {
      texts = plain(values, moreDecimals: more)
    }
    return "\(texts[0]) [\(texts[1]), \(texts[2])]"
  }
}

extension LabSummary {
  /// Returns the name of a pool: its policy, after the number of slots if the lab has several.
  func name(of pool: LabPool) -> String {
    let policy = Redaction.clean(pool.policy)
    return dimensions.slotCounts.count > 1 ? "\(pool.slotCount) \(policy)" : policy
  }

  /// Returns the name of the difference of two pools: `5 adaptive - 3 adaptive`.
  func name(of difference: LabDifference, minus: String) -> String {
    "\(name(of: difference.pool)) \(minus) \(name(of: difference.baseline))"
  }

  /// Returns the name of a group: the values that not all walks of the lab share.
  ///
  /// - Parameter slots: False to leave out the number of slots.
  func name(of key: LabGroup.Key, slots: Bool = true) -> String {
    var parts: [String] = []
    func add(_ value: String?, _ values: [String]) {
      if let value, values.count > 1 { parts.append(Redaction.clean(value)) }
    }
    add(key.feed, dimensions.feeds)
    add(key.linkGroup, dimensions.linkGroups)
    add(key.viewer, dimensions.viewers)
    add(key.device, dimensions.devices)
    if slots, let count = key.slotCount, dimensions.slotCounts.count > 1 {
      parts.append(count.counted("slot"))
    }
    return parts.isEmpty ? "all walks" : parts.joined(separator: ", ")
  }

  /// The extent of the lab: `168 walks: 1 feed, 16 links in 4 groups, ...`.
  var extent: String {
    let slots = dimensions.slotCounts.map(String.init).joined(separator: " and ")
    let links = dimensions.links.count.counted("link")
    let groups = dimensions.linkGroups.count
    let parts = [
      dimensions.feeds.count.counted("feed"),
      groups == dimensions.links.count ? links : "\(links) in \(groups.counted("group"))",
      dimensions.viewers.count.counted("viewer"), dimensions.devices.count.counted("device"),
      dimensions.slotCounts == [1] ? "1 slot" : "\(slots) slots",
      dimensions.policies.count.counted("policy", "policies"),
      dimensions.seeds.count.counted("seed"),
    ]
    return "\(walks): \(parts.joined(separator: ", "))"
  }

  /// `144 walks`, or `8 of 144 walks, interrupted`.
  var walks: String {
    runCount == plannedCount
      ? runCount.counted("walk") : "\(runCount) of \(plannedCount.counted("walk")), interrupted"
  }
}

/// The progress of `reel lab`, for the line on a terminal.
final class LabProgress: Sendable {
  private struct State {
    var total = 0
    var done = 0
    var failed = 0
    /// The number of runs that have ended since `began`.
    var ended = 0
    var began = ContinuousClock.now
  }

  private let state = Locked(State())

  /// - Parameter done: The number of runs that were done before.
  func begin(total: Int, done: Int) {
    state.withLock { $0 = State(total: total, done: done) }
  }

  /// Records that a run has ended.
  func record(hasFailed: Bool) {
    state.withLock { state in
      state.ended += 1
      if hasFailed { state.failed += 1 } else { state.done += 1 }
    }
  }

  /// `120 of 400 runs, 2 failed, about 3 min left`.
  var text: String {
    let now = state.withLock { $0 }
    guard now.total > 0 else { return "" }
    var text = "\(now.done) of \(now.total) runs"
    if now.failed > 0 { text += ", \(now.failed) failed" }
    let seconds = (ContinuousClock.now - now.began) / .seconds(1)
    let rest = now.total - now.done - now.failed
    if now.ended > 0, rest > 0 {
      text += ", about \(Self.time(seconds / Double(now.ended) * Double(rest))) left"
    }
    return text
  }

  /// Returns a time in words: `40 s`, `12 min`, `3.5 h`.
  static func time(_ seconds: Double) -> String {
    switch seconds {
    case ..<100: "\(max(1, seconds).formatted(places: 0)) s"
    case ..<6000: "\((seconds / 60).formatted(places: 0)) min"
    case ..<360_000: "\((seconds / 3600).formatted(places: 1)) h"
    default: "\((seconds / 86_400).formatted(places: 0)) days"
    }
  }
}
