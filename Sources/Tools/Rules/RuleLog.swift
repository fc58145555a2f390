import ReelCore
import ReelManifest

enum RuleSource: Sendable, Hashable {
  /// A section of RFC 8216.
  case rfc(String)
  /// A section of draft-pantos-hls-rfc8216bis.
  case draft(String)

  var text: String {
    switch self {
    case .rfc(let section): "RFC 8216 §\(section)"
    case .draft(let section): "draft-pantos-hls-rfc8216bis §\(section)"
    }
  }
}

/// The violations of a playlist: up to the limit, those of the first lines, in whatever order they are found.
struct RuleLog: Sendable {
  private struct Finding: Sendable {
    var line: Int
    var order: Int
    var reason: String
  }

  private let limit: Int
  private var findings: [Finding] = []
  private var count = 0
  /// The line beyond which findings exceed the limit.
  private var lastLine = Int.max

  init(limit: Int) { self.limit = max(limit, 0) }

  /// Returns true if the line has a violation.
  func hasFinding(atLine line: Int) -> Bool { findings.contains { $0.line == line } }

  /// Adds the violation of a line and its rule.
  mutating func add(_ reason: @autoclosure () -> String, _ source: RuleSource, line: Int) {
    guard line <= lastLine, limit > 0 else { return }
    add("\(reason()) (\(source.text))", line: line)
  }

  /// Adds a fault of a line; 0 for the whole playlist.
  mutating func add(_ reason: String, line: Int) {
    guard line <= lastLine, limit > 0 else { return }
    findings.append(Finding(line: line, order: count, reason: reason))
    count += 1
    if findings.count >= 2 * limit + 64 { shorten() }
  }

  /// Returns the violations in the order of lines.
  mutating func violations() -> [ReelError] {
    shorten()
    return findings.map { finding in
      ReelError(.badManifest, finding.reason, place: finding.line > 0 ? .line(finding.line) : nil)
    }
  }

  // MARK: - Private

  private mutating func shorten() {
    findings.sort { ($0.line, $0.order) < ($1.line, $1.order) }
    guard findings.count >= limit else { return }
    findings.removeLast(findings.count - limit)
    lastLine = findings.last?.line ?? lastLine
  }
}
