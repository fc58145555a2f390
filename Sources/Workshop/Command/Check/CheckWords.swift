import ReelCheck
import ReelCore
import ReelPool

/// A finding as text and pages show it.
enum CheckWords {
  /// The least saving in milliseconds that is worth a word.
  static let leastCost = 20.0

  /// `known: 1 waived`; nil without any.
  static func known(waived: Int) -> String? { waived > 0 ? "known: \(waived) waived" : nil }

  /// The name of a finding in lists of findings: `timestamp-break/gap, english, segment 3`.
  static func name(_ finding: Finding) -> String {
    [finding.name, finding.rung, finding.segment.map { "segment \($0)" }].compactMap(\.self)
      .joined(separator: ", ")
  }

  /// Prints milliseconds as `956 ms`, and from 1 s on as `1.2 s`.
  static func time(_ milliseconds: Double) -> String {
    milliseconds.magnitude < 999.5
      ? "\(Int(milliseconds.rounded())) ms"
      : "\((milliseconds / 1000).formatted(places: milliseconds.magnitude < 10_000 ? 2 : 1)) s"
  }

  /// The place of a finding: `360p, segment 3 (6 s to 8 s)`; empty for the source as a whole.
  static func place(_ finding: Finding) -> String {
    var parts: [String] = []
    if let rung = finding.rung { parts.append(rung) }
    if let segment = finding.segment { parts.append("segment \(segment)") }
    if let line = finding.line { parts.append("line \(line)") }
    if let byte = finding.byte { parts.append("byte \(byte)") }
    let place = parts.joined(separator: ", ")
    guard let time = finding.time else { return place }
    let (from, to) = (time.lowerBound.formatted(places: 3), time.upperBound.formatted(places: 3))
    let span = from == to ? "at \(from) s" : "\(from) s to \(to) s"
    return place.isEmpty ? span : "\(place) (\(span))"
  }

  /// The summary of a finding after its place, as far as the summary does not name that itself.
  static func placed(_ finding: Finding) -> String {
    let summary = finding.summary
    switch finding.naming {
    case .none:
      let place = place(finding)
      return place.isEmpty ? summary : "\(place): \(summary)"
    case .rung: return summary
    case .segment: return finding.rung.map { "\($0): \(summary)" } ?? summary
    case .segmentFirst: return finding.rung.map { "\($0), \(summary)" } ?? summary
    }
  }

  /// The cost of a finding to a viewer: `first frame 733 ms later on lte`.
  static func cost(_ cost: FindingCost) -> String {
    let text = time(cost.milliseconds)
    let words =
      switch cost.kind {
      // Without a link, it is the wait for something to see.
      case .start: cost.link == nil ? "first picture \(text) later" : "first frame \(text) later"
      case .stall: "\(text) stalled"
      case .lost: "\(text) lost"
      case .switch: "change of rung \(text) longer"
      }
    let link = cost.link.map { " on \($0)" } ?? ""
    let player = cost.player == .whole ? " with whole segments" : ""
    let place = words + link + player
    guard let inTurn = cost.inTurnMilliseconds, abs(inTurn - cost.milliseconds) >= 1 else { return place }
    if cost.milliseconds < leastCost {
      return "nothing alone\(link)\(player), \(time(inTurn)) after larger savings"
    }
    return "\(place), \(time(inTurn)) after larger savings"
  }

  /// How the rung that was started with plays on: `360p: 2 stalls in 24 s, the first after 8.9 s`.
  static func playback(_ playback: StartResult.Playback) -> String {
    switch playback {
    case .unknown(let reason): return reason
    case .played(let rung, _):
      let estimate =
        rung.estimatedCount == 0
        ? "" : " (estimated: the sizes of \(rung.estimatedCount.counted("segment")) are not known)"
      return "\(rung.rung): \(rung.stallWords)\(estimate)"
    }
  }

  /// The costs that are worth a word.
  static func costs(_ finding: Finding) -> [FindingCost] {
    finding.costs.filter { max($0.milliseconds, $0.inTurnMilliseconds ?? 0) >= leastCost }
  }

  static func evidence(_ value: EvidenceValue) -> String {
    switch value {
    case .number(let number): number.formatted(places: 3)
    case .text(let text): text
    case .flag(let flag): flag ? "yes" : "no"
    }
  }

  /// The thresholds that are not the usual ones: `black.run 5 s, usually 2 s`; nil without any.
  static func changed(_ thresholds: Thresholds) -> String? {
    let changed = Threshold.allCases.compactMap { threshold in
      thresholds.changed[threshold].map { value in
        let (usual, unit) = (threshold.usual.value, threshold.usual.unit.rawValue)
        return "\(threshold.rawValue) \(value.formatted(places: 3)) \(unit), "
          + "usually \(usual.formatted(places: 3)) \(unit)"
      }
    }
    return changed.isEmpty ? nil : changed.joined(separator: "; ")
  }

  /// What was not checked: `black, english: it has no pictures`.
  static func omission(_ item: NotChecked) -> String {
    let subject = [item.id?.rawValue, item.rung].compactMap(\.self).joined(separator: ", ")
    return Redaction.clean(subject.isEmpty ? item.reason : "\(subject): \(item.reason)")
  }
}

extension StartResult {
  /// The requests and bytes of the least that is possible: `3 requests, 46 kB`.
  var floorWords: String {
    "\(floorRequestCount.counted("request")), \(ByteSize(byteCount: Int(clamping: floorByteCount)))"
  }
}

extension StartResult.Course {
  /// The parts that are worth a word, in milliseconds.
  var parts: [(name: String, milliseconds: Double)] {
    [
      ("connect", connecting), ("answer", answering), ("bytes", receiving), ("decode", decoding),
      ("player", working),
    ].filter { $0.1 >= 0.5 }
  }
}
