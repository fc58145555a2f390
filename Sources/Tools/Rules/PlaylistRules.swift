import Foundation
import ReelCore
import ReelManifest

/// Finds violations of RFC 8216 and draft-pantos-hls-rfc8216bis in a playlist.
///
/// It is independent of the parsers for playback, which continue wherever a player can.
struct PlaylistRules {
  private let bytes: [UInt8]
  private let kind: PlaylistKind
  private var lines: PlaylistLines
  private var log: RuleLog
  private var versions = VersionRules()
  private var variables = VariableRules()
  private var media = MediaPlaylistRules()
  private var multivariant = MultivariantPlaylistRules()
  /// The tags that may occur once, and have occurred.
  private var once: Set<String> = []
  private var hasLines = false
  /// The maximum number of tags that are recorded.
  private let tagLimit: Int
  private var tagCount = 0

  /// Returns the violations in the playlist at `url`, in the order of lines, at most `limits.warnings`.
  static func violations(in bytes: [UInt8], url: URL, limits: ManifestLimits) -> [RuleViolation] {
    var log = RuleLog(limit: limits.warnings)
    // What an error that ends the check means.
    var effect = RuleViolation.Effect.loss
    do throws(ReelError) {
      try limits.check(bytes)
      effect = .noManifest
      let kind = try PlaylistKind(bytes)
      effect = .loss
      var rules = PlaylistRules(bytes, kind: kind, log: log, limits: limits)
      rules.check()
      log = rules.log
      try Self.read(bytes, kind: rules.kind, url: url, limits: limits)
    } catch {
      // Unreadable text is a violation, with or without a rule.
      let line = error.place?.line ?? 0
      if line == 0 || !log.hasViolation(atLine: line) { log.add(RuleViolation(error, effect), line: line) }
    }
    return log.violations()
  }

  // MARK: - Private

  private init(_ bytes: [UInt8], kind: PlaylistKind, log: RuleLog, limits: ManifestLimits) {
    tagLimit = limits.tracks
    self.bytes = bytes
    self.kind = kind
    self.log = log
    lines = PlaylistLines(bytes)
  }

  private static func read(
    _ bytes: [UInt8], kind: PlaylistKind, url: URL, limits: ManifestLimits
  ) throws(ReelError) {
    switch kind {
    case .media:
      // The values of imported variables are unknown here.
      let imported = VariableRules.imports(in: bytes)
      _ = try ManifestReader(limits: limits).mediaPlaylist(from: bytes, url: url, variables: imported)
    case .multivariant:
      _ = try ManifestReader(limits: limits).presentation(from: bytes, format: .hls, url: url)
    }
  }

  private mutating func check() {
    if bytes.has("\u{FEFF}", at: 0) {
      log.add("the file begins with a byte order mark", .rfc("4.1"), line: 1)
    }
    while let line = lines.next() {
      checkText(line)
      if bytes[line.lowerBound] != UInt8(ascii: "#") {
        checkReference(line)
      } else if bytes.has("#EXT", at: line.lowerBound) {
        checkTag(line)
      }
      hasLines = true
    }
    versions.finish(&log)
    // If not all tags were examined, missing tags can't be reported. The reader refuses so many tags.
    guard tagCount < tagLimit else { return }
    variables.finish(&log)
    switch kind {
    case .media: media.finish(&log, lastLine: lines.number)
    case .multivariant: multivariant.finish(&log)
    }
  }

  /// Checks the rules for every line (RFC 8216 §4.1).
  private mutating func checkText(_ line: Range<Int>) {
    let number = lines.number
    if !hasLines, !bytes.isText("#EXTM3U", in: line) {
      log.add("the first line is not #EXTM3U", .rfc("4.3.1.1"), line: number)
    } else if !hasLines, number > 1 {
      log.add("#EXTM3U does not stand in the first line", .rfc("4.3.1.1"), line: number)
    }
    let end = lines.whole.upperBound
    if end < bytes.count, bytes[end] == 0x0D, !bytes.has("\r\n", at: end) {
      log.add("the line ends with a carriage return alone", .rfc("4.1"), line: number)
    }
    let isComment = bytes[line.lowerBound] == UInt8(ascii: "#") && !bytes.has("#EXT", at: line.lowerBound)
    if !isComment, line != lines.whole {
      log.add("white space at the beginning or end of the line", .rfc("4.1"), line: number, .harmless)
    }
    let slice = bytes[line]
    if slice.contains(where: { $0 >= 0x80 }), String(validating: slice, as: UTF8.self) == nil {
      log.add("the line is not UTF-8", .rfc("4.1"), line: number)
    }
    // Tabs are allowed, because EXT-X-SKIP uses them as separators.
    if slice.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) {
      log.add("a control character in the line", .rfc("4.1"), line: number)
    }
  }

  private mutating func checkReference(_ line: Range<Int>) {
    let text = bytes.text(in: line)
    variables.use(in: text, line: lines.number)
    if line.contains(where: { bytes[$0].isSpace }) {
      log.add("white space in the URI", .rfc("4.1"), line: lines.number, .harmless)
    }
    switch kind {
    case .media: media.addReference(text, line: lines.number, log: &log)
    case .multivariant: multivariant.addReference(line: lines.number, log: &log)
    }
  }

  private mutating func checkTag(_ line: Range<Int>) {
    let colon = bytes.firstIndex(of: UInt8(ascii: ":"), in: line)
    let name = bytes.text(in: line.lowerBound + 1..<(colon ?? line.upperBound))
    // Unknown tags are ignored (RFC 8216 §4.1).
    guard let rule = TagRule.catalog[name] else { return }
    let number = lines.number
    if rule.isOnce, !once.insert(name).inserted {
      log.add("\(name) is there more than once", Self.onceSource(rule), line: number, rule.effect)
    }
    guard rule.scope == .both || rule.scope == (kind == .media ? .media : .multivariant) else {
      let place = kind == .media ? "a media playlist" : "a multivariant playlist"
      log.add("\(name) in \(place)", Self.scopeSource(rule), line: number, rule.effect)
      return
    }
    let value = colon.map { $0 + 1..<line.upperBound } ?? line.upperBound..<line.upperBound
    var attributes = AttributeSyntax.none
    switch rule.value {
    case .none:
      if colon != nil { log.add("\(name) has a value", rule.source, line: number, .harmless) }
    case .integer:
      let text = bytes.text(in: value)
      if !AttributeRule.isInteger(text) {
        log.add(
          "the value '\(text.excerpt)' of \(name) is not a decimal integer", rule.source, line: number,
          rule.effect)
      }
    case .attributes(let rules):
      attributes = AttributeSyntax(bytes, in: value)
      check(attributes, of: name, rules, rule)
    case .other: break
    }
    read(
      Tag(
        name: name, value: bytes.text(in: value), attributes: attributes, line: number, source: rule.source,
        effect: rule.effect))
  }

  /// The tags that are recorded to compare them with others.
  private static let remembered: Set<String> = [
    "EXT-X-DATERANGE", "EXT-X-DEFINE", "EXT-X-MEDIA", "EXT-X-STREAM-INF", "EXT-X-I-FRAME-STREAM-INF",
    "EXT-X-SESSION-DATA", "EXT-X-SESSION-KEY",
  ]

  private mutating func read(_ tag: Tag) {
    versions.read(tag)
    if Self.remembered.contains(tag.name) {
      guard tagCount < tagLimit else { return }
      tagCount += 1
    }
    variables.read(tag, kind: kind, log: &log)
    switch kind {
    case .media: media.read(tag, log: &log)
    case .multivariant: multivariant.read(tag, log: &log)
    }
  }

  private mutating func check(
    _ attributes: AttributeSyntax, of name: String, _ rules: [AttributeRule], _ tag: TagRule
  ) {
    let line = lines.number
    for fault in attributes.faults {
      log.add("\(fault.text) in \(name)", .rfc("4.2"), line: line, fault.isTolerated ? .harmless : tag.effect)
    }
    for rule in rules {
      guard let item = attributes[rule.name] else {
        if rule.isRequired { log.add("\(name) has no \(rule.name)", tag.source, line: line, tag.effect) }
        continue
      }
      let quoting = rule.quotingFault(of: item)
      if let fault = quoting ?? rule.fault(of: item) {
        log.add(
          "\(rule.name) of \(name) \(fault)", quoting == nil ? tag.source : .rfc("4.2"), line: line,
          rule.isMetadata ? .harmless : tag.effect)
      }
    }
    for item in attributes.items where item.value.contains("{$") { variables.use(in: item.value, line: line) }
  }

  private static func onceSource(_ rule: TagRule) -> RuleSource {
    switch rule.source {
    case .rfc(let section): return .rfc(section.hasPrefix("4.3.3") ? "4.3.3" : section)
    case .draft: return rule.source
    }
  }

  private static func scopeSource(_ rule: TagRule) -> RuleSource {
    guard case .rfc(let section) = rule.source else { return rule.source }
    return .rfc(section.split(separator: ".").prefix(3).joined(separator: "."))
  }
}

extension PlaylistRules {
  /// A tag that is allowed in the playlist.
  struct Tag {
    /// The name without `#`.
    var name: String
    /// The text after the colon.
    var value: String
    /// Empty for a tag that has none.
    var attributes: AttributeSyntax
    var line: Int
    /// The description of the tag.
    var source: RuleSource
    /// What violations of it mean for players, unless a rule says otherwise.
    var effect: RuleViolation.Effect
  }
}

extension ReelError.Place {
  /// The number of a line; nil for another place.
  fileprivate var line: Int? {
    guard case .line(let line, _) = self else { return nil }
    return line
  }
}

/// Determines the EXT-X-VERSION that a playlist needs (RFC 8216 §7, draft-pantos-hls-rfc8216bis §8).
struct VersionRules {
  private struct Need {
    var version: Int
    var what: String
    var line: Int
    var effect: RuleViolation.Effect
  }

  private var stated: Int?
  /// The first use of each feature that needs a version.
  private var needs: [Need] = []
  private var seen: Set<String> = []
  private var firstMap: Int?
  private var isIFramesOnly = false

  mutating func read(_ tag: PlaylistRules.Tag) {
    let attributes = tag.attributes
    switch tag.name {
    case "EXT-X-VERSION": stated = stated ?? Int(tag.value)
    case "EXTINF":
      let duration = tag.value.prefix { $0 != "," }
      if duration.contains(".") { need(3, "a decimal EXTINF", tag.line) }
    case "EXT-X-BYTERANGE": need(4, tag.name, tag.line)
    case "EXT-X-I-FRAMES-ONLY":
      isIFramesOnly = true
      need(4, tag.name, tag.line)
    case "EXT-X-KEY":
      if attributes["IV"] != nil { need(2, "IV of EXT-X-KEY", tag.line) }
      if attributes["KEYFORMAT"] != nil { need(5, "KEYFORMAT", tag.line) }
      if attributes["KEYFORMATVERSIONS"] != nil { need(5, "KEYFORMATVERSIONS", tag.line, .harmless) }
    case "EXT-X-MAP": firstMap = firstMap ?? tag.line
    case "EXT-X-DEFINE":
      need(8, tag.name, tag.line)
      if attributes["QUERYPARAM"] != nil { need(11, "QUERYPARAM of EXT-X-DEFINE", tag.line) }
    case "EXT-X-SKIP":
      need(9, tag.name, tag.line)
      if attributes["RECENTLY-REMOVED-DATERANGES"] != nil {
        need(10, "RECENTLY-REMOVED-DATERANGES", tag.line)
      }
    case "EXT-X-MEDIA":
      guard let id = attributes.value("INSTREAM-ID") else { break }
      if attributes.value("TYPE") != "CLOSED-CAPTIONS" {
        need(13, "INSTREAM-ID of another TYPE than CLOSED-CAPTIONS", tag.line)
      } else if id.hasPrefix("SERVICE") {
        need(7, "a SERVICE as INSTREAM-ID", tag.line)
      }
    default: break
    }
    for item in attributes.items where item.name.hasPrefix("REQ-") { need(12, item.name, tag.line) }
  }

  mutating func finish(_ log: inout RuleLog) {
    if let firstMap { need(isIFramesOnly ? 5 : 6, "EXT-X-MAP", firstMap) }
    let version = stated ?? 1
    for need in needs where need.version > version {
      let has = stated.map { "the playlist states \($0)" } ?? "the playlist states none"
      log.add(
        "\(need.what.excerpt) needs an EXT-X-VERSION of \(need.version) or higher, and \(has)",
        need.version <= 7 ? .rfc("7") : .draft("8"), line: need.line, need.effect)
    }
  }

  // MARK: - Private

  /// The maximum number of kinds of needs, because attributes can have any name.
  private static let limit = 64

  private mutating func need(
    _ version: Int, _ what: String, _ line: Int, _ effect: RuleViolation.Effect = .risk
  ) {
    guard seen.count < Self.limit, seen.insert(what).inserted else { return }
    // Only drafts know versions above 7.
    needs.append(Need(version: version, what: what, line: line, effect: version > 7 ? .harmless : effect))
  }
}

/// The rules of EXT-X-DEFINE and its variables (draft-pantos-hls-rfc8216bis §4.3, §4.4.2.3).
struct VariableRules {
  private struct Use {
    var name: String
    var line: Int
  }

  private var defined: [String: Int] = [:]
  /// The maximum number of names whose first use is recorded.
  private static let limit = 10_000
  private var uses: [Use] = []
  private var used: Set<String> = []
  /// False without EXT-X-DEFINE, in which case braces and dollar signs have no meaning.
  private var hasDefinitions: Bool { !defined.isEmpty }

  mutating func read(_ tag: PlaylistRules.Tag, kind: PlaylistKind, log: inout RuleLog) {
    guard tag.name == "EXT-X-DEFINE" else { return }
    let names = ["NAME", "IMPORT", "QUERYPARAM"].filter { tag.attributes[$0] != nil }
    guard names.count == 1, let name = tag.attributes.value(names[0]) else {
      log.add(
        "EXT-X-DEFINE has \(names.isEmpty ? "none" : "more than one") of NAME, IMPORT and QUERYPARAM",
        tag)
      return
    }
    if names[0] == "NAME", tag.attributes["VALUE"] == nil {
      log.add("EXT-X-DEFINE with NAME has no VALUE", tag)
    }
    if names[0] == "IMPORT", kind == .multivariant {
      log.add("EXT-X-DEFINE with IMPORT in a multivariant playlist", tag)
    }
    if !name.utf8.allSatisfy({
      $0.isDigit || $0.isLetter || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
    })
      || name.isEmpty
    {
      log.add("'\(name.excerpt)' is not the name of a variable", tag)
    }
    if defined[name] != nil {
      log.add("EXT-X-DEFINE defines '\(name.excerpt)' a second time", tag)
    } else {
      defined[name] = tag.line
    }
  }

  /// Records the variables that the text of a line refers to.
  mutating func use(in text: String, line: Int) {
    for part in text.split(separator: "{$", omittingEmptySubsequences: false).dropFirst() {
      guard let close = part.firstIndex(of: "}") else { continue }
      let name = String(part[..<close])
      if used.count < Self.limit, used.insert(name).inserted { uses.append(Use(name: name, line: line)) }
    }
  }

  func finish(_ log: inout RuleLog) {
    guard hasDefinitions else { return }
    for use in uses where defined[use.name].map({ $0 > use.line }) ?? true {
      log.add(
        "the variable '\(use.name.excerpt)' is not defined before it is used", .draft("4.3"), line: use.line)
    }
  }

  /// Returns the names that a media playlist imports, with empty values.
  static func imports(in bytes: [UInt8]) -> [String: String] {
    var lines = PlaylistLines(bytes)
    var imports: [String: String] = [:]
    while let line = lines.next() {
      guard bytes.has("#EXT-X-DEFINE:", at: line.lowerBound) else { continue }
      let attributes = AttributeSyntax(bytes, in: line.lowerBound + 14..<line.upperBound)
      if let name = attributes.value("IMPORT") { imports[name] = "" }
    }
    return imports
  }
}

/// The rules of dates: EXT-X-PROGRAM-DATE-TIME (RFC 8216 §4.3.2.6) and EXT-X-DATERANGE (§4.3.2.7).
struct DateRangeRules {
  private var hasDate = false
  private var firstRange: Int?
  /// Attributes that must be the same in all tags of an ID.
  private var stated: [String: [String: String]] = [:]

  mutating func readDate(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    hasDate = true
    // A date without a time is invalid.
    if tag.value.count <= 10 || WallTime(iso8601: tag.value) == nil {
      log.add("EXT-X-PROGRAM-DATE-TIME '\(tag.value.excerpt)' is not a date and time", tag)
    }
  }

  mutating func readRange(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    firstRange = firstRange ?? tag.line
    let attributes = tag.attributes
    if let id = attributes.value("ID") { compare(attributes, id: id, tag, log: &log) }
    let start = attributes.value("START-DATE").flatMap { WallTime(iso8601: $0) }
    let end = attributes.value("END-DATE").flatMap { WallTime(iso8601: $0) }
    if let start, let end {
      if end < start {
        log.add("END-DATE of EXT-X-DATERANGE is before its START-DATE", tag)
      }
      if let duration = attributes.seconds("DURATION"), start + duration != end {
        log.add(
          "END-DATE of EXT-X-DATERANGE is not START-DATE and DURATION", tag.source, line: tag.line, tag.effect
        )
      }
    }
    guard attributes.value("END-ON-NEXT") == "YES" else { return }
    if attributes["CLASS"] == nil {
      log.add("EXT-X-DATERANGE with END-ON-NEXT has no CLASS", tag)
    }
    for name in ["DURATION", "END-DATE"] where attributes[name] != nil {
      log.add("EXT-X-DATERANGE with END-ON-NEXT has \(name)", tag)
    }
  }

  func finish(_ log: inout RuleLog, hasSkip: Bool) {
    guard let firstRange, !hasDate, !hasSkip else { return }
    log.add(
      "EXT-X-DATERANGE in a playlist without EXT-X-PROGRAM-DATE-TIME", .rfc("4.3.2.7"), line: firstRange,
      .harmless)
  }

  // MARK: - Private

  /// Tags of one ID describe one range, so their common attributes must be equal.
  private mutating func compare(
    _ attributes: AttributeSyntax, id: String, _ tag: PlaylistRules.Tag, log: inout RuleLog
  ) {
    var known = stated[id] ?? [:]
    for item in attributes.items where item.name != "ID" {
      if let other = known[item.name], other != item.value {
        log.add("two EXT-X-DATERANGE of the ID '\(id.excerpt)' differ in \(item.name.excerpt)", tag)
      }
      known[item.name] = item.value
    }
    if known["START-DATE"] == nil {
      log.add("EXT-X-DATERANGE has no START-DATE", tag)
    }
    stated[id] = known
  }
}

/// The rules of EXT-X-KEY and EXT-X-SESSION-KEY (RFC 8216 §4.3.2.4).
enum KeyRules {
  static func check(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    let attributes = tag.attributes
    if attributes.value("METHOD") == "NONE" {
      for name in ["URI", "IV", "KEYFORMAT", "KEYFORMATVERSIONS"] where attributes[name] != nil {
        log.add("\(tag.name) with METHOD=NONE has \(name)", tag, .harmless)
      }
    } else if attributes["METHOD"] != nil, attributes["URI"] == nil {
      log.add("\(tag.name) has no URI", tag)
    }
    if let vector = attributes["IV"], !vector.isQuoted, vector.value.utf8.count > 34 {
      log.add("the IV '\(vector.value.excerpt)' has more than 128 bits", tag, .risk)
    }
    if let versions = attributes["KEYFORMATVERSIONS"], versions.isQuoted {
      let numbers = versions.value.split(separator: "/", omittingEmptySubsequences: false)
      if !numbers.allSatisfy({ AttributeRule.isInteger(String($0)) && $0 != "0" }) {
        log.add(
          "KEYFORMATVERSIONS '\(versions.value.excerpt)' is not a list of positive integers", tag, .harmless)
      }
    }
  }
}
