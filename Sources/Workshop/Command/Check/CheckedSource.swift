import Foundation
import ReelCheck
import ReelCore

/// A checked source: its result, of which few facts are kept, and what the gates made of it.
///
/// It is small, so that a run over a list can keep many.
@dynamicMemberLookup
struct CheckedSource: Sendable {
  private let result: CheckResult
  let ladder: [CheckLadderRow]
  /// The expectations that are not met, each as a clause with its figure.
  var unmet: [String] = []

  init(_ result: CheckResult) {
    ladder = CheckLadderRow.rows(of: result)
    // Findings, starts, and of the facts what the source is.
    var kept = result
    kept.facts = StreamFacts()
    kept.facts.url = result.facts.url
    kept.facts.format = result.facts.format
    kept.facts.isLive = result.facts.isLive
    kept.facts.duration = result.facts.duration
    // A rewritten manifest may be large.
    for index in kept.findings.indices { kept.findings[index].change = nil }
    self.result = kept
  }

  /// A part of the result, such as its findings.
  subscript<Value>(dynamicMember part: KeyPath<CheckResult, Value>) -> Value { result[keyPath: part] }

  /// The findings in the order of reports, known ones last.
  var listed: [Finding] {
    result.findings.filter { $0.waiver == nil } + result.findings.filter { $0.waiver != nil }
  }

  var waivedCount: Int { result.findings.count { $0.waiver != nil } }

  /// The number of findings of a level that are not known. An expectation that is not met counts as an error.
  func count(_ level: FindingLevel) -> Int {
    result.findings.count(level) + (level == .error ? unmet.count : 0)
  }

  /// The worst level of the findings that are not known; nil without any.
  var worstLevel: FindingLevel? { FindingLevel.allCases.reversed().first { count($0) > 0 } }

  /// The name of the server; empty for a local file.
  var host: String { (result.facts.url ?? URL(string: result.source))?.host ?? "" }

  /// The verdict as a clause: `plays, but starts in 956 ms on lte; 175 ms is possible`.
  var verdict: String {
    if let silence = result.silence {
      return
        "\(result.facts.format.isEmpty ? "no host answered" : "no media arrived"): \(silence.description)"
    }
    return (clauses + [CheckWords.known(waived: waivedCount)].compactMap(\.self)).joined(separator: "; ")
  }

  // MARK: - Private

  /// What was found, and how it plays.
  private var clauses: [String] {
    let (errors, warnings) = (count(.error), count(.warning))
    let counts = [(errors, "error"), (warnings, "warning")].filter { $0.0 > 0 }.map { $0.0.counted($0.1) }
    let faults = counts.isEmpty ? [] : [counts.joined(separator: ", ")]
    guard let slow = result.starts.max(by: { $0.saving < $1.saving }) else {
      return faults + (result.startRefusal.map { ["not started: \($0)"] } ?? unstarted)
    }
    let times = result.starts.map { "\(CheckWords.time($0.now.milliseconds)) on \($0.link)" }
    let player = slow.player.map { " with \($0)" } ?? ""
    if errors == 0, slow.saving >= CheckWords.leastCost {
      let possible = CheckWords.time(slow.possibleMilliseconds)
      return [
        "plays, but starts in \(times.joined(separator: " and in "))\(player)",
        "\(possible) is possible\(result.starts.count > 1 ? " on \(slow.link)" : "")",
      ]
    }
    return (faults.isEmpty ? ["plays"] : faults)
      + ["first frame after \(times.joined(separator: " and "))\(player)"]
  }

  /// How it plays without a start that was measured.
  private var unstarted: [String] {
    if result.coverage.frameCount > 0 { return count(.error) + count(.warning) == 0 ? ["plays"] : [] }
    guard result.coverage.audioDuration > 0, count(.error) == 0 else { return ["no frame was decoded"] }
    let isWhole = !result.notChecked.contains { $0.unjudged != nil && $0.id == nil }
    return [isWhole ? "plays, without video" : "only sound was judged"]
  }
}

extension StartResult {
  /// The milliseconds that fixing all findings saves.
  var saving: Double { now.milliseconds - possibleMilliseconds }
}
