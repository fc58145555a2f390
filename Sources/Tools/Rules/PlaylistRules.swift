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
  /// The tags that may be there once, and are.
  private var once: Set<String> = []
  private var hasLines = false
  /// Tags that are remembered, and how many of them are.
  private let tagLimit: Int
  private var tagCount = 0

  /// The violations in the playlist at `url`, in the order of lines, at most `limits.warnings`.
  static func violations(in bytes: [UInt8], url: URL, limits: ManifestLimits) -> [ReelError] {
    var log = RuleLog(limit: limits.warnings)
    do throws(ReelError) {
      try limits.check(bytes)
      var rules = PlaylistRules(bytes, kind: try PlaylistKind(bytes), log: log, limits: limits)
      rules.check()
      log = rules.log
      try Self.read(bytes, kind: rules.kind, url: url, limits: limits)
    } catch {
      // Unreadable text is a violation, with or without a rule.
      let line = error.place?.line ?? 0
      if line == 0 || !log.hasFinding(atLine: line) { log.add(error.reason, line: line) }
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
      log.add("white space at the beginning or end of the line", .rfc("4.1"), line: number)
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
      log.add("white space in the URI", .rfc("4.1"), line: lines.number)
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
      log.add("\(name) is there more than once", Self.onceSource(rule), line: number)
    }
    guard rule.scope == .both || rule.scope == (kind == .media ? .media : .multivariant) else {
      let place = kind == .media ? "a media playlist" : "a multivariant playlist"
      log.add("\(name) in \(place)", Self.scopeSource(name, rule), line: number)
      return
    }
    let value = colon.map { $0 + 1..<line.upperBound } ?? line.upperBound..<line.upperBound
    var attributes = AttributeSyntax.none
    switch rule.value {
    case .none:
      if colon != nil { log.add("\(name) has a value", rule.source, line: number) }
    case .integer:
      let text = bytes.text(in: value)
      if !AttributeRule.isInteger(text) {
        log.add("the value '\(text.excerpt)' of \(name) is not a decimal integer", rule.source, line: number)
      }
    case .attributes(let rules):
      attributes = AttributeSyntax(bytes, in: value)
      check(attributes, of: name, rules, rule.source)
    case .other: break
    }
    read(
      Tag(name: name, value: bytes.text(in: value), attributes: attributes, line: number, source: rule.source)
    )
  }

  /// The tags of which something is kept, to compare them with others.
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
    _ attributes: AttributeSyntax, of name: String, _ rules: [AttributeRule], _ source: RuleSource
  ) {
    let line = lines.number
    for fault in attributes.faults { log.add("\(fault) in \(name)", .rfc("4.2"), line: line) }
    for rule in rules {
      guard let item = attributes[rule.name] else {
        if rule.isRequired { log.add("\(name) has no \(rule.name)", source, line: line) }
        continue
      }
      if let fault = rule.fault(of: item) {
        let isType = fault.hasSuffix("quoted") || fault.hasSuffix("NONE")
        log.add("\(rule.name) of \(name) \(fault)", isType ? .rfc("4.2") : source, line: line)
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

  private static func scopeSource(_ name: String, _ rule: TagRule) -> RuleSource {
    guard case .rfc(let section) = rule.source else { return rule.source }
    return .rfc(section.split(separator: ".").prefix(3).joined(separator: "."))
  }
}

extension PlaylistRules {
  /// A tag that is allowed in the playlist.
  struct Tag {
    /// Without `#`.
    var name: String
    /// The text after the colon.
    var value: String
    /// Empty for a tag that has none.
    var attributes: AttributeSyntax
    var line: Int
    /// The description of the tag.
    var source: RuleSource
  }
}

extension ReelError.Place {
  /// The number of a line; nil for another place.
  fileprivate var line: Int? {
    guard case .line(let line, _) = self else { return nil }
    return line
  }
}
