import Foundation
import ReelCore
import ReelLab

/// The reports of several pools, side by side, as a page.
struct ComparisonPage {
  let reports: [WalkReport]
  let run: RunDescription
  var warnings: [String] = []
  /// The answer, which is the first line.
  var answer = ""

  var html: String {
    var page = ReportPage(title: "Comparison of \(reports.count) pools", subtitle: subtitle)
    page.add(ReportPage.paragraph(Redaction.clean(answer)))
    page.add(WalkPage.alerts(warnings))
    page.add(legend)
    page.add(
      "Delays", delays,
      note:
        "The share of swipes whose frame was on show after each delay. An abandoned swipe counts with the "
        + "time until then. Where lines lie on each other, the earlier ones are wider.")
    let table = reports.table()
    page.add(
      "Figures", table.html(classes: "wide") + table.copyableText(),
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
}

extension [WalkReport] {
  /// The first line of a comparison, over one link or several.
  ///
  /// - Parameters:
  ///   - links: What the links model, in words; nil for the real network.
  ///   - names: The names of links by their texts.
  ///   - plannedCount: The number of walks that were planned.
  func answer(links: String?, names: [String: String] = [:], plannedCount: Int) -> String {
    var scene = LabScene(
      player: first?.settings.player, links: links, settle: first?.settings.settle ?? .zero)
    scene.isSimulated = first?.settings.isVirtual ?? true
    let results = map { report in
      let settings = report.settings
      let run = LabRun(
        feed: settings.feed, link: settings.link.map { names[$0] ?? $0 } ?? "", linkGroup: "",
        dwell: settings.dwell,
        device: settings.device ?? "", slotCount: settings.slotCount, policy: settings.policy,
        seed: settings.seed)
      if let player = settings.player {
        let words = settings.policy.dropFirst(player.count).trimmingCharacters(in: .whitespaces)
        scene.preloads[run.pool] = words.isEmpty ? "preloading nothing" : words
      }
      return LabResult(run: run, report: report)
    }
    let summary = LabSummary(results, baseline: first?.settings.policy, plannedCount: plannedCount)
    return LabAnswer(summary, scene, doneCount: count(where: { !$0.isInterrupted })).text
  }
}
