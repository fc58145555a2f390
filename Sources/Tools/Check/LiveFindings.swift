internal import Foundation
internal import ReelCore

/// Judges a live presentation that was watched: `live-stale`.
package enum LiveFindings {
  package static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    guard let live = facts.live, !live.hasEnded, let target = target(of: live, facts),
      live.duration >= leastTargets * target
    else { return [] }
    let limit = thresholds[.liveStale] * target
    var findings: [Finding] = []
    for rung in facts.rungs {
      guard let readings = live.readings[rung.name], readings.count > 1 else { continue }
      guard let rest = longestRest(in: readings), rest.length > limit else { continue }
      findings.append(finding(rung, rest, readings, live, target: target, facts))
    }
    return merged(findings, of: facts)
  }

  /// Why `live-stale` was not looked for; nil if it was, or if the presentation is not live.
  package static func notChecked(in facts: StreamFacts) -> NotChecked? {
    guard facts.isLive else { return nil }
    guard let live = facts.live else {
      return NotChecked(.liveStale, "the presentation was not watched (--watch)")
    }
    guard !live.hasEnded, let target = target(of: live, facts) else { return nil }
    guard live.duration < leastTargets * target else { return nil }
    let needed = Int((leastTargets * target).rounded(.up))
    return NotChecked(.liveStale, "it was watched for \(seconds(live.duration)), and needs \(needed) s")
  }

  // MARK: - Private

  /// The least number of target durations that say something.
  private static let leastTargets = 3.0

  /// A time without anything new.
  private struct Rest {
    var from: LiveFacts.Reading
    var to: LiveFacts.Reading
    /// True if it was not over at the end of the watch.
    var isLast: Bool

    var length: Double { to.time - from.time }
  }

  /// How often something new must come, in seconds; nil if unknown.
  private static func target(of live: LiveFacts, _ facts: StreamFacts) -> Double? {
    let target = max(live.targetDuration, facts.format == "dash" ? live.updatePeriod ?? 0 : 0)
    return target > 0 ? target : nil
  }

  private static func longestRest(in readings: [LiveFacts.Reading]) -> Rest? {
    var (start, longest): (LiveFacts.Reading?, Rest?) = (nil, nil)
    for (reading, isNew) in zip(readings, advances(of: readings)) {
      if isNew || start == nil { start = reading }
      guard let from = start else { continue }
      if reading.time - from.time > longest?.length ?? 0 {
        longest = Rest(from: from, to: reading, isLast: reading == readings.last)
      }
    }
    return longest
  }

  /// Returns for each reading whether it brought anything new.
  ///
  /// Old copies that caches serve in between do not. A stream that was started again, and counts from a new beginning,
  /// does: it steps forward twice below the highest number.
  private static func advances(of readings: [LiveFacts.Reading]) -> [Bool] {
    var advances = [Bool](repeating: false, count: readings.count)
    var (highest, last): (Double?, Double?)
    /// The places of the last fall and of the rises since.
    var newRun: [Int] = []
    for (index, reading) in readings.enumerated() where reading.failure == nil {
      if let isMissing = reading.lacksNewest {
        advances[index] = !isMissing
        continue
      }
      let value = reading.lastNumber.map { Double($0) } ?? reading.end
      defer { last = value }
      if highest.map({ value > $0 }) ?? true {
        (highest, newRun) = (value, [])
        advances[index] = true
      } else if let last, value < last {
        newRun = [index]
      } else if let last, value > last {
        newRun.append(index)
      }
      guard newRun.count >= 3 else { continue }
      for place in newRun { advances[place] = true }
      (highest, newRun) = (value, [])
    }
    return advances
  }

  private static func finding(
    _ rung: RungFacts, _ rest: Rest, _ readings: [LiveFacts.Reading], _ live: LiveFacts, target: Double,
    _ facts: StreamFacts
  ) -> Finding {
    let stale = readings.filter { $0.time >= rest.from.time && $0.time <= rest.to.time }
    let failure = stale.last?.failure
    let age = stale.compactMap(\.age).max()
    let maxAge = stale.compactMap(\.maxAge).max()
    let isCached = age ?? 0 >= target / 2 || maxAge ?? 0 > target
    let document = facts.format == "dash" ? "the MPD" : "the playlist"
    var summary: String
    if let failure {
      summary = "\(document) could not be read for \(seconds(rest.length)): \(failure.reason)"
    } else if stale.last?.lacksNewest == true {
      summary =
        "by the clock there should be new segments, and for \(seconds(rest.length)) the server has none"
    } else {
      summary =
        "\(document) lists nothing new for \(seconds(rest.length)) of \(seconds(live.duration)), \(times(rest.length / target)) its target duration of \(seconds(target))"
    }
    if isCached, failure == nil {
      if let age { summary += "; a cache served a copy \(seconds(age)) old (Age)" }
      if let maxAge { summary += "\(age == nil ? ";" : ",") max-age is \(seconds(maxAge))" }
    }
    var finding = Finding(
      .liveStale, nil, .error, rung: rung.name,
      url: (facts.format == "dash" ? facts.url : rung.url)?.absoluteString.withoutUserInformation, summary,
      fix: isCached && failure == nil
        ? "let caches keep \(document) for at most \(seconds(target / 2)) (Cache-Control: max-age)"
        : "look at the encoder and the packager: they stopped, or do not upload")
    finding.evidence = [
      ("unchanged_s", .number(rest.length)), ("target_duration_s", .number(target)),
      ("watched_s", .number(live.duration)), ("readings", .integer(readings.count)),
    ]
    if let age { finding.evidence.append(("age_s", .number(age))) }
    if let maxAge { finding.evidence.append(("max_age_s", .number(maxAge))) }
    // A player that joins at three target durations from the end has so much to play.
    let stall = (rest.isLast ? 60 : min(rest.length, 60)) - leastTargets * target
    if stall > 0 { finding.costs = [FindingCost(.stall, stall * 1000)] }
    return finding
  }

  /// One finding for rungs that all wait for as long, as they do if an encoder has stopped.
  private static func merged(_ findings: [Finding], of facts: StreamFacts) -> [Finding] {
    guard findings.count > 1, facts.format == "dash" else { return findings }
    var first = findings[0]
    first.rung = nil
    first.evidence.append(("rungs", .integer(findings.count)))
    return [first]
  }

  private static func seconds(_ value: Double) -> String {
    let rounded = (value * 10).rounded() / 10
    return rounded == rounded.rounded() ? "\(Int(rounded)) s" : "\(rounded) s"
  }

  private static func times(_ value: Double) -> String { "\((value * 10).rounded() / 10) times" }
}
