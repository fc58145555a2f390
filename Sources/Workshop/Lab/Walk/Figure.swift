package import ReelCore
internal import ReelPool
import ReelSimulation

/// The outputs that show a figure, besides JSON, assertions and help texts, which have all figures.
package enum FigurePlace: Sendable {
  /// The page of one run.
  case page
  /// Walks with several pools, side by side.
  case comparison
  /// Walks over several links.
  case links
  /// The results, CSV and JSON of labs.
  case lab
  /// The table of a lab.
  case means
  /// The costs of which the table of a lab has differences from the reference.
  case differences
}

/// A named figure of a run, such as a walk or the playback of a source.
///
/// ``WalkFigures`` lists those of walks. What shows figures goes through the list, so a new figure is one entry.
package struct Figure<Run: Sendable>: Sendable {
  /// The name, which is also the path in JSON: `first_frame.p95`.
  package let name: String
  /// A name for people: `first frame, p95`.
  package let title: String
  /// A phrase that explains the figure.
  package let meaning: String
  /// The kinds that the figure is available as. The first one is printed.
  package let kinds: [WalkValue.Kind]
  /// A phrase that explains why a run may lack the figure.
  package let absence: String
  package let places: Set<FigurePlace>
  /// A short title for tables with many columns.
  package let heading: String?
  private let find: @Sendable (Run, WalkValue.Kind) -> WalkValue?

  /// A figure that is available as several kinds.
  package init(
    _ name: String, _ title: String, _ meaning: String, _ kinds: [WalkValue.Kind],
    _ places: Set<FigurePlace> = [], heading: String? = nil,
    absence: String = "there is no such figure", find: @escaping @Sendable (Run, WalkValue.Kind) -> WalkValue?
  ) {
    (self.name, self.title, self.meaning, self.kinds) = (name, title, meaning, kinds)
    (self.places, self.heading) = (places, heading)
    (self.absence, self.find) = (absence, find)
  }

  /// A figure of one kind.
  package init(
    _ name: String, _ title: String, _ meaning: String, _ kind: WalkValue.Kind,
    _ places: Set<FigurePlace> = [], heading: String? = nil,
    absence: String = "there is no such figure", value: @escaping @Sendable (Run) -> WalkValue?
  ) {
    self.init(
      name, title, meaning, [kind], places, heading: heading, absence: absence
    ) { run, _ in value(run) }
  }

  /// Returns the figure of a run.
  ///
  /// - Parameters:
  ///   - run: The run.
  ///   - kind: The kind of figure; `nil` for the first of `kinds`.
  /// - Returns: `nil` if the run lacks the figure, or if the figure is not available as this kind.
  package func value(in run: Run, as kind: WalkValue.Kind? = nil) -> WalkValue? {
    let kind = kind ?? kinds[0]
    return kinds.contains(kind) ? find(run, kind) : nil
  }

  /// The kind in which walks are compared as costs: a size if there is one, since a share depends on the whole.
  package var costKind: WalkValue.Kind { kinds.contains(.size) ? .size : kinds[0] }

  /// The figure of a run as ``costKind``, in the unit of JSON.
  package func cost(in run: Run) -> Double? { value(in: run, as: costKind)?.scalar }

  /// Writes each figure at the path that its name states, its last key with the suffix of the unit:
  /// `second_frame.p95` is `p95_ms` in the object `second_frame`.
  static func encode(_ figures: [Figure], of run: Run, to encoder: any Encoder) throws {
    for figure in figures {
      var path = figure.name.split(separator: ".").map { JSONFields.Name(String($0)) }
      let last = path.removeLast()
      for kind in figure.kinds {
        guard let value = figure.value(in: run, as: kind) else { continue }
        var object = encoder.container(keyedBy: JSONFields.Name.self)
        for key in path { object = object.nestedContainer(keyedBy: JSONFields.Name.self, forKey: key) }
        let suffix = kind == .count && kind != figure.kinds[0] ? "_count" : kind.suffix
        try object.encode(value.scalar, forKey: JSONFields.Name(last.stringValue + suffix))
      }
    }
  }

  /// The figure with this name, in any letter case.
  ///
  /// - Throws: `ReelError` of kind `usage` if there is none, with a similar name if one exists.
  fileprivate static func named(_ name: String, among figures: [Figure], advice listing: String)
    throws(ReelError) -> Figure
  {
    if let figure = figures.first(where: { $0.name == name.lowercased() }) { return figure }
    let similar = Similarity.suggestion(for: name, among: figures.map(\.name))
    let advice = similar.map { "did you mean \($0)? " } ?? ""
    throw ReelError(.usage, "\"\(name)\" is not a metric", advice: advice + listing)
  }
}

/// A condition on the figures of a walk: `first_frame.p95<150ms`, `hit.ratio>=90%`.
package typealias WalkAssertion = FigureAssertion<WalkTotals>

/// A condition on the figures of a run: `first_frame.p95<150ms`, `hit.ratio>=90%`.
///
/// The text is the name of a figure, one of `<`, `<=`, `>`, `>=` and `=` (or `==`), and a value with a unit of the
/// figure. White space is allowed between them. A run that lacks the figure does not meet the assertion, such as
/// `first_frame.hit.p99<1ms` for a walk without hits.
package struct FigureAssertion<Run: Sendable>: Sendable {
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
  package typealias Outcome = AssertionOutcome

  /// The text that was parsed, without white space at its ends.
  package let text: String
  /// The name of the ``Figure``.
  package var metric: String { figure.name }
  private let figure: Figure<Run>
  package let comparison: Comparison
  /// The value to compare the figure with.
  package let limit: WalkValue

  /// Parses an assertion such as `first_frame.p95<150ms`.
  ///
  /// - Parameters:
  ///   - figures: The figures that a run may have.
  ///   - advice: The place where the figures are listed.
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
  package func evaluate(_ run: Run) -> Outcome {
    guard let value = figure.value(in: run, as: limit.kind) else {
      return Outcome(assertion: text, isMet: false, finding: figure.absence)
    }
    // A figure just beyond the limit must not print like the limit itself.
    let looksEqual = value != limit && value.description == limit.description
    return Outcome(
      assertion: text, isMet: comparison.holds(value.number, limit.number),
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
        if value == 0, (try? BitRate(parsing: "1\(unit)")) != nil, !unit.isEmpty { return .bitRate(0) }
        if !unit.isEmpty, let rate = try? BitRate(parsing: text) {
          return .bitRate(Double(rate.bitsPerSecond))
        }
      }
    }
    return nil
  }

  private static func malformed(_ text: String, _ figures: [Figure<Run>]) -> ReelError {
    // Of the times, the second is the more usual one: the 95th percentile of a walk's.
    let example = figures.filter { $0.kinds.first == .time }.dropFirst().first?.name ?? "first_frame.p95"
    return ReelError(
      .usage, "\"\(text)\" is not an assertion",
      advice: "write a metric, <, <=, >, >= or =, and a value, as \(example)<150ms")
  }
}

extension FigureAssertion where Run == WalkTotals {
  /// Parses an assertion such as `first_frame.p95<150ms`.
  ///
  /// - Throws: `ReelError` of kind `usage`, with the accepted metrics, units or forms as advice.
  package init(parsing text: String) throws(ReelError) {
    try self.init(parsing: text, among: WalkFigures.all, advice: "reel feed --help lists the metrics")
  }

  /// Evaluates the assertion for the figures of a report.
  package func evaluate(_ report: WalkReport) -> Outcome { evaluate(report.totals) }
}

extension FigureAssertion: Hashable {
  public static func == (left: Self, right: Self) -> Bool {
    left.text == right.text && left.metric == right.metric && left.comparison == right.comparison
      && left.limit == right.limit
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension FigureAssertion: CustomStringConvertible {
  package var description: String { text }
}

/// The result of evaluating an assertion.
package struct AssertionOutcome: Sendable, Hashable {
  package let assertion: String
  /// True if the run meets the assertion.
  package let isMet: Bool
  /// The text of the figure, or why the run lacks it.
  package let finding: String
}

extension AssertionOutcome: CustomStringConvertible {
  /// `first_frame.p95<150ms: met, 93.2 ms`, or `first_frame.hit.p99<=1ms: not met, no swipe was a hit`.
  package var description: String {
    "\(assertion): \(isMet ? "met" : "not met"), \(finding)"
  }
}

extension AssertionOutcome: Encodable {
  /// Writes `assertion`, `met`, and `finding`: the figure with its unit, or why the run lacks it.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode(["assertion": assertion, "finding": finding, "met": isMet])
  }
}

/// A figure of a walk, with its unit.
package enum WalkValue: Sendable, Hashable {
  /// The kind of a figure, which determines its units.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A duration.
    case time
    /// A number of bytes.
    case size
    /// A share, from 0 to 1.
    case share
    /// A number of things.
    case count
    /// Bits per second.
    case bitRate

    /// A phrase that explains how to write a value of this kind.
    package var form: String {
      switch self {
      case .time: "a time with a unit, as 150ms"
      case .size: "a size with a unit, as 10MB"
      case .share: "a share in percent, as 90%"
      case .count: "a number without a unit"
      case .bitRate: "a bit rate with a unit, as 2Mbit"
      }
    }

    /// The suffix of a JSON key.
    var suffix: String {
      switch self {
      case .time: "_ms"
      case .size: "_bytes"
      case .share, .count, .bitRate: ""
      }
    }
  }

  case time(Duration)
  /// A number of bytes.
  case size(Int64)
  /// A share from 0 to 1, written in percent.
  case share(Double)
  /// A plain number.
  case count(Int)
  /// Bits per second.
  case bitRate(Double)

  /// A part of a whole, as its share or by itself; `nil` for the share of nothing.
  package static func part(_ part: Int64, of whole: Int64, as kind: Kind) -> WalkValue? {
    switch kind {
    case .share: whole > 0 ? .share(Double(part) / Double(whole)) : nil
    case .size: .size(part)
    default: .count(Int(part))
    }
  }

  package var kind: Kind {
    switch self {
    case .time: .time
    case .size: .size
    case .share: .share
    case .count: .count
    case .bitRate: .bitRate
    }
  }

  /// The figure to the microsecond or byte, for when two figures would otherwise print alike.
  var exact: String {
    switch self {
    case .time(let duration): "\(duration.milliseconds.formatted(places: 3)) ms"
    case .size(let byteCount): "\(byteCount) B"
    case .share(let share): "\((share * 100).formatted(places: 6)) %"
    case .count(let count): String(count)
    case .bitRate(let bitRate): "\(bitRate.formatted(places: 3)) bit/s"
    }
  }

  /// The number in JSON: milliseconds to the microsecond, bytes, a share, a count, or bits per second.
  package var scalar: Double {
    if case .time(let duration) = self { duration.milliseconds } else { number }
  }

  /// The number to compare by, with others of its kind: nanoseconds, bytes, share, count or bits per second.
  var number: Double {
    switch self {
    case .time(let duration): duration / .nanoseconds(1)
    case .size(let byteCount): Double(byteCount)
    case .share(let share): share
    case .count(let count): Double(count)
    case .bitRate(let bitRate): bitRate
    }
  }
}

extension WalkValue: CustomStringConvertible {
  /// The rounded figure with its unit: `93.2 ms`, `3.5 MB`, `97.5 %`, `0`, `1.25 Mbit/s`.
  package var description: String {
    switch self {
    case .time(let duration): DurationText.readable(duration)
    case .size(let byteCount): ByteSize(byteCount: Int(clamping: byteCount)).description
    case .share(let share): "\((share * 100).formatted(places: 1)) %"
    case .count(let count): String(count)
    case .bitRate(let bitRate): Self.text(bitsPerSecond: bitRate)
    }
  }

  /// A bit rate in words: `1.25 Mbit/s`, `800 kbit/s`.
  ///
  /// - Parameter places: The number of decimals of a rate in Mbit/s.
  package static func text(bitsPerSecond: Double, places: Int = 2) -> String {
    bitsPerSecond >= 1e6
      ? "\((bitsPerSecond / 1e6).formatted(places: places)) Mbit/s"
      : "\((bitsPerSecond / 1e3).formatted(places: 0)) kbit/s"
  }
}
