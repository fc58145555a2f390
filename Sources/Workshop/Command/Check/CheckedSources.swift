import ReelCheck

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
    for finding in source.findings where finding.waiver == nil {
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
