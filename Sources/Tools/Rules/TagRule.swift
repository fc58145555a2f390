import ReelManifest

/// How a tag is written, and where it is allowed (RFC 8216 §4.3).
struct TagRule: Sendable {
  /// Where a tag is allowed.
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

  /// By the name without `#`.
  static let catalog: [String: TagRule] = common.merging(segments) { $1 }.merging(media) { $1 }.merging(
    lowLatency
  ) { $1 }
  .merging(multivariant) { $1 }

  // MARK: - Private

  private init(
    _ scope: Scope, _ value: Value, isOnce: Bool = false, _ source: RuleSource
  ) {
    self.scope = scope
    self.value = value
    self.isOnce = isOnce
    self.source = source
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
      ]), .rfc("4.3.2.7")),
    "EXT-X-GAP": TagRule(.media, .none, .draft("4.4.4.7")),
    "EXT-X-BITRATE": TagRule(.media, .integer, .draft("4.4.4.8")),
  ]

  private static let key = [
    AttributeRule("METHOD", .word(["NONE", "AES-128", "SAMPLE-AES", "SAMPLE-AES-CTR"]), isRequired: true),
    AttributeRule("URI", .quoted), AttributeRule("IV", .hexadecimal), AttributeRule("KEYFORMAT", .quoted),
    AttributeRule("KEYFORMATVERSIONS", .quoted),
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
        AttributeRule("CAN-SKIP-UNTIL", .float), AttributeRule("CAN-SKIP-DATERANGES", yesOrNo),
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
        AttributeRule("RECENTLY-REMOVED-DATERANGES", .quoted),
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
      ]), .draft("4.4.5.4")),
  ]

  private static let multivariant: [String: TagRule] = [
    "EXT-X-MEDIA": TagRule(
      .multivariant,
      .attributes([
        AttributeRule("TYPE", .word(["AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS"]), isRequired: true),
        AttributeRule("URI", .quoted), AttributeRule("GROUP-ID", .quoted, isRequired: true),
        AttributeRule("LANGUAGE", .quoted), AttributeRule("ASSOC-LANGUAGE", .quoted),
        AttributeRule("NAME", .quoted, isRequired: true), AttributeRule("STABLE-RENDITION-ID", .quoted),
        AttributeRule("DEFAULT", yesOrNo), AttributeRule("AUTOSELECT", yesOrNo),
        AttributeRule("FORCED", yesOrNo), AttributeRule("INSTREAM-ID", .quoted),
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
      ]), .rfc("4.3.4.4")),
    "EXT-X-SESSION-KEY": TagRule(.multivariant, .attributes(key), .rfc("4.3.4.5")),
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
    AttributeRule("HDCP-LEVEL", .word(["TYPE-0", "TYPE-1", "NONE"])), AttributeRule("ALLOWED-CPC", .quoted),
    AttributeRule("VIDEO-RANGE", .word(["SDR", "HLG", "PQ"])), AttributeRule("REQ-VIDEO-LAYOUT", .quoted),
    AttributeRule("STABLE-VARIANT-ID", .quoted), AttributeRule("VIDEO", .quoted),
    AttributeRule("PATHWAY-ID", .quoted),
  ]
}
