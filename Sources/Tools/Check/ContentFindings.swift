internal import Foundation
internal import ReelCore
internal import ReelManifest

/// Findings about what is seen and heard: black, silence, pictures that stand still, and rungs that show something else.
enum ContentFindings {
  static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    let judge = ContentJudge(facts: facts, thresholds: thresholds)
    let single = facts.rungs.flatMap { judge.black($0) + judge.frozen($0) + judge.silent($0) }
    return judge.merged(single) + judge.differences()
  }
}

private struct ContentJudge {
  let facts: StreamFacts
  let thresholds: Thresholds

  /// A stretch of frames that have something in common.
  private struct Stretch {
    var start: Double
    var end: Double
    var frameCount: Int
    var segment: Int
    /// True if it begins with the first frame of its run.
    var isAtStart: Bool

    var duration: Double { end - start }
  }

  private func stretches(of content: ContentFacts, _ matches: (FrameFacts) -> Bool) -> [Stretch] {
    var stretches: [Stretch] = []
    var isOpen = false
    for (place, frame) in content.frames.enumerated() {
      guard matches(frame) else {
        isOpen = false
        continue
      }
      if isOpen {
        stretches[stretches.count - 1].end = frame.time + frame.duration
        stretches[stretches.count - 1].frameCount += 1
      } else {
        stretches.append(
          Stretch(
            start: frame.time, end: frame.time + frame.duration, frameCount: 1, segment: frame.segment,
            isAtStart: place == 0))
      }
      isOpen = true
    }
    return stretches
  }

  private func finding(
    _ id: FindingID, _ kind: String? = nil, _ level: FindingLevel, of rung: RungFacts, _ stretch: Stretch,
    _ summary: String, fix: String
  ) -> Finding {
    var finding = Finding(id, kind, level, rung: rung.name, summary, fix: fix)
    finding.time = stretch.start...max(stretch.start, stretch.end)
    if !rung.segments.isEmpty { finding.segment = stretch.segment + 1 }
    finding.evidence = [
      ("start_s", .number(stretch.start)), ("duration_ms", .milliseconds(stretch.duration)),
      ("frames", .integer(stretch.frameCount)),
    ]
    return finding
  }

  // MARK: Black

  private func isBlack(_ frame: FrameFacts) -> Bool {
    guard Double(frame.darkShare) >= thresholds.normalized(.blackShare) else { return false }
    // A dark scene has lights somewhere, however small, and structure.
    guard frame.brightest < 0.25 else { return false }
    let sorted = frame.luma.sorted()
    guard let brightest = sorted.last else { return true }
    return Int(sorted[sorted.count * 98 / 100]) - Int(sorted[sorted.count * 2 / 100]) <= 12 && brightest <= 40
  }

  func black(_ rung: RungFacts) -> [Finding] {
    let runs = rung.content.filter { !$0.frames.isEmpty }
    let found = runs.map { stretches(of: $0, isBlack) }
    let total = runs.reduce(0) { $0 + $1.frames.reduce(0) { $0 + $1.duration } }
    if total >= thresholds.normalized(.blackRun),
      zip(runs, found).allSatisfy({ $0.frames.count == $1.first?.frameCount }),
      let first = found.first?.first
    {
      return [
        finding(
          .black, "whole", .error, of: rung, first,
          "every frame that was read is black (\(total.seconds))",
          fix: "check whether the encoder lost its input")
      ]
    }
    var findings: [Finding] = []
    for (run, stretches) in zip(runs, found) {
      for stretch in stretches {
        let isStart = stretch.isAtStart && run.segments.lowerBound == 0
        guard stretch.duration >= thresholds.normalized(isStart ? .blackStart : .blackRun) - 0.001 else {
          continue
        }
        var finding = finding(
          .black, isStart ? "start" : "run", .warning, of: rung, stretch,
          isStart
            ? "black for \(stretch.duration.seconds), then a picture"
            : "black for \(stretch.duration.seconds) from \(stretch.start.seconds) on",
          fix: isStart
            ? "trim the black, or start after it" : "cut it out, or check whether the encoder lost its input")
        if isStart, facts.format == "hls" {
          finding.fix =
            "trim the black, or start after it with EXT-X-START:TIME-OFFSET=\(stretch.end.formatted(places: 3))"
        }
        if isStart { finding.costs = [FindingCost(.start, seconds: stretch.duration)] }
        findings.append(finding)
      }
    }
    return longest(findings)
  }

  /// Of several of a kind, the longest, with the number of all.
  private func longest(_ findings: [Finding]) -> [Finding] {
    Dictionary(grouping: findings, by: \.name).values.compactMap { same in
      var worst = same.max { ($0.time.map(Self.length) ?? 0) < ($1.time.map(Self.length) ?? 0) }
      if same.count > 1 { worst?.evidence.append(("count", .integer(same.count))) }
      return worst
    }
  }

  private static func length(_ range: ClosedRange<Double>) -> Double { range.upperBound - range.lowerBound }

  // MARK: Frozen

  func frozen(_ rung: RungFacts) -> [Finding] {
    let change = Float(thresholds.normalized(.frozenChange))
    var findings: [Finding] = []
    for run in rung.content {
      // From each frame that differs from the one before it, up to the next one that does.
      let changed = run.frames.indices.filter { $0 == 0 || run.frames[$0].change > change }
      for (place, begin) in changed.enumerated() {
        let end = (place + 1 < changed.count ? changed[place + 1] : run.frames.count) - 1
        let (first, last) = (run.frames[begin], run.frames[end])
        guard !isBlack(first) else { continue }
        let whole = Stretch(
          start: first.time, end: last.time + last.duration, frameCount: end - begin + 1,
          segment: first.segment, isAtStart: begin == 0)
        guard whole.duration >= thresholds.normalized(.frozenDuration) else { continue }
        var finding = finding(
          .frozen, nil, .warning, of: rung, whole,
          "the picture is frozen for \(whole.duration.seconds) from \(whole.start.seconds) on",
          fix: "check whether the encoder lost its input")
        finding.costs = [FindingCost(.lost, seconds: whole.duration)]
        findings.append(finding)
      }
    }
    return longest(findings)
  }

  // MARK: Silence

  func silent(_ rung: RungFacts) -> [Finding] {
    let runs = rung.content.filter { !$0.sound.isEmpty }
    guard let first = runs.first?.sound.first, let last = runs.last?.sound.last else { return [] }
    let total = runs.reduce(0) { $0 + $1.sound.reduce(0) { $0 + $1.duration } }
    let limit = decibels(thresholds[.silentPeak])
    let peak = runs.lazy.flatMap(\.sound).map(\.peak).max() ?? 0
    let isWhole =
      rung.segments.isEmpty ? runs.count == 1 : rung.segments.indices.allSatisfy { rung.samples[$0] != nil }
    guard peak < limit, total >= thresholds.normalized(.silentDuration), runs.count > 1 || isWhole else {
      return []
    }
    var finding = Finding(
      .silent, nil, .warning, rung: rung.name,
      "\(total.seconds) of audio is silent\(runs.count > 1 ? ", read in \(runs.count) places" : "")"
        + (peak > 0 ? " (peak \(Self.decibels(of: peak)) dBFS)" : ""),
      fix: "map the right input of the encoder")
    finding.time = first.time...max(first.time, last.time + last.duration)
    finding.evidence = [("duration_ms", .milliseconds(total)), ("places", .integer(runs.count))]
    if peak > 0 { finding.evidence.append(("peak_db", .integer(Self.decibels(of: peak)))) }
    return [finding]
  }

  private func decibels(_ value: Double) -> Float { Float(pow(10, value / 20)) }

  private static func decibels(of peak: Float) -> Int { Int((20 * log10(Double(peak))).rounded()) }

  // MARK: Several rungs

  /// Makes one finding of those that all rungs of a kind have.
  func merged(_ findings: [Finding]) -> [Finding] {
    guard facts.rungs.count > 1 else { return findings }
    var merged: [Finding] = []
    for same in Dictionary(grouping: findings, by: \.name).values {
      let video = Set(facts.rungs.filter { $0.content.contains { !$0.frames.isEmpty } }.map(\.name))
      let audio = Set(facts.rungs.filter { $0.content.contains { !$0.sound.isEmpty } }.map(\.name))
      let all = same.first?.id == .silent ? audio : video
      if all.count > 1, Set(same.compactMap(\.rung)) == all,
        var one = same.max(by: { ($0.time.map(Self.length) ?? 0) < ($1.time.map(Self.length) ?? 0) })
      {
        one.rung = nil
        one.segment = nil
        one.summary = "all rungs: \(one.summary)"
        merged.append(one)
      } else {
        merged += same
      }
    }
    return merged
  }

  /// Compares the pictures of the video rungs of each period with those of the first one.
  func differences() -> [Finding] {
    var findings: [Finding] = []
    let periods = Dictionary(grouping: facts.rungs.filter { $0.kind == .video }, by: { $0.place.period })
    for (_, rungs) in periods.sorted(by: { $0.key < $1.key }) {
      let groups = Dictionary(grouping: rungs, by: { $0.place.group }).sorted { $0.key < $1.key }
      for (_, same) in groups { findings += differences(among: same) }
    }
    return findings
  }

  private func differences(among rungs: [RungFacts]) -> [Finding] {
    let usable = rungs.filter { $0.content.contains { !$0.frames.isEmpty } }
    guard usable.count > 1 else { return [] }
    let comparisons = usable.map { rung in
      (rung: rung, likeness: usable.filter { $0.name != rung.name }.map { PictureComparison(rung, $0) })
    }
    // The rung that most others agree with is right.
    guard
      let reference = comparisons.max(by: {
        ($0.likeness.count(where: \.isSame), $1.rung.name) < (
          $1.likeness.count(where: \.isSame), $0.rung.name
        )
      })
    else { return [] }
    var findings: [Finding] = []
    for rung in usable where rung.name != reference.rung.name {
      let comparison = PictureComparison(reference.rung, rung)
      guard let verdict = comparison.verdict(thresholds) else { continue }
      let (kind, words, fix): (String, String, String)
      switch verdict {
      case .other(let likeness):
        kind = "other"
        words =
          "it shows other pictures than \(reference.rung.name) (correlation \(likeness.formatted(places: 2)) at \(comparison.instantCount.counted("instant")))"
        fix = "map the right input to this rung"
      case .shifted(let shift):
        kind = "shifted"
        words =
          "it shows the same \(abs(shift).seconds) \(shift > 0 ? "later" : "earlier") than \(reference.rung.name)"
        fix = "start the encoders of all rungs from the same frame"
      }
      var finding = Finding(.rungContentDiffers, kind, .error, rung: rung.name, words, fix: fix)
      finding.url = rung.url?.reelLocation
      finding.time = comparison.range
      finding.evidence = [
        ("correlation", .number((comparison.likeness(at: 0) * 1000).rounded() / 1000)),
        ("instants", .integer(comparison.instantCount)), ("reference", .text(reference.rung.name)),
      ]
      if case .shifted(let shift) = verdict {
        finding.evidence.append(("shift_ms", .milliseconds(shift)))
        finding.costs = [FindingCost(.switch, seconds: abs(shift))]
      }
      findings.append(finding)
    }
    return findings
  }
}

/// The pictures of two rungs at the same times.
private struct PictureComparison {
  enum Verdict {
    /// With the best correlation at any shift.
    case other(Double)
    /// In seconds: above 0, the second rung shows the same later.
    case shifted(Double)
  }

  /// The frames of the second rung, in order of time.
  private let others: [FrameFacts]
  /// The instants of the first one.
  private let instants: [FrameFacts]

  /// The most instants that are compared, and the least that say something.
  private static let instantLimit = 48
  private static let leastInstants = 6
  /// The largest shift that is looked for, and the step, in seconds.
  private static let largestShift = 1.6
  private static let step = 0.04
  /// A correlation at another time that is better by this much is not chance.
  private static let margin = 0.02

  init(_ first: RungFacts, _ second: RungFacts) {
    others = second.content.flatMap(\.frames).filter { !$0.isDamaged }.sorted { $0.time < $1.time }
    let candidates = first.content.flatMap(\.frames).filter { !$0.isDamaged && !Self.isFlat($0.luma) }
    let stride = max(1, candidates.count / Self.instantLimit)
    let others = others
    instants = candidates.enumerated().filter { $0.offset % stride == 0 }.map(\.element).filter { frame in
      Self.frame(at: frame.time + 0.001, in: others) != nil
    }
  }

  var instantCount: Int { instants.count }

  var range: ClosedRange<Double>? {
    guard let first = instants.first, let last = instants.last else { return nil }
    return first.time...max(first.time, last.time)
  }

  var isSame: Bool { instants.count >= Self.leastInstants && likeness(at: 0) > 0.9 }

  /// Returns nil if the rungs show the same, or too little is known.
  func verdict(_ thresholds: Thresholds) -> Verdict? {
    guard instants.count >= Self.leastInstants else { return nil }
    let straight = likeness(at: 0)
    if straight > 1 - Self.margin / 4 { return nil }
    var best = (shift: 0.0, likeness: straight)
    let steps = Int(Self.largestShift / Self.step)
    for step in -steps...steps where step != 0 {
      let shift = Double(step) * Self.step
      let likeness = likeness(at: shift)
      if likeness > best.likeness { best = (shift, likeness) }
    }
    let least = thresholds.normalized(.contentCorrelation)
    if best.likeness < least { return .other(best.likeness) }
    // The frames of a lower rate stay on show for longer, so that they seem to come later.
    let uncertainty = abs(Self.period(of: instants) - Self.period(of: others))
    if abs(best.shift) >= thresholds.normalized(.contentShift) + uncertainty,
      best.likeness - straight > Self.margin,
      best.likeness > least
    {
      return .shifted(best.shift)
    }
    return nil
  }

  /// The mean correlation with the frames that the second rung shows `shift` later.
  func likeness(at shift: Double) -> Double {
    var (sum, count) = (0.0, 0)
    for instant in instants {
      guard let other = Self.frame(at: instant.time + 0.001 + shift, in: others) else { continue }
      guard let likeness = Self.correlation(instant, other) else { continue }
      sum += likeness
      count += 1
    }
    return count >= Self.leastInstants ? sum / Double(count) : -1
  }

  /// Returns the frame that is on show.
  private static func frame(at time: Double, in frames: [FrameFacts]) -> FrameFacts? {
    let next = frames.indices.bisect { frames[$0].time > time }
    guard next > 0 else { return nil }
    let frame = frames[next - 1]
    return time < frame.time + max(frame.duration, 0.02) * 1.5 ? frame : nil
  }

  /// The usual duration of a frame in seconds.
  private static func period(of frames: [FrameFacts]) -> Double {
    let durations = frames.map(\.duration).sorted()
    return durations.isEmpty ? 0 : durations[durations.count / 2]
  }

  private static func isFlat(_ luma: [UInt8]) -> Bool {
    let (mean, deviation) = statistics(luma)
    return luma.isEmpty || deviation < 5 || mean < 2
  }

  private static func statistics(_ luma: [UInt8]) -> (mean: Double, deviation: Double) {
    let count = Double(max(1, luma.count))
    let mean = luma.reduce(0.0) { $0 + Double($1) } / count
    let square = luma.reduce(0.0) { $0 + (Double($1) - mean) * (Double($1) - mean) } / count
    return (mean, square.squareRoot())
  }

  /// Nil for frames that can't be compared.
  private static func correlation(_ a: FrameFacts, _ b: FrameFacts) -> Double? {
    let other = b.lumaSize == a.lumaSize ? b.luma : resized(b, to: a.lumaSize)
    guard a.luma.count == other.count, !a.luma.isEmpty else { return nil }
    let (meanA, deviationA) = statistics(a.luma)
    let (meanB, deviationB) = statistics(other)
    // A flat picture where the other has structure is another one.
    guard deviationB > 1 else { return 0 }
    var sum = 0.0
    for index in a.luma.indices { sum += (Double(a.luma[index]) - meanA) * (Double(other[index]) - meanB) }
    return sum / Double(a.luma.count) / (deviationA * deviationB)
  }

  /// Makes the aspect equal.
  private static func resized(_ frame: FrameFacts, to size: PixelSize) -> [UInt8] {
    let (width, height) = (frame.lumaSize.width, frame.lumaSize.height)
    guard width > 0, height > 0 else { return [] }
    return (0..<size.height).flatMap { row in
      (0..<size.width).map { column in
        let (y, x) = (
          min(height - 1, row * height / size.height), min(width - 1, column * width / size.width)
        )
        return frame.luma[y * width + x]
      }
    }
  }
}
