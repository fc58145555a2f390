internal import Foundation
package import ReelCore
internal import ReelPool

/// A link as a user specifies it: `10Mbit/50ms`, a profile, a file with a recording, or a folder of such
/// files. Options may follow, as in `recordings/train,scale=4,ideal`.
///
/// A text that is a link or a profile is not a file name; `./lte` is a file. A folder stands for all its
/// files, including those in subfolders, sorted by path. Hidden files and descriptions of recordings are left
/// out: names that begin with `README`, `LICENSE`, `COPYING` or `NOTICE`, and names that end with `.md`. A
/// file name may contain commas.
package struct LinkArgument: Sendable, Hashable {
  /// One of the links that an argument stands for.
  package struct Link: Sendable, Hashable {
    /// A short name for tables: the text, the name of the file, or its path within the folder.
    package let name: String
    /// The argument for this link alone.
    package let text: String
    package var spec: LinkSpec
  }

  /// The maximum number of recordings in a folder.
  package static let fileLimit = 10_000

  private enum Base: Sendable, Hashable {
    case link(LinkSpec)
    case file
    case folder
  }

  package let text: String
  private let base: Base
  private let path: String
  private let options: LinkOptions
  /// The options as written, with their comma; empty for none.
  package let suffix: String

  /// Parses an argument. Checks whether a file exists, but reads none.
  ///
  /// - Parameters:
  ///   - usual: What the links model unless they are `ideal`.
  ///   - resolve: Returns the path of a file in the argument, for instance relative to another folder.
  /// - Throws: `ReelError` of kind `usage` if it is neither a link nor a file or folder, or an option is
  ///   invalid.
  package init(
    parsing text: String, unlessIdeal usual: LinkFeatures = [], resolve: (String) -> String = { $0 }
  ) throws(ReelError) {
    self.text = text
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    var failure: ReelError?
    for count in 1...max(parts.count, 1) {
      let head = parts.prefix(count).joined(separator: ",")
      let base: Base
      do throws(ReelError) {
        base = try Self.base(head, path: resolve(head))
      } catch {
        failure = failure ?? error
        continue
      }
      self.base = base
      if case .link = base { path = head } else { path = resolve(head) }
      options = try LinkOptions(parsing: Array(parts.dropFirst(count)), unlessIdeal: usual)
      suffix = String(text.dropFirst(head.count))
      if case .link(let spec) = base { _ = try options.applied(to: spec) }
      return
    }
    throw failure ?? ReelError(.usage, "\"\(text)\" is not a link")
  }

  /// True for a link that is not read from a file.
  package var isConstant: Bool {
    if case .link = base { return true }
    return false
  }

  /// True for a folder, which may stand for several links.
  package var isFolder: Bool { base == .folder }

  /// True if the start is drawn from the seed.
  package var drawsStart: Bool { options.drawsStart }

  /// Reads the recordings.
  ///
  /// - Parameter seed: The seed of starts and jitter. A recording gets the same start in a folder and alone.
  /// - Returns: The links in order; more than one only for a folder.
  /// - Throws: `ReelError` of kind `noSuchFile` or `badManifest`, with file and line; also for a folder
  ///   without recordings.
  package func links(seed: UInt64) throws(ReelError) -> [Link] {
    try links().map { link in
      var link = link
      link.spec = link.spec.seeded(with: seed)
      return link
    }
  }

  /// Reads the recordings without random draws, which `LinkSpec.seeded(with:)` makes.
  ///
  /// - Throws: The same errors as `links(seed:)`.
  package func links() throws(ReelError) -> [Link] {
    switch base {
    case .link(let spec):
      return [Link(name: path, text: text, spec: try options.applied(to: spec))]
    case .file:
      let name = URL(fileURLWithPath: path).lastPathComponent
      return [Link(name: name, text: path + suffix, spec: try read(path))]
    case .folder:
      let folder = path.hasSuffix("/") ? path : path + "/"
      var links: [Link] = []
      for name in try Self.files(in: folder) {
        links.append(Link(name: name, text: folder + name + suffix, spec: try read(folder + name)))
      }
      return links
    }
  }

  // MARK: - Private

  private static func base(_ text: String, path: String) throws(ReelError) -> Base {
    do throws(ReelError) {
      return .link(try LinkSpec(parsingWithoutOptions: text))
    } catch {
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
        // A text that begins with a digit was meant as a rate.
        guard let first = text.first, !first.isNumber else { throw error }
        let names = LinkSpec.profiles.map(\.name).joined(separator: ", ")
        throw ReelError(
          .usage, "\"\(text)\" is not a link, and there is no such file",
          advice:
            "write 10Mbit/50ms (rate/round-trip time), \(names), or the path of a recording or of a folder of "
            + "recordings")
      }
      return isDirectory.boolValue ? .folder : .file
    }
  }

  private func read(_ path: String) throws(ReelError) -> LinkSpec {
    let recording = try LinkRecording(path: path)
    do throws(ReelError) {
      return try options.applied(to: LinkSpec(recording))
    } catch {
      throw error.located(at: path)
    }
  }

  /// Returns the paths of the recordings within a folder, sorted by their bytes.
  private static func files(in folder: String) throws(ReelError) -> [String] {
    guard let all = FileManager.default.enumerator(atPath: folder) else {
      throw ReelError(.noSuchFile, "the folder can't be read", at: folder)
    }
    var names: [String] = []
    while let name = all.nextObject() as? String {
      let last = name.split(separator: "/").last.map(String.init) ?? name
      if last.hasPrefix(".") {
        all.skipDescendants()
        continue
      }
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: folder + name, isDirectory: &isDirectory),
        !isDirectory.boolValue, !isDescription(last)
      else { continue }
      names.append(name)
      guard names.count <= fileLimit else {
        throw ReelError(.usage, "the folder has more than the limit of \(fileLimit) recordings", at: folder)
      }
    }
    guard !names.isEmpty else { throw ReelError(.noSuchFile, "the folder has no recordings", at: folder) }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private static func isDescription(_ name: String) -> Bool {
    let name = name.uppercased()
    return name.hasSuffix(".MD")
      || ["README", "LICENSE", "COPYING", "NOTICE"].contains { name.hasPrefix($0) }
  }
}

extension LinkSpec {
  /// Returns the link with its start drawn, if requested, and its jitter drawn from `seed`.
  package func seeded(with seed: UInt64) -> LinkSpec {
    var link = self
    link.seed = seed
    guard let recording, drawsStart else { return link }
    var random = SplitMix64(seed: seed ^ recording.fingerprint)
    let microseconds = UInt64(clamping: recording.period.wholeMicroseconds)
    link.start = .microseconds(Int64(random.next().multipliedFullWidth(by: microseconds).high))
    link.drawsStart = false
    return link
  }
}

extension LinkRecording {
  /// The maximum size of a file: 16 MiB.
  package static let byteLimit = 16 << 20

  /// Reads the text of a recording, in one of two forms, which the first line determines.
  ///
  /// - **Samples:** seconds and Mbit/s in each line. Time counts from the first sample. A rate applies until
  ///   the next sample, and the last one for as long as the previous one (a single one: 1 s).
  /// - **Delivery opportunities** (Mahimahi): a time in whole milliseconds in each line, at which 1500 bytes
  ///   can cross the link. A repeated time carries that many packets. They cross evenly in the millisecond
  ///   that ends at that time. The recording starts over at its last time.
  ///
  /// Blank lines and lines that begin with `#` are ignored.
  ///
  /// - Throws: `ReelError` of kind `badManifest` with the number of the unreadable line; or if there are no
  ///   lines, all rates are 0, or there are more steps than the limit.
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
  /// The maximum number of characters of an invalid line that an error quotes.
  private static let printedLimit = 40
  /// The bit rate of a delivery opportunity within its millisecond.
  private static let opportunityRate: Int64 = 12_000_000

  /// The lines with content, as words.
  private struct Lines: Sequence, IteratorProtocol {
    private var lines: TextLines

    init(_ lines: TextLines) { self.lines = lines }

    mutating func next() -> (number: Int, words: [Substring])? {
      while let (number, line) = lines.next() {
        if line.isEmpty || line.first == 0x23 { continue }
        // A line with more words is invalid in any case.
        let words = line.prefix(LinkRecording.lineLimit).split(maxSplits: 2, whereSeparator: \.isSpace)
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

  /// Parses a number that is not negative.
  private static func value(_ word: Substring, _ what: String, _ line: Int) throws(ReelError) -> Double {
    // Besides decimal numbers, Swift also parses `nan`, `inf` and hexadecimal numbers.
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
