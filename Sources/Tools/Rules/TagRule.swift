import ReelCore
import ReelManifest

/// The syntax of a tag, and the playlists in which it is allowed (RFC 8216 §4.3).
struct TagRule: Sendable {
  /// The playlists in which a tag is allowed.
  enum Scope: Sendable {
    case both
    case media
    case multivariant
  }

  /// The syntax after its name.
  enum Value: Sendable {
    case none
    case integer
    case attributes([AttributeRule])
    /// Checked by the code for the tag.
    case other
  }

  let scope: Scope
  let value: Value
  let isOnce: Bool
  let source: RuleSource
  /// What violations mean for players, unless a rule says otherwise.
  let effect: RuleViolation.Effect

  /// The rules by tag name without `#`.
  static let catalog: [String: TagRule] = common.merging(segments) { $1 }.merging(media) { $1 }.merging(
    lowLatency
  ) { $1 }
  .merging(multivariant) { $1 }

  // MARK: - Private

  private init(
    _ scope: Scope, _ value: Value, isOnce: Bool = false, _ source: RuleSource,
    _ effect: RuleViolation.Effect = .risk
  ) {
    self.scope = scope
    self.value = value
    self.isOnce = isOnce
    self.source = source
    self.effect = effect
  }

  private static let yesOrNo = AttributeRule.Syntax.word(["YES", "NO"])

  private static let common: [String: TagRule] = [
    "EXTM3U": TagRule(.both, .none, isOnce: true, .rfc("4.3.1.1")),
    "EXT-X-VERSION": TagRule(.both, .integer, isOnce: true, .rfc("4.3.1.2")),
    "EXT-X-INDEPENDENT-SEGMENTS": TagRule(.both, .none, isOnce: true, .rfc("4.3.5.1")),
    "EXT-X-START": TagRule(
      .both,
      .attributes([
        AttributeRule("TIME-OFFSET", .signedFloat, isRequired: true), AttributeRule("PRECISE", yesOrNo),
      ]), isOnce: true, .rfc("4.3.5.2")),
    "EXT-X-DEFINE": TagRule(
      .both,
      .attributes([
        AttributeRule("NAME", .quoted), AttributeRule("VALUE", .quoted), AttributeRule("IMPORT", .quoted),
        AttributeRule("QUERYPARAM", .quoted),
      ]), .draft("4.4.2.3")),
  ]

  private static let segments: [String: TagRule] = [
    "EXTINF": TagRule(.media, .other, .rfc("4.3.2.1")),
    "EXT-X-BYTERANGE": TagRule(.media, .other, .rfc("4.3.2.2")),
    "EXT-X-DISCONTINUITY": TagRule(.media, .none, .rfc("4.3.2.3")),
    "EXT-X-KEY": TagRule(.media, .attributes(key), .rfc("4.3.2.4")),
    "EXT-X-MAP": TagRule(
      .media,
      .attributes([AttributeRule("URI", .quoted, isRequired: true), AttributeRule("BYTERANGE", .byteRange)]),
      .rfc("4.3.2.5")),
    "EXT-X-PROGRAM-DATE-TIME": TagRule(.media, .other, .rfc("4.3.2.6")),
    "EXT-X-DATERANGE": TagRule(
      .media,
      .attributes([
        AttributeRule("ID", .quoted, isRequired: true), AttributeRule("CLASS", .quoted),
        AttributeRule("START-DATE", .date), AttributeRule("CUE", .quoted), AttributeRule("END-DATE", .date),
        AttributeRule("DURATION", .float), AttributeRule("PLANNED-DURATION", .float),
        AttributeRule("SCTE35-CMD", .hexadecimal), AttributeRule("SCTE35-OUT", .hexadecimal),
        AttributeRule("SCTE35-IN", .hexadecimal), AttributeRule("END-ON-NEXT", .word(["YES"])),
      ]), .rfc("4.3.2.7"), .harmless),
    "EXT-X-GAP": TagRule(.media, .none, .draft("4.4.4.7")),
    "EXT-X-BITRATE": TagRule(.media, .integer, .draft("4.4.4.8"), .harmless),
  ]

  private static let key = [
    AttributeRule(
      "METHOD", .word(["NONE", "AES-128", "SAMPLE-AES", "SAMPLE-AES-CTR"]), isRequired: true, isMetadata: true
    ),
    AttributeRule("URI", .quoted), AttributeRule("IV", .hexadecimal), AttributeRule("KEYFORMAT", .quoted),
    AttributeRule("KEYFORMATVERSIONS", .quoted, isMetadata: true),
  ]

  private static let media: [String: TagRule] = [
    "EXT-X-TARGETDURATION": TagRule(.media, .integer, isOnce: true, .rfc("4.3.3.1")),
    "EXT-X-MEDIA-SEQUENCE": TagRule(.media, .integer, isOnce: true, .rfc("4.3.3.2")),
    "EXT-X-DISCONTINUITY-SEQUENCE": TagRule(.media, .integer, isOnce: true, .rfc("4.3.3.3")),
    "EXT-X-ENDLIST": TagRule(.media, .none, isOnce: true, .rfc("4.3.3.4")),
    "EXT-X-PLAYLIST-TYPE": TagRule(.media, .other, isOnce: true, .rfc("4.3.3.5")),
    "EXT-X-I-FRAMES-ONLY": TagRule(.media, .none, isOnce: true, .rfc("4.3.3.6")),
  ]

  private static let lowLatency: [String: TagRule] = [
    "EXT-X-PART-INF": TagRule(
      .media, .attributes([AttributeRule("PART-TARGET", .float, isRequired: true)]), isOnce: true,
      .draft("4.4.3.7")),
    "EXT-X-SERVER-CONTROL": TagRule(
      .media,
      .attributes([
        AttributeRule("CAN-SKIP-UNTIL", .float),
        AttributeRule("CAN-SKIP-DATERANGES", yesOrNo, isMetadata: true),
        AttributeRule("HOLD-BACK", .float), AttributeRule("PART-HOLD-BACK", .float),
        AttributeRule("CAN-BLOCK-RELOAD", yesOrNo),
      ]), isOnce: true, .draft("4.4.3.8")),
    "EXT-X-PART": TagRule(
      .media,
      .attributes([
        AttributeRule("URI", .quoted, isRequired: true), AttributeRule("DURATION", .float, isRequired: true),
        AttributeRule("INDEPENDENT", yesOrNo), AttributeRule("BYTERANGE", .byteRange),
        AttributeRule("GAP", yesOrNo),
      ]), .draft("4.4.4.9")),
    "EXT-X-SKIP": TagRule(
      .media,
      .attributes([
        AttributeRule("SKIPPED-SEGMENTS", .integer, isRequired: true),
        AttributeRule("RECENTLY-REMOVED-DATERANGES", .quoted, isMetadata: true),
      ]), isOnce: true, .draft("4.4.5.2")),
    "EXT-X-PRELOAD-HINT": TagRule(
      .media,
      .attributes([
        AttributeRule("TYPE", .word(["PART", "MAP"]), isRequired: true),
        AttributeRule("URI", .quoted, isRequired: true), AttributeRule("BYTERANGE-START", .integer),
        AttributeRule("BYTERANGE-LENGTH", .integer),
      ]), .draft("4.4.5.3")),
    "EXT-X-RENDITION-REPORT": TagRule(
      .media,
      .attributes([
        AttributeRule("URI", .quoted, isRequired: true), AttributeRule("LAST-MSN", .integer),
        AttributeRule("LAST-PART", .integer),
      ]), .draft("4.4.5.4"), .harmless),
  ]

  private static let multivariant: [String: TagRule] = [
    "EXT-X-MEDIA": TagRule(
      .multivariant,
      .attributes([
        AttributeRule("TYPE", .word(["AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS"]), isRequired: true),
        AttributeRule("URI", .quoted), AttributeRule("GROUP-ID", .quoted, isRequired: true),
        AttributeRule("LANGUAGE", .quoted), AttributeRule("ASSOC-LANGUAGE", .quoted),
        AttributeRule("NAME", .quoted, isRequired: true), AttributeRule("STABLE-RENDITION-ID", .quoted),
        AttributeRule("DEFAULT", yesOrNo), AttributeRule("AUTOSELECT", yesOrNo, isMetadata: true),
        AttributeRule("FORCED", yesOrNo, isMetadata: true), AttributeRule("INSTREAM-ID", .quoted),
        AttributeRule("BIT-DEPTH", .integer), AttributeRule("SAMPLE-RATE", .integer),
        AttributeRule("CHARACTERISTICS", .quoted), AttributeRule("CHANNELS", .quoted),
      ]), .rfc("4.3.4.1")),
    "EXT-X-STREAM-INF": TagRule(
      .multivariant,
      .attributes(
        variant + [
          AttributeRule("FRAME-RATE", .float), AttributeRule("AUDIO", .quoted),
          AttributeRule("SUBTITLES", .quoted), AttributeRule("CLOSED-CAPTIONS", .quotedOrNone),
        ]), .rfc("4.3.4.2")),
    "EXT-X-I-FRAME-STREAM-INF": TagRule(
      .multivariant, .attributes(variant + [AttributeRule("URI", .quoted, isRequired: true)]),
      .rfc("4.3.4.3")),
    "EXT-X-SESSION-DATA": TagRule(
      .multivariant,
      .attributes([
        AttributeRule("DATA-ID", .quoted, isRequired: true), AttributeRule("VALUE", .quoted),
        AttributeRule("URI", .quoted), AttributeRule("FORMAT", .word(["JSON", "RAW"])),
        AttributeRule("LANGUAGE", .quoted),
      ]), .rfc("4.3.4.4"), .harmless),
    "EXT-X-SESSION-KEY": TagRule(.multivariant, .attributes(key), .rfc("4.3.4.5"), .harmless),
    "EXT-X-CONTENT-STEERING": TagRule(
      .multivariant,
      .attributes([
        AttributeRule("SERVER-URI", .quoted, isRequired: true), AttributeRule("PATHWAY-ID", .quoted),
      ]), isOnce: true, .draft("4.4.6.6")),
  ]

  private static let variant = [
    AttributeRule("BANDWIDTH", .integer, isRequired: true), AttributeRule("AVERAGE-BANDWIDTH", .integer),
    AttributeRule("SCORE", .float), AttributeRule("CODECS", .quoted),
    AttributeRule("SUPPLEMENTAL-CODECS", .quoted), AttributeRule("RESOLUTION", .resolution),
    AttributeRule("HDCP-LEVEL", .word(["TYPE-0", "TYPE-1", "NONE"]), isMetadata: true),
    AttributeRule("ALLOWED-CPC", .quoted),
    AttributeRule("VIDEO-RANGE", .word(["SDR", "HLG", "PQ"]), isMetadata: true),
    AttributeRule("REQ-VIDEO-LAYOUT", .quoted),
    AttributeRule("STABLE-VARIANT-ID", .quoted), AttributeRule("VIDEO", .quoted),
    AttributeRule("PATHWAY-ID", .quoted),
  ]
}

/// The syntax of the value of an attribute (RFC 8216 §4.2).
struct AttributeRule: Sendable {
  /// The types of values.
  enum Syntax: Sendable {
    case quoted
    /// A quoted date and time (RFC 8216 §4.3.2.6).
    case date
    /// A quoted `length[@offset]`.
    case byteRange
    case integer
    case float
    case signedFloat
    case hexadecimal
    case resolution
    /// One of these words, without quotes.
    case word([String])
    /// A quoted text, or the word `NONE` without quotes.
    case quotedOrNone
  }

  let name: String
  let syntax: Syntax
  let isRequired: Bool
  /// True if no player stumbles over another value.
  let isMetadata: Bool

  init(_ name: String, _ syntax: Syntax, isRequired: Bool = false, isMetadata: Bool = false) {
    self.name = name
    self.syntax = syntax
    self.isRequired = isRequired
    self.isMetadata = isMetadata
  }

  /// Returns that a value should be quoted, or should not, as a clause that follows the attribute's name; nil if it is
  /// right.
  func quotingFault(of attribute: AttributeSyntax.Item) -> String? {
    switch syntax {
    case .quoted, .date, .byteRange: return attribute.isQuoted ? nil : "is not quoted"
    case .quotedOrNone:
      if attribute.isQuoted || attribute.value == "NONE" { return nil }
      return "is neither quoted nor NONE"
    case .integer, .float, .signedFloat, .hexadecimal, .resolution, .word:
      return attribute.isQuoted ? "is quoted" : nil
    }
  }

  /// Returns the fault of a value, as a clause that follows the attribute's name; nil if it has none.
  func fault(of attribute: AttributeSyntax.Item) -> String? {
    let (text, isQuoted) = (attribute.value, attribute.isQuoted)
    // The text does not show the value of a variable.
    if text.contains("{$") { return nil }
    switch syntax {
    case .quoted, .quotedOrNone: return isQuoted && text.isEmpty && isRequired ? "is empty" : nil
    case .date: return WallTime(iso8601: text) == nil ? "'\(text.excerpt)' is not a date" : nil
    case .byteRange: return ByteRangeText(text) == nil ? "'\(text.excerpt)' is not a byte range" : nil
    case .integer: return Self.isInteger(text) ? nil : "'\(text.excerpt)' is not a decimal integer"
    case .float: return Self.isFloat(text) ? nil : "'\(text.excerpt)' is not a decimal number of 0 or more"
    case .signedFloat:
      let isNumber = Self.isFloat(text.hasPrefix("-") ? String(text.dropFirst()) : text)
      return isNumber ? nil : "'\(text.excerpt)' is not a decimal number"
    case .hexadecimal:
      return Self.isHexadecimal(text) ? nil : "'\(text.excerpt)' is not a hexadecimal sequence"
    case .resolution:
      let sides = text.split(separator: "x", omittingEmptySubsequences: false)
      let isResolution = sides.count == 2 && sides.allSatisfy { Self.isInteger(String($0)) }
      return isResolution ? nil : "'\(text.excerpt)' is not a resolution"
    case .word(let words):
      return words.contains(text) ? nil : "'\(text.excerpt)' is none of \(words.joined(separator: ", "))"
    }
  }

  /// Returns true for a 64-bit decimal integer.
  static func isInteger(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(\.isDigit) && UInt64(text) != nil
  }

  /// Returns true for digits, optionally followed by a point and digits.
  static func isFloat(_ text: String) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return (1...2).contains(parts.count) && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(\.isDigit) }
  }

  // MARK: - Private

  /// Lower-case letters are accepted, although RFC 8216 §4.2 allows only upper-case ones.
  private static func isHexadecimal(_ text: String) -> Bool {
    guard text.hasPrefix("0x") || text.hasPrefix("0X") else { return false }
    let digits = text.utf8.dropFirst(2)
    return !digits.isEmpty && digits.allSatisfy { $0.hexDigitValue != nil }
  }
}

/// An attribute list read strictly (RFC 8216 §4.2), unlike `AttributeList`, which reads as much as possible.
struct AttributeSyntax: Sendable {
  /// One attribute as it is written.
  struct Item: Sendable {
    var name: String
    /// The value without quotes.
    var value: String
    var isQuoted: Bool
  }

  struct Fault: Sendable {
    var text: String
    /// True if all parsers tolerate it.
    var isTolerated = false
  }

  private(set) var items: [Item] = []
  private(set) var faults: [Fault] = []

  /// The maximum number of attributes that are examined.
  private static let limit = 256

  /// The list of a tag without attributes.
  static let none = AttributeSyntax()

  private init() {}

  init(_ bytes: [UInt8], in range: Range<Int>) {
    var index = range.lowerBound
    if range.isEmpty { addFault("an attribute list that is empty") }
    while index < range.upperBound, items.count + faults.count < Self.limit {
      readItem(bytes, at: &index, end: range.upperBound)
    }
    var names: Set<String> = []
    for item in items where !names.insert(item.name).inserted {
      addFault("the attribute \(item.name.excerpt) twice")
    }
  }

  subscript(name: String) -> Item? { items.first { $0.name == name } }

  func value(_ name: String) -> String? { self[name]?.value }

  /// Returns the value of a number of seconds.
  func seconds(_ name: String) -> MediaTime? { value(name).flatMap { AttributeList.seconds($0) } }

  // MARK: - Private

  private mutating func readItem(_ bytes: [UInt8], at index: inout Int, end: Int) {
    let start = index
    while index < end, bytes[index] != UInt8(ascii: "="), bytes[index] != UInt8(ascii: ",") { index += 1 }
    let name = bytes.text(in: bytes.trimmed(start..<index))
    guard index < end, bytes[index] == UInt8(ascii: "=") else {
      addFault(
        name.isEmpty ? "a comma without an attribute" : "the attribute \(name.excerpt) without a value")
      index += 1
      return
    }
    checkName(name, isSpaced: bytes.trimmed(start..<index) != start..<index)
    index += 1
    let valueStart = index
    while index < end, bytes[index].isSpace { index += 1 }
    var isSpaced = index > valueStart
    if index < end, bytes[index] == UInt8(ascii: "\"") {
      let close = bytes.firstIndex(of: UInt8(ascii: "\""), in: index + 1..<end)
      items.append(Item(name: name, value: bytes.text(in: index + 1..<(close ?? end)), isQuoted: true))
      if close == nil { addFault("\(name.excerpt) without its closing quote") }
      let after = min((close ?? end) + 1, end)
      index = bytes.firstIndex(of: UInt8(ascii: ","), in: after..<end) ?? end
      let rest = bytes.trimmed(after..<index)
      if !rest.isEmpty {
        addFault("'\(bytes.text(in: rest).excerpt)' after the closing quote of \(name.excerpt)")
      }
      isSpaced = isSpaced || (rest.isEmpty && after < index)
    } else {
      let close = bytes.firstIndex(of: UInt8(ascii: ","), in: index..<end) ?? end
      let range = bytes.trimmed(index..<close)
      let text = bytes.text(in: range)
      items.append(Item(name: name, value: text, isQuoted: false))
      isSpaced = isSpaced || range.upperBound < close
      if text.isEmpty { addFault("the attribute \(name.excerpt) without a value") }
      if text.utf8.contains(where: { $0.isSpace || $0 == UInt8(ascii: "\"") }) {
        addFault("white space or a quote in the unquoted value of \(name.excerpt)", isTolerated: true)
      }
      index = close
    }
    if isSpaced { addFault("white space around the value of \(name.excerpt)", isTolerated: true) }
    if index == end - 1 { addFault("a comma at the end of the attribute list", isTolerated: true) }
    index += 1
  }

  private mutating func addFault(_ text: String, isTolerated: Bool = false) {
    faults.append(Fault(text: text, isTolerated: isTolerated))
  }

  private mutating func checkName(_ name: String, isSpaced: Bool) {
    if isSpaced { addFault("white space around the attribute name \(name.excerpt)", isTolerated: true) }
    let isPlain = name.utf8.allSatisfy {
      $0.isDigit || $0 == UInt8(ascii: "-") || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
    }
    if name.isEmpty || !isPlain { addFault("'\(name.excerpt)' is not an attribute name") }
  }
}
