import ReelCore
import ReelLab

/// The results of a lab as a page.
struct LabPage {
  let summary: LabSummary
  let results: [LabResult]
  let run: RunDescription

  /// The maximum number of rows of a table, plots of groups, and names in a list.
  private static let rowLimit = 200
  private static let plotLimit = 12
  private static let nameLimit = 20
  private static let failureLimit = 50
  private static let copyLimit = 2_000

  var html: String {
    var page = ReportPage(title: title, subtitle: Redaction.clean(summary.extent))
    page.add(WalkPage.alerts(unevenness))
    addGroups(to: &page)
    page.add("Failures", failures)
    page.add("Tables to copy", copies, note: "Means over walks, and differences of pairs, of each group.")
    page.add("What was run", run.html(facts), note: method)
    return page.html
  }

  // MARK: - Private

  private var title: String {
    let (policies, links) = (summary.dimensions.policies.count, summary.dimensions.links.count)
    return
      "Lab: \(policies.counted("policy", "policies")) over \(links.counted("link"))"
  }

  private func addGroups(to page: inout ReportPage) {
    guard let overall = summary.overall else { return }
    let (pools, groups) = (overall.rows.map(\.pool), summary.partialGroups)
    page.add(
      "All walks", legend(pools) + table(overall),
      note:
        "Means over walks of each walk's figure. ● lowest mean of the column (of the mean bit rate, the highest); "
        + "≈ not distinguishable from it: the 95 % interval of the difference includes 0, or there are too few pairs. "
        + "\"Front\": on the Pareto front of the costs that are plotted below.")
    page.add(
      "Differences from \(summary.baseline.map(Redaction.clean) ?? "the baseline")",
      differences(overall.differences, pools),
      note:
        "Means of pairs with 95 % intervals. Paired walks differ only in the policy. Filled points and bold text: "
        + "the interval excludes 0.")
    page.add(
      "Pool sizes", differences(overall.sizeDifferences, pools),
      note: "The same policy with more slots, minus the smallest pool. Paired walks differ only in the slots."
    )
    page.add(
      "Distributions", distributions(overall),
      note: "The share of walks whose figure is at or below each value.")
    page.add(
      "Pareto front", fronts(overall),
      note:
        "Means over walks. Filled: no other pool is at least as good in the delay and all of these costs, and better "
        + "in one.")
    page.add("Groups", heat(overall, groups), note: heatNote(groups.count))
    page.add("Pareto fronts of groups", groupFronts(groups, pools), note: frontNote(groups.count))
  }

  private var unevenness: [String] {
    guard let rows = summary.overall?.rows, Set(rows.map(\.runCount)).count > 1 else { return [] }
    let counts = rows.map { "\(summary.name(of: $0.pool)): \($0.runCount)" }.joined(separator: ", ")
    return [
      "Pools have different numbers of walks, so their means are not over the same walks; differences are. \(counts)"
    ]
  }

  // MARK: All walks

  private func legend(_ pools: [LabPool]) -> String {
    ReportPage.legend(ofPools: pools.map { summary.name(of: $0) })
  }

  private func table(_ group: LabGroup) -> String {
    let figures = WalkFigures.all(in: .means).filter { figure in
      group.rows.contains { $0.mean(figure) != nil }
    }
    let standings = figures.map { group.standings($0) }
    let head = ["", "walks"] + figures.map(\.head) + ["front"]
    let rows = group.rows.enumerated().map { place, row in
      var cells: [Table.Cell] = [
        .init("\(place + 1): \(summary.name(of: row.pool))"), .init("\(row.runCount)"),
      ]
      for (figure, standings) in zip(figures, standings) {
        let text = row.mean(figure).map { figure.plain($0) } ?? "–"
        cells.append(Self.cell(text, standings[place]))
      }
      return cells + [.init(row.isOnFront ? "●" : "")]
    }
    return Table(head, cells: rows).html(classes: "wide")
  }

  private static func cell(_ text: String, _ standing: LabGroup.Standing?, _ style: String = "")
    -> Table.Cell
  {
    switch standing {
    case .best: .init("● \(text)", classes: "best \(style)")
    case .indistinguishable: .init("≈ \(text)", classes: style)
    case .worse, nil: .init(text, classes: style)
    }
  }

  private func differences(_ differences: [LabDifference], _ pools: [LabPool]) -> String {
    let figures = WalkFigures.all(in: .differences).filter { figure in
      differences.contains { $0.figures[figure.name] != nil }
    }
    guard !figures.isEmpty else { return "" }
    let names = differences.map { difference in
      let size =
        difference.pool.slotCount == difference.baseline.slotCount
        ? "" : " − \(difference.baseline.slotCount)"
      return summary.name(of: difference.pool) + size
    }
    let head = ["", "pairs"] + figures.map(\.head)
    let rows = zip(names, differences).map { name, difference in
      var cells: [Table.Cell] = [.init(name), .init("\(difference.pairCount)")]
      for figure in figures {
        guard let found = difference.figures[figure.name] else {
          cells.append(.init("–"))
          continue
        }
        let isBetter = (found.mean < 0) != figure.isHigherBetter
        let style = found.excludesZero ? isBetter ? "sure met" : "sure unmet" : ""
        cells.append(.init(figure.plain(found).replacing("-", with: "−"), classes: style))
      }
      return cells
    }
    let plots = figures.filter { $0.places.contains(.front) }.map { figure in
      Charts.intervals(
        figure.head.titled,
        zip(names, differences).compactMap { name, difference in
          difference.figures[figure.name].map { found in
            let values = [
              found.mean, found.interval?.lower ?? found.mean, found.interval?.upper ?? found.mean,
            ]
            .map { $0 / figure.costKind.scale }
            return .init(
              name: name, mean: values[0], lower: values[1], upper: values[2], isSure: found.excludesZero,
              number: pools.firstIndex(of: difference.pool) ?? 0,
              title: "\(name): \(figure.plain(found)) \(figure.costKind.unit)")
          }
        })
    }
    return Table(head, cells: rows).html(classes: "wide")
      + ReportPage.charts(plots, areWide: true)
  }

  private func distributions(_ group: LabGroup) -> String {
    func series(_ figure: WalkFigure) -> [Charts.Series] {
      group.rows.enumerated().map { number, row in
        .init(
          name: summary.name(of: row.pool),
          values: group.values(figure, of: row.pool).map { $0 / figure.costKind.scale },
          number: number)
      }
    }
    let charts = WalkFigures.all(in: .front).filter { figure in
      group.rows.contains { $0.mean(figure) != nil }
    }.map { figure in
      figure.costKind == .time
        ? Charts.delays(
          "\(figure.title.titled) of each walk", series(figure), axis: "delay from the settle")
        : Charts.shares(figure.head.titled, series(figure))
    }
    return plots(charts, group.rows.map(\.pool), areWide: true)
  }

  /// Plots side by side, and the colours of their pools; nothing without plots.
  private func plots(_ plots: [String], _ pools: [LabPool], areWide: Bool = false) -> String {
    plots.isEmpty ? "" : ReportPage.charts(plots, areWide: areWide) + legend(pools)
  }

  // MARK: Pareto fronts

  private func plot(
    _ title: String, _ group: LabGroup, _ cost: WalkFigure, _ pools: [LabPool]
  ) -> String? {
    let candidates = group.rows.compactMap { row -> Charts.Candidate? in
      guard let delay = row.mean(Self.delay), let value = row.mean(cost) else { return nil }
      return .init(
        name: summary.name(of: row.pool), delay: delay, cost: value, isOnFront: row.isOnFront,
        number: pools.firstIndex(of: row.pool) ?? 0)
    }
    return candidates.isEmpty ? nil : Charts.front(title, candidates) { cost.text($0, step: $1) }
  }

  private func fronts(_ group: LabGroup) -> String {
    let pools = group.rows.map(\.pool)
    let costs = WalkFigures.all(in: .front).filter { $0.name != Self.delay.name }
    return plots(costs.compactMap { plot($0.title.titled, group, $0, pools) }, pools)
  }

  private func groupFronts(_ groups: [LabGroup], _ pools: [LabPool]) -> String {
    let fronts = groups.prefix(Self.plotLimit).compactMap { group in
      plot("\(summary.name(of: group.key)): wasted bytes", group, WalkFigures["bytes.wasted"], pools)
    }
    return plots(fronts, pools)
  }

  private func frontNote(_ count: Int) -> String {
    "Wasted bytes against the second frame's p95."
      + (count > Self.plotLimit ? " The first \(Self.plotLimit) of \(count) groups." : "")
  }

  private static let delay = WalkFigures["second_frame.p95"]

  // MARK: Groups

  /// Returns, for each figure of the front, a table with groups and numbers of slots in rows and policies in
  /// columns.
  private func heat(_ overall: LabGroup, _ groups: [LabGroup]) -> String {
    guard !groups.isEmpty || summary.dimensions.slotCounts.count > 1 else { return "" }
    return WalkFigures.all(in: .front).filter { figure in overall.rows.contains { $0.mean(figure) != nil } }
      .map { figure in
        "<h3>\(Markup.escape(figure.head.titled))</h3>"
          + heat(figure, [overall] + groups.prefix(Self.rowLimit))
      }.joined()
  }

  private func heat(_ figure: WalkFigure, _ groups: [LabGroup]) -> String {
    let policies = summary.dimensions.policies
    var rows: [[Table.Cell]] = []
    for group in groups {
      for slotCount in summary.dimensions.slotCounts {
        let places = group.rows.indices.filter { group.rows[$0].pool.slotCount == slotCount }
        guard !places.isEmpty else { continue }
        let standings = group.standings(figure, slotCount: slotCount)
        var key = group.key
        key.slotCount = slotCount
        let means = places.compactMap { group.rows[$0].mean(figure) }
        let (least, most) = (means.min() ?? 0, means.max() ?? 0)
        let name = summary.name(of: key)
        let isAll = group.extent == .all && summary.dimensions.slotCounts.count > 1
        var row: [Table.Cell] = [.init(isAll ? "all walks, \(name)" : name)]
        for policy in policies {
          guard let place = places.first(where: { group.rows[$0].pool.policy == policy }),
            let mean = group.rows[place].mean(figure)
          else {
            row.append(.init("–"))
            continue
          }
          let step = most > least ? Int(((mean - least) / (most - least) * 5).rounded()) : 0
          // A value that is indistinguishable from the best has its colour.
          let style = standings[place] == .worse ? "h\(step)" : ""
          row.append(Self.cell(figure.plain(mean), standings[place], style))
        }
        rows.append(row)
      }
    }
    let head = [""] + policies.map(Redaction.clean)
    return Table(head, cells: rows).html(classes: "wide")
  }

  private func heatNote(_ count: Int) -> String {
    "Means over walks. ● best of its row; ≈ not distinguishable from the best. The others are the darker, the closer they are to the "
      + "worst of the row."
      + (count > Self.rowLimit ? " The first \(Self.rowLimit) of \(count) groups." : "")
  }

  // MARK: Failures, tables, facts

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
      var run = result.run
      let pool = summary.name(of: LabPool(slotCount: run.slotCount, policy: run.policy))
      (run.slotCount, run.policy) = (0, "")
      let failure = Failure(run: run, error: result.error)
      let place = places[failure] ?? found.count
      if place == found.count {
        places[failure] = place
        found.append((failure, 0, []))
      }
      found[place].most = max(found[place].most, count)
      found[place].pools.append(pool)
    }
    let lines = found.prefix(Self.failureLimit).map { failure, most, pools in
      let run = failure.run
      let items = most == 1 ? "1 item" : "up to \(most) items"
      return "\(run.feed) over \(run.link), \(run.viewer), \(run.device), seed \(run.seed): "
        + (failure.error.map { "the walk failed: \($0): " } ?? "\(items) failed: ") + Self.list(pools)
    }
    let more = found.count - lines.count
    return ReportPage.list((lines + (more > 0 ? ["and \(more) more"] : [])).map(Redaction.clean))
  }

  private var copies: String {
    let figures = WalkFigures.all(in: .lab).filter { figure in
      summary.groups.contains { group in group.rows.contains { $0.mean(figure) != nil } }
    }
    guard !figures.isEmpty else { return "" }
    func place(_ key: LabGroup.Key) -> [String] {
      [key.feed ?? "", key.linkGroup ?? "", key.viewer ?? "", key.device ?? ""]
        .map(Redaction.clean)
    }
    func number(_ value: Double?) -> String {
      value.map { $0.formatted(places: $0.magnitude < 10 ? 6 : 3) } ?? ""
    }
    let places = ["feed", "link_group", "viewer", "device"]
    var (means, differences) = ([[String]](), [[String]]())
    for group in summary.groups {
      for row in group.rows where means.count < Self.copyLimit {
        means.append(
          place(group.key) + [
            "\(row.pool.slotCount)", Redaction.clean(row.pool.policy), "\(row.runCount)",
            "\(row.failedCount)",
          ]
            + figures.map { number(row.mean($0)) })
      }
      for difference in group.differences + group.sizeDifferences where differences.count < Self.copyLimit {
        differences.append(
          place(group.key) + [summary.name(of: difference, minus: "-"), "\(difference.pairCount)"]
            + WalkFigures.all(in: .front).flatMap { figure in
              let found = difference.figures[figure.name]
              return [found?.mean, found?.interval?.lower, found?.interval?.upper].map(number)
            })
      }
    }
    let head = WalkFigures.all(in: .front).flatMap { figure in
      ["mean", "lower", "upper"].map { "\(figure.name).\($0)" }
    }
    return Table(places + ["slots", "policy", "walks", "failed_walks"] + figures.map(\.name), means)
      .copyableText(title: "Means as text")
      + Table(places + ["difference", "pairs"] + head, differences)
      .copyableText(title: "Differences as text")
  }

  private var facts: [(name: String, value: String)] {
    let dimensions = summary.dimensions
    let groups = dimensions.linkGroups.map { group in
      let links = Set(results.lazy.filter { $0.run.linkGroup == group }.map(\.run.link))
      return links == [group] ? group : "\(group) (\(links.count))"
    }
    return [
      ("walks", summary.walks), ("feeds", Self.list(dimensions.feeds)), ("links", Self.list(groups)),
      ("viewers", Self.list(dimensions.viewers)), ("devices", Self.list(dimensions.devices)),
      ("slots", Self.list(dimensions.slotCounts.map(String.init))),
      ("policies", Self.list(dimensions.policies)), ("seeds", Self.list(dimensions.seeds.map(String.init))),
      ("baseline", summary.baseline ?? "none"),
    ]
  }

  private var method: String {
    "Intervals: percentiles of a paired bootstrap with \(PairedBootstrap.resampleCount) resamples (Efron and "
      + "Tibshirani 1993, chapter 13), not corrected for the number of comparisons. A pair is two walks with the same "
      + "feed, link, viewer, device and seed. Percentiles of a walk count an abandoned swipe with the time until "
      + "then."
  }

  private static func list(_ names: [String]) -> String {
    let more = names.count - nameLimit
    return names.prefix(nameLimit).joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
  }
}
