import Foundation
import ReelCheck
import ReelCore

/// A checked source: its result without the measurements, and what the gates made of it.
///
/// It is small, so that a run over a list can keep many.
struct CheckedSource: Sendable {
  /// The source as the user named it.
  let source: String
  /// The URL of the manifest or file, after redirects; nil if it was not opened.
  let url: URL?
  /// `hls`, `dash`, or the container of a media file; empty if it was not opened.
  let format: String
  let isLive: Bool
  /// The duration in seconds; nil if unknown.
  let duration: Double?
  let ladder: [CheckLadderRow]
  let findings: [Finding]
  let starts: [StartResult]
  let notChecked: [NotChecked]
  let coverage: Coverage
  let thresholds: Thresholds
  /// Whether any media was judged.
  let judgement: Judgement
  /// Set if no media arrived in time, so that nothing is known of the stream.
  let silence: ReelError?
  /// The reasons of findings that are waived, by their index.
  var waived: [Int: String] = [:]
  /// The expectations that are not met, each as a clause with its figure.
  var unmet: [String] = []
  var stills: [CheckStill]

  init(_ result: CheckResult) {
    source = result.source
    url = result.facts.url
    format = result.facts.format
    isLive = result.facts.isLive
    duration = result.facts.duration
    ladder = CheckLadderRow.rows(of: result)
    findings = result.findings.map { finding in
      var finding = finding
      // A rewritten manifest may be large.
      finding.change = nil
      return finding
    }
    starts = result.starts
    notChecked = result.notChecked
    coverage = result.coverage
    thresholds = result.thresholds
    judgement = result.judgement
    silence = result.silence
    stills = result.stills
  }

  /// Why a finding is a known one, which fails nothing; nil if it is not.
  func excuse(_ index: Int) -> String? {
    waived[index].map { "waived: \($0)" }
  }

  /// The findings in the order of reports, known ones last.
  var order: [Int] {
    findings.indices.filter { excuse($0) == nil } + findings.indices.filter { excuse($0) != nil }
  }

  /// The number of findings of a level that are not known. An expectation that is not met counts as an error.
  func count(_ level: FindingLevel) -> Int {
    findings.indices.count { findings[$0].level == level && excuse($0) == nil }
      + (level == .error ? unmet.count : 0)
  }

  /// The worst level of the findings that are not known; nil without any.
  var worstLevel: FindingLevel? { FindingLevel.allCases.reversed().first { count($0) > 0 } }

  /// The name of the server; empty for a local file.
  var host: String { (url ?? URL(string: source))?.host ?? "" }

  /// The verdict as a clause: `plays, but starts in 956 ms on lte; 175 ms is possible`.
  var verdict: String {
    if let silence {
      return "\(format.isEmpty ? "no host answered" : "no media arrived"): \(silence.description)"
    }
    let counts = [
      (count(.error), "error", "errors"), (count(.warning), "warning", "warnings"),
    ].filter { $0.0 > 0 }.map { $0.0.counted($0.1, $0.2) }
    var parts = counts.isEmpty ? [] : [counts.joined(separator: ", ")]
    let times = starts.map { "\(CheckWords.time($0.now.milliseconds)) on \($0.link)" }
    let slow = starts.max { $0.saving < $1.saving }
    if starts.isEmpty {
      if coverage.frameCount == 0, coverage.audioDuration > 0, count(.error) == 0 {
        let isWhole = !notChecked.contains { $0.unjudged != nil && $0.id == nil }
        parts.append(isWhole ? "plays, without video" : "only sound was judged")
      } else if coverage.frameCount == 0 {
        parts.append("no frame was decoded")
      } else if counts.isEmpty {
        parts.append("plays")
      }
    } else if count(.error) == 0, let slow, slow.saving >= CheckWords.leastCost {
      parts = [
        "plays, but starts in \(times.joined(separator: " and in "))",
        "\(CheckWords.time(slow.possibleMilliseconds)) is possible\(starts.count > 1 ? " on \(slow.link)" : "")",
      ]
    } else {
      let text = "first frame after \(times.joined(separator: " and "))"
      parts = counts.isEmpty ? ["plays", text] : parts + [text]
    }
    if let words = CheckWords.known(waived: waived.count) { parts.append(words) }
    return parts.joined(separator: "; ")
  }
}

extension StartResult {
  /// The milliseconds that fixing all findings saves.
  var saving: Double { now.milliseconds - possibleMilliseconds }
}

/// A finding as text and pages show it.
enum CheckWords {
  /// The least saving in milliseconds that is worth a word.
  static let leastCost = 20.0

  /// `known: 1 waived`; nil without any.
  static func known(waived: Int) -> String? { waived > 0 ? "known: \(waived) waived" : nil }

  /// The name of a finding in lists of findings: `timestamp-break/gap, english, segment 3`.
  static func name(_ finding: Finding) -> String {
    [finding.name, finding.rung, finding.segment.map { "segment \($0)" }].compactMap(\.self)
      .joined(separator: ", ")
  }

  /// Prints milliseconds as `956 ms`, and from 1 s on as `1.2 s`.
  static func time(_ milliseconds: Double) -> String {
    milliseconds.magnitude < 999.5
      ? "\(Int(milliseconds.rounded())) ms"
      : "\((milliseconds / 1000).formatted(places: milliseconds.magnitude < 10_000 ? 2 : 1)) s"
  }

  /// The place of a finding: `360p, segment 3 (6 s to 8 s)`; empty for the source as a whole.
  static func place(_ finding: Finding) -> String {
    var parts: [String] = []
    if let rung = finding.rung { parts.append(rung) }
    if let segment = finding.segment { parts.append("segment \(segment)") }
    if let line = finding.line { parts.append("line \(line)") }
    if let byte = finding.byte { parts.append("byte \(byte)") }
    let place = parts.joined(separator: ", ")
    guard let time = finding.time else { return place }
    let (from, to) = (time.lowerBound.formatted(places: 3), time.upperBound.formatted(places: 3))
    let span = from == to ? "at \(from) s" : "\(from) s to \(to) s"
    return place.isEmpty ? span : "\(place) (\(span))"
  }

  /// The summary of a finding after its place, as far as the summary does not name that itself.
  static func placed(_ finding: Finding) -> String {
    let summary = finding.summary
    let names = [finding.segment.map { "segment \($0)" }, finding.line.map { "line \($0)" }, "segments "]
    guard names.contains(where: { name in name.map { summary.contains($0) } == true }) else {
      let place = place(finding)
      if place.isEmpty || finding.rung.map({ summary.hasPrefix($0) }) == true { return summary }
      return "\(place): \(summary)"
    }
    guard let rung = finding.rung, !summary.contains(rung) else { return summary }
    return summary.hasPrefix("segment") ? "\(rung), \(summary)" : "\(rung): \(summary)"
  }

  /// The cost of a finding to a viewer: `first frame 733 ms later on lte`.
  static func cost(_ cost: FindingCost) -> String {
    let text = time(cost.milliseconds)
    let words =
      switch cost.kind {
      // Without a link, it is the wait for something to see.
      case .start: cost.link == nil ? "first picture \(text) later" : "first frame \(text) later"
      case .stall: "\(text) stalled"
      case .lost: "\(text) lost"
      case .switch: "change of rung \(text) longer"
      }
    let link = cost.link.map { " on \($0)" } ?? ""
    let player = cost.player == .whole ? " with whole segments" : ""
    let place = words + link + player
    guard let inTurn = cost.inTurnMilliseconds, abs(inTurn - cost.milliseconds) >= 1 else { return place }
    if cost.milliseconds < leastCost {
      return "nothing alone\(link)\(player), \(time(inTurn)) after larger savings"
    }
    return "\(place), \(time(inTurn)) after larger savings"
  }

  /// How the rung that was started with plays on: `360p: 2 stalls in 24 s, the first after 8.9 s`.
  static func playback(_ playback: StartResult.Playback) -> String {
    switch playback {
    case .unknown(let reason): return reason
    case .played(let rung, _):
      let estimate =
        rung.estimatedCount == 0
        ? "" : " (estimated: the sizes of \(rung.estimatedCount.counted("segment")) are not known)"
      return "\(rung.rung): \(rung.stallWords)\(estimate)"
    }
  }

  /// The costs that are worth a word.
  static func costs(_ finding: Finding) -> [FindingCost] {
    finding.costs.filter { max($0.milliseconds, $0.inTurnMilliseconds ?? 0) >= leastCost }
  }

  static func evidence(_ value: EvidenceValue) -> String {
    switch value {
    case .number(let number): number.formatted(places: 3)
    case .text(let text): text
    case .flag(let flag): flag ? "yes" : "no"
    }
  }

  /// A threshold that is not the usual one: `black.run 5 s, usually 2 s`.
  static func threshold(_ threshold: Threshold, _ value: Double) -> String {
    let usual = threshold.usual
    let unit = usual.unit.rawValue
    return
      "\(threshold.rawValue) \(value.formatted(places: 3)) \(unit), usually \(usual.value.formatted(places: 3)) \(unit)"
  }

  /// Returns the text with a capital letter at its beginning.
  static func sentence(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }
}

/// The order of sources: by what they are, by what they cost, then by name, so that it does not depend on the order in
/// which they were checked.
private struct Badness: Comparable {
  /// The numbers of errors, warnings and notes.
  let counts: [Int]
  let cost: Double
  let name: String

  init(_ source: CheckedSource) {
    counts = FindingLevel.allCases.reversed().map { source.count($0) }
    cost = source.findings.flatMap(\.costs).map(\.milliseconds).max() ?? 0
    name = source.source
  }

  static func < (left: Self, right: Self) -> Bool {
    if left.counts != right.counts { return left.counts.lexicographicallyPrecedes(right.counts) }
    if left.cost != right.cost { return left.cost < right.cost }
    return left.name > right.name
  }
}

/// The checked sources of a run, for its page.
///
/// It keeps counts and the worst sources; its memory does not grow with the list.
struct CheckedSources: Sendable {
  /// Sources with the same host.
  struct Host: Sendable {
    var name: String
    var sourceCount = 0
    /// The sources with errors, and those with warnings as their worst.
    var errorCount = 0
    var warningCount = 0
  }

  /// A finding at one level, and how many sources have it.
  struct Cause: Sendable {
    var name: String
    var level: FindingLevel
    var sourceCount = 0
    var findingCount = 0
    /// A source that has it.
    var example: String
  }

  /// The same finding may be a warning of one source and a note of another.
  private struct CauseKey: Hashable {
    var name: String
    var level: FindingLevel
  }

  /// The number of sources of a page.
  static let sourceLimit = 64
  /// The number of hosts that are counted; sources of further ones are counted together.
  static let hostLimit = 10_000

  private(set) var sourceCount = 0
  /// The number of sources by their worst level; those without a finding are not in it.
  private(set) var levels: [FindingLevel: Int] = [:]
  /// The number of sources that could not be checked.
  private(set) var failureCount = 0
  private(set) var coverage = Coverage()
  private(set) var thresholds = Thresholds()
  /// At most twice as many as are shown.
  private var sources: [CheckedSource] = []
  private var hostsByName: [String: Host] = [:]
  private var causesByName: [CauseKey: Cause] = [:]

  /// Adds a checked source.
  mutating func add(_ source: CheckedSource) {
    sourceCount += 1
    if source.silence != nil {
      failureCount += 1
    } else if let level = source.worstLevel {
      levels[level, default: 0] += 1
    }
    thresholds = source.thresholds
    add(source.coverage)
    count(source)
    sources.append(source)
    if sources.count >= Self.sourceLimit * 2 { sources = worst }
  }

  /// Counts a source that could not be checked.
  mutating func addFailure() {
    sourceCount += 1
    failureCount += 1
  }

  /// The sources, the worst first.
  var worst: [CheckedSource] {
    Array(sources.sorted { Badness($0) > Badness($1) }.prefix(Self.sourceLimit))
  }

  /// The number of sources without a finding.
  var cleanCount: Int { sourceCount - failureCount - levels.values.reduce(0, +) }

  /// The hosts, those with the most errors first. Empty for local files.
  var hosts: [Host] {
    hostsByName.values.sorted {
      ($1.errorCount, $1.warningCount, $1.sourceCount, $0.name)
        < ($0.errorCount, $0.warningCount, $0.sourceCount, $1.name)
    }
  }

  /// The findings by name, the worst and most frequent first.
  var causes: [Cause] {
    causesByName.values.sorted { ($1.level, $1.sourceCount, $0.name) < ($0.level, $0.sourceCount, $1.name) }
  }

  // MARK: - Private

  private mutating func add(_ other: Coverage) {
    coverage.rungCount += other.rungCount
    coverage.allRungCount += other.allRungCount
    coverage.segmentCount += other.segmentCount
    coverage.allSegmentCount += other.allSegmentCount
    coverage.byteCount += other.byteCount
    coverage.frameCount += other.frameCount
    coverage.damagedFrameCount += other.damagedFrameCount
    coverage.audioDuration += other.audioDuration
  }

  private mutating func count(_ source: CheckedSource) {
    // A source counts once for each name, at the worst level that it has there.
    var found: [String: (level: FindingLevel, count: Int)] = [:]
    for (index, finding) in source.findings.enumerated() where source.excuse(index) == nil {
      let known = found[finding.name] ?? (finding.level, 0)
      found[finding.name] = (max(known.level, finding.level), known.count + 1)
    }
    for (name, finding) in found {
      let key = CauseKey(name: name, level: finding.level)
      var cause = causesByName[key] ?? Cause(name: name, level: finding.level, example: source.source)
      cause.example = min(cause.example, source.source)
      cause.findingCount += finding.count
      cause.sourceCount += 1
      causesByName[key] = cause
    }
    guard !source.host.isEmpty else { return }
    let isKept = hostsByName[source.host] != nil || hostsByName.count < Self.hostLimit
    let name = isKept ? source.host : "other hosts"
    var host = hostsByName[name] ?? Host(name: name)
    host.sourceCount += 1
    switch source.worstLevel {
    case .error: host.errorCount += 1
    case .warning: host.warningCount += 1
    case .note, nil: break
    }
    hostsByName[name] = host
  }
}
