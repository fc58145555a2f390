import Foundation
import ReelCheck
import ReelCore
import ReelLab
import ReelManifest
import ReelSimulation

/// The record of `reel check` for a source.
struct CheckRecord: SourceRecord {
  let source: String
  var status: String
  var verdict: String?
  /// Whether any media was decoded; nil for a source that can't be checked.
  var judged: Bool?
  /// True if the source fails: nil otherwise.
  var fails: Bool?
  var format: String?
  var live: Bool?
  var duration: Double?
  /// The starts by the name of the link.
  var start: [String: JSONFields]?
  var rungs: [JSONFields]?
  var findings: [JSONFields]?
  var expectations: [AssertionOutcome]?
  var notChecked: [JSONFields]?
  var coverage: JSONFields?
  /// The thresholds that are not the usual ones.
  var thresholds: [String: Double]?
  var error: ErrorRecord?

  init(source: String, error: ReelError) {
    self.source = source
    status = ResultLine.Status.failed.rawValue
    self.error = ErrorRecord(error)
  }

  init(_ verdict: CheckGates.Verdict, _ result: CheckResult) {
    let checked = verdict.checked
    source = checked.source
    status = (checked.silence == nil ? ResultLine.Status.checked : .failed).rawValue
    error = checked.silence.map { ErrorRecord($0) }
    self.verdict = Redaction.clean(checked.verdict)
    judged = checked.judgement == .judged
    fails = verdict.fails ? true : nil
    format = checked.facts.format.isEmpty ? nil : checked.facts.format
    live = checked.facts.format.isEmpty ? nil : checked.facts.isLive
    duration = checked.facts.duration.map { $0.rounded(places: 6) }
    start = Dictionary(checked.starts.map { ($0.link, Self.start($0)) }) { first, _ in first }
    let places = zip(result.facts.rungs, checked.ladder)
    rungs = places.map { rung, row in
      [
        "name": rung.name, "kind": rung.kind.rawValue, "language": rung.language, "detail": row.detail,
        "opens": row.opens.text, "decodes": row.decodes.text, "says": row.says.isEmpty ? nil : row.says,
        "is": row.actual.text.isEmpty ? nil : row.actual.text, "first": row.isFirst,
        "segments": rung.segments.count + rung.omittedCount, "segments_read": rung.samples.count,
        "judged": rung.judgement == .judged,
        "skipped": rung.status == .skipped ? true : nil,
      ]
    }
    findings = checked.findings.map(Self.finding)
    expectations = verdict.outcomes.isEmpty ? nil : verdict.outcomes
    notChecked = checked.notChecked.map { item in
      [
        "id": item.id?.rawValue, "rung": item.rung, "kind": item.unjudged?.kind.rawValue,
        "reason": item.reason,
      ]
    }
    coverage = Self.coverage(checked.coverage)
    let changed = checked.thresholds.changed.map { ($0.key.rawValue, $0.value) }
    thresholds = changed.isEmpty ? nil : Dictionary(uniqueKeysWithValues: changed)
  }

  // MARK: - Private

  private static func start(_ start: StartResult) -> JSONFields {
    var stall: JSONFields?
    var unknown: String?
    switch start.playback {
    case .unknown(let reason): unknown = reason
    case .played(let rung, let whole):
      stall = [
        "ms": rung.stalledMilliseconds.rounded(places: 1), "whole_ms": whole?.rounded(places: 1),
        "rung": rung.rung, "played": rung.duration.rounded(places: 3),
        "bits_per_second": Int(rung.bitsPerSecond.rounded()),
        "estimated_sizes": rung.estimatedCount == 0 ? nil : rung.estimatedCount,
        "stalls": rung.course.stalls.prefix(stallLimit).map { stall -> JSONFields in
          [
            "position": stall.position.rounded(places: 3),
            "ms": stall.duration.milliseconds.rounded(places: 1),
          ]
        },
      ]
    }
    return [
      "ms": start.now.milliseconds.rounded(places: 1), "player": start.player, "rung": start.rung,
      "second_frame_ms": start.secondFrameMilliseconds?.rounded(places: 1),
      "whole_ms": start.wholeMilliseconds?.rounded(places: 1),
      "floor_ms": start.floorMilliseconds.rounded(places: 1),
      "wait_ms": start.waitMilliseconds.rounded(places: 1),
      "possible_ms": start.possibleMilliseconds.rounded(places: 1), "stall": stall, "not_played": unknown,
      "requests": start.now.requests.count,
      "bytes": start.now.requests.reduce(0) { $0 + $1.byteCount }, "floor_requests": start.floorRequestCount,
      "floor_bytes": start.floorByteCount,
      "steps": start.steps.map { step -> JSONFields in
        ["finding": step.finding, "ms": step.milliseconds.rounded(places: 1)]
      },
    ]
  }

  /// The number of stalls that are listed.
  private static let stallLimit = 100

  private static func finding(_ finding: Finding) -> JSONFields {
    let costs = finding.costs.sorted { $0.milliseconds > $1.milliseconds }.map(cost)
    var evidence: [String: Evidence] = [:]
    for (name, value) in finding.evidence { evidence[name] = Evidence(value: value) }
    return [
      "id": finding.id.rawValue, "kind": finding.kind, "level": finding.level.rawValue, "rung": finding.rung,
      "segment": finding.segment, "url": finding.url, "line": finding.line,
      "byte": finding.byte, "from": finding.time?.lowerBound.rounded(places: 6),
      "to": finding.time?.upperBound.rounded(places: 6), "summary": finding.summary,
      "evidence": evidence, "cost": costs.first, "costs": costs.count > 1 ? costs : nil,
      "fix": finding.fix, "waived": finding.waiver, "known": finding.waiver == nil ? nil : true,
    ]
  }

  private static func cost(_ cost: FindingCost) -> JSONFields {
    [
      "kind": cost.kind.rawValue, "link": cost.link, "player": cost.player?.name,
      "ms": cost.milliseconds.rounded(places: 1), "in_turn_ms": cost.inTurnMilliseconds?.rounded(places: 1),
    ]
  }

  private static func coverage(_ coverage: Coverage) -> JSONFields {
    [
      "rungs": coverage.rungCount, "all_rungs": coverage.allRungCount, "segments": coverage.segmentCount,
      "all_segments": coverage.allSegmentCount, "bytes": coverage.byteCount, "frames": coverage.frameCount,
      "damaged_frames": coverage.damagedFrameCount, "audio": coverage.audioDuration.rounded(places: 3),
    ]
  }
}

/// A measurement as JSON: a number, a text or a flag.
private struct Evidence: Encodable, Sendable {
  let value: EvidenceValue

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch value {
    case .number(let number) where number.isFinite: try container.encode(number.rounded(places: 6))
    case .number: try container.encodeNil()
    case .text(let text): try container.encode(text)
    case .flag(let flag): try container.encode(flag)
    }
  }
}
