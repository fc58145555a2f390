internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Findings about single segments and about what lies between two of them: is each there, whole, decodable, entered by a
/// key frame, as long as it says, and in its place?
enum SegmentFindings {
  static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    periodGaps(in: facts, thresholds)
      + facts.rungs.flatMap { rung -> [Finding] in
        let judge = RungJudge(facts: facts, rung: rung, thresholds: thresholds)
        var findings = judge.dead()
        findings += judge.missing()
        findings += judge.truncated()
        findings += judge.damaged()
        findings += judge.notIndependent()
        findings += judge.breaks()
        findings += judge.declaredGaps()
        findings += judge.durations()
        return findings
      }
  }

  /// Time between the end of a period and the start of the next one, which no standard forbids (ISO/IEC 23009-1 §5.3.2.1):
  /// a note, like a gap of a SegmentTimeline.
  private static func periodGaps(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    let periods = facts.presentation?.periods ?? []
    return zip(periods, periods.dropFirst()).enumerated().compactMap { index, pair in
      guard let duration = pair.0.duration else { return nil }
      let (end, start) = ((pair.0.start + duration).seconds, pair.1.start.seconds)
      guard start - end > thresholds.normalized(.timestampGap) else { return nil }
      var found = Finding(
        .timestampBreak, "gap", .note, url: facts.url?.reelLocation,
        "between periods \(index + 1) and \(index + 2): the MPD leaves out \((start - end).seconds)",
        fix: "check why nothing is there: a period usually begins where the previous one ends")
      found.time = end...start
      found.evidence = [("declared_ms", .milliseconds(start - end))]
      found.costs = [FindingCost(.lost, seconds: start - end)]
      return found
    }
  }
}

/// Judges the segments of one rung.
private struct RungJudge {
  let facts: StreamFacts
  let rung: RungFacts
  let thresholds: Thresholds

  /// The samples in the order of the list.
  private let samples: [SegmentFacts]
  /// The start and the duration of each segment in seconds, by the manifest. A list makes its segments anew each time.
  private let times: [(start: Double, duration: Double)]

  init(facts: StreamFacts, rung: RungFacts, thresholds: Thresholds) {
    self.facts = facts
    self.rung = rung
    self.thresholds = thresholds
    samples = rung.samples.values.sorted { $0.index < $1.index }
    times = rung.segments.map { ($0.start.seconds, $0.duration.seconds) }
  }

  private func segment(_ index: Int) -> SegmentReference? {
    rung.segments.indices.contains(index) ? rung.segments[index] : nil
  }

  private func duration(_ index: Int) -> Double { segment(index)?.duration.seconds ?? 0 }

  /// How long a frame is on show. Where timestamps jump, the duration up to the next frame is none.
  private func shownDuration(_ frame: FrameFacts) -> Double {
    rung.segments.isEmpty ? frame.duration : min(frame.duration, shownDuration(frame.segment))
  }

  /// How long a segment is on show.
  private func shownDuration(_ index: Int) -> Double {
    guard let range = segment(index).map(rung.shownRange(of:)) else { return 0 }
    return range.upperBound - range.lowerBound
  }

  private func finding(
    _ id: FindingID, _ kind: String?, _ level: FindingLevel, at index: Int? = nil, _ summary: String,
    naming: Finding.Naming = .none, fix: String
  ) -> Finding {
    var finding = Finding(id, kind, level, rung: rung.name, summary, fix: fix)
    finding.naming = naming
    if let index, let segment = segment(index) {
      finding.segment = index + 1
      finding.url = segment.url.reelLocation
      finding.byte = segment.byteRange?.offset
      finding.time = rung.shownRange(of: segment)
    } else {
      finding.url = rung.url?.reelLocation
    }
    return finding
  }

  /// `segment 3 (6 s to 8 s)`.
  private func place(_ index: Int) -> String {
    guard let segment = segment(index) else { return "the file" }
    let range = rung.shownRange(of: segment)
    return "segment \(index + 1) (\(range.lowerBound.seconds) to \(range.upperBound.seconds))"
  }

  /// A place with what is found there. Reasons that name the file need no place.
  private func located(_ place: String, _ reason: String) -> (summary: String, naming: Finding.Naming) {
    reason.hasPrefix("the file ") ? (reason, .none) : ("\(place): \(reason)", .segmentFirst)
  }

  /// The most runs of segments that are named.
  private static let runLimit = 8

  /// `segment 3 (6 s to 8 s)`, `segments 3 to 5 (6 s to 12 s)`, or `segments 3, 5 and 7 to 9`.
  private func places(_ indices: [Int]) -> String {
    guard let first = indices.min(), let last = indices.max() else { return "no segment" }
    if first == last { return place(first) }
    let words = "segments \(Self.numbers(indices))"
    guard last - first == indices.count - 1, let start = segment(first), let end = segment(last) else {
      return words
    }
    let range = (rung.shownRange(of: start).lowerBound, rung.shownRange(of: end).upperBound)
    return "\(words) (\(range.0.seconds) to \(range.1.seconds))"
  }

  /// The numbers of segments, from 1, with runs of neighbours as one: `3, 5 and 7 to 9`.
  static func numbers(_ indices: [Int]) -> String {
    var runs: [ClosedRange<Int>] = []
    for index in indices.sorted() {
      if let last = runs.last, index == last.upperBound + 1 {
        runs[runs.count - 1] = last.lowerBound...index
      } else {
        runs.append(index...index)
      }
    }
    var parts = runs.prefix(runLimit).flatMap { run -> [String] in
      switch run.count {
      case 1: ["\(run.lowerBound + 1)"]
      case 2: ["\(run.lowerBound + 1)", "\(run.upperBound + 1)"]
      default: ["\(run.lowerBound + 1) to \(run.upperBound + 1)"]
      }
    }
    if runs.count > runLimit {
      parts.append((runs.dropFirst(runLimit).reduce(0) { $0 + $1.count }).counted("other"))
    }
    guard let last = parts.popLast() else { return "" }
    return parts.isEmpty ? last : "\(parts.joined(separator: ", ")) and \(last)"
  }

  // MARK: The whole rung

  func dead() -> [Finding] {
    if case .unlisted(let error) = rung.status {
      let isIndex = if case .index = rung.declared?.media { true } else { false }
      var found = finding(
        .rungDead, isIndex ? "index" : "playlist", .error,
        "\(isIndex ? "the index" : "the playlist") can't be read: \(error.reason)",
        fix: isIndex ? "write the index (sidx) again" : "publish the playlist, or remove the rung")
      found.url = error.location ?? found.url
      if case .line(let line, _) = error.place { found.line = line }
      return [found]
    }
    guard !rung.isExcused, !samples.isEmpty else { return [] }
    let failures = samples.compactMap(\.failure)
    if failures.count == samples.count, let first = failures.first {
      if failures.allSatisfy({ $0.isUnanswered && $0.part == .segment }) { return [unanswered(failures)] }
      if failures.allSatisfy({ $0.part == .initialization }) {
        return [dead("init", "the initialization", first)]
      }
      if failures.allSatisfy({ $0.part == .key }), failures.contains(where: { $0.reason != .unsupported }) {
        return [dead("key", "the key", first)]
      }
    }
    if case .cutOff = rung.status {
      // The last segments may not be decoded yet, and others may be playable.
      guard failures.count == samples.count, !failures.allSatisfy(isMissing) else { return [] }
    }
    guard !failures.contains(where: { $0.reason == .unsupported }),
      !samples.contains(where: { $0.isPartial && $0.failure == nil })
    else { return [] }
    let hasContent = rung.content.contains { content in
      rung.wantsVideo && !content.frames.isEmpty
        || (!rung.wantsVideo || hasOnlyAudio) && hasSound(content)
    }
    let wasRead = samples.contains {
      $0.byteCount > 0 || $0.failure?.reason == .broken || $0.video != nil || $0.audio != nil
    }
    guard !hasContent, wasRead || failures.count == samples.count else { return [] }
    let reason =
      rung.content.compactMap(\.failure).first ?? failures.first?.error
      ?? samples.compactMap(\.readingFault).first
    guard reason?.kind != .unsupported else { return [] }
    let isEncrypted = samples.allSatisfy { segment($0.index)?.encryption != nil }
    if isEncrypted, failures.allSatisfy({ $0.part == .segment && [.notMedia, .broken].contains($0.reason) }) {
      var found = finding(
        .rungDead, "key", .error, at: samples.first?.index,
        "the key does not decrypt the segments" + (reason.map { ": \($0.reason)" } ?? ""),
        fix: "publish the key that they were encrypted with")
      found.url = reason?.location ?? found.url
      return [found]
    }
    let what = rung.wantsVideo ? "no frame" : "no sound"
    let isAbsent = !failures.isEmpty && failures.allSatisfy { $0.reason == .status }
    var found = finding(
      .rungDead, "no-frame", .error, at: samples.first?.index,
      "\(what) can be decoded" + (reason.map { ": \($0.reason)" } ?? ""),
      fix: isAbsent
        ? "upload its segments again" : "encode the \(rung.segments.isEmpty ? "file" : "rung") again")
    found.url = reason?.location ?? found.url
    return [found]
  }

  /// Some packets of other data can be decoded as audio by chance.
  private func hasSound(_ content: ContentFacts) -> Bool {
    content.sound.reduce(0) { $0 + $1.duration } > content.rejectedAudioDuration / 10
  }

  private func unanswered(_ failures: [SegmentFailure]) -> Finding {
    let first = failures.first?.error
    let waited = failures.compactMap(\.waited).reduce(0, +)
    let time = Duration.seconds(waited).text
    let what =
      failures.count == 1
      ? "the segment that was asked for did not arrive in \(time)"
      : "none of the \(failures.count) segments that were asked for arrived in \(time)"
    var found = finding(
      .rungDead, "no-answer", .error, at: samples.first?.index,
      what + (first.map { ": \($0.reason)" } ?? ""), naming: failures.count == 1 ? .none : .segment,
      fix: "check why the server does not deliver them")
    found.url = first?.location ?? found.url
    found.evidence = [("segments", .integer(failures.count)), ("waited_ms", .milliseconds(waited))]
    return found
  }

  private var hasOnlyAudio: Bool {
    samples.allSatisfy { $0.video == nil } && samples.contains { $0.audio != nil }
  }

  private func dead(_ kind: String, _ what: String, _ failure: SegmentFailure) -> Finding {
    var found = finding(
      .rungDead, kind, .error, "\(what) can't be read: \(failure.error.reason)",
      fix: "publish \(what) where the manifest names it")
    found.url = failure.error.location ?? found.url
    return found
  }

  // MARK: Missing and cut off

  /// True for a segment that a server did not deliver, or that has no media: `missing()` names it.
  private func isMissing(_ failure: SegmentFailure) -> Bool {
    failure.part == .segment && [.status, .empty, .notMedia].contains(failure.reason)
  }

  func missing() -> [Finding] {
    var empty: [SegmentFacts] = []
    var notMedia: [SegmentFacts] = []
    var refused: [SegmentFacts] = []
    var unanswered: [SegmentFacts] = []
    let parts = Set(samples.map { $0.failure?.part })
    for sample in samples {
      guard let failure = sample.failure, failure.part == .segment || parts.count > 1,
        !isExpected(sample, failure)
      else { continue }
      switch failure.reason {
      case .status where failure.isUnanswered: unanswered.append(sample)
      case .status: refused.append(sample)
      case .empty: empty.append(sample)
      case .notMedia: notMedia.append(sample)
      case .broken, .unsupported: break
      }
    }
    for (index, size) in rung.sizes.enumerated() where size == 0 && rung.samples[index]?.failure == nil {
      var sample = SegmentFacts(index: index)
      sample.failure = SegmentFailure(.segment, .empty, ReelError(.badMedia, "the segment is empty"))
      empty.append(sample)
    }
    let groups = [
      ("empty", empty), ("not-media", notMedia), ("status", refused), ("status", unanswered),
    ]
    return groups.compactMap { kind, samples in
      guard let first = samples.first, let failure = first.failure else { return nil }
      let lost = samples.reduce(0) { $0 + shownDuration($1.index) }
      var found = finding(
        .segmentMissing, kind, .error, at: first.index,
        "\(self.places(samples.map(\.index))): \(failure.error.reason)", naming: .segmentFirst,
        fix: "upload it again, mark it with EXT-X-GAP, or shorten the list")
      if facts.format == "dash" { found.fix = "upload it again, or shorten the list" }
      found.url = failure.error.location ?? found.url
      found.evidence = [("count", .integer(samples.count))]
      if let status = failure.error.status { found.evidence.append(("status", .integer(status))) }
      if lost > 0 { found.costs = [FindingCost(.lost, lost * 1000)] }
      return found
    }
  }

  /// True for what a player does not ask for, or not at this time.
  private func isExpected(_ sample: SegmentFacts, _ failure: SegmentFailure) -> Bool {
    guard failure.reason == .status, let segment = segment(sample.index) else { return false }
    if segment.isGap { return true }
    let isLast = sample.index == rung.segments.count - 1
    // The number of segments is rounded up from their duration.
    if facts.format == "dash", isLast, shownDuration(sample.index) < 0.1 { return true }
    // It left the window, or its time has not come.
    return facts.isLive && (sample.index < 2 || facts.format == "dash" && isLast)
  }

  func truncated() -> [Finding] {
    let cut = samples.filter { sample in
      guard !sample.isPartial, sample.failure == nil else { return false }
      // The newest segment may still be written.
      guard !facts.isLive || sample.index < rung.segments.count - 1 else { return false }
      // A range that ends a few bytes behind the end of its file cuts nothing off.
      return sample.truncation != nil
        || sample.promisedByteCount.map { $0 >= sample.byteCount + Self.leastMissingByteCount } ?? false
    }
    guard let first = cut.first else { return [] }
    var words = first.truncation ?? "fewer bytes came than the manifest says"
    if let promised = first.promisedByteCount, promised > first.byteCount {
      words = "\(first.byteCount) of \(promised) bytes"
    }
    let (summary, naming) = located(places(cut.map(\.index)), words)
    var found = finding(
      .segmentTruncated, nil, .error, at: first.index, summary, naming: naming,
      fix: "upload it again; check whether the origin closes connections early")
    found.evidence = [("count", .integer(cut.count)), ("bytes", .integer(first.byteCount))]
    if let promised = first.promisedByteCount, promised > first.byteCount {
      found.evidence.append(("promised_bytes", .integer(promised)))
    }
    let lost = cut.reduce(0) { $0 + lostDuration($1) }
    if lost > 0 { found.costs = [FindingCost(.lost, lost * 1000)] }
    return [found]
  }

  /// A packet of MPEG-TS.
  private static let leastMissingByteCount: Int64 = 188

  private func lostDuration(_ sample: SegmentFacts) -> Double {
    guard let track = sample.video ?? sample.audio, let start = track.start, let end = track.end else {
      return shownDuration(sample.index)
    }
    return max(0, shownDuration(sample.index) - (end - start))
  }

  private func isBlamed(_ sample: SegmentFacts) -> Bool { sample.truncation != nil || sample.failure != nil }

  // MARK: Decoding

  func damaged() -> [Finding] {
    var (frames, duration): (Int, Double) = (0, 0)
    var first: (time: Double, segment: Int)?
    var segments: Set<Int> = []
    var rejected = (count: 0, duration: 0.0)
    func add(_ count: Int, at time: Double, lasting length: Double, in segment: Int) {
      guard !(rung.samples[segment].map(isBlamed) ?? false) else { return }
      frames += count
      duration += length
      segments.insert(segment)
      if first.map({ time < $0.time }) ?? true { first = (time, segment) }
    }
    let isAllDamaged = rung.content.allSatisfy { $0.frames.allSatisfy(\.isDamaged) }
    for content in rung.content {
      let isClean = rung.samples[content.segments.lowerBound]?.video?.entry == .idr
      // Without a clean start, frames miss references up to the first that needs none, if there is one.
      let counted = isClean || isAllDamaged ? content.frames[...] : content.frames.drop { $0.isDamaged }
      for frame in counted where frame.isDamaged {
        add(1, at: frame.time, lasting: shownDuration(frame), in: frame.segment)
      }
      // After a missing segment, the first frame may lack its beginning.
      let start = content.segments.lowerBound
      let tolerated = rung.samples[start - 1]?.failure != nil ? 1 : 0
      for part in content.undecodable where part.unitCount > tolerated || part.segment != start {
        add(part.unitCount, at: part.time, lasting: part.duration, in: part.segment)
      }
      guard content.rejectedAudioCount > tolerated else { continue }
      rejected.count += content.rejectedAudioCount
      rejected.duration += content.rejectedAudioDuration
    }
    let faults = samples.filter { sample in
      if sample.failure?.part == .segment, sample.failure?.reason == .broken { return true }
      // A segment that states no duration promises no media.
      if sample.isWithoutMedia { return rung.segments.isEmpty || self.duration(sample.index) > 0 }
      return sample.readingFault?.kind == .badMedia && !isBlamed(sample)
    }
    var findings: [Finding] = []
    if let first {
      let isShort = duration < thresholds.normalized(.decodeErrorShort) && faults.isEmpty
      var found = finding(
        .decodeError, nil, isShort ? .warning : .error, at: first.segment,
        "\(segments.count > 1 ? "\(places(Array(segments))): " : "")\(frames.counted("frame")) from \(first.time.seconds) on \(frames == 1 ? "is" : "are") damaged (\(duration.seconds))",
        naming: segments.count > 1 ? .segmentFirst : .none,
        fix: rung.segments.isEmpty
          ? "encode it again, or upload it again"
          : "encode segment\(segments.count > 1 ? "s" : "") \(Self.numbers(Array(segments))) again, or upload \(segments.count > 1 ? "them" : "it") again"
      )
      // The part in the first of them.
      let end = min(
        first.time + duration, segment(first.segment).map { rung.shownRange(of: $0).upperBound } ?? .infinity)
      found.time = first.time...max(first.time, end)
      found.evidence = [("frames", .integer(frames)), ("duration_ms", .milliseconds(duration))]
      found.costs = [FindingCost(.lost, seconds: duration)]
      findings.append(found)
    } else if let fault = faults.first,
      case let error = fault.failure?.error ?? fault.readingFault ?? Self.noMedia
    {
      let (summary, naming) = located(place(fault.index), error.reason)
      findings.append(
        finding(
          .decodeError, nil, .error, at: fault.index, summary, naming: naming,
          fix: "package it again, or upload it again"))
    } else if rejected.count > 0 {
      let index = rung.content.lazy.compactMap { $0.rejectedAudioSegments.min() }.min()
      var found = finding(
        .decodeError, nil,
        rejected.duration < thresholds.normalized(.decodeErrorShort) ? .warning : .error,
        at: index,
        "\(rejected.count.counted("packet")) of audio can't be decoded (\(rejected.duration.seconds))",
        fix: "encode the audio again")
      found.evidence = [
        ("packets", .integer(rejected.count)),
        ("duration_ms", .milliseconds(rejected.duration)),
      ]
      found.costs = [FindingCost(.lost, seconds: rejected.duration)]
      findings.append(found)
    }
    return findings
  }

  private static let noMedia = ReelError(.badMedia, "there is no media in its bytes")

  // MARK: Entry

  func notIndependent() -> [Finding] {
    guard !rung.isExcused else { return [] }
    let usable = samples.filter { $0.video?.entry != nil && !isBlamed($0) }
    let noKey = usable.filter { $0.video?.entry == AccessUnitEntry.none }
    let noSets = usable.filter {
      $0.video?.entry != AccessUnitEntry.none && $0.video?.hasParameterSets == false
    }
    let isClaimed =
      facts.format == "dash"
      ? rung.declared?.startWithSAP == 1 : rung.declared?.hasIndependentSegments ?? false
    let open = isClaimed ? usable.filter { ($0.video?.leadingCount ?? 0) > 0 } : []
    return [
      notIndependent(
        "no-key-frame", noKey, { "no key frame at the beginning" + self.firstEntry(of: $0) },
        fix: "cut segments at key frames: fixed GOPs with -g, -sc_threshold 0, or -force_key_frames"),
      notIndependent(
        "parameter-sets", noSets, { _ in "no SPS and PPS before the first frame" },
        fix: "repeat the parameter sets before each key frame (-bsf:v dump_extra)"),
      notIndependent(
        "open-gop", open,
        {
          let count = $0.video?.leadingCount ?? 0
          return
            "\(count.counted("frame")) at the beginning \(count == 1 ? "needs" : "need") the previous segment, and segments are declared independent"
        },
        fix: "encode closed GOPs (open-gop=0), or do not declare the segments independent"),
    ].compactMap { $0 }
  }

  private func firstEntry(of sample: SegmentFacts) -> String {
    guard let video = sample.video else { return "" }
    guard let index = video.firstEntryIndex else { return "; segment \(sample.index + 1) has none" }
    return "; the first one of segment \(sample.index + 1) is frame \(index + 1)"
  }

  private func notIndependent(
    _ kind: String, _ found: [SegmentFacts], _ words: (SegmentFacts) -> String, fix: String
  ) -> Finding? {
    guard let first = found.first else { return nil }
    let isFirst = first.index == (rung.segments.firstIndex { !$0.isGap } ?? 0)
    var finding = finding(
      .segmentNotIndependent, kind, isFirst ? .error : .warning, at: first.index,
      "\(places(found.map(\.index))): \(words(first))", naming: .segmentFirst, fix: fix)
    finding.evidence = [("count", .integer(found.count)), ("read", .integer(samples.count))]
    if let video = first.video, let entry = video.firstEntryIndex, entry > 0 {
      finding.evidence.append(("first_key_frame", .integer(entry)))
      let frame = entry < video.samples.count ? video.samples[entry].start - (video.start ?? 0) : 0
      if frame > 0 { finding.costs = [FindingCost(isFirst ? .start : .switch, seconds: frame)] }
    }
    return finding
  }

  // MARK: Timestamps

  /// A difference between what follows and what came before.
  private struct Break {
    var index: Int
    var seconds: Double
    var track: String
    var isWithin = false
  }

  func breaks() -> [Finding] {
    var breaks: [Break] = []
    for sample in samples where !isBlamed(sample) {
      if let audio = sample.audio { breaks += holes(in: audio, at: sample.index) }
      guard let next = rung.samples[sample.index + 1], !isBlamed(next), !sample.isPartial,
        sample.hasTimestamps, next.hasTimestamps,
        let own = segment(sample.index), let other = segment(next.index),
        own.discontinuity == other.discontinuity
      else { continue }
      for (track, before, after) in [
        ("video", sample.video, next.video), ("audio", sample.audio, next.audio),
      ] {
        guard let end = before?.end, let start = after?.start else { continue }
        var gap = StreamFacts.difference(start, end)
        if let end = before?.decodingEnd, let start = after?.decodingStart {
          let decodingGap = StreamFacts.difference(start, end)
          if abs(decodingGap) < abs(gap) { gap = decodingGap }
        }
        // A SegmentTimeline may have gaps (ISO/IEC 23009-1 §5.3.9.6): see `declaredGaps`.
        let declared = (other.start - own.start - own.duration).seconds
        if facts.format == "dash", declared > 0, gap > 0 { gap -= declared }
        // With a variable frame rate, the muxer does not know how long the last frame lasts.
        let known = max(0, Self.longestStep(before), Self.longestStep(after))
        if abs(gap) > thresholds.normalized(.timestampGap) + known {
          breaks.append(Break(index: sample.index, seconds: gap, track: track))
        }
      }
    }
    var findings: [Finding] = []
    for (kind, found) in Dictionary(grouping: breaks, by: kind).sorted(by: { $0.key < $1.key }) {
      guard let worst = found.max(by: { abs($0.seconds) < abs($1.seconds) }) else { continue }
      findings.append(describe(kind, worst, count: Set(found.map(\.index)).count))
    }
    return findings + lateStart() + withoutTimestamps()
  }

  /// Media that the manifest itself leaves out: between two segments of a SegmentTimeline, or with EXT-X-GAP. No player
  /// waits for it, so it breaks no rule.
  func declaredGaps() -> [Finding] {
    let isDASH = facts.format == "dash"
    let gaps = isDASH ? gapsBetweenSegments : markedGaps
    guard let first = gaps.first else { return [] }
    let length = first.range.upperBound - first.range.lowerBound
    let lost = gaps.reduce(0) { $0 + $1.range.upperBound - $1.range.lowerBound }
    let more = gaps.count > 1 ? ", the first of \(gaps.count) gaps" : ""
    let words =
      isDASH
      ? "between segments \(first.index + 1) and \(first.index + 2): the SegmentTimeline leaves out \(length.seconds)"
      : "from segment \(first.index + 1) on: EXT-X-GAP leaves out \(length.seconds)"
    var found = finding(
      .timestampBreak, "gap", .note, at: first.index, words + more, naming: .segment,
      fix: "check why the encoder or the packager lost it")
    found.time = first.range
    found.evidence = [("declared_ms", .milliseconds(lost)), ("count", .integer(gaps.count))]
    found.costs = [FindingCost(.lost, seconds: lost)]
    return [found]
  }

  private typealias Gap = (index: Int, range: ClosedRange<Double>)

  private var gapsBetweenSegments: [Gap] {
    let ranges = times.map { rung.shownRange(from: $0.start, lasting: $0.duration) }
    return zip(ranges, ranges.dropFirst()).enumerated().compactMap { index, pair in
      let (end, start) = (pair.0.upperBound, pair.1.lowerBound)
      return start - end > thresholds.normalized(.timestampGap) ? (index, end...start) : nil
    }
  }

  /// Neighbouring segments that are marked with EXT-X-GAP are one gap.
  private var markedGaps: [Gap] {
    var gaps: [Gap] = []
    var isOpen = false
    for (index, segment) in rung.segments.enumerated() {
      defer { isOpen = segment.isGap }
      guard segment.isGap else { continue }
      let (start, end) = (segment.start.seconds, (segment.start + max(.zero, segment.duration)).seconds)
      if isOpen, let last = gaps.popLast() {
        gaps.append((last.index, last.range.lowerBound...max(last.range.lowerBound, end)))
      } else {
        gaps.append((index, start...end))
      }
    }
    return gaps
  }

  /// Packed audio must state its time, and players need not play it otherwise.
  private func withoutTimestamps() -> [Finding] {
    let found = samples.filter { !$0.hasTimestamps && !isBlamed($0) }
    guard let first = found.first else { return [] }
    var finding = finding(
      .timestampBreak, "start", .warning, at: first.index,
      "\(places(found.map(\.index))): packed audio without a timestamp", naming: .segmentFirst,
      fix: "begin each segment with the ID3 tag of RFC 8216 §3.4")
    finding.evidence = [("count", .integer(found.count))]
    return [finding]
  }

  /// How much longer the longest step from one frame to the next is than the usual one.
  private static func longestStep(_ track: TrackFacts?) -> Double {
    guard let track, track.stream.kind == .video, track.samples.count > 2 else { return 0 }
    let steps = zip(track.samples, track.samples.dropFirst()).map { $1.start - $0.start }.sorted()
    return steps[steps.count - 1] - steps[steps.count / 2]
  }

  private func kind(_ found: Break) -> String {
    if abs(found.seconds) >= thresholds.normalized(.timestampJump) { return "jump" }
    return found.seconds > 0 ? "gap" : "overlap"
  }

  private func describe(_ kind: String, _ worst: Break, count: Int) -> Finding {
    let amount = abs(worst.seconds)
    let level: FindingLevel = amount > thresholds.normalized(.timestampGapError) ? .error : .warning
    let place =
      worst.isWithin
      ? "in \(self.place(worst.index))" : "between segments \(worst.index + 1) and \(worst.index + 2)"
    let isHLS = facts.format == "hls"
    let words =
      switch kind {
      case "gap": "\(amount.seconds) without \(worst.track) that the manifest does not declare"
      case "overlap": "\(worst.track) overlaps by \(amount.seconds)"
      default:
        "the timestamps of \(worst.track) jump by \(worst.seconds.seconds), which the manifest does not declare"
      }
    let more = count > 1 ? ", the largest of \(count)" : ""
    var found = finding(
      .timestampBreak, kind, level, at: worst.index, "\(place): \(words)\(more)", naming: .segment,
      fix: worst.isWithin
        ? "check whether the encoder lost its input"
        : isHLS
          ? "correct the packager's clock, or put EXT-X-DISCONTINUITY before segment \(worst.index + 2)"
          : "correct the packager's clock (baseMediaDecodeTime), or begin another period")
    found.evidence = [
      ("difference_ms", .milliseconds(worst.seconds)), ("track", .text(worst.track)),
      ("count", .integer(count)),
    ]
    // What a jump costs depends on the player: many go on at once.
    if kind == "gap" { found.costs = [FindingCost(.stall, seconds: amount)] }
    if kind == "overlap" { found.costs = [FindingCost(.lost, seconds: amount)] }
    return found
  }

  /// Holes between the frames of audio, which all have a duration.
  private func holes(in audio: TrackFacts, at index: Int) -> [Break] {
    var breaks: [Break] = []
    for (before, after) in zip(audio.samples, audio.samples.dropFirst()) {
      let gap = StreamFacts.difference(after.start, before.end)
      if gap > thresholds.normalized(.timestampGap) {
        breaks.append(Break(index: index, seconds: gap, track: "audio", isWithin: true))
      }
    }
    return breaks
  }

  /// DASH: media that begins elsewhere than its period.
  private func lateStart() -> [Finding] {
    guard facts.format == "dash", !facts.isLive, let first = samples.first, first.index == 0,
      !isBlamed(first),
      let segment = segment(0), let offset = segment.timestampOffset?.seconds,
      let start = first.video?.start ?? first.audio?.start
    else { return [] }
    let late = StreamFacts.difference(start + offset, segment.start.seconds)
    let early = max(thresholds.normalized(.timestampGapError), segment.duration.seconds / 2)
    guard late > thresholds.normalized(.timestampGap) || late < -early else { return [] }
    let isError = abs(late) > thresholds.normalized(.timestampGapError)
    var found = finding(
      .timestampBreak, "start", isError ? .error : .warning, at: 0,
      "the media begins \(abs(late).seconds) \(late > 0 ? "after" : "before") its period",
      fix: "write presentationTimeOffset or baseMediaDecodeTime so that they agree")
    found.evidence = [("difference_ms", .milliseconds(late))]
    found.costs = [FindingCost(late > 0 ? .stall : .lost, seconds: abs(late))]
    return [found]
  }

  // MARK: Durations

  func durations() -> [Finding] {
    guard !rung.segments.isEmpty, facts.format != "" else { return [] }
    let declared = times.dropLast().map(\.duration)
    let isConstant = declared.count > 1 && declared.allSatisfy { abs($0 - declared[0]) < 0.000_5 }
    let isContiguous = zip(times, times.dropFirst()).allSatisfy { segment, next in
      abs(segment.start + segment.duration - next.start) < 0.02
    }
    if facts.format == "dash", isConstant, isContiguous { return drift() }
    // Playlists of version 2 and less have whole seconds (RFC 8216 §4.3.2.1).
    let isRounded = rung.roundsDurations && declared.allSatisfy { $0 == $0.rounded() }
    var found: [Mismatch] = []
    for sample in samples
    where sample.index < rung.segments.count - 1 && !isBlamed(sample) && !sample.isPartial {
      guard let actual = actualDurations(of: sample) else { continue }
      let stated = duration(sample.index)
      guard let best = actual.min(by: { abs($0 - stated) < abs($1 - stated) }) else { continue }
      let difference = best - stated
      guard abs(difference) > (isRounded ? 0.5 : 0) + thresholds.normalized(.durationMismatch) else {
        continue
      }
      found.append(Mismatch(index: sample.index, stated: stated, actual: best))
    }
    return mismatch(found)
  }

  /// A segment whose duration is not the stated one.
  private struct Mismatch {
    var index: Int
    var stated: Double
    var actual: Double

    var difference: Double { actual - stated }
  }

  /// How long a segment is: up to the next one, and by its own samples.
  private func actualDurations(of sample: SegmentFacts) -> [Double]? {
    guard let track = sample.video ?? sample.audio, let start = entry(of: track), let end = track.end else {
      return nil
    }
    var durations = [StreamFacts.difference(end, start)]
    if let first = track.start { durations.append(StreamFacts.difference(end, first)) }
    // Packagers may count samples that an edit list cuts off, such as the priming of audio. They may also cut by
    // decoding times, which differ from those of presentation if no key frame begins a segment.
    if let first = track.decodingStart, let last = track.decodingEnd {
      durations.append(StreamFacts.difference(last, first))
    }
    if let next = rung.samples[sample.index + 1], !isBlamed(next),
      segment(next.index)?.discontinuity == segment(sample.index)?.discontinuity,
      let nextTrack = sample.video == nil ? next.audio : next.video, let nextStart = entry(of: nextTrack)
    {
      durations.append(StreamFacts.difference(nextStart, start))
    }
    return durations
  }

  /// The time of the first key frame: open GOPs count from one to the next.
  private func entry(of track: TrackFacts) -> Double? { track.firstEntryTime ?? track.start }

  /// Segments of a stated duration each may be longer and shorter, but are in their places.
  private func drift() -> [Finding] {
    guard let sample = samples.last(where: { !isBlamed($0) && !$0.isPartial && $0.index > 0 }),
      let first = samples.first(where: { !isBlamed($0) }), first.index < sample.index,
      let start = (sample.video ?? sample.audio)?.start, let origin = (first.video ?? first.audio)?.start
    else { return [] }
    let stated = rung.segments[sample.index].start.seconds - rung.segments[first.index].start.seconds
    let actual = StreamFacts.difference(start, origin)
    let length = duration(first.index)
    guard abs(actual - stated) > max(length / 2, thresholds.normalized(.durationMismatchError)) else {
      return []
    }
    let count = sample.index - first.index
    let mean = Mismatch(index: first.index, stated: stated / Double(count), actual: actual / Double(count))
    return [
      mismatch(
        mean, count: count,
        count == 1
          ? "\(place(first.index)) says \(mean.stated.seconds) and is \(mean.actual.seconds) long"
          : "segments \(Self.numbers(Array(first.index..<sample.index))) say \(mean.stated.seconds) each and are \(mean.actual.seconds) long on average",
        fix: "write the real @duration: \(mean.actual.seconds)")
    ]
  }

  /// The most durations that are named.
  private static let durationLimit = 5

  private func mismatch(_ found: [Mismatch]) -> [Finding] {
    guard let worst = found.max(by: { abs($0.difference) < abs($1.difference) }) else { return [] }
    let isHLS = facts.format == "hls"
    var words = "\(place(worst.index)) says \(worst.stated.seconds) and is \(worst.actual.seconds) long"
    if found.count > 1 {
      words =
        "segments \(Self.numbers(found.map(\.index))) (\(found.count) of the \(samples.count) that were read) have wrong durations: segment \(worst.index + 1) says \(worst.stated.seconds) and is \(worst.actual.seconds) long"
    }
    let isAlike = found.allSatisfy { abs($0.actual - worst.actual) < 0.000_5 }
    var real = found.prefix(isAlike ? 1 : Self.durationLimit).map { item in
      (isHLS ? "#EXTINF:\(item.actual.formatted(places: 3))," : item.actual.seconds)
        + (isAlike ? "" : " for segment \(item.index + 1)")
    }
    if !isAlike, found.count > real.count { real.append("and so on") }
    var finding = mismatch(
      worst, count: found.count, words,
      fix:
        "write the real duration\(found.count > 1 ? "s" : ""): \(real.joined(separator: isHLS ? " " : ", "))"
    )
    if found.count > 1 { finding.evidence.append(("segments", .text(Self.numbers(found.map(\.index))))) }
    return [finding]
  }

  private func mismatch(_ worst: Mismatch, count: Int, _ words: String, fix: String) -> Finding {
    let isError = abs(worst.difference) > thresholds.normalized(.durationMismatchError)
    var found = finding(
      .segmentDurationMismatch, nil, isError ? .error : .warning, at: worst.index, words,
      naming: .segmentFirst, fix: fix)
    found.evidence = [
      ("declared_ms", .milliseconds(worst.stated)),
      ("measured_ms", .milliseconds(worst.actual)),
      ("count", .integer(count)),
    ]
    return found
  }
}

/// The kinds of starting points of decoding.
typealias AccessUnitEntry = OpeningPicture.Entry

extension Double {
  /// The time with its unit, to the millisecond: `0.8 s`, `12 s`.
  var seconds: String { "\(formatted(places: 3)) s" }
}

extension URL {
  /// The path of a file, or the URL as a text.
  var reelLocation: String { isFileURL ? path : absoluteString }
}

extension SegmentFacts {
  /// True if it has bytes, and no frame of any track.
  fileprivate var isWithoutMedia: Bool {
    failure == nil && !isPartial && truncation == nil && readingFault == nil && byteCount > 0
      && (video?.byteCount ?? 0) == 0 && (audio?.byteCount ?? 0) == 0
      && video?.hiddenSampleCount ?? 0 == 0
  }
}
