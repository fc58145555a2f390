import Foundation
import ReelCore
import ReelPool
import ReelLab

/// The reports of several pools, side by side, as a page.
struct ComparisonPage {
  let reports: [WalkReport]
  let run: RunDescription
  var warnings: [String] = []

  var html: String {
    let totals = reports.map(\.totals)
    var page = ReportPage(title: "Comparison of \(reports.count) pools", subtitle: subtitle)
    page.add(ReportPage.paragraph(Redaction.clean(ComparisonSummary(reports: reports).text)))
    page.add(WalkPage.alerts(warnings))
    page.add(legend)
    page.add(
      "Delays", delays,
      note:
        "The share of swipes whose frame was on show after each delay. An abandoned swipe counts with the "
        + "time until then. Where lines lie on each other, the earlier ones are wider.")
    page.add(
      "Pareto front", fronts(totals),
      note:
        "Filled: no other pool is at least as good in all figures and better in one. The delay is the 95th "
        + "percentile to the second frame; rebuffering is the share of stalls in the time from first frames on."
    )
    let table = ComparisonTable(reports: reports).table()
    page.add(
      "Figures", table.html() + table.copyableText(),
      note: "The table as text has the names that --assert takes.")
    page.add("Assertions", WalkPage.assertions(reports))
    page.add(
      "Failed items",
      ReportPage.list(reports.failureLines.map(Redaction.clean)))
    page.add("What was run", run.html(reports.first?.settings.facts ?? []))
    return page.html
  }

  // MARK: - Private

  private var subtitle: String {
    guard let settings = reports.first?.settings else { return "" }
    var parts = [
      "\(reports.first?.totals.swipeCount ?? 0) swipes over \(settings.itemCount) items of \(settings.feed)"
    ]
    parts += settings.conditions(isInterrupted: reports.contains(where: \.isInterrupted))
    return Redaction.clean(parts.joined(separator: " · "))
  }

  private var legend: String { ReportPage.legend(ofPools: reports.map(\.poolName)) }

  private func series(_ values: (WalkReport) -> [Double]) -> [Charts.Series] {
    reports.enumerated().map { .init(name: $1.poolName, values: values($1), number: $0) }
  }

  private var delays: String {
    ReportPage.charts([
      Charts.delays("First frame", series(WalkPage.firstFrames)),
      Charts.delays("Second frame", series(WalkPage.secondFrames)),
    ])
  }

  /// A plot of each cost of the front against the delay, for the pools that have all of them.
  private func fronts(_ totals: [WalkTotals]) -> String {
    let figures = WalkFigures.all(in: .front).filter { figure in
      totals.contains { figure.cost(in: $0) != nil }
    }
    let measured = totals.enumerated().compactMap { number, totals in
      let costs = figures.compactMap { $0.cost(in: totals) }
      return costs.count == figures.count ? (number: number, costs: costs) : nil
    }
    guard !measured.isEmpty, figures.first?.costKind == .time else { return "" }
    let isOnFront = ParetoFront.members(measured.map(\.costs))
    let plots = figures.enumerated().dropFirst().map { place, figure in
      let candidates = zip(measured, isOnFront).map { entry, isOnFront in
        Charts.Candidate(
          name: reports[entry.number].poolName, delay: entry.costs[0], cost: entry.costs[place],
          isOnFront: isOnFront, number: entry.number)
      }
      return Charts.front(figure.title.titled, candidates) { figure.text($0, step: $1) }
    }
    return ReportPage.charts(Array(plots)) + legend
  }
}

/// The result of a comparison in a few sentences: the pool with the lowest delay, and its costs.
///
/// The delay is the 95th percentile to the second frame. Of pools whose delay prints alike, the one that
/// fetched the least is named.
struct ComparisonSummary {
  let reports: [WalkReport]

  /// Empty if no swipe was counted and no item failed.
  var text: String {
    let links = Set(results.map(\.link))
    let delays = links.count > 1 ? overLinks(links.count) : overOneLink
    return [delays, failures].filter { !$0.isEmpty }.joined(separator: " ")
  }

  // MARK: - Private

  private struct Result {
    let pool: String
    let link: String?
    let delay: Duration
    let fetchedByteCount: Int64
    /// `1.2 MB (33.3 % never shown) and 685.5 kB of memory`.
    let cost: String

    var time: String { DurationText.readable(delay) }

    func isBetter(than other: Result) -> Bool {
      time == other.time ? fetchedByteCount < other.fetchedByteCount : delay < other.delay
    }
  }

  private var results: [Result] {
    reports.compactMap { report in
      let totals = report.totals
      guard let waits = totals.secondFrame.all else { return nil }
      var cost = "\(totals.text("bytes.fetched")) fetched"
      if let share = WalkFigures["bytes.wasted"].text(in: totals) { cost += " (\(share) never shown)" }
      if let memory = WalkFigures["memory.pool"].text(in: totals) { cost += " and \(memory) of memory" }
      return Result(
        pool: report.settings.pool, link: report.settings.link, delay: waits.p95,
        fetchedByteCount: totals.fetchedByteCount, cost: cost)
    }
  }

  private var overOneLink: String {
    let ranking = results.sorted { $0.isBetter(than: $1) }
    guard let best = ranking.first, let worst = ranking.last else { return "" }
    let figure = "the second frame of 95 % of swipes within \(best.time), with \(best.cost)"
    let equalCount = ranking.count { $0.time == best.time }
    if ranking.count == 1 { return "\(best.pool): \(figure)." }
    if equalCount == ranking.count {
      return "No pool had a lower delay than the others. \(best.pool) fetched the least: \(figure)."
    }
    let head =
      equalCount == 1
      ? "\(best.pool) had the lowest delay"
      : "Of the \(equalCount) pools with the lowest delay, \(best.pool) fetched the least"
    return "\(head): \(figure). \(worst.pool) had the highest: \(worst.time), with \(worst.cost)."
  }

  private func overLinks(_ linkCount: Int) -> String {
    let pools = Set(results.map(\.pool)).sorted()
    guard pools.count > 1 else {
      let ranking = results.sorted { $0.delay < $1.delay }
      guard let best = ranking.first, let worst = ranking.last else { return "" }
      return
        "The second frame of 95 % of swipes came within \(best.time) over \(best.link ?? "no link"), the lowest, and "
        + "\(worst.time) over \(worst.link ?? "no link"), the highest."
    }
    let lowest = Dictionary(grouping: results, by: \.link).mapValues { $0.map(\.delay).min() }
    let wins = pools.map { pool in
      (pool: pool, count: results.count { $0.pool == pool && $0.delay == lowest[$0.link] })
    }
    guard let winner = wins.max(by: { $0.count < $1.count }) else { return "" }
    return
      "\(winner.pool) had the lowest delay over \(winner.count) of \(linkCount) links, alone or with others: the time "
      + "to the second frame, 95th percentile."
  }

  private var failures: String {
    let count = reports.map(\.failedItems.count).max() ?? 0
    return count == 0 ? "" : "\(count.counted("item")) failed."
  }
}
