public import ReelCore
internal import ReelPool

/// How long each item of a walk is looked at.
public enum DwellSpec: Sendable, Hashable {
  /// Each as long.
  case fixed(Duration)
  /// By the exponential distribution with this mean: most are left soon, a few are looked at for long.
  case exponential(mean: Duration)
  /// As recorded; it says where the swipes lead as well.
  case trace(DwellTrace)

  /// The written forms, with what each does, in the order in which help prints them.
  public static let forms: [(form: String, meaning: String)] = [
    ("fixed:2s", "each item as long"),
    ("exp:5s", "exponentially distributed, with this mean"),
    ("trace:FILE", "a line for each swipe: seconds, then an index from 0, +n, -n or nothing"),
  ]

  /// Reads `fixed:2s`, `exp:5s` or `trace:FILE`; a time without a unit is seconds. The file of a trace is read at once.
  ///
  /// - Throws: `ReelError` of kind `usage` where `text` is none of them, else as `DwellTrace.init(path:)`.
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
  /// The written form.
  public var description: String {
    switch self {
    case .fixed(let dwell): "fixed:\(DurationText.compact(dwell))"
    case .exponential(let mean): "exp:\(DurationText.compact(mean))"
    case .trace(let trace): "trace:\(trace.name)"
    }
  }
}
