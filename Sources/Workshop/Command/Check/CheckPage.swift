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
    var stills = ReportPage.Pictures(byteLimit: Self.stillByteLimit)
    let worst = sources.worst
    if sources.sourceCount == 1, let only = worst.first { return single(only, &stills) }
    return list(worst, &stills)
  }

  // MARK: - Private

  // MARK: One source

  private func single(_ source: CheckedSource, _ stills: inout ReportPage.Pictures) -> String {
    var page = ReportPage(title: Self.name(source.source), subtitle: source.verdict.titled)
    page.add(ReportPage.tiles(Self.figures(source)))
    page.add(ReportPage.list(source.unmet.map(Redaction.clean), "alert bad"))
    page.add("Findings", Self.findings(of: source, limit: Self.singleLimit, &stills))
    for start in source.starts {
      page.add("Start on \(start.link)", StartChart(start: start).html, note: Self.note(start))
    }
    page.add(
      "Ladder", source.ladderTable.html(),
      note: "What the manifest declares, and what was measured. Each rung was read alone.")
    page.add("Not checked", Self.notChecked(source.notChecked))
    page.add("Run", run.html(Self.facts(source.coverage, source.thresholds)))
    return page.html
  }

  private static func figures(_ source: CheckedSource) -> [(name: String, value: String)] {
    var figures = FindingLevel.allCases.reversed().map { level in
      (name: "\(level.rawValue)s", value: "\(source.count(level))")
    }
    if source.waivedCount > 0 { figures.append(("known", "\(source.waivedCount)")) }
    for start in source.starts {
      figures.append(("start on \(start.link)", CheckWords.time(start.now.milliseconds)))
      if start.saving >= CheckWords.leastCost {
        figures.append(("possible on \(start.link)", CheckWords.time(start.possibleMilliseconds)))
      }
    }
    if !source.facts.format.isEmpty {
      figures.append(("format", source.facts.format.uppercased() + (source.facts.isLive ? ", live" : "")))
    }
    if let duration = source.facts.duration {
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
    if let player = start.player {
      let second = start.secondFrameMilliseconds.map {
        " The second frame comes after \(CheckWords.time($0))."
      }
      return "Simulated with \(player), from the measured sizes.\(second ?? "")"
    }
    return "Simulated from the recorded requests.\(whole)"
  }

  private static func notChecked(_ items: [NotChecked]) -> String {
    ReportPage.list(items.prefix(singleLimit).map(CheckWords.omission))
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
    if let changed = CheckWords.changed(thresholds) { facts.append(("thresholds", changed)) }
    return facts
  }

  // MARK: Findings

  private static func findings(
    of source: CheckedSource, limit: Int, _ stills: inout ReportPage.Pictures
  ) -> String {
    let listed = source.listed
    var html = ""
    for item in listed.prefix(limit) { html += finding(item, &stills) }
    let more = listed.count - limit
    return more > 0 ? html + "<p class=\"note\">and \(more.counted("more finding"))</p>" : html
  }

  private static func finding(_ finding: Finding, _ stills: inout ReportPage.Pictures) -> String {
    let level = finding.waiver == nil ? finding.level.rawValue : "known"
    var html =
      "<article class=\"finding \(level)\"><h3><b>\(level)</b> <code>\(Markup.escape(finding.name))</code>"
    let place = CheckWords.place(finding)
    if !place.isEmpty { html += " <span>\(Markup.escape(place))</span>" }
    html += "</h3>" + ReportPage.paragraph(Redaction.clean(finding.summary).titled + ".")
    if let waiver = finding.waiver {
      html += ReportPage.paragraph("A known \(finding.level.rawValue), waived: \(Redaction.clean(waiver))")
    }
    html += strip(finding, &stills)
    var rows: [(String, String)] = []
    let costs = CheckWords.costs(finding).map(CheckWords.cost)
    if !costs.isEmpty { rows.append(("costs", costs.joined(separator: "; "))) }
    if !finding.fix.isEmpty { rows.append(("fix", Redaction.clean(finding.fix))) }
    if !finding.evidence.isEmpty {
      let words = finding.evidence.map { "\($0.name) \(Redaction.clean(CheckWords.evidence($0.value)))" }
      rows.append(("measured", words.joined(separator: ", ")))
    }
    if let url = finding.url { rows.append(("at", Redaction.clean(url))) }
    return html + ReportPage.definitions(rows.map { ($0, TextLayout.truncated($1, to: 600)) }) + "</article>"
  }

  /// The stills of a finding, in rows of rungs at the same times.
  private static func strip(_ finding: Finding, _ stills: inout ReportPage.Pictures) -> String {
    let figures = finding.stills.prefix(stillLimit).map { still in
      let time = "\(still.time.formatted(places: 2)) s"
      let picture = stills.html(still.jpeg, type: "jpeg", "frame at \(time)")
      return ReportPage.frame(picture, Markup.escape(still.rung ?? ""), time)
    }
    return ReportPage.frames(figures, "frames stills")
  }

  // MARK: Several sources

  private func list(_ worst: [CheckedSource], _ stills: inout ReportPage.Pictures) -> String {
    let (errors, warnings) = (sources.levels[.error] ?? 0, sources.levels[.warning] ?? 0)
    let verdict =
      errors + warnings == 0
      ? "no source has an error or a warning"
      : "\(errors) with errors, \(warnings) with warnings only, \(sources.sourceCount - errors - warnings - sources.failureCount) without"
    var page = ReportPage(
      title: "\(sources.sourceCount.counted("source")) checked", subtitle: verdict.titled)
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
        Table(
          ["host", "with errors", "with warnings", "sources"],
          hosts.prefix(Self.hostLimit).map {
            [$0.name, "\($0.errorCount)", "\($0.warningCount)", "\($0.sourceCount)"]
          }
        ).html(),
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
        Table.Cell(cause.level.rawValue, cause.level == .error ? .bad : nil), .init(cause.name),
        .init("\(cause.sourceCount)"), .init("\(cause.findingCount)"),
        .init(TextLayout.truncated(Self.name(cause.example), to: 100)),
      ]
    }
    return Table(["level", "finding", "sources", "findings", "example"], cells: rows, numbers: 2..<4).html()
  }

  private static func block(_ source: CheckedSource, _ stills: inout ReportPage.Pictures) -> String {
    let starts = source.starts.map {
      "<h3>Start on \(Markup.escape($0.link))</h3>" + StartChart(start: $0).html
    }
    let detail =
      starts.joined() + (source.ladder.isEmpty ? "" : "<h3>Ladder</h3>" + source.ladderTable.html())
    return "<section><h2 class=\"source\">\(Markup.escape(name(source.source)))</h2>"
      + "<p class=\"sub\">\(Markup.escape(source.verdict.titled))</p>"
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
