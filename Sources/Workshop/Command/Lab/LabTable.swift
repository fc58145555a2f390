import Foundation
import ReelCore
import ReelLab

/// The results of a lab as one table: a row for each pool over all walks, then for each pool of each group. It is the
/// table of the text and of the page.
struct LabTable {
  let summary: LabSummary
  /// The answer, which is the first line.
  var answer = ""

  static let pageLimit = 200
  private static let textLimit = 40
  private static let nameLimit = 19
  private static let failureLimit = 20
  private static let width = 100

  /// The answer, the extent of the lab, the table, and what its columns mean.
  var text: String {
    guard !rows.isEmpty else { return summary.extent }
    var layout = Terminal.layout
    layout.width = layout.width ?? Self.width
    var lines = table(limit: Self.textLimit).lines(in: layout)
    let more = rows.count - Self.textLimit
    if more > 0 { lines.append("and \(more.counted("more row")), which --json and --report have") }
    lines += summary.failureLines.prefix(Self.failureLimit)
    if summary.failures.count > Self.failureLimit {
      lines.append(
        "and \((summary.failures.count - Self.failureLimit).counted("more failed item")), which --json has")
    }
    let notes = ([summary.unevenness, note].compactMap(\.self)).joined(separator: "\n")
    let visits = visits.map { $0.lines(in: layout).joined(separator: "\n") } ?? ""
    return [answer, summary.extent, lines.joined(separator: "\n"), visits, notes]
      .filter { !$0.isEmpty }.joined(separator: "\n\n")
  }

  /// The means of each visit; nil for walks with one visit and no simulated cache.
  var visits: Table? {
    let pools = summary.visits.map {
      (name: summary.name(of: $0.pool), visits: ReturnVisits(meansOf: $0.walks))
    }
    return pools.isEmpty ? nil : .visits(pools)
  }

  /// What the columns mean.
  var note: String {
    let means = "Means over walks; p50, p95, p99, >100 ms: delay of the second frame."
    guard let reference = summary.overall?.reference, hasDifferences else { return means }
    return
      "\(means)\nΔ: minus \(summary.name(of: reference)), mean over pairs of walks that differ only in the pool, "
      + "and its 95 % interval."
  }

  /// - Parameter limit: The maximum number of rows.
  func table(limit: Int) -> Table {
    let (hasGroups, hasPools) = (!summary.partialGroups.isEmpty, Set(rows.map(\.row.pool)).count > 1)
    let names = (hasGroups ? ["group"] : []) + (hasPools || !hasGroups ? ["pool"] : [])
    var table = Table(names.map { _ in .left })
    let figures = WalkFigures.all(in: .means).filter { figure in
      rows.contains { $0.row.mean(figure) != nil }
    }
    var head = (names + ["walks"]).map { Table.Cell($0) }
    for figure in figures {
      let title = "\(figure.heading ?? figure.title) \(figure.costKind.unit)".trimmed
      head.append(Table.Cell(title))
      if isCompared(figure) { head.append(Table.Cell("Δ \(title)")) }
    }
    table.add(cells: head)
    for (group, row) in rows.prefix(limit) {
      let difference = group.differences.first { $0.pool == row.pool }
      let place = (hasGroups ? [summary.name(of: group.key)] : []) + [summary.name(of: row.pool)]
      var cells = place.prefix(names.count).map { name in
        Table.Cell(name, plain: TextLayout.truncated(name, to: Self.nameLimit))
      }
      cells.append(Table.Cell("\(row.runCount)"))
      for figure in figures {
        cells.append(Self.cell(row.mean(figure).map { figure.plain($0) }))
        if isCompared(figure) { cells.append(Self.cell(difference?.figures[figure.name], figure)) }
      }
      table.add(cells: cells)
    }
    return table
  }

  // MARK: - Private

  private var rows: [(group: LabGroup, row: LabGroup.Row)] {
    ((summary.overall.map { [$0] } ?? []) + summary.partialGroups).flatMap { group in
      group.rows.map { (group, $0) }
    }
  }

  private var hasDifferences: Bool { summary.groups.contains { !$0.differences.isEmpty } }

  private func isCompared(_ figure: WalkFigure) -> Bool {
    hasDifferences && figure.places.contains(.differences)
  }

  private static func cell(_ text: String?, _ classes: String = "") -> Table.Cell {
    .init(text ?? "–", plain: text ?? "-", classes: classes)
  }

  private static func cell(_ difference: LabDifference.Figure?, _ figure: WalkFigure) -> Table.Cell {
    guard let difference else { return cell(nil) }
    let style = difference.excludesZero ? difference.mean < 0 ? " sure met" : " sure unmet" : ""
    let text = figure.plain(difference)
    // A line may only end before the interval.
    return .init(text.replacing(", ", with: ",\u{a0}"), plain: text, classes: "delta\(style)")
  }
}

extension LabSummary {
  /// A remark if the pools have different numbers of walks.
  var unevenness: String? {
    guard let rows = overall?.rows, Set(rows.map(\.runCount)).count > 1 else { return nil }
    let counts = rows.map { "\(name(of: $0.pool)): \($0.runCount)" }.joined(separator: ", ")
    return
      "Pools have different numbers of walks, so their means are not over the same walks; differences are. \(counts)"
  }

  /// A line for each item that failed, with the number of walks in which it failed unless it failed in all of them.
  var failureLines: [String] {
    failures.map { failure in
      let walks =
        failure.runCount < runCount ? " (in \(failure.runCount) of \(runCount.counted("walk")))" : ""
      return "failed: \(name(of: failure)), \(failure.error)\(walks)".printable
    }
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
  /// A value with its unit: `93.2 ms`, `3.5 MB`, `97.5 %`.
  func text(_ value: Double) -> String {
    costKind.unit.isEmpty ? plain(value) : "\(plain(value)) \(costKind.unit)"
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
    return scaled.map { $0.formatted(places: places).signed }
  }

  /// A difference with its interval, in the unit of tables: `−501 [−640, −372]`; without an interval, `−501`.
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

  /// Returns the name of a group: the values that not all walks of the lab share.
  func name(of key: LabGroup.Key) -> String {
    var parts: [String] = []
    func add(_ value: String?, _ values: [String]) {
      if let value, values.count > 1 { parts.append(Redaction.clean(value)) }
    }
    add(key.feed, dimensions.feeds)
    add(key.linkGroup, dimensions.linkGroups)
    add(key.dwell, dimensions.dwells)
    add(key.device, dimensions.devices)
    if let count = key.slotCount, dimensions.slotCounts.count > 1 {
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
      dimensions.dwells.count.counted("dwell time"), dimensions.devices.count.counted("device"),
      dimensions.slotCounts == [1] ? "1 slot" : "\(slots) slots",
      dimensions.policies.count.counted("policy", "policies"),
      dimensions.seeds.count.counted("seed"),
    ]
    return "\(walks): \(parts.joined(separator: ", "))"
  }

  private var walks: String {
    runCount == plannedCount
      ? runCount.counted("walk") : "\(runCount) of \(plannedCount.counted("walk")), interrupted"
  }

  /// `144`, or `8 of 144, interrupted`.
  var walkCounts: String {
    runCount == plannedCount ? "\(runCount)" : "\(runCount) of \(plannedCount), interrupted"
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
