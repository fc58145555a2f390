public import ReelCore
internal import ReelPool

/// Recorded dwell times: how long a viewer looked at each item, and where the swipe then led.
///
/// The text has one line per look: the seconds, then optionally the target of the swipe, which is an index of the feed
/// from 0, or `+n` or `-n` items from the current one. Without a target, the swipe goes on in the direction of travel,
/// which turns round at the ends of the feed. Blank lines and lines that begin with `#` are ignored.
public struct DwellTrace: Sendable, Hashable {
  /// The target of a swipe.
  package enum Move: Sendable, Hashable {
    /// To the next item in the direction of travel.
    case onward
    /// This many items on, or back if negative; not 0.
    case by(Int)
    /// To this index.
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
  public let name: String
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
  public init(text: String, name: String) throws(ReelError) {
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
  public init(path: String) throws(ReelError) {
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
