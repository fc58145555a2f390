import Foundation
import ReelCheck
import ReelCore
import ReelLab
import ReelPool

/// The text of `reel check` for a source.
struct CheckText {
  let verdict: CheckGates.Verdict
  let layout: TextLayout
  /// Whether bars are made of Unicode blocks.
  var usesBlocks = true

  /// The number of findings, and of checks that were not made, that are printed.
  private static let findingLimit = 60
  private static let notCheckedLimit = 5
  private static let barWidth = 48
  private static let indentation = "  "
  /// The columns of the level.
  private static let levelWidth = 9

  private var checked: CheckedSource { verdict.checked }

  /// Whether the locale is one of UTF-8.
  static func usesBlocks(_ environment: [String: String]) -> Bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    return locale?.uppercased().replacing("-", with: "").contains("UTF8") ?? false
  }

  var text: String {
    var blocks = [[headline] + (reading.isEmpty ? [] : [Self.indentation + reading])]
    blocks += [ladder, findings] + checked.starts.map(bars) + [remarks]
    return blocks.filter { !$0.isEmpty }.map { $0.joined(separator: "\n") }.joined(separator: "\n\n") + "\n"
  }

  /// The line of a source of a list: its worst finding, as in `error  segment-missing/status: 360p, segment 3: 404; 1 more
  /// error`, or else its verdict.
  var line: String {
    let level = checked.silence != nil ? "failed" : checked.worstLevel?.rawValue ?? "ok"
    return "\(level)\t\(Redaction.clean(cause ?? checked.verdict))"
  }

  /// The worst finding, or an expectation that is not met, and how many there are besides; nil without a warning.
  private var cause: String? {
    guard checked.silence == nil, let worst = checked.worstLevel, worst > .note else { return nil }
    let finding = checked.findings.first { $0.level == worst && $0.waiver == nil }
    let words =
      finding.map { "\($0.name): \(CheckWords.placed($0))" } ?? checked.unmet.first ?? checked.verdict
    let others = [FindingLevel.error, .warning].compactMap { level in
      let count = checked.count(level) - (level == worst ? 1 : 0)
      return count > 0
        ? "\(count) \(level == worst ? "more " : "")\(level.rawValue)\(count == 1 ? "" : "s")" : nil
    }
    let known = CheckWords.known(waived: checked.waivedCount)
    return ([words, others.joined(separator: ", ")].filter { !$0.isEmpty } + [known].compactMap(\.self))
      .joined(separator: "; ")
  }

  /// The entry of the catalogue.
  static func explanation(of pattern: FindingPattern) -> String {
    let entry = Catalogue.entry(for: pattern.id)
    let kind = entry.kinds.first { $0.name == pattern.kind }
    return HelpText.fitted(entry.explanation(of: kind), to: HelpText.columns)
  }

  // MARK: - Private

  private var headline: String {
    let style: TextLayout.Style? =
      switch checked.worstLevel {
      case .error: .bad
      case .warning: .warning
      case .note, nil: checked.silence == nil ? .good : .bad
      }
    return "\(checked.source.printable): \(layout.styled(Redaction.clean(checked.verdict), style))"
  }

  private var reading: String {
    guard !checked.facts.format.isEmpty else { return "" }
    let coverage = checked.coverage
    let formats = ["hls": "HLS", "dash": "DASH", "mp4": "MP4", "mov": "MP4"]
    var facts: [String] = []
    if let duration = checked.facts.duration {
      facts.append("\(duration.formatted(places: 2)) s")
    } else if checked.facts.isLive {
      facts.append("live")
    }
    if checked.ladder.count > 1 {
      facts.append(coverage.allRungCount.counted("rung or rendition", "rungs and renditions"))
    } else if let only = checked.ladder.first, !only.detail.isEmpty {
      facts.append(only.detail)
    }
    let bytes = ByteSize(byteCount: Int(clamping: coverage.byteCount))
    var done: [String] = []
    if coverage.allSegmentCount > 1 {
      done.append(
        "\(coverage.segmentCount) of \(coverage.allSegmentCount.counted("segment")) read (\(bytes))")
    } else if coverage.byteCount > 0 {
      done.append("\(bytes) read")
    }
    if coverage.frameCount > 0 {
      let damaged = coverage.damagedFrameCount == 0 ? "none" : "\(coverage.damagedFrameCount)"
      done.append("\(coverage.frameCount.counted("frame")) decoded, \(damaged) damaged")
    }
    if coverage.audioDuration > 0 { done.append("\(coverage.audioDuration.formatted(places: 1)) s of audio") }
    let name = formats[checked.facts.format] ?? checked.facts.format.uppercased()
    let parts = ["\(name)  \(facts.joined(separator: ", "))", done.joined(separator: ", ")]
    return parts.filter { !$0.isEmpty }.joined(separator: "   ")
  }

  private var ladder: [String] {
    checked.ladder.count > 1 ? checked.ladderTable.lines(in: layout) : []
  }

  private var findings: [String] {
    let listed = checked.listed
    var entries = checked.unmet.map { unmet in
      Entry(level: "error", name: "expectation", text: unmet, cost: "", fix: "", style: .bad)
    }
    entries += listed.prefix(Self.findingLimit).map(entry)
    let width = entries.map { max($0.name.count, $0.cost.count) }.max() ?? 0
    var lines = entries.flatMap { entryLines($0, nameWidth: width) }
    let more = listed.count - Self.findingLimit
    if more > 0 { lines.append("\(Self.indentation)and \(more.counted("more finding"))") }
    return lines
  }

  private struct Entry {
    var level: String
    var name: String
    var text: String
    var cost: String
    var fix: String
    /// The URL of the segment to mend.
    var url: String?
    var style: TextLayout.Style?
  }

  private func entry(_ finding: Finding) -> Entry {
    let isKnown = finding.waiver != nil
    let text = Redaction.clean(CheckWords.placed(finding))
    let costs = CheckWords.costs(finding)
    // The bars are those of a player that uses bytes as they come.
    let own = costs.filter { $0.player != .whole }
    let cost =
      (own.isEmpty ? costs : own).max { $0.milliseconds < $1.milliseconds }.map(CheckWords.cost) ?? ""
    return Entry(
      level: isKnown ? "known" : finding.level.rawValue, name: finding.name, text: text, cost: cost,
      fix: finding.waiver.map { "\(finding.level.rawValue), waived: \($0)" } ?? Redaction.clean(finding.fix),
      url: finding.segment == nil ? nil : finding.url.map(Redaction.clean),
      style: isKnown ? nil : finding.level == .error ? .bad : finding.level == .warning ? .warning : nil
    )
  }

  private func entryLines(_ entry: Entry, nameWidth: Int) -> [String] {
    func padded(_ text: String, _ count: Int) -> String {
      text + String(repeating: " ", count: max(0, count - text.count))
    }
    let level =
      layout.styled(entry.level, entry.style)
      + String(repeating: " ", count: max(0, Self.levelWidth - entry.level.count))
    let column = Self.indentation.count + Self.levelWidth + nameWidth + 2
    let margin = String(repeating: " ", count: column)
    func wrapped(_ head: String, _ text: String) -> [String] {
      let text = text.printable
      guard let width = layout.width, width - column >= 30 else { return [head + text] }
      let parts = TextLayout.wrapped(
        text, first: width - column, others: width - column, shortensWords: false)
      return [head + parts[0]] + parts.dropFirst().map { margin + $0 }
    }
    var lines = wrapped(Self.indentation + level + padded(entry.name, nameWidth) + "  ", entry.text)
    if !entry.cost.isEmpty || !entry.fix.isEmpty {
      let blank = String(repeating: " ", count: Self.levelWidth)
      lines += wrapped(Self.indentation + blank + padded(entry.cost, nameWidth) + "  ", entry.fix)
    }
    if let url = entry.url { lines.append(margin + url) }
    return lines.map { line in
      var line = line
      while line.last == " " { line.removeLast() }
      return line
    }
  }

  /// A start that is slow whatever is mended, in milliseconds.
  private static let slowStart = 1000.0

  /// The start now and after each step, as bars. Empty if nothing would be saved, and the start is not slow.
  private func bars(_ start: StartResult) -> [String] {
    guard start.saving >= CheckWords.leastCost || start.now.milliseconds >= Self.slowStart else { return [] }
    let parts = start.now.parts.map { "\($0) \(Int($1.rounded())) ms" }.joined(separator: ", ")
    var rows = [(name: "now", milliseconds: start.now.milliseconds, note: parts)]
    for (index, step) in start.steps.enumerated() {
      rows.append((index == 0 ? "fix \(step.finding)" : "+ \(step.finding)", step.milliseconds, ""))
    }
    if abs(start.possibleMilliseconds - start.floorMilliseconds) < 1 {
      let note = rows.count > 1 ? "" : rows[0].note + "; "
      rows[rows.count - 1].note = "\(note)\(start.floorWords): the floor"
    } else {
      rows.append(("floor", start.floorMilliseconds, start.floorWords))
    }
    let width = rows.map(\.name.count).max() ?? 0
    let full = min(Self.barWidth, max(10, (layout.width ?? 120) - width - 50))
    let times = rows.map { CheckWords.time($0.milliseconds) }
    let timeWidth = times.map(\.count).max() ?? 0
    let title = checked.starts.count > 1 ? ["\(Self.indentation)start on \(start.link)"] : []
    return title
      + zip(rows, times).map { row, time in
        let length = max(1, Int((row.milliseconds / start.now.milliseconds * Double(full)).rounded()))
        let bar = String(repeating: usesBlocks ? "█" : "#", count: min(full, length))
        let name = row.name + String(repeating: " ", count: width - row.name.count)
        let gap = String(repeating: " ", count: full - bar.count + timeWidth - time.count)
        return "\(Self.indentation)\(name) \(bar)\(gap)  \(time)\(row.note.isEmpty ? "" : "   " + row.note)"
      }
  }

  private var remarks: [String] {
    var lines: [String] = []
    for item in checked.notChecked.prefix(Self.notCheckedLimit) {
      lines.append("not checked: \(CheckWords.omission(item))")
    }
    let more = checked.notChecked.count - Self.notCheckedLimit
    if more > 0 { lines.append("not checked: \(more) more, see --json") }
    let seconds = checked.starts.compactMap { start in
      start.secondFrameMilliseconds.map { "\(CheckWords.time($0)) on \(start.link)" }
    }
    if !seconds.isEmpty { lines.append("second frame after \(seconds.joined(separator: " and "))") }
    if let wait = checked.starts.map(\.waitMilliseconds).max(), wait >= CheckWords.leastCost {
      lines.append(
        "\(CheckWords.time(wait)) of the start are the server's: the fastest of its answers, which vary from run to run"
      )
    }
    if let changed = CheckWords.changed(checked.thresholds) { lines.append("thresholds: \(changed)") }
    for outcome in verdict.outcomes where outcome.isMet { lines.append("\(outcome)") }
    if let first = checked.listed.first(where: { $0.level > .note }) {
      lines.append("reel check --explain \(first.name) explains it")
    }
    return lines.map { Self.indentation + $0 }
  }
}
