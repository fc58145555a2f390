public import ReelCore
internal import ReelPool

/// The time that a viewer looks at each item of a walk.
public enum DwellSpec: Sendable, Hashable {
  /// The same time for each item.
  case fixed(Duration)
  /// Exponentially distributed times with this mean: most items are left soon, a few are watched for long.
  case exponential(mean: Duration)
  /// Weibull-distributed times, a day at most. With a shape below 1, most items are left soon and a few are watched for
  /// very long; a shape of 1 is the exponential distribution; with a larger one, times are close to the scale.
  case weibull(shape: Double, scale: Duration)
  /// Times drawn for each item from the item's own curve (``ReelPool/FeedItem/retention``). A viewer who is left at the
  /// end of the curve watches to the item's ``ReelPool/FeedItem/duration``.
  case retention
  /// Recorded times, which also say where the swipes lead.
  case trace(DwellTrace)

  /// The forms that `init(parsing:)` accepts, each with its meaning, in the order of the help text.
  public static let forms: [(form: String, meaning: String)] = [
    ("fixed:2s", "the same time for each item"),
    ("exp:5s", "exponentially distributed with this mean"),
    ("weibull:0.8,6s", "Weibull distributed with this shape and scale"),
    ("retention", "drawn from \"retention\" and \"duration\" of the item in a JSON feed"),
    ("trace:FILE", "a line for each swipe: seconds, then an index from 0, +n, -n or nothing"),
  ]

  /// The accepted shapes of a Weibull distribution: from 0.1 to 10.
  public static let shapes = 0.1...10

  /// Parses `fixed:2s`, `exp:5s`, `weibull:0.8,6s`, `retention` or `trace:FILE`, and reads the file of a trace.
  ///
  /// A time has a unit, `us`, `ms`, `s` or `min`, or counts seconds. It is a day at most.
  ///
  /// - Throws: `ReelError` of kind `usage` if `text` has none of these forms; the errors of ``DwellTrace/init(path:)``.
  public init(parsing text: String) throws(ReelError) {
    let trimmed = text.trimmed
    guard trimmed.lowercased() != "retention" else {
      self = .retention
      return
    }
    guard let colon = trimmed.firstIndex(of: ":") else { throw Self.malformed(text) }
    let argument = trimmed[trimmed.index(after: colon)...].trimmed
    switch trimmed[..<colon].lowercased() {
    case "trace" where !argument.isEmpty: self = .trace(try DwellTrace(path: argument))
    case "fixed":
      guard let dwell = DurationText.parse(argument) else { throw Self.malformed(text) }
      self = .fixed(dwell)
    case "exp":
      guard let mean = DurationText.parse(argument), mean > .zero else { throw Self.malformed(text) }
      self = .exponential(mean: mean)
    case "weibull": self = try Self.weibull(argument, in: text)
    default: throw Self.malformed(text)
    }
  }

  // MARK: - Private

  private static func weibull(_ argument: String, in text: String) throws(ReelError) -> DwellSpec {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 2, let (shape, unit) = Quantity.split(parts[0]), unit.isEmpty,
      let scale = DurationText.parse(parts[1]), scale > .zero
    else { throw malformed(text) }
    guard shapes.contains(shape) else {
      let limits = "\(shapes.lowerBound.formatted(places: 1)) to \(shapes.upperBound.formatted(places: 1))"
      throw ReelError(.usage, "\"\(text)\": the shape must be from \(limits)")
    }
    return .weibull(shape: shape, scale: scale)
  }

  private static func malformed(_ text: String) -> ReelError {
    let names = forms.map(\.form).joined(separator: ", ")
    return ReelError(
      .usage, "\"\(text)\" is not a dwell time", advice: "write \(names), at most a day")
  }
}

extension DwellSpec: CustomStringConvertible {
  /// The form that `init(parsing:)` accepts.
  public var description: String {
    switch self {
    case .fixed(let dwell): "fixed:\(DurationText.compact(dwell))"
    case .exponential(let mean): "exp:\(DurationText.compact(mean))"
    case .weibull(let shape, let scale): "weibull:\(shape),\(DurationText.compact(scale))"
    case .retention: "retention"
    case .trace(let trace): "trace:\(trace.name)"
    }
  }
}
