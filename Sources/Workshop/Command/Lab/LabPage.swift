import ReelCore
import ReelLab

struct LabPage {
  let summary: LabSummary
  let results: [LabResult]
  let run: RunDescription
  /// The answer, which is the first line.
  var answer = ""
  /// Settings to paste; nil without advice.
  var advice: Advice?

  private static let nameLimit = 20
  private static let failureLimit = 50

  var html: String {
    let table = LabTable(summary: summary)
    let contents = table.table(limit: LabTable.pageLimit)
    var page = ReportPage(title: title, subtitle: Redaction.clean(summary.extent))
    page.add(ReportPage.paragraph(answer))
    page.add(WalkPage.alerts([summary.unevenness].compactMap(\.self)))
    if let advice {
      page.add(
        "Settings",
        "<pre class=\"wrap\">\(Markup.escapeLines(advice.code.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)))</pre>"
      )
    }
    page.add(
      "Results", contents.html(classes: "wide") + contents.copyableText(),
      note: table.note.replacing("\n", with: " "))
    if let visits = table.visits { page.add("Visits", visits.html(classes: "wide")) }
    page.add(
      "Delays", delays, note: "The share of walks whose 95th percentile is at or below each delay.")
    page.add("Failures", failures)
    page.add("What was run", run.html(facts), note: method)
    return page.html
  }

  // MARK: - Private

  private var title: String {
    let (policies, links) = (summary.dimensions.policies.count, summary.dimensions.links.count)
    return "Lab: \(policies.counted("policy", "policies")) over \(links.counted("link"))"
  }

  private var delays: String {
    let delay = WalkFigures["second_frame.p95"]
    guard let group = summary.overall, group.rows.contains(where: { $0.mean(delay) != nil }) else {
      return ""
    }
    let series = group.rows.enumerated().map { number, row in
      Charts.Series(
        name: summary.name(of: row.pool), values: group.values(delay, of: row.pool), number: number)
    }
    return ReportPage.charts([Charts.delays(delay.title.titled, series)])
      + ReportPage.legend(ofPools: series.map(\.name))
  }

  /// The walks that failed or have failed items, with the pools in which they failed.
  private var failures: String {
    struct Failure: Hashable {
      let run: LabRun
      let error: String?
    }
    var places: [Failure: Int] = [:]
    var found: [(failure: Failure, most: Int, pools: [String])] = []
    for result in results {
      let count = Int(min(max(result.figures["failed"] ?? 0, 0), 1e9))
      guard count > 0 || result.error != nil else { continue }
      let failure = Failure(run: result.run.pair, error: result.error)
      let place = places[failure] ?? found.count
      if place == found.count {
        places[failure] = place
        found.append((failure, 0, []))
      }
      found[place].most = max(found[place].most, count)
      found[place].pools.append(summary.name(of: result.run.pool))
    }
    let lines = found.prefix(Self.failureLimit).map { failure, most, pools in
      let run = failure.run
      let items = most == 1 ? "1 item" : "up to \(most) items"
      return "\(run.feed) over \(run.link), \(run.dwell), \(run.device), seed \(run.seed): "
        + (failure.error.map { "the walk failed: \($0): " } ?? "\(items) failed: ") + Self.list(pools)
    }
    let more = found.count - lines.count
    return ReportPage.list((lines + (more > 0 ? ["and \(more) more"] : [])).map(Redaction.clean))
  }

  private var facts: [(name: String, value: String)] {
    let dimensions = summary.dimensions
    let groups = dimensions.linkGroups.map { group in
      let links = Set(results.lazy.filter { $0.run.linkGroup == group }.map(\.run.link))
      return links == [group] ? group : "\(group) (\(links.count))"
    }
    return [
      ("walks", summary.walkCounts), ("feeds", Self.list(dimensions.feeds)), ("links", Self.list(groups)),
      ("dwell times", Self.list(dimensions.dwells)), ("devices", Self.list(dimensions.devices)),
      ("slots", Self.list(dimensions.slotCounts.map(String.init))),
      ("policies", Self.list(dimensions.policies)), ("seeds", Self.list(dimensions.seeds.map(String.init))),
      ("baseline", summary.baseline ?? "none"),
    ]
  }

  private var method: String {
    "Intervals: percentiles of a paired bootstrap with \(PairedBootstrap.resampleCount) resamples (Efron and "
      + "Tibshirani 1993, chapter 13), not corrected for the number of comparisons. A pair is two walks with the same "
      + "feed, link, dwell time, device and seed. Percentiles of a walk count an abandoned swipe with the time until "
      + "then."
  }

  private static func list(_ names: [String]) -> String {
    let more = names.count - nameLimit
    return names.prefix(nameLimit).joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
  }
}
