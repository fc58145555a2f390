/// Leaves out findings that another one explains, so that one fault is named once.
enum Consequences {
  /// What a fault of a rung explains in the same rung.
  private static let explained: [(cause: FindingID, kind: String?, consequences: Set<FindingID>)] = [
    (
      .rungDead, nil,
      [
        .segmentTruncated, .decodeError, .segmentNotIndependent, .timestampBreak, .trackMissing,
        .segmentDurationMismatch,
        .bandwidthMismatch, .codecsMismatch, .resolutionMismatch, .frameRateMismatch, .rungsNotAligned,
        .avOffset,
      ]
    ),
    (.rungDead, "no-answer", [.segmentMissing]),
    (.segmentTruncated, nil, [.decodeError, .frozen, .bandwidthMismatch]),
    (.decodeError, nil, [.frozen, .frameRateMismatch]),
    (
      .timestampBreak, nil,
      [.rungsNotAligned, .frameRateMismatch, .frozen, .segmentDurationMismatch]
    ),
    (.segmentDurationMismatch, nil, [.bandwidthMismatch, .trackMissing, .rungsNotAligned]),
    (.black, "whole", [.rungContentDiffers, .frozen]),
    (.black, "run", [.rungContentDiffers]),
    (.frozen, nil, [.rungContentDiffers]),
    (.rungContentDiffers, "shifted", [.rungsNotAligned, .avOffset]),
    (.avOffset, nil, [.rungsNotAligned]),
    (.trackMissing, "absent", [.codecsMismatch]),
    (.codecsMismatch, "family", [.rungsNotAligned]),
  ]

  static func removed(from findings: [Finding]) -> [Finding] {
    // A rung that says that it is longer makes the others look short.
    let hasWrongDurations = findings.contains { $0.id == .segmentDurationMismatch }
    return findings.filter { finding in
      if hasWrongDurations, finding.name == "track-missing/short" { return false }
      // A page in place of a playlist is named once.
      if finding.isNoManifest,
        findings.contains(where: { $0.name == "rung-dead/playlist" && $0.url == finding.url })
      {
        return false
      }
      // Audio alone that begins late is out of time with the video.
      if finding.name == "timestamp-break/start",
        findings.contains(where: { $0.id == .avOffset && $0.rung == finding.rung })
      {
        return false
      }
      return !explained.contains { rule in
        rule.consequences.contains(finding.id)
          && findings.contains { cause in
            cause.id == rule.cause && (rule.kind == nil || cause.kind == rule.kind)
              && (cause.rung == finding.rung || cause.rung == nil || finding.rung == nil
                || finding.isCompared(with: cause.rung))
              && cause.level >= finding.level
          }
      }
    }
  }
}

extension Finding {
  /// True if the other rung was what this one was compared with.
  fileprivate func isCompared(with rung: String?) -> Bool {
    evidence.contains { name, value in
      if name == "reference", case .text(let reference) = value { reference == rung } else { false }
    }
  }
}
