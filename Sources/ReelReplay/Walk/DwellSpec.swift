public import ReelCore
internal import ReelPool

/// The time that a viewer looks at each item of a walk.
public enum DwellSpec: Sendable, Hashable {
  /// The same time for each item.
  case fixed(Duration)
  /// Exponentially distributed times with this mean: most items are left soon, a few are watched for long.
  case exponential(mean: Duration)
  /// Recorded times, which also say where the swipes lead.
  case trace(DwellTrace)

  /// The forms that `init(parsing:)` accepts, each with its meaning, in the order of the help text.
  public static let forms: [(form: String, meaning: String)] = [
    ("fixed:2s", "each item as long"),
    ("exp:5s", "exponentially distributed, with this mean"),
    ("trace:FILE", "a line for each swipe: seconds, then an index from 0, +n, -n or nothing"),
  ]

  /// Parses `fixed:2s`, `exp:5s` or `trace:FILE`, and reads the file of a trace.
  ///
  /// A time has a unit, `us`, `ms`, `s` or `min`, or counts seconds. It is a day at most.
  ///
  /// - Throws: `ReelError` of kind `usage` if `text` has none of these forms; the errors of ``DwellTrace/init(path:)``.
  public init(parsing text: String) throws(ReelError) {
    let trimmed = text.trimmed
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
    default: throw Self.malformed(text)
    }
  }

  // MARK: - Private

  private static func malformed(_ text: String) -> ReelError {
    let names = forms.map(\.form).joined(separator: ", ")
    return ReelError(
      .usage, "\"\(text)\" is no dwell time", advice: "write it as \(names); a day at most")
  }
}

extension DwellSpec: CustomStringConvertible {
  /// The form that `init(parsing:)` accepts.
  public var description: String {
    switch self {
    case .fixed(let dwell): "fixed:\(DurationText.compact(dwell))"
    case .exponential(let mean): "exp:\(DurationText.compact(mean))"
    case .trace(let trace): "trace:\(trace.name)"
    }
  }
}
