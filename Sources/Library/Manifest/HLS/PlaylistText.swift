import Foundation
package import ReelCore

/// The lines of a playlist (RFC 8216 §4.1), without the white space at their ends and without empty ones.
///
/// A line ends with a line feed, with a carriage return and a line feed, or, although playlists should not
/// have it, with a carriage return alone.
package struct PlaylistLines: Sendable {
  let bytes: [UInt8]
  /// The number of the line that `next()` returned last, from 1.
  package private(set) var number = 0
  /// The whole of that line, with its white space, without its line ending.
  package private(set) var whole = 0..<0
  private var position: Int
  /// The first line feed at or after `position`. It is cached, because a text with only carriage returns
  /// would otherwise be searched to its end at each of them.
  private var nextFeed = -1
  /// The first carriage return at or after `position`: most playlists have none, and are searched only once.
  private var nextReturn: Int

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    position = bytes.has("\u{FEFF}", at: 0) ? 3 : 0
    nextReturn = bytes.firstIndex(of: 0x0D, in: position..<bytes.count) ?? bytes.count
  }

  /// The place of the line that `next()` returned last.
  package var place: ReelError.Place { .line(number) }

  /// Returns the range of the next line in `bytes`; nil at the end.
  package mutating func next() -> Range<Int>? {
    while position < bytes.count {
      if nextFeed < position {
        nextFeed = bytes.firstIndex(of: 0x0A, in: position..<bytes.count) ?? bytes.count
      }
      let feed = nextFeed
      var (end, next) = (feed, feed + 1)
      if nextReturn < feed {
        end = nextReturn
        if nextReturn + 1 < feed { next = nextReturn + 1 }
        nextReturn = bytes.firstIndex(of: 0x0D, in: min(next, bytes.count)..<bytes.count) ?? bytes.count
      }
      whole = position..<end
      let line = bytes.trimmed(whole)
      position = next
      number += 1
      if !line.isEmpty { return line }
    }
    return nil
  }
}

/// The kind of a playlist (RFC 8216 §4.1).
package enum PlaylistKind: Sendable {
  case multivariant
  case media

  /// Reads up to the first tag that determines the kind. Throws `badManifest`, naming the kind of text, if it
  /// is not a playlist.
  package init(_ bytes: [UInt8]) throws(ReelError) {
    var lines = PlaylistLines(bytes)
    var line = lines.next()
    // Comments before the header are wrong but harmless.
    while let range = line, bytes[range.lowerBound] == UInt8(ascii: "#"),
      !bytes.has("#EXT", at: range.lowerBound)
    {
      line = lines.next()
    }
    guard let first = line else {
      throw ReelError(
        .badManifest, bytes.isEmpty ? "the playlist is empty" : "not a playlist: it has no tags")
    }
    guard bytes.has("#EXT", at: first.lowerBound) else {
      throw ReelError(
        .badManifest, "not a playlist: \(Self.description(bytes, first))", place: .line(lines.number))
    }
    var hasMediaTags = false
    while let range = line {
      let start = range.lowerBound
      if bytes.has("#EXT-X-STREAM-INF", at: start) || bytes.has("#EXT-X-MEDIA:", at: start)
        || bytes.has("#EXT-X-I-FRAME-STREAM-INF", at: start)
        || bytes.has("#EXT-X-IMAGE-STREAM-INF", at: start)
      {
        self = .multivariant
        return
      }
      if bytes.has("#EXTINF", at: start) {
        self = .media
        return
      }
      hasMediaTags = hasMediaTags || Self.mediaTags.contains { bytes.has($0, at: start) }
      line = lines.next()
    }
    guard hasMediaTags else {
      throw ReelError(
        .badManifest, "the playlist has neither variants (EXT-X-STREAM-INF) nor segments (EXTINF)")
    }
    self = .media
  }

  // MARK: - Private

  /// The prefixes of the tags, other than EXTINF, that only media playlists have.
  private static let mediaTags: [StaticString] = [
    "#EXT-X-TARGETDURATION", "#EXT-X-MEDIA-SEQUENCE", "#EXT-X-PART", "#EXT-X-PLAYLIST-TYPE", "#EXT-X-ENDLIST",
    "#EXT-X-DISCONTINUITY", "#EXT-X-SKIP", "#EXT-X-PRELOAD-HINT", "#EXT-X-SERVER-CONTROL",
    "#EXT-X-RENDITION-REPORT", "#EXT-X-I-FRAMES-ONLY", "#EXT-X-IMAGES-ONLY", "#EXT-X-TILES",
  ]

  private static func description(_ bytes: [UInt8], _ line: Range<Int>) -> String {
    switch bytes[line.lowerBound] {
    case UInt8(ascii: "<"):
      let text = bytes.text(in: line.prefix(64)).lowercased()
      return text.contains("html") ? "it is an HTML page" : "it is XML"
    case UInt8(ascii: "{"), UInt8(ascii: "["): return "it is JSON"
    default: return "it does not start with #EXTM3U"
    }
  }
}

/// The variables of a playlist (EXT-X-DEFINE, draft-pantos-hls-rfc8216bis §4.4.2.3) and their substitution.
///
/// A value may refer to earlier variables, so a few lines can expand to gigabytes: the result is limited, for
/// each text and for the playlist. A duplicate definition and a reference to an unknown variable are errors, as
/// the draft requires.
struct PlaylistVariables: Sendable {
  private(set) var values: [String: String] = [:]
  private let textLimit: Int
  private let countLimit: Int
  private var budget: Int

  init(limits: ManifestLimits) {
    textLimit = limits.urlByteCount
    countLimit = limits.tracks
    budget = limits.byteCount
  }

  /// Defines a variable from the attributes of an EXT-X-DEFINE.
  mutating func define(
    _ attributes: AttributeList, imported: [String: String], url: URL, place: ReelError.Place
  ) throws(ReelError) {
    if let name = attributes["NAME"] {
      guard attributes.contains("VALUE") else {
        throw ReelError(.badManifest, "EXT-X-DEFINE of '\(name.excerpt)' has no VALUE", place: place)
      }
      try set(name, attributes["VALUE"] ?? "", place: place)
    } else if let name = attributes["IMPORT"] {
      guard let value = imported[name] else {
        throw ReelError(
          .badManifest,
          "EXT-X-DEFINE imports '\(name.excerpt)', which the multivariant playlist does not define",
          place: place)
      }
      try set(name, value, place: place)
    } else if let name = attributes["QUERYPARAM"] {
      let items = URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems ?? []
      guard let value = items.first(where: { $0.name == name })?.value else {
        throw ReelError(
          .badManifest,
          "EXT-X-DEFINE asks for the query parameter '\(name.excerpt)', which the URL does not have",
          place: place)
      }
      try set(name, value, place: place)
    } else {
      throw ReelError(.badManifest, "EXT-X-DEFINE has neither NAME, IMPORT nor QUERYPARAM", place: place)
    }
  }

  /// Returns `text` with each `{$name}` replaced. A playlist without definitions is left unchanged.
  mutating func substituting(in text: String, place: ReelError.Place) throws(ReelError) -> String {
    guard !values.isEmpty, text.utf8.contains(UInt8(ascii: "$")), text.contains("{$") else { return text }
    var result = ""
    var rest = text[...]
    while let open = rest.range(of: "{$") {
      guard let close = rest[open.upperBound...].firstIndex(of: "}") else { break }
      let name = String(rest[open.upperBound..<close])
      guard let value = values[name] else {
        throw ReelError(.badManifest, "the variable '\(name.excerpt)' is not defined", place: place)
      }
      result += rest[..<open.lowerBound]
      result += value
      rest = rest[rest.index(after: close)...]
      guard result.utf8.count <= textLimit else {
        throw ReelError(.badManifest, "variables make a text of more than \(textLimit) bytes", place: place)
      }
    }
    result += rest
    budget -= result.utf8.count
    guard budget >= 0 else {
      throw ReelError(.badManifest, "variables make the playlist larger than its limit", place: place)
    }
    return result
  }

  // MARK: - Private

  private mutating func set(_ name: String, _ value: String, place: ReelError.Place) throws(ReelError) {
    guard values.count < countLimit else {
      throw ReelError(.badManifest, "more than \(countLimit) variables", place: place)
    }
    guard values.updateValue(value, forKey: name) == nil else {
      throw ReelError(.badManifest, "EXT-X-DEFINE defines '\(name.excerpt)' a second time", place: place)
    }
  }
}

/// The attributes of a tag (RFC 8216 §4.2), in order, with variables replaced.
///
/// It accepts common mistakes: spaces around names and values, a missing closing quote, an attribute without
/// a value. If an attribute is repeated, the first one counts.
package struct AttributeList: Sendable, Hashable {
  /// One attribute: its name, and its value without quotes.
  package struct Attribute: Sendable, Hashable {
    package let name: String
    package let value: String
  }

  package private(set) var attributes: [Attribute] = []

  /// The maximum number of attributes per tag. Further ones are ignored.
  private static let limit = 256

  /// The attributes in `range` of `bytes`. Throws `badManifest` if a value names a variable that is not defined.
  init(
    _ bytes: [UInt8], in range: Range<Int>, variables: inout PlaylistVariables, place: ReelError.Place
  ) throws(ReelError) {
    var index = range.lowerBound
    let end = range.upperBound
    while index < end, attributes.count < Self.limit {
      let nameStart = index
      while index < end, bytes[index] != UInt8(ascii: "="), bytes[index] != UInt8(ascii: ",") { index += 1 }
      let name = bytes.text(in: bytes.trimmed(nameStart..<index))
      guard index < end, bytes[index] == UInt8(ascii: "=") else {
        index += 1
        continue
      }
      index += 1
      while index < end, bytes[index].isSpace { index += 1 }
      let value: Range<Int>
      if index < end, bytes[index] == UInt8(ascii: "\"") {
        let close = bytes.firstIndex(of: UInt8(ascii: "\""), in: index + 1..<end) ?? end
        value = index + 1..<close
        index = bytes.firstIndex(of: UInt8(ascii: ","), in: min(close + 1, end)..<end) ?? end
      } else {
        let close = bytes.firstIndex(of: UInt8(ascii: ","), in: index..<end) ?? end
        value = bytes.trimmed(index..<close)
        index = close
      }
      index += 1
      let text = try variables.substituting(in: bytes.text(in: value), place: place)
      if !name.isEmpty { attributes.append(Attribute(name: name, value: text)) }
    }
  }

  /// The value of the first attribute of this name; nil if there is none, or an empty one.
  package subscript(name: String) -> String? {
    guard let value = attributes.first(where: { $0.name == name })?.value, !value.isEmpty else { return nil }
    return value
  }

  /// Returns true if the attribute exists, even if it is empty.
  func contains(_ name: String) -> Bool { attributes.contains { $0.name == name } }

  /// `YES` or `NO`; false if it is missing.
  func flag(_ name: String) -> Bool { self[name]?.uppercased() == "YES" }

  /// Reads a signed decimal number of seconds; nil for anything else.
  package static func seconds(_ text: String) -> MediaTime? {
    var text = text.trimmed
    let isNegative = text.hasPrefix("-")
    if isNegative { text.removeFirst() }
    return ExactSeconds(text).map { isNegative ? MediaTime.zero - $0.time : $0.time }
  }

  /// Reads a comma-separated list.
  func list(_ name: String) -> [String] {
    guard let text = self[name] else { return [] }
    return text.split(separator: ",").prefix(64).map { String($0).trimmed }.filter { !$0.isEmpty }
  }
}

/// Reads typed values from the attributes of one tag, and collects the unreadable ones.
struct AttributeReader: Sendable {
  let attributes: AttributeList
  /// The attributes whose values make no sense, as `NAME 'value'`.
  private(set) var unreadable: [String] = []

  init(_ attributes: AttributeList) { self.attributes = attributes }

  /// The text of an attribute; nil if there is none, or an empty one.
  subscript(name: String) -> String? { attributes[name] }

  /// Returns the result of `read` for the text of an attribute; nil if the attribute is missing or `read`
  /// returns nil.
  mutating func value<Value>(_ name: String, _ read: (String) -> Value?) -> Value? {
    guard let text = attributes[name] else { return nil }
    if let value = read(text) { return value }
    unreadable.append("\(name) '\(text.excerpt)'")
    return nil
  }

  /// Reads a whole number in `range`; the decimals that some writers add are dropped.
  package mutating func integer(_ name: String, in range: ClosedRange<Int64>) -> Int? {
    value(name) { text in
      let whole = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
      guard let number = whole.first.flatMap({ String($0).integer }), range.contains(number),
        whole.count < 2 || whole[1].utf8.allSatisfy(\.isDigit)
      else { return nil }
      return Int(exactly: number)
    }
  }

  /// Reads a length of time, which is never negative.
  mutating func length(_ name: String) -> MediaTime? {
    value(name) { text in
      let time = AttributeList.seconds(text)
      return time.flatMap { $0 >= .zero ? $0 : nil }
    }
  }

  /// Records that an attribute is ignored because it is invalid.
  package mutating func check<Value>(_ name: String, _ read: (String) -> Value?) { _ = value(name, read) }

  /// Records that a number is ignored because it is invalid or not in `range`.
  mutating func checkInteger(_ name: String, in range: ClosedRange<Int64>) { _ = integer(name, in: range) }

  /// Records that a duration is ignored because it is invalid.
  mutating func checkLength(_ name: String) { _ = length(name) }

  /// Adds a warning for the unreadable values.
  package func warn(_ tag: String, in log: inout WarningLog, place: ReelError.Place) {
    guard !unreadable.isEmpty else { return }
    log.add("\(tag): \(unreadable.joined(separator: ", ")) can't be read", place: place)
  }
}

/// `<n>[@<o>]`, the value of EXT-X-BYTERANGE and of BYTERANGE (RFC 8216 §4.3.2.2).
package struct ByteRangeText: Sendable, Hashable {
  var length: Int64
  package var offset: Int64?

  /// Nil for invalid text.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard let range = try? ByteRangeText(bytes, in: 0..<bytes.count, place: .line(0)) else { return nil }
    self = range
  }

  package init(_ bytes: [UInt8], in range: Range<Int>, place: ReelError.Place) throws(ReelError) {
    let at = bytes.firstIndex(of: UInt8(ascii: "@"), in: range)
    let length = bytes.integer(in: bytes.trimmed(range.lowerBound..<(at ?? range.upperBound)))
    let offset = at.flatMap { bytes.integer(in: bytes.trimmed($0 + 1..<range.upperBound)) }
    guard let length, length >= 0, at == nil || (offset ?? -1) >= 0 else {
      throw ReelError(
        .badManifest, "'\(bytes.text(in: range).excerpt)' is not a byte range of the form length@offset",
        place: place)
    }
    self.length = length
    self.offset = offset
  }

  /// Returns the range, at `implicitOffset` if it states no offset. Throws `badManifest` if it ends beyond 63
  /// bits.
  package func byteRange(implicitOffset: Int64, place: ReelError.Place) throws(ReelError) -> ByteRange {
    guard let range = byteRange(implicitOffset: implicitOffset) else {
      throw ReelError(.badManifest, "the byte range ends beyond 63 bits", place: place)
    }
    return range
  }

  /// Returns the range, at `implicitOffset` if it states no offset; nil if it ends beyond 63 bits.
  package func byteRange(implicitOffset: Int64) -> ByteRange? {
    let range = ByteRange(offset: offset ?? implicitOffset, length: length)
    return range.end == nil ? nil : range
  }
}

extension WarningLog {
  /// Adds a warning if the value of EXT-X-VERSION (RFC 8216 §4.3.1.2) is not a number above 0.
  mutating func checkVersion(_ bytes: [UInt8], in range: Range<Int>, place: ReelError.Place) {
    if let version = bytes.integer(in: range), version > 0 { return }
    add("EXT-X-VERSION '\(bytes.text(in: range).excerpt)' is not a version", place: place)
  }

  /// EXT-X-START (RFC 8216 §4.3.5.2). Nil, with a warning, if its TIME-OFFSET is missing or invalid.
  mutating func startOffset(_ attributes: AttributeList, place: ReelError.Place) -> StartOffset? {
    if let time = attributes["TIME-OFFSET"].flatMap(AttributeList.seconds) {
      return StartOffset(time, isPrecise: attributes.flag("PRECISE"))
    }
    let text = attributes["TIME-OFFSET"].map { "the TIME-OFFSET '\($0.excerpt)'" } ?? "no TIME-OFFSET"
    add("EXT-X-START has \(text)", place: place)
    return nil
  }
}
