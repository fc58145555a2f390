public import ReelCore
internal import ReelPool

/// A condition on the figures of a walk: `ttff.p95<150ms`, `hit.ratio>=90%`.
public typealias WalkAssertion = FigureAssertion<WalkTotals>

/// A condition on the figures of a run: `ttff.p95<150ms`, `hit.ratio>=90%`.
///
/// The text is the name of a figure, one of `<`, `<=`, `>`, `>=` and `=` (or `==`), and a value with a unit of the
/// figure. White space is allowed between them. A run that lacks the figure does not meet the assertion, such as
/// `ttff.hit.p99<1ms` for a walk without hits.
public struct FigureAssertion<Run: Sendable>: Sendable {
  package enum Comparison: String, Sendable, Hashable, CaseIterable {
    case atMost = "<="
    case atLeast = ">="
    case equal = "=="
    case below = "<"
    case above = ">"

    func holds(_ left: Double, _ right: Double) -> Bool {
      switch self {
      case .below: left < right
      case .atMost: left <= right
      case .above: left > right
      case .atLeast: left >= right
      case .equal: left == right
      }
    }
  }

  /// The result of evaluating an assertion.
  public typealias Outcome = AssertionOutcome

  /// The text that was parsed, without white space at its ends.
  public let text: String
  /// The name of the ``Figure``.
  public var metric: String { figure.name }
  private let figure: Figure<Run>
  package let comparison: Comparison
  /// The value to compare the figure with.
  public let limit: WalkValue

  /// Parses an assertion such as `ttff.p95<150ms`.
  ///
  /// - Parameters:
  ///   - figures: The figures that a run may have.
  ///   - advice: Where the figures are listed.
  /// - Throws: `ReelError` of kind `usage`, with the accepted metrics, units or forms as advice.
  package init(parsing text: String, among figures: [Figure<Run>], advice: String) throws(ReelError) {
    let trimmed = text.trimmed
    guard let start = trimmed.firstIndex(where: { "<>=".contains($0) }) else {
      throw Self.malformed(text, figures)
    }
    let sign = trimmed[start...].prefix { "<>=".contains($0) }
    guard let comparison = sign == "=" ? .equal : Comparison(rawValue: String(sign)) else {
      throw Self.malformed(text, figures)
    }
    let figure = try Figure.named(trimmed[..<start].trimmed, among: figures, advice: advice)
    let value = trimmed[sign.endIndex...].trimmed
    guard let limit = Self.limit(value, of: figure) else {
      let forms = figure.kinds.map(\.form).joined(separator: ", or ")
      throw ReelError(
        .usage, "\"\(trimmed)\": \"\(value)\" is not a value of \(figure.name)", advice: "it takes \(forms)")
    }
    self.text = trimmed
    self.figure = figure
    self.comparison = comparison
    self.limit = limit
  }

  /// Evaluates the assertion for the figures of a run.
  public func evaluate(_ run: Run) -> Outcome {
    guard let value = figure.value(in: run, as: limit.kind) else {
      return Outcome(
        assertion: text, isMet: false, value: nil, reason: figure.absence, finding: figure.absence)
    }
    // A figure just beyond the limit must not print like the limit itself.
    let looksEqual = value != limit && value.description == limit.description
    return Outcome(
      assertion: text, isMet: comparison.holds(value.number, limit.number), value: value, reason: nil,
      finding: looksEqual ? value.exact : value.description)
  }

  // MARK: - Private

  private static func limit(_ text: String, of figure: Figure<Run>) -> WalkValue? {
    guard let (value, unit) = Quantity.split(text) else { return nil }
    for kind in figure.kinds {
      switch kind {
      case .time:
        if let duration = DurationText.parse(text, needsUnit: true) { return .time(duration) }
      case .size:
        if !unit.isEmpty, let size = try? ByteSize(parsing: text) { return .size(Int64(size.byteCount)) }
      case .share:
        if unit == "%" { return .share(value / 100) }
      case .count:
        if unit.isEmpty, let count = Int(exactly: value) { return .count(count) }
      case .bitRate:
        if !unit.isEmpty, let rate = try? BitRate(parsing: text) {
          return .bitRate(Double(rate.bitsPerSecond))
        }
      }
    }
    return nil
  }

  private static func malformed(_ text: String, _ figures: [Figure<Run>]) -> ReelError {
    // Of the times, the second is the more usual one: the 95th percentile of a walk's.
    let example = figures.filter { $0.kinds.first == .time }.dropFirst().first?.name ?? "ttff.p95"
    return ReelError(
      .usage, "\"\(text)\" is not an assertion",
      advice: "write a metric, <, <=, >, >= or =, and a value, as \(example)<150ms")
  }
}

extension FigureAssertion where Run == WalkTotals {
  /// Parses an assertion such as `ttff.p95<150ms`.
  ///
  /// - Throws: `ReelError` of kind `usage`, with the accepted metrics, units or forms as advice.
  public init(parsing text: String) throws(ReelError) {
    try self.init(parsing: text, among: WalkMetric.all, advice: WalkMetric.listing)
  }

  /// Evaluates the assertion for the figures of a report.
  public func evaluate(_ report: WalkReport) -> Outcome { evaluate(report.totals) }
}

extension FigureAssertion: Hashable {
  public static func == (left: Self, right: Self) -> Bool {
    left.text == right.text && left.metric == right.metric && left.comparison == right.comparison
      && left.limit == right.limit
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension FigureAssertion: CustomStringConvertible {
  public var description: String { text }
}

/// The result of evaluating an assertion.
public struct AssertionOutcome: Sendable, Hashable {
  /// The text of the assertion.
  public let assertion: String
  /// True if the run meets the assertion.
  public let isMet: Bool
  /// The run's figure, of the same kind as the limit; `nil` if the run lacks it.
  public let value: WalkValue?
  /// Why the run lacks the figure; `nil` if it does not.
  public let reason: String?
  /// The text of the figure or the reason.
  package let finding: String
}

extension AssertionOutcome: CustomStringConvertible {
  /// `ttff.p95<150ms: met, 93.2 ms`, or `ttff.hit.p99<=1ms: not met, no swipe was a hit`.
  public var description: String {
    "\(assertion): \(isMet ? "met" : "not met"), \(finding)"
  }
}

extension AssertionOutcome: Encodable {
  private enum CodingKeys: String, CodingKey {
    case assertion, finding
    case isMet = "met"
  }

  /// Writes `assertion`, `met`, and `finding`: the figure with its unit, or why the run lacks it.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(assertion, forKey: .assertion)
    try values.encode(isMet, forKey: .isMet)
    try values.encode(finding, forKey: .finding)
  }
}
