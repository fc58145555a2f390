import ReelCore
import ReelManifest

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
      log.add(
        "EXT-X-PROGRAM-DATE-TIME '\(tag.value.excerpt)' is not a date and time", tag.source, line: tag.line)
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
        log.add("END-DATE of EXT-X-DATERANGE is before its START-DATE", tag.source, line: tag.line)
      }
      if let duration = attributes.seconds("DURATION"), start + duration != end {
        log.add("END-DATE of EXT-X-DATERANGE is not START-DATE and DURATION", tag.source, line: tag.line)
      }
    }
    guard attributes.value("END-ON-NEXT") == "YES" else { return }
    if attributes["CLASS"] == nil {
      log.add("EXT-X-DATERANGE with END-ON-NEXT has no CLASS", tag.source, line: tag.line)
    }
    for name in ["DURATION", "END-DATE"] where attributes[name] != nil {
      log.add("EXT-X-DATERANGE with END-ON-NEXT has \(name)", tag.source, line: tag.line)
    }
  }

  func finish(_ log: inout RuleLog, hasSkip: Bool) {
    guard let firstRange, !hasDate, !hasSkip else { return }
    log.add(
      "EXT-X-DATERANGE in a playlist without EXT-X-PROGRAM-DATE-TIME", .rfc("4.3.2.7"), line: firstRange)
  }

  // MARK: - Private

  /// Tags of one ID describe one range, so their common attributes must be equal.
  private mutating func compare(
    _ attributes: AttributeSyntax, id: String, _ tag: PlaylistRules.Tag, log: inout RuleLog
  ) {
    var known = stated[id] ?? [:]
    for item in attributes.items where item.name != "ID" {
      if let other = known[item.name], other != item.value {
        log.add(
          "two EXT-X-DATERANGE of the ID '\(id.excerpt)' differ in \(item.name.excerpt)", tag.source,
          line: tag.line)
      }
      known[item.name] = item.value
    }
    if known["START-DATE"] == nil { log.add("EXT-X-DATERANGE has no START-DATE", tag.source, line: tag.line) }
    stated[id] = known
  }
}
