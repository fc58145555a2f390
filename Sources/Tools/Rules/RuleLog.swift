import ReelCore

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
  private struct Entry: Sendable {
    var line: Int
    var order: Int
    var violation: RuleViolation
  }

  private let limit: Int
  private var entries: [Entry] = []
  private var count = 0
  /// The line beyond which violations exceed the limit.
  private var lastLine = Int.max

  init(limit: Int) { self.limit = max(limit, 0) }

  /// Returns true if the line has a violation.
  func hasViolation(atLine line: Int) -> Bool { entries.contains { $0.line == line } }

  /// Adds the violation of a line and its rule.
  mutating func add(
    _ reason: @autoclosure () -> String, _ source: RuleSource, line: Int,
    _ effect: RuleViolation.Effect = .risk
  ) {
    guard line <= lastLine, limit > 0 else { return }
    add(RuleViolation(reason(), clause: source.text, effect, place: .line(line)), line: line)
  }

  /// Adds the violation of the rule of a tag.
  ///
  /// - Parameter effect: What it means for players, if not what violations of the tag mean.
  mutating func add(
    _ reason: @autoclosure () -> String, _ tag: PlaylistRules.Tag, _ effect: RuleViolation.Effect? = nil
  ) {
    add(reason(), tag.source, line: tag.line, effect ?? tag.effect)
  }

  /// Adds a violation of a line; 0 for the whole playlist.
  mutating func add(_ violation: RuleViolation, line: Int) {
    guard line <= lastLine, limit > 0 else { return }
    entries.append(Entry(line: line, order: count, violation: violation))
    count += 1
    if entries.count >= 2 * limit + 64 { shorten() }
  }

  /// Returns the violations in the order of lines.
  mutating func violations() -> [RuleViolation] {
    shorten()
    return entries.map(\.violation)
  }

  // MARK: - Private

  private mutating func shorten() {
    entries.sort { ($0.line, $0.order) < ($1.line, $1.order) }
    guard entries.count >= limit else { return }
    entries.removeLast(entries.count - limit)
    lastLine = entries.last?.line ?? lastLine
  }
}
