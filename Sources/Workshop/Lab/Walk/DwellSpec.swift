package import ReelCore
internal import ReelPool
internal import ReelSimulation

/// The time that a viewer looks at each item of a walk.
package enum DwellSpec: Sendable, Hashable {
  /// The same time for each item.
  case fixed(Duration)
  /// Exponentially distributed times with this mean: most items are left soon, a few are watched for long.
  case exponential(mean: Duration)
  /// Times drawn for each item from the item's own curve (`FeedItem.retention`). A viewer who is left at the
  /// end of the curve watches to the item's ``ReelPool/FeedItem/duration``.
  case retention
  /// Recorded times, which also determine the targets of the swipes.
  case trace(DwellTrace)

  /// The forms that `init(parsing:)` accepts, each with its meaning, in the order of the help text.
  package static let forms: [(form: String, meaning: String)] = [
    ("fixed:2s", "the same time for each item"),
    ("exp:5s", "exponentially distributed with this mean"),
    ("retention", "drawn from \"retention\" and \"duration\" of the item in a JSON feed"),
    ("trace:FILE", "a line for each swipe: seconds, then an index from 0, +n, -n or nothing"),
  ]

  /// Parses `fixed:2s`, `exp:5s`, `retention` or `trace:FILE`, and reads the file of a trace.
  ///
  /// A time has a unit, `us`, `ms`, `s` or `min`, or counts seconds. It is a day at most.
  ///
  /// - Throws: `ReelError` of kind `usage` if `text` has none of these forms; the errors of ``DwellTrace/init(path:)``.
  package init(parsing text: String) throws(ReelError) {
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
    case "weibull":
      throw ReelError(
        .usage, "the dwell time \"\(text)\" was removed",
        advice: "use exp:5s, or trace:FILE with recorded times")
    default: throw Self.malformed(text)
    }
  }

  /// Returns a time of these, in whole microseconds, as it is printed; nil if times depend on the item, or are recorded.
  func draw(_ random: inout SplitMix64) -> Duration? {
    switch self {
    case .fixed(let duration): duration
    case .exponential(let mean):
      .microseconds(Int64((Double(mean.wholeMicroseconds) * random.nextExponential()).rounded()))
    case .retention, .trace: nil
    }
  }

  // MARK: - Private

  private static func malformed(_ text: String) -> ReelError {
    let names = forms.map(\.form).joined(separator: ", ")
    return ReelError(
      .usage, "\"\(text)\" is not a dwell time", advice: "write \(names), at most a day")
  }
}

extension DwellSpec: CustomStringConvertible {
  /// The form that `init(parsing:)` accepts.
  package var description: String {
    switch self {
    case .fixed(let dwell): "fixed:\(DurationText.compact(dwell))"
    case .exponential(let mean): "exp:\(DurationText.compact(mean))"
    case .retention: "retention"
    case .trace(let trace): "trace:\(trace.name)"
    }
  }
}

/// Recorded dwell times: how long a viewer looked at each item, and the targets of the swipes.
///
/// The text has one line per look: the seconds, then optionally the target of the swipe, which is an index of
/// the feed from 0, or `+n` or `-n` items from the current one. Without a target, the swipe continues in the
/// direction of travel, which reverses at the ends of the feed. Blank lines and lines that begin with `#` are
/// ignored.
package struct DwellTrace: Sendable, Hashable {
  /// The target of a swipe.
  package enum Move: Sendable, Hashable {
    /// To the next item in the direction of travel.
    case onward
    /// This many items on, or back if negative; not 0.
    case by(Int)
    case to(Int)
  }

  /// A look at an item and the swipe after it.
  package struct Entry: Sendable, Hashable {
    package let dwell: Duration
    package let move: Move
    /// The line of the text, counted from 1.
    package let line: Int
  }

  /// The name of the trace in error messages, such as its path.
  package let name: String
  /// Never empty.
  package let entries: [Entry]

  /// The largest number of bytes of a trace.
  static let byteLimit = 16 << 20
  /// The largest index or number of items of a move.
  private static let moveLimit = 1_000_000_000

  /// Parses the text of a trace.
  ///
  /// - Throws: `ReelError` of kind `badManifest`, with the number of the line that can't be read, or if there are no
  ///   lines.
  package init(text: String, name: String) throws(ReelError) {
    self.name = name
    var entries: [Entry] = []
    for (number, bytes) in TextLines(Array(text.utf8)[...]) {
      let line = String(decoding: bytes, as: UTF8.self)
      if line.isEmpty || line.hasPrefix("#") { continue }
      let words = line.split(whereSeparator: \.isWhitespace)
      guard words.count <= 2, let dwell = words.first.flatMap({ DurationText.parse($0) }) else {
        throw ReelError(
          .badManifest, "\"\(line)\" is not a line of a trace", at: name, place: .line(number),
          advice: "write seconds, then an index, +n, -n or nothing")
      }
      guard let move = words.count == 2 ? Self.move(words[1]) : .onward else {
        throw ReelError(
          .badManifest, "\"\(words[1])\" is neither an index nor +n or -n", at: name, place: .line(number))
      }
      entries.append(Entry(dwell: dwell, move: move, line: number))
    }
    guard !entries.isEmpty else { throw ReelError(.badManifest, "the trace has no lines", at: name) }
    self.entries = entries
  }

  /// Reads a local file of at most 16 MiB.
  ///
  /// - Throws: The errors of `init(text:name:)`, and `noSuchFile` if the file can't be read.
  package init(path: String) throws(ReelError) {
    let bytes = try LocalText.bytes(path: path, limit: Self.byteLimit)
    // A byte order mark is not part of the first line.
    let start = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
    try self.init(text: String(decoding: bytes[start...], as: UTF8.self), name: path)
  }

  // MARK: - Private

  private static func move(_ word: Substring) -> Move? {
    let digits = word.drop { $0 == "+" || $0 == "-" }
    guard word.count - digits.count <= 1, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = Int(digits), number <= moveLimit
    else { return nil }
    switch word.first {
    case "+": return number == 0 ? nil : .by(number)
    case "-": return number == 0 ? nil : .by(-number)
    default: return .to(number)
    }
  }
}

/// How a walk is swiped: the dwell times and the kinds of swipes.
package struct SwipeSpec: Sendable, Hashable {
  /// The time that the viewer looks at each item.
  package let dwell: DwellSpec
  /// The shares of swipes back and bursts. A trace determines its swipes itself: the shares are then
  /// the usual ones, and have no effect.
  package let shares: SwipeShares

  /// - Throws: `ReelError` of kind `usage` for a trace with other shares than the usual ones.
  package init(dwell: DwellSpec, shares: SwipeShares = .usual) throws(ReelError) {
    if case .trace = dwell, shares != .usual {
      throw ReelError(
        .usage, "a trace determines the swipes",
        advice: "leave out back and bursts, or use other dwell times")
    }
    self.dwell = dwell
    self.shares = shares
  }

  /// Parses a dwell time, optionally followed by shares: `exp:5s,back=10%,bursts=0%`.
  ///
  /// Shares can come in any order, each at most once. The file of a trace is read.
  ///
  /// - Throws: The errors of ``DwellSpec/init(parsing:)``; `ReelError` of kind `usage` for a share that
  ///   can't be read or appears twice.
  package init(parsing text: String) throws(ReelError) {
    var parts = text.split(separator: ",", omittingEmptySubsequences: false)
    var shares: [String: Double] = [:]
    while parts.count > 1, let (name, value) = Self.option(parts[parts.count - 1]) {
      guard name != "flicks" else {
        throw ReelError(.usage, "\"\(text)\": flicks were removed", advice: SwipeShares.insteadOfFlicks)
      }
      guard shares[name] == nil else { throw ReelError(.usage, "\"\(text)\" has \(name) twice") }
      shares[name] = try SwipeShares.share(parsing: value, of: name)
      parts.removeLast()
    }
    let usual = SwipeShares.usual
    try self.init(
      dwell: try DwellSpec(parsing: parts.joined(separator: ",")),
      shares: try SwipeShares(back: shares["back"] ?? usual.back, bursts: shares["bursts"] ?? usual.bursts))
  }

  /// The shares for a report; nil if a trace determines the swipes.
  package var reportedShares: SwipeShares? {
    if case .trace = dwell { return nil }
    return shares
  }

  // MARK: - Private

  /// `name=value` of a share; nil for anything else, such as a part of a file's name.
  private static func option(_ part: Substring) -> (name: String, value: String)? {
    let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard sides.count == 2 else { return nil }
    let name = sides[0].trimmed.lowercased()
    return ["flicks", "back", "bursts"].contains(name) ? (name, sides[1].trimmed) : nil
  }
}

extension SwipeSpec: CustomStringConvertible {
  /// The form that `init(parsing:)` accepts.
  package var description: String {
    let shares = shares.description
    return shares.isEmpty ? dwell.description : "\(dwell),\(shares)"
  }
}
