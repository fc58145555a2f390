import Foundation
import ReelCheck
import ReelCore
import ReelPool

/// A run of `check` as a page: all of one source, or the worst sources of several.
struct CheckPage {
  let sources: CheckedSources
  let run: RunDescription

  /// The numbers of findings of a source in a list, of hosts, of stills of a finding, and of bytes of all stills.
  private static let findingLimit = 8
  private static let hostLimit = 50
  private static let stillLimit = 8
  private static let stillByteLimit = 6 << 20
  /// The number of findings of a source alone.
  private static let singleLimit = 200

  var html: String {
    var stills = StillBudget(left: Self.stillByteLimit)
    let worst = sources.worst
    if sources.sourceCount == 1, let only = worst.first { return single(only, &stills) }
    return list(worst, &stills)
  }

  // MARK: - Private

  /// The bytes of stills that a page may still get.
  private struct StillBudget {
    var left: Int
  }

  // MARK: One source

  private func single(_ source: CheckedSource, _ stills: inout StillBudget) -> String {
    var page = ReportPage(title: Self.name(source.source), subtitle: CheckWords.sentence(source.verdict))
    page.add(ReportPage.tiles(Self.figures(source)))
    page.add(ReportPage.list(source.unmet.map { Redaction.clean($0) }, "alert bad"))
    page.add("Findings", Self.findings(of: source, limit: Self.singleLimit, &stills))
    for start in source.starts {
      page.add("Start on \(start.link)", StartChart(start: start).html, note: Self.note(start))
    }
    page.add(
      "Ladder", Self.ladder(source),
      note: "What the manifest declares, and what was measured. Each rung was read alone.")
    page.add("Not checked", Self.notChecked(source.notChecked))
    page.add("Run", run.html(Self.facts(source.coverage, source.thresholds)))
    return page.html
  }

  private static func figures(_ source: CheckedSource) -> [(name: String, value: String)] {
    var figures = FindingLevel.allCases.reversed().map { level in
      (name: "\(level.rawValue)s", value: "\(source.count(level))")
    }
    if !source.waived.isEmpty { figures.append(("known", "\(source.waived.count)")) }
    for start in source.starts {
      figures.append(("start on \(start.link)", CheckWords.time(start.now.milliseconds)))
      if start.saving >= CheckWords.leastCost {
        figures.append(("possible on \(start.link)", CheckWords.time(start.possibleMilliseconds)))
      }
    }
    if !source.format.isEmpty {
      figures.append(("format", source.format.uppercased() + (source.isLive ? ", live" : "")))
    }
    if let duration = source.duration {
      figures.append(
        ("duration", DurationText.readable(.microseconds(Int64(min(max(duration, 0), 1e9) * 1e6)))))
    }
    return figures
  }

  private static func note(_ start: StartResult) -> String {
    let whole =
      start.wholeMilliseconds.map {
        " A player that loads whole segments needs \(CheckWords.time($0))."
      } ?? ""
    return "Simulated from the recorded requests.\(whole)"
  }

  private static func ladder(_ source: CheckedSource) -> String {
    guard !source.ladder.isEmpty else { return "" }
    let links = source.starts.map(\.link)
    let hasStatements = source.ladder.contains { !$0.says.isEmpty }
    let head =
      ["rung", "", "opens", "decodes"] + links.map { "start, \($0)" } + (hasStatements ? ["declared"] : [])
      + [
        "measured"
      ]
    func cell(_ answer: CheckLadderRow.Answer) -> ReportPage.Cell {
      .init(answer.text, answer.isFault ? "unmet" : "")
    }
    let rows = source.ladder.map { row in
      [
        ReportPage.Cell(row.name, row.isFirst ? "best" : ""), .init(row.detail), cell(row.opens),
        cell(row.decodes),
      ]
        + source.starts.map { start in
          .init(row.isFirst || source.ladder.count == 1 ? CheckWords.time(start.now.milliseconds) : "")
        } + (hasStatements ? [.init(row.says)] : []) + [cell(row.actual)]
    }
    return ReportPage.table(head, cells: rows, numbers: 4..<4 + links.count)
  }

  private static func notChecked(_ items: [NotChecked]) -> String {
    ReportPage.list(
      items.prefix(singleLimit).map { item in
        let subject = [item.id?.rawValue, item.rung].compactMap { $0 }.joined(separator: ", ")
        return Redaction.clean(subject.isEmpty ? item.reason : "\(subject): \(item.reason)")
      })
  }

  private static func facts(
    _ coverage: Coverage, _ thresholds: Thresholds
  ) -> [(name: String, value: String)] {
    var facts: [(name: String, value: String)] = [
      (
        "read",
        "\(coverage.rungCount) of \(coverage.allRungCount.counted("rung")), \(coverage.segmentCount) of "
          + "\(coverage.allSegmentCount.counted("segment")), "
          + ByteSize(byteCount: Int(clamping: coverage.byteCount)).description
      ),
      (
        "decoded",
        "\(coverage.frameCount.counted("frame")), \(coverage.damagedFrameCount) damaged; "
          + "\(coverage.audioDuration.formatted(places: 1)) s of audio"
      ),
    ]
    let changed = Threshold.allCases.compactMap { threshold in
      thresholds.changed[threshold].map { CheckWords.threshold(threshold, $0) }
    }
    if !changed.isEmpty { facts.append(("thresholds", changed.joined(separator: "; "))) }
    return facts
  }

  // MARK: Findings

  private static func findings(
    of source: CheckedSource, limit: Int, _ stills: inout StillBudget
  ) -> String {
    let order = source.order
    var html = ""
    for index in order.prefix(limit) { html += finding(index, of: source, &stills) }
    if order.count > limit {
      html += "<p class=\"note\">and \((order.count - limit).counted("more finding"))</p>"
    }
    return html
  }

  private static func finding(
    _ index: Int, of source: CheckedSource, _ stills: inout StillBudget
  ) -> String {
    let finding = source.findings[index]
    let excuse = source.excuse(index)
    let level = excuse == nil ? finding.level.rawValue : "known"
    var html =
      "<article class=\"finding \(level)\"><h3><b>\(level)</b> <code>\(Markup.escape(finding.name))</code>"
    let place = CheckWords.place(finding)
    if !place.isEmpty { html += " <span>\(Markup.escape(place))</span>" }
    html += "</h3>" + ReportPage.paragraph(CheckWords.sentence(Redaction.clean(finding.summary)) + ".")
    if let excuse {
      html += ReportPage.paragraph("A known \(finding.level.rawValue), \(Redaction.clean(excuse))")
    }
    html += strip(index, of: source, &stills)
    var rows: [(String, String)] = []
    let costs = CheckWords.costs(finding).map(CheckWords.cost)
    if !costs.isEmpty { rows.append(("costs", costs.joined(separator: "; "))) }
    if !finding.fix.isEmpty { rows.append(("fix", Redaction.clean(finding.fix))) }
    if !finding.evidence.isEmpty {
      let words = finding.evidence.map { "\($0.name) \(Redaction.clean(CheckWords.evidence($0.value)))" }
      rows.append(("measured", words.joined(separator: ", ")))
    }
    if let url = finding.url { rows.append(("at", Redaction.clean(url))) }
    let list = rows.map { name, value in
      "<dt>\(name)</dt><dd>\(Markup.escape(Markup.shortened(value, to: 600)))</dd>"
    }
    return html + "<dl class=\"run\">\(list.joined())</dl></article>"
  }

  /// The stills of a finding, in rows of rungs at the same times.
  private static func strip(
    _ index: Int, of source: CheckedSource, _ stills: inout StillBudget
  ) -> String {
    var figures: [String] = []
    for still in source.stills where still.finding == index && figures.count < stillLimit {
      let picture: String
      if still.jpeg.count <= stills.left {
        stills.left -= still.jpeg.count
        let url = "data:image/jpeg;base64,\(Data(still.jpeg).base64EncodedString())"
        picture = ReportPage.image(url, "frame at \(still.time.formatted(places: 2)) s")
      } else {
        picture = ReportPage.noImage("not included")
      }
      figures.append(
        ReportPage.frame(
          picture, Markup.escape(still.rung ?? ""), "\(still.time.formatted(places: 2)) s"))
    }
    return ReportPage.frames(figures, "frames stills")
  }

  // MARK: Several sources

  private func list(_ worst: [CheckedSource], _ stills: inout StillBudget) -> String {
    let (errors, warnings) = (sources.levels[.error] ?? 0, sources.levels[.warning] ?? 0)
    let verdict =
      errors + warnings == 0
      ? "no source has an error or a warning"
      : "\(errors) with errors, \(warnings) with warnings only, \(sources.sourceCount - errors - warnings - sources.failureCount) without"
    var page = ReportPage(
      title: "\(sources.sourceCount.counted("source")) checked", subtitle: CheckWords.sentence(verdict))
    var figures = [
      ("with errors", "\(errors)"), ("with warnings only", "\(warnings)"),
      ("with notes only", "\(sources.levels[.note] ?? 0)"), ("without findings", "\(sources.cleanCount)"),
    ]
    if sources.failureCount > 0 { figures.append(("not checked", "\(sources.failureCount)")) }
    page.add(ReportPage.tiles(figures.map { (name: $0.0, value: $0.1) }))
    page.add("Findings", causes)
    let hosts = sources.hosts
    if hosts.count > 1 {
      page.add(
        "Hosts",
        ReportPage.table(
          ["host", "with errors", "with warnings", "sources"],
          hosts.prefix(Self.hostLimit).map {
            [$0.name, "\($0.errorCount)", "\($0.warningCount)", "\($0.sourceCount)"]
          }),
        note: hosts.count > Self.hostLimit ? "The worst \(Self.hostLimit) of \(hosts.count)." : nil)
    }
    let faulty = worst.filter { !$0.findings.isEmpty || !$0.unmet.isEmpty || $0.silence != nil }
    for source in faulty { page.add(Self.block(source, &stills)) }
    if sources.sourceCount - sources.cleanCount > faulty.count, faulty.count == CheckedSources.sourceLimit {
      page.add("<p class=\"note\">These are the worst \(faulty.count) sources.</p>")
    }
    page.add("Run", run.html(Self.facts(sources.coverage, sources.thresholds)))
    return page.html
  }

  private var causes: String {
    let rows = sources.causes.map { cause in
      [
        ReportPage.Cell(cause.level.rawValue, cause.level == .error ? "unmet" : ""), .init(cause.name),
        .init("\(cause.sourceCount)"), .init("\(cause.findingCount)"),
        .init(Markup.shortened(Self.name(cause.example), to: 100)),
      ]
    }
    return rows.isEmpty
      ? ""
      : ReportPage.table(["level", "finding", "sources", "findings", "example"], cells: rows, numbers: 2..<4)
  }

  private static func block(_ source: CheckedSource, _ stills: inout StillBudget) -> String {
    let starts = source.starts.map {
      "<h3>Start on \(Markup.escape($0.link))</h3>" + StartChart(start: $0).html
    }
    let detail = starts.joined() + (source.ladder.isEmpty ? "" : "<h3>Ladder</h3>" + ladder(source))
    return "<section><h2 class=\"source\">\(Markup.escape(name(source.source)))</h2>"
      + "<p class=\"sub\">\(Markup.escape(CheckWords.sentence(source.verdict)))</p>"
      + ReportPage.list(source.unmet.map { Redaction.clean($0) }, "alert bad")
      + findings(of: source, limit: findingLimit, &stills)
      + (detail.isEmpty ? "" : "<details><summary>Start and ladder</summary>\(detail)</details>")
      + notCheckedNote(source) + "</section>"
  }

  private static func notCheckedNote(_ source: CheckedSource) -> String {
    source.notChecked.isEmpty
      ? "" : "<details><summary>Not checked</summary>\(notChecked(source.notChecked))</details>"
  }

  private static func name(_ source: String) -> String { Redaction.clean(source) }
}
