public import ReelCore
internal import ReelPool

/// How long a person looked at each item, and where they went then, as recorded.
///
/// A text with a line for each look: seconds, then optionally where the swipe leads: an index of the feed, counted from
/// 0, or `+n` or `-n` items from the current one. Without it the swipe leads on in the direction of travel, and
/// turns round at the ends. Blank lines and lines that begin with `#` are left out.
public struct DwellTrace: Sendable, Hashable {
  /// Where a swipe leads.
  package enum Move: Sendable, Hashable {
    /// To the next item in the direction of travel.
    case onward
    /// So many items on, or back where it is negative; not 0.
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

  /// Where the trace comes from, for messages.
  public let name: String
  /// Never empty.
  package let entries: [Entry]

  /// Bytes of a trace's text at most.
  static let byteLimit = 16 << 20
  /// A swipe leads no further than this.
  private static let moveLimit = 1_000_000_000

  /// Throws `ReelError` of kind `badManifest` with the line that can't be read, and where there is none.
  public init(text: String, name: String) throws(ReelError) {
    self.name = name
    var entries: [Entry] = []
    for (number, bytes) in TextLines(Array(text.utf8)[...]) {
      let line = String(decoding: bytes, as: UTF8.self)
      if line.isEmpty || line.hasPrefix("#") { continue }
      let words = line.split(whereSeparator: \.isWhitespace)
      guard words.count <= 2, let dwell = words.first.flatMap(DurationText.parse) else {
        throw ReelError(
          .badManifest, "\"\(line)\" is no line of a trace", at: name, place: .line(number),
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

  /// Reads a file of this machine.
  ///
  /// Throws as `init(text:name:)`, and `noSuchFile` where the file can't be read.
  public init(path: String) throws(ReelError) {
    let bytes = try LocalText.bytes(path: path, limit: Self.byteLimit)
    // A byte order mark is no part of the first line.
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
