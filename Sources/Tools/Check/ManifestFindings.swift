internal import Foundation
internal import ReelCore
internal import ReelRules

/// Judges the violations of standards in manifests: `manifest-invalid`.
///
/// A violation is a warning if a player may stumble over it, an error if a rung is lost by it, and otherwise a note.
/// Violations of one clause in one document are one finding.
package enum ManifestFindings {
  package static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    var groups: [Group] = []
    var places: [Group.Key: Int] = [:]
    for violation in facts.violations {
      let key = Group.Key(location: violation.error.location ?? "", clause: violation.clause)
      let level = level(of: violation, in: facts)
      if let place = places[key] {
        groups[place].add(violation, level)
      } else {
        places[key] = groups.count
        groups.append(Group(first: violation, level: level))
      }
    }
    return groups.map { finding(of: $0, in: facts) }
  }

  // MARK: - Private

  /// The violations of one clause in one document.
  private struct Group {
    struct Key: Hashable {
      var location: String
      var clause: String?
    }

    /// The first one of the highest level.
    var first: RuleViolation
    var level: FindingLevel
    var count = 1

    mutating func add(_ violation: RuleViolation, _ level: FindingLevel) {
      count += 1
      if level > self.level { (first, self.level) = (violation, level) }
    }
  }

  private static func finding(of group: Group, in facts: StreamFacts) -> Finding {
    let (first, clause) = (group.first.error, group.first.clause)
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
      place + first.reason + more,
      fix: clause.map { "correct it as \($0) says" } ?? "write a manifest that can be read")
    finding.line = line
    if line != nil { finding.naming = .segment }
    finding.rung = facts.rungs.first { $0.url?.reelLocation == first.location }?.name
    finding.evidence = [("count", .integer(group.count))]
    if let clause { finding.evidence.append(("clause", .text(clause))) }
    finding.isNoManifest = group.first.effect == .noManifest
    return finding
  }

  private static func level(of violation: RuleViolation, in facts: StreamFacts) -> FindingLevel {
    switch violation.effect {
    case .noManifest, .loss: return .error
    case .risk: return .warning
    case .harmless: return .note
    case .harmlessIfRead:
      let isUnread = facts.rungs.contains {
        $0.url?.reelLocation == violation.error.location && !$0.hasMedia
      }
      return isUnread ? .warning : .note
    }
  }
}

extension RungFacts {
  /// True if media of it could be read.
  fileprivate var hasMedia: Bool {
    samples.values.contains { $0.failure == nil && $0.byteCount > 0 }
  }
}
