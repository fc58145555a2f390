import Dispatch
import Foundation
import ReelCore
import ReelFFmpeg

/// Parses a list of sources piece by piece, so that a list of any length needs little memory.
///
/// Each line is a URL or a path, or a JSON object with `url` and any other fields. Blank lines and lines that
/// begin with `#` are ignored. The text is UTF-8, with or without a byte order mark; lines end with LF, CRLF
/// or CR.
struct SourceListParser {
  /// The maximum length of a line in bytes.
  static let lineLimit = 1 << 18

  /// The content of a line.
  enum Content: Sendable {
    /// - Parameter fields: The other members of a JSON object.
    case source(String, fields: [Field])
    /// A line that is not a source.
    case failure(ReelError)
  }

  struct Entry: Sendable {
    /// The number of the line, counted from 1.
    let line: Int
    let content: Content
  }

  /// A member of a JSON object, with the value's text.
  struct Field: Sendable, Equatable {
    let key: String
    let value: [UInt8]
  }

  private var lines = LineSplitter(limit: lineLimit)
  private var number = 0
  private var hasContent = false

  /// Parses the next bytes, or with none the end of the text. Returns the lines that end in them.
  ///
  /// A line that is not a source is an entry with an error of kind `usage`. Throws `ReelError.badManifest` if
  /// the text is not a list at all.
  mutating func entries(_ bytes: ArraySlice<UInt8>) throws(ReelError) -> [Entry] {
    var entries: [Entry] = []
    for line in lines.add(bytes) { try add(line, to: &entries) }
    return entries
  }

  /// Returns true for a line that is neither blank nor a comment.
  ///
  /// - Parameter line: Nil for a line above the limit.
  static func isEntry(_ line: [UInt8]?) -> Bool {
    guard let line else { return true }
    return line.first { !$0.isSpace }.map { $0 != UInt8(ascii: "#") } ?? false
  }

  // MARK: - Private

  /// - Parameter line: Nil for a line above the limit.
  private mutating func add(_ line: [UInt8]?, to entries: inout [Entry]) throws(ReelError) {
    number += 1
    func fail(_ reason: String, advice: String? = nil) {
      let error = ReelError(.usage, reason, place: .line(number), advice: advice)
      entries.append(Entry(line: number, content: .failure(error)))
    }
    guard let line else {
      hasContent = true
      return fail("longer than the limit of \(Self.lineLimit) bytes")
    }
    var text = line[...]
    if number == 1 {
      if text.starts(with: [0xff, 0xfe]) || text.starts(with: [0xfe, 0xff]) {
        throw ReelError(.badManifest, "UTF-16", advice: "save the list as UTF-8")
      }
      if text.starts(with: [0xef, 0xbb, 0xbf]) { text = text.dropFirst(3) }
      if text.contains(0) { throw ReelError(.badManifest, "binary data, not text") }
    }
    text = text.drop(while: \.isSpace)
    while text.last?.isSpace == true { text.removeLast() }
    guard let first = text.first else { return }
    if first == UInt8(ascii: "#") {
      guard text.starts(with: "#EXT-X-".utf8) else { return }
      throw ReelError(
        .badManifest, "an HLS playlist, not a list of sources", place: .line(number),
        advice: "give its URL as a source")
    }
    if !hasContent { try checkBeginning(text) }
    hasContent = true
    guard let decoded = String(validating: text, as: UTF8.self) else { return fail("not UTF-8") }
    guard first == UInt8(ascii: "{") else {
      entries.append(Entry(line: number, content: .source(decoded, fields: [])))
      return
    }
    guard let members = RawJSON.members(of: text), RawJSON.isValid(text) else {
      return fail(
        "can't be read as a JSON object", advice: "for a path that begins with a brace write ./ first")
    }
    var keys: Set<String> = []
    if let twice = members.first(where: { !keys.insert($0.key).inserted }) {
      return fail("the key \"\(twice.key.prefix(40).printable)\" appears twice")
    }
    guard let value = members.first(where: { $0.key == "url" }) else { return fail("the object has no url") }
    guard let url = RawJSON.string(value.value) else { return fail("the url is not a string") }
    let fields = members.filter { $0.key != "url" }.map { Field(key: $0.key, value: Array($0.value)) }
    entries.append(Entry(line: number, content: .source(url, fields: fields)))
  }

  /// Throws for the first line of a file that is not a list.
  private func checkBeginning(_ text: ArraySlice<UInt8>) throws(ReelError) {
    if text.first == UInt8(ascii: "<") {
      throw ReelError(
        .badManifest, "XML or HTML, not a list of sources",
        advice: "a list has one URL or one JSON object per line")
    }
    let next = text.dropFirst().first { !$0.isSpace }
    if text.first == UInt8(ascii: "["), [nil, UInt8(ascii: "{"), UInt8(ascii: "\"")].contains(next) {
      throw ReelError(
        .badManifest, "a JSON array, not a list of sources", place: .line(number),
        advice: "write one object per line")
    }
  }
}

/// Splits a text that comes in pieces into its lines, which end with LF, CRLF or CR.
struct LineSplitter {
  /// The maximum length of a line in bytes.
  let limit: Int
  private var line: [UInt8]? = []
  private var endedWithCR = false

  init(limit: Int) { self.limit = limit }

  /// Returns the lines that end in the next bytes, without their ends. Without bytes, the text is over, and a last line
  /// needs no end. A line above the limit is nil.
  mutating func add(_ bytes: ArraySlice<UInt8>) -> [[UInt8]?] {
    if bytes.isEmpty { return line?.isEmpty == true ? [] : [take()] }
    var lines: [[UInt8]?] = []
    var rest = bytes
    while let end = rest.firstIndex(where: { $0 == 0x0a || $0 == 0x0d }) {
      let isLF = rest[end] == 0x0a
      if !isLF || !endedWithCR || end > rest.startIndex {
        append(rest[..<end])
        lines.append(take())
      }
      endedWithCR = !isLF
      rest = rest[(end + 1)...]
    }
    if !rest.isEmpty {
      endedWithCR = false
      append(rest)
    }
    return lines
  }

  // MARK: - Private

  private mutating func append(_ bytes: ArraySlice<UInt8>) {
    if let length = line?.count, length + bytes.count <= limit {
      line?.append(contentsOf: bytes)
    } else {
      line = nil
    }
  }

  private mutating func take() -> [UInt8]? {
    defer { line = [] }
    return line
  }
}

/// A file, or standard input, that is read in pieces.
///
/// Confined to one thread at a time: reading may block.
final class PieceReader {
  /// The name in messages.
  let name: String
  private let descriptor: Int32

  /// - Parameter path: `-` for standard input. Throws `ReelError.noSuchFile`.
  init(path: String) throws(ReelError) {
    name = path == "-" ? "standard input" : path
    descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .unreadable(errno, at: name) }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// The type of the file (`S_IFMT`); nil if it is unknown.
  var fileType: mode_t? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : nil
  }

  /// The position of the next piece, of a file that has positions.
  var position: off_t { lseek(descriptor, 0, SEEK_CUR) }

  /// Returns the next bytes, or those from a position on; none at the end. Throws `ReelError.noSuchFile`.
  func piece(from position: off_t? = nil) throws(ReelError) -> [UInt8] {
    while true {
      var code: Int32 = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 17) { buffer, count in
        let (start, length) = (buffer.baseAddress, buffer.count)
        let result =
          position.map { pread(descriptor, start, length, $0) } ?? read(descriptor, start, length)
        if result < 0 { code = errno }
        count = max(0, result)
      }
      if code == EINTR { continue }
      guard code == 0 else { throw .unreadable(code, at: name) }
      return bytes
    }
  }
}

/// Reads a list from a file, or from standard input.
///
/// Confined to one thread at a time: reading may block.
final class SourceListReader {
  private let file: PieceReader
  private var parser = SourceListParser()
  private var isAtEnd = false

  /// - Parameter path: `-` for standard input. Throws `ReelError.noSuchFile`.
  init(path: String) throws(ReelError) {
    file = try PieceReader(path: path)
    if file.fileType == S_IFDIR { throw ReelError(.noSuchFile, "is a folder", at: file.name) }
  }

  /// Returns the number of sources from the current position; nil for a pipe.
  func count() throws(ReelError) -> Int? {
    guard file.fileType == S_IFREG else { return nil }
    var lines = LineSplitter(limit: SourceListParser.lineLimit)
    var (count, offset) = (0, file.position)
    while true {
      let piece = try file.piece(from: offset)
      count += lines.add(piece[...]).count(where: SourceListParser.isEntry)
      if piece.isEmpty { return count }
      offset += off_t(piece.count)
    }
  }

  /// Returns some more entries, maybe none; nil at the end. Throws `ReelError` with the list as its location.
  func next() throws(ReelError) -> [SourceListParser.Entry]? {
    guard !isAtEnd else { return nil }
    let piece = try file.piece()
    isAtEnd = piece.isEmpty
    do throws(ReelError) { return try parser.entries(piece[...]) } catch {
      throw error.located(at: file.name)
    }
  }
}

/// Reads a list on a thread of its own, because reading may block.
final class ListFeeder: Sendable {
  private let queue = DispatchQueue(label: "reel.list")
  /// Used only on the queue.
  private let reader: Locked<SourceListReader>

  init(_ reader: sending SourceListReader) { self.reader = Locked(reader, rank: .transfer) }

  /// Reads the next entries, and sends them as an event.
  func read(_ events: AsyncStream<Batch.Event>.Continuation) {
    queue.async { [self] in
      let result: Result<[SourceListParser.Entry]?, ReelError> = reader.withLock { reader in
        do throws(ReelError) { return .success(try reader.next()) } catch { return .failure(error) }
      }
      switch result {
      case .success(let entries?): events.yield(.entries(entries))
      case .success(nil): events.yield(.listEnded(nil))
      case .failure(let error): events.yield(.listEnded(error))
      }
    }
  }
}

/// The first 128 bits of the SHA-256 hash (FIPS 180-4) of a source's URL as in the list, without user name and password.
///
/// It identifies the source in results files, and determines its name, its folder and its shard. It is the
/// same on every machine: the beginning of the output of `printf %s URL | sha256sum`.
struct SourceHash: Hashable, Sendable {
  /// The first 8 bytes, big-endian.
  let high: UInt64
  /// The next 8 bytes.
  let low: UInt64

  init(_ text: String) {
    let digest = SHA256Hash.digest(of: Array(text.withoutUserInformation.utf8))
    high = digest[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = digest[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The first 16 hexadecimal digits.
  var text: String { String(format: "%016llx", high) }
}
