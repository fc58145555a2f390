import ReelCheck
import ReelCore
import ReelLab

/// A checked source, with what the user decided beforehand: what is waived, expected and known.
struct CheckedSource: Sendable {
  let result: CheckResult
  /// The lowest level that fails the gate (`--fail-on`); nil for none.
  var failureLevel: FindingLevel? = .error
  /// The reasons of the waived findings, by their index in `result.findings`.
  var waived: [Int: String] = [:]
  /// The results of the expectations (`--expect`).
  var expectations: [AssertionOutcome] = []
  /// The indices of the findings that the baseline has too; nil without a baseline.
  var known: Set<Int>?
  /// The findings of the baseline that are gone.
  var fixed: [KnownFinding] = []
  /// The time that the check took.
  var duration = Duration.zero

  init(_ result: CheckResult) { self.result = result }

  /// The findings with their indices, waived ones too: errors first, then those that cost most.
  var findings: [(index: Int, finding: Finding)] { result.findings.enumerated().map { ($0, $1) } }

  /// Returns true if a finding fails the gate: it is not waived, not known, and of a level that fails.
  func fails(_ index: Int) -> Bool {
    guard let failureLevel, waived[index] == nil, known?.contains(index) != true else { return false }
    let level = result.findings[index].level
    return level > .note && level >= failureLevel
  }

  /// The expectations that are not met.
  var unmet: [AssertionOutcome] { expectations.filter { !$0.isMet } }

  /// True if a finding fails the gate, or an expectation is not met.
  var isFailed: Bool { !unmet.isEmpty || result.findings.indices.contains(where: fails) }

  /// Returns the number of findings of a level that are not waived.
  func count(_ level: FindingLevel) -> Int {
    result.findings.indices.count { waived[$0] == nil && result.findings[$0].level == level }
  }
}

/// A finding by its identity: two runs find the same if these are equal.
struct KnownFinding: Sendable, Hashable, CustomStringConvertible {
  /// The id and the kind: `timestamp-break/gap`.
  var name: String
  var rung: String?
  var segment: Int?
  /// The URL or path of the resource, without query and fragment, which hold tokens that change.
  var url: String?
  var line: Int?

  init(name: String, rung: String? = nil, segment: Int? = nil, url: String? = nil, line: Int? = nil) {
    (self.name, self.rung, self.segment, self.line) = (name, rung, segment, line)
    self.url = url.map { String($0.prefix { $0 != "?" && $0 != "#" }) }
  }

  init(_ finding: Finding) {
    self.init(
      name: finding.name, rung: finding.rung, segment: finding.segment, url: finding.url, line: finding.line)
  }

  /// `timestamp-break/gap, english, segment 3`.
  var description: String {
    [name, rung, segment.map { "segment \($0)" }, line.map { "line \($0)" }].compactMap(\.self)
      .joined(separator: ", ")
  }

  /// A text that is the same in every run, for fingerprints.
  var key: String {
    [name, rung ?? "", segment.map(String.init) ?? "", url ?? "", line.map(String.init) ?? ""]
      .joined(separator: "|")
  }
}
