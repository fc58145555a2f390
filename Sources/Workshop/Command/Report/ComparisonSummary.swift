import ReelCore
import ReelPool
import ReelReplay

/// The result of a comparison in a few sentences: which pool had the lowest delay, and what it cost.
///
/// The delay is the 95th percentile to the second frame. Of pools whose delay prints alike, the one that fetched the least
/// is named.
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
      var cost = "\(WalkValue.size(totals.fetchedByteCount)) fetched"
      if let share = totals.unshownByteShare { cost += " (\(WalkValue.share(share)) never shown)" }
      if let memory = totals.poolHighWaterByteCount {
        cost += " and \(WalkValue.size(Int64(memory))) of memory"
      }
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
    return count == 0 ? "" : count == 1 ? "1 item failed." : "\(count) items failed."
  }
}

extension WalkSettings {
  /// The pool for people: `adaptive with 3 players`.
  var pool: String { "\(policy) with \(slotCount == 1 ? "1 player" : "\(slotCount) players")" }
}

extension WalkReport {
  /// The pool for people, after the link if the label names one.
  var poolName: String {
    let short = "\(settings.slotCount) \(settings.policy)"
    return label.hasSuffix(short) ? "\(label.dropLast(short.count))\(settings.pool)" : label
  }
}
