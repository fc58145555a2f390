package import ReelCore
internal import ReelPool

extension LinkRecording {
  /// The largest number of bytes of a file: 16 MiB.
  package static let byteLimit = 16 << 20

  /// Reads the text of a recording, in one of two forms. The first line tells which.
  ///
  /// - **Samples:** seconds and Mbit/s in each line. Time counts from the first sample. A rate holds until the next
  ///   sample, and the last one as long as the one before it (a single one: 1 s).
  /// - **Delivery opportunities** (Mahimahi): a time in whole milliseconds in each line, at which 1500 bytes can cross
  ///   the link. A time that is there several times carries as many. They cross evenly in the millisecond that ends at
  ///   that time. The recording starts over at its last time.
  ///
  /// Blank lines and lines that begin with `#` are ignored.
  ///
  /// - Throws: `ReelError` of kind `badManifest` with the number of the line that can't be read; or if there are no lines,
  ///   all rates are 0, or there are more steps than the limit.
  package init(text bytes: [UInt8], name: String) throws(ReelError) {
    // A byte order mark is not part of the first line.
    let lines = Lines(TextLines(bytes.dropFirst(bytes.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0)))
    do throws(ReelError) {
      guard let first = lines.first(where: { _ in true }) else {
        throw ReelError(.badManifest, "the recording has no lines")
      }
      self = first.words.count == 1 ? try Self.opportunities(lines) : try Self.samples(lines)
    } catch {
      throw error.located(at: name)
    }
  }

  /// Reads a local file.
  ///
  /// - Throws: The errors of `init(text:name:)`; `noSuchFile` if the file can't be read; `badManifest` if it is larger
  ///   than the limit.
  package init(path: String) throws(ReelError) {
    try self.init(text: try LocalText.bytes(path: path, limit: Self.byteLimit), name: path)
  }

  // MARK: - Private

  private static let lineLimit = 200
  /// The characters of a wrong line that an error quotes.
  private static let printedLimit = 40
  /// Bits of a delivery opportunity by the seconds of its millisecond.
  private static let opportunityRate: Int64 = 12_000_000

  /// The lines that say something, in words.
  private struct Lines: Sequence, IteratorProtocol {
    private var lines: TextLines

    init(_ lines: TextLines) { self.lines = lines }

    mutating func next() -> (number: Int, words: [Substring])? {
      while let (number, line) = lines.next() {
        if line.isEmpty || line.first == 0x23 { continue }
        // A line that has more words is wrong whatever they are.
        let words = line.prefix(LinkRecording.lineLimit).split(maxSplits: 2, whereSeparator: \.isBlank)
        return (number, words.map { Substring(decoding: $0, as: UTF8.self) })
      }
      return nil
    }
  }

  private static func samples(_ lines: Lines) throws(ReelError) -> LinkRecording {
    var steps: [Step] = []
    var origin: Duration?
    for (number, words) in lines {
      guard words.count == 2 else {
        throw failure("\"\(text(words))\" is not a sample", number, advice: "write seconds and Mbit/s")
      }
      let seconds = try value(words[0], "time", number)
      guard seconds <= 4e9 else { throw failure("the time \(words[0]) is too large", number) }
      let megabits = try value(words[1], "rate", number)
      guard megabits <= Double(largestRate) / 1e6 else {
        throw failure("the rate \(words[1]) is more than the limit of 10,000,000 Mbit/s", number)
      }
      let time = Duration.nanoseconds(Int64((seconds * 1e9).rounded()))
      let start = time - (origin ?? time)
      origin = origin ?? time
      if let last = steps.last, start <= last.start {
        throw failure("the time \(words[0]) is not after that of the sample before", number)
      }
      guard start <= longestPeriod else {
        throw failure(
          "the recording is longer than the limit of \(longestPeriod.components.seconds) s", number)
      }
      steps.append(Step(start: start, bitsPerSecond: Int64((megabits * 1e6).rounded())))
    }
    let last = steps[steps.count - 1].start
    let length = steps.count > 1 ? last - steps[steps.count - 2].start : .seconds(1)
    return try LinkRecording(steps, period: last + length)
  }

  private static func opportunities(_ lines: Lines) throws(ReelError) -> LinkRecording {
    var counts: [(time: Int64, count: Int64)] = []
    var countAtZero: Int64 = 0
    for (number, words) in lines {
      guard words.count == 1 else {
        throw failure(
          "\"\(text(words))\" is not a delivery opportunity", number, advice: "write milliseconds")
      }
      let milliseconds = try value(words[0], "time", number)
      guard milliseconds == milliseconds.rounded() else {
        throw failure("the time \(words[0]) is not in whole milliseconds", number)
      }
      guard milliseconds <= Double(longestPeriod.components.seconds) * 1e3 else {
        throw failure(
          "the recording is longer than the limit of \(longestPeriod.components.seconds) s", number)
      }
      let time = Int64(milliseconds)
      if let last = counts.last, time < last.time {
        throw failure("the time \(words[0]) is before that of the line before", number)
      }
      if time == 0 {
        countAtZero += 1
      } else if counts.last?.time == time {
        counts[counts.count - 1].count += 1
      } else {
        counts.append((time, 1))
      }
    }
    guard let last = counts.last else { throw ReelError(.badManifest, "the recording ends at 0 ms") }
    // The end of one period is the beginning of the next.
    counts[counts.count - 1].count += countAtZero
    var steps: [Step] = []
    var end: Int64 = 0
    for (time, count) in counts {
      if time - 1 > end { steps.append(Step(start: .milliseconds(end), bitsPerSecond: 0)) }
      steps.append(Step(start: .milliseconds(time - 1), bitsPerSecond: count * opportunityRate))
      end = time
    }
    return try LinkRecording(steps, period: .milliseconds(last.time))
  }

  /// A number that is not negative.
  private static func value(_ word: Substring, _ what: String, _ line: Int) throws(ReelError) -> Double {
    // What Swift reads beside decimal numbers are `nan`, `inf` and hexadecimal ones.
    let isDecimal = word.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || [0x2e, 0x2d, 0x2b, 0x65, 0x45].contains(byte)
    }
    guard isDecimal, let value = Double(word), value.isFinite else {
      throw failure("the \(what) \"\(word.prefix(printedLimit))\" is not a number", line)
    }
    guard value >= 0 else { throw failure("the \(what) \(word) is negative", line) }
    return value
  }

  private static func text(_ words: [Substring]) -> Substring {
    words.joined(separator: " ").prefix(printedLimit)
  }

  private static func failure(_ reason: String, _ line: Int, advice: String? = nil) -> ReelError {
    ReelError(.badManifest, reason, place: .line(line), advice: advice)
  }
}
