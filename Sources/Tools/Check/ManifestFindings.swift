internal import Foundation
internal import ReelCore

/// Judges the violations of standards in manifests: `manifest-invalid`.
///
/// The rules are those of `reel manifest --strict`. A violation is a warning if a player may stumble over it, an error if
/// a rung is lost by it, and otherwise a note. Violations of one clause in one document are one finding.
package enum ManifestFindings {
  package static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    var groups: [Group] = []
    var places: [Group.Key: Int] = [:]
    for violation in facts.violations {
      let parts = Violation(violation)
      let key = Group.Key(location: violation.location ?? "", clause: parts.clause)
      let level = level(of: parts, at: violation.location, in: facts)
      if let place = places[key] {
        groups[place].add(violation, parts, level)
      } else {
        places[key] = groups.count
        groups.append(Group(violation, parts, level))
      }
    }
    return groups.map { finding(of: $0, in: facts) }
  }

  // MARK: - Private

  /// A violation, taken apart.
  private struct Violation {
    var reason: String
    /// `RFC 8216 §4.3.2.1`; nil if the text can't be read at all.
    var clause: String?

    init(_ error: ReelError) {
      let text = error.reason
      guard text.hasSuffix(")"), let open = text.lastIndex(of: "("),
        text[open...].contains("§") || text[open...].contains("Annex")
      else {
        reason = text
        return
      }
      reason = text[..<open].trimmingCharacters(in: .whitespaces)
      clause = String(text[text.index(after: open)...].dropLast())
    }
  }

  /// The violations of one clause in one document.
  private struct Group {
    struct Key: Hashable {
      var location: String
      var clause: String?
    }

    /// The first one of the highest level.
    var first: ReelError
    var parts: Violation
    var level: FindingLevel
    var count = 1

    init(_ first: ReelError, _ parts: Violation, _ level: FindingLevel) {
      (self.first, self.parts, self.level) = (first, parts, level)
    }

    mutating func add(_ violation: ReelError, _ parts: Violation, _ level: FindingLevel) {
      count += 1
      if level > self.level { (first, self.parts, self.level) = (violation, parts, level) }
    }
  }

  private static func finding(of group: Group, in facts: StreamFacts) -> Finding {
    let (first, parts) = (group.first, group.parts)
    var place = ""
    var line: Int?
    switch first.place {
    case .line(let number, _):
      line = number
      place = "line \(number): "
    case .element(let path): place = "\(path): "
    case .byte, nil: break
    }
    let more = group.count > 1 ? ", and \(group.count - 1) more of this kind" : ""
    var finding = Finding(
      .manifestInvalid, nil, group.level, url: first.location?.withoutUserInformation,
      place + parts.reason + (parts.clause.map { " (\($0))" } ?? "") + more,
      fix: parts.clause.map { "correct it as \($0) says" } ?? "write a manifest that can be read")
    finding.line = line
    finding.rung = facts.rungs.first { $0.url?.reelLocation == first.location }?.name
    finding.evidence = [("count", .number(Double(group.count)))]
    if let clause = parts.clause { finding.evidence.append(("clause", .text(clause))) }
    return finding
  }

  private static func level(
    of violation: Violation, at location: String?, in facts: StreamFacts
  ) -> FindingLevel {
    guard violation.clause != nil else { return .error }
    // That a segment needs one is concluded from its name, which may mislead.
    if violation.reason.contains("without an EXT-X-MAP"),
      !facts.rungs.contains(where: { $0.url?.reelLocation == location && !$0.hasMedia })
    {
      return .note
    }
    if losses.contains(where: violation.reason.contains) { return .error }
    if harmless.contains(where: violation.reason.contains) { return .note }
    return .warning
  }

  /// Parts of the reasons of violations by which a rung is lost.
  private static let losses = [
    "EXT-X-STREAM-INF without a URI", "neither segment information nor a BaseURL",
    "a SegmentTemplate has no @media",
  ]

  /// Parts of the reasons of violations that no player stumbles over: metadata, tolerated syntax, what only a schema
  /// requires, and rules that concern players that know later versions.
  private static let harmless = [
    // Syntax that all parsers tolerate (RFC 8216 §4.1, §4.2).
    "no comma after the duration", "white space", "a comma at the end of the attribute list", "has a value",
    // Versions that only drafts know.
    "needs an EXT-X-VERSION of 8", "needs an EXT-X-VERSION of 9", "needs an EXT-X-VERSION of 1",
    // Metadata.
    "DATERANGE", "SESSION-DATA", "SESSION-KEY", "KEYFORMATVERSIONS", "with METHOD=NONE", "AUTOSELECT",
    "FORCED",
    "CLOSED-CAPTIONS is NONE in some", "VIDEO-RANGE of", "HDCP-LEVEL of", "METHOD of", "EXT-X-BITRATE",
    "RENDITION-REPORT",
    // What the schema of MPDs requires, and no player needs.
    "@publishTime is missing", "@profiles is missing", "@minBufferTime is missing", "the namespace",
    "stands after", "is not an element of", "has no @schemeIdUri", "a Period has no @id",
    "@type being static",
    "has no AdaptationSet", "has no Representation", "of an AdaptationSet is not unique", "@indexRangeExact",
    "is above @", "@xlink", "@presentationTime", "@ttl", "@target", "@minBandwidth", "@maxBandwidth",
    "@group",
    "@selectionPriority", "of text has no @bandwidth", "@qualityRanking", "@eptDelta",
    // Overlaps by rounding; larger ones are seen in the media.
    "before the end of the segments before it",
  ]
}

extension RungFacts {
  /// True if media of it could be read.
  fileprivate var hasMedia: Bool {
    samples.values.contains { $0.failure == nil && $0.byteCount > 0 }
  }
}
