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
  /// Errors first, then those that cost most.
  var findings: [Finding]
  let starts: [StartResult]
  /// Why the player of a model has no starts; nil if it has.
  let startRefusal: String?
  let notChecked: [NotChecked]
  let coverage: Coverage
  let thresholds: Thresholds
  /// Whether any media was judged.
  let judgement: Judgement
  /// The expectations that are not met, each as a clause with its figure.
  var unmet: [String] = []

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
    (starts, startRefusal) = (result.starts, result.startRefusal)
    notChecked = result.notChecked
    coverage = result.coverage
    thresholds = result.thresholds
    judgement = result.judgement
  }

  /// Set if no media arrived in time, so that nothing is known of the stream.
  var silence: ReelError? { judgement.silence }

  /// The findings in the order of reports, known ones last.
  var listed: [Finding] { findings.filter { $0.waiver == nil } + findings.filter { $0.waiver != nil } }

  var waivedCount: Int { findings.count { $0.waiver != nil } }

  /// The number of findings of a level that are not known. An expectation that is not met counts as an error.
  func count(_ level: FindingLevel) -> Int {
    findings.count(level) + (level == .error ? unmet.count : 0)
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
    return (clauses + [CheckWords.known(waived: waivedCount)].compactMap(\.self)).joined(separator: "; ")
  }

  // MARK: - Private

  /// What was found, and how it plays.
  private var clauses: [String] {
    let (errors, warnings) = (count(.error), count(.warning))
    let counts = [(errors, "error"), (warnings, "warning")].filter { $0.0 > 0 }.map { $0.0.counted($0.1) }
    let faults = counts.isEmpty ? [] : [counts.joined(separator: ", ")]
    guard let slow = starts.max(by: { $0.saving < $1.saving }) else {
      return faults + (startRefusal.map { ["not started: \($0)"] } ?? unstarted)
    }
    let times = starts.map { "\(CheckWords.time($0.now.milliseconds)) on \($0.link)" }
    let player = slow.player.map { " with \($0)" } ?? ""
    if errors == 0, slow.saving >= CheckWords.leastCost {
      let possible = CheckWords.time(slow.possibleMilliseconds)
      return [
        "plays, but starts in \(times.joined(separator: " and in "))\(player)",
        "\(possible) is possible\(starts.count > 1 ? " on \(slow.link)" : "")",
      ]
    }
    return (faults.isEmpty ? ["plays"] : faults)
      + ["first frame after \(times.joined(separator: " and "))\(player)"]
  }

  /// How it plays without a start that was measured.
  private var unstarted: [String] {
    if coverage.frameCount > 0 { return count(.error) + count(.warning) == 0 ? ["plays"] : [] }
    guard coverage.audioDuration > 0, count(.error) == 0 else { return ["no frame was decoded"] }
    let isWhole = !notChecked.contains { $0.unjudged != nil && $0.id == nil }
    return [isWhole ? "plays, without video" : "only sound was judged"]
  }
}

extension StartResult {
  /// The milliseconds that fixing all findings saves.
  var saving: Double { now.milliseconds - possibleMilliseconds }
}
