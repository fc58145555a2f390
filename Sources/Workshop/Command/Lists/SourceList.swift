import Foundation
import ReelCore
import ReelPool

/// Parses a list of sources piece by piece, so that a list of any length needs little memory.
///
/// Each line is a URL or a path, or a JSON object with `url` and any other fields. Blank lines and lines that begin with
/// `#` are ignored. The text is UTF-8, with or without a byte order mark; lines end with LF, CRLF or CR.
struct SourceListParser {
  /// The longest line in bytes.
  static let lineLimit = 1 << 18

  /// What a line holds.
  enum Content: Sendable {
    /// - Parameter fields: The other members of a JSON object.
    case source(String, fields: [Field])
    /// A line that is no source.
    case failure(ReelError)
  }

  struct Entry: Sendable {
    /// Counted from 1.
    let line: Int
    let content: Content
  }

  /// A member of a JSON object, with the value's text.
  struct Field: Sendable, Equatable {
    let key: String
    let value: [UInt8]
  }

  private var line: [UInt8] = []
  private var number = 0
  private var isOverlong = false
  private var endedWithCR = false
  private var hasContent = false

  /// Parses the next bytes, and appends the lines that end in them to `entries`.
  ///
  /// A line that is no source is an entry with an error of kind `usage`. Throws `ReelError.badManifest` if the text is no
  /// list at all.
  mutating func add(_ bytes: ArraySlice<UInt8>, to entries: inout [Entry]) throws(ReelError) {
    var rest = bytes
    while let end = rest.firstIndex(where: { $0 == 0x0a || $0 == 0x0d }) {
      let isLF = rest[end] == 0x0a
      if !isLF || !endedWithCR || end > rest.startIndex {
        append(rest[..<end])
        try endLine(&entries)
      }
      endedWithCR = !isLF
      rest = rest[(end + 1)...]
    }
    if !rest.isEmpty {
      endedWithCR = false
      append(rest)
    }
  }

  /// Parses a last line that does not end with a line end.
  mutating func finish(_ entries: inout [Entry]) throws(ReelError) {
    if !line.isEmpty || isOverlong { try endLine(&entries) }
  }

  // MARK: - Private

  private mutating func append(_ bytes: ArraySlice<UInt8>) {
    if isOverlong || line.count + bytes.count > Self.lineLimit {
      isOverlong = true
      line.removeAll()
    } else {
      line.append(contentsOf: bytes)
    }
  }

  private mutating func endLine(_ entries: inout [Entry]) throws(ReelError) {
    number += 1
    defer {
      line.removeAll(keepingCapacity: true)
      isOverlong = false
    }
    func fail(_ reason: String, advice: String? = nil) {
      let error = ReelError(.usage, reason, place: .line(number), advice: advice)
      entries.append(Entry(line: number, content: .failure(error)))
    }
    if isOverlong {
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
    text = text.drop(while: \.isBlank)
    while text.last?.isBlank == true { text.removeLast() }
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

  /// Throws for the first line of what is something else.
  private func checkBeginning(_ text: ArraySlice<UInt8>) throws(ReelError) {
    if text.first == UInt8(ascii: "<") {
      throw ReelError(
        .badManifest, "XML or HTML, not a list of sources",
        advice: "a list has one URL or one JSON object per line")
    }
    let next = text.dropFirst().first { !$0.isBlank }
    if text.first == UInt8(ascii: "["), [nil, UInt8(ascii: "{"), UInt8(ascii: "\"")].contains(next) {
      throw ReelError(
        .badManifest, "a JSON array, not a list of sources", place: .line(number),
        advice: "write one object per line")
    }
  }
}

/// Counts the sources of a list, without looking at them more closely.
struct SourceListCounter {
  private(set) var count = 0
  private var isAtLineStart = true

  mutating func add(_ bytes: ArraySlice<UInt8>) {
    for byte in bytes {
      if byte == 0x0a || byte == 0x0d {
        isAtLineStart = true
      } else if isAtLineStart, !byte.isBlank {
        isAtLineStart = false
        if byte != UInt8(ascii: "#") { count += 1 }
      }
    }
  }
}
