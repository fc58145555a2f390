public import ReelCore
internal import ReelPool

/// A condition on the figures of a walk: `ttff.p95<150ms`, `hit.ratio>=90%`.
///
/// The text is the name of a metric, one of `<`, `<=`, `>`, `>=` and `=` (or `==`), and a value with a unit of the
/// metric. White space is allowed between them. A walk that lacks the figure does not meet the assertion, such as
/// `ttff.hit.p99<1ms` for a walk without hits.
public struct WalkAssertion: Sendable, Hashable {
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
  public struct Outcome: Sendable, Hashable {
    /// The text of the assertion.
    public let assertion: String
    /// True if the walk meets the assertion.
    public let isMet: Bool
    /// The walk's figure, of the same kind as the limit; `nil` if the walk lacks it.
    public let value: WalkValue?
    /// Why the walk lacks the figure; `nil` if it does not.
    public let reason: String?
    /// The text of the figure or the reason.
    package let finding: String
  }

  /// The text that was parsed, without white space at its ends.
  public let text: String
  /// The name of the ``WalkMetric``.
  public let metric: String
  package let comparison: Comparison
  /// The value to compare the figure with.
  public let limit: WalkValue

  /// Parses an assertion such as `ttff.p95<150ms`.
  ///
  /// - Throws: `ReelError` of kind `usage`, with the accepted metrics, units or forms as advice.
  public init(parsing text: String) throws(ReelError) {
    let trimmed = text.trimmed
    guard let start = trimmed.firstIndex(where: { "<>=".contains($0) }) else { throw Self.malformed(text) }
    let sign = trimmed[start...].prefix { "<>=".contains($0) }
    guard let comparison = sign == "=" ? .equal : Comparison(rawValue: String(sign)) else {
      throw Self.malformed(text)
    }
    let metric = try WalkMetric.named(trimmed[..<start].trimmed)
    let value = trimmed[sign.endIndex...].trimmed
    guard let limit = Self.limit(value, of: metric) else {
      let forms = metric.kinds.map(\.form).joined(separator: ", or ")
      throw ReelError(
        .usage, "\"\(trimmed)\": \"\(value)\" is not a value of \(metric.name)", advice: "it takes \(forms)")
    }
    self.text = trimmed
    self.metric = metric.name
    self.comparison = comparison
    self.limit = limit
  }

  /// Evaluates the assertion for the figures of a report.
  public func evaluate(_ report: WalkReport) -> Outcome { evaluate(report.totals) }

  /// Evaluates the assertion for the figures of a walk.
  public func evaluate(_ totals: WalkTotals) -> Outcome {
    let metric = WalkMetric.all.first { $0.name == self.metric }
    guard let value = metric?.value(in: totals, as: limit.kind) else {
      let reason = metric?.absence
      return Outcome(
        assertion: text, isMet: false, value: nil, reason: reason, finding: reason ?? "no such figure")
    }
    // A figure just beyond the limit must not print like the limit itself.
    let looksEqual = value != limit && value.description == limit.description
    return Outcome(
      assertion: text, isMet: comparison.holds(value.number, limit.number), value: value, reason: nil,
      finding: looksEqual ? value.exact : value.description)
  }

  // MARK: - Private

  private static func limit(_ text: String, of metric: WalkMetric) -> WalkValue? {
    guard let (value, unit) = Quantity.split(text) else { return nil }
    for kind in metric.kinds {
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

  private static func malformed(_ text: String) -> ReelError {
    ReelError(
      .usage, "\"\(text)\" is not an assertion",
      advice: "write a metric, <, <=, >, >= or =, and a value, as ttff.p95<150ms")
  }
}

extension WalkAssertion: CustomStringConvertible {
  public var description: String { text }
}

extension WalkAssertion.Outcome: CustomStringConvertible {
  /// `ttff.p95<150ms: met, 93.2 ms`, or `ttff.hit.p99<=1ms: not met, no swipe was a hit`.
  public var description: String {
    "\(assertion): \(isMet ? "met" : "not met"), \(finding)"
  }
}

extension WalkAssertion.Outcome: Encodable {
  private enum CodingKeys: String, CodingKey {
    case assertion, finding
    case isMet = "met"
  }

  /// Writes `assertion`, `met`, and `finding`: the figure with its unit, or why the walk lacks it.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(assertion, forKey: .assertion)
    try values.encode(isMet, forKey: .isMet)
    try values.encode(finding, forKey: .finding)
  }
}
