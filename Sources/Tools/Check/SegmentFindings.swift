internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Findings about single segments and about what lies between two of them: is each there, whole, decodable, entered by a
/// key frame, as long as it says, and in its place?
enum SegmentFindings {
  static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    facts.rungs.flatMap { rung -> [Finding] in
      let judge = RungJudge(facts: facts, rung: rung, thresholds: thresholds)
      var findings = judge.dead()
      findings += judge.missing()
      findings += judge.truncated()
      findings += judge.damaged()
      findings += judge.notIndependent()
      findings += judge.breaks()
      findings += judge.durations()
      return findings
    }
  }
}

/// Judges the segments of one rung.
private struct RungJudge {
  let facts: StreamFacts
  let rung: RungFacts
  let thresholds: Thresholds

  /// The samples in the order of the list.
  private var samples: [SegmentFacts] { rung.samples.values.sorted { $0.index < $1.index } }

  private func segment(_ index: Int) -> SegmentReference? {
    rung.segments.indices.contains(index) ? rung.segments[index] : nil
  }

  private func duration(_ index: Int) -> Double { segment(index)?.duration.seconds ?? 0 }

  private func finding(
    _ id: FindingID, _ kind: String?, _ level: FindingLevel, at index: Int? = nil, _ summary: String,
    fix: String
  ) -> Finding {
    var finding = Finding(id, kind, level, rung: facts.rungs.count > 1 ? rung.name : nil, summary, fix: fix)
    if let index, let segment = segment(index) {
      finding.segment = index + 1
      finding.url = segment.url.reelLocation
      finding.byte = segment.byteRange?.offset
      let start = segment.start.seconds
      finding.time = start...(start + max(0, segment.duration.seconds))
    } else {
      finding.url = rung.url?.reelLocation
    }
    return finding
  }

  /// `segment 3 (6 s to 8 s)`.
  private func place(_ index: Int) -> String {
    guard let segment = segment(index) else { return "the file" }
    let start = segment.start.seconds
    return "segment \(index + 1) (\(start.seconds) to \((start + segment.duration.seconds).seconds))"
  }

  /// `segment 3 (6 s to 8 s) and 2 others`.
  private func places(_ indices: [Int]) -> String {
    guard let first = indices.first else { return "no segment" }
    return indices.count == 1 ? place(first) : "\(place(first)) and \((indices.count - 1).counted("other"))"
  }

  // MARK: The whole rung

  func dead() -> [Finding] {
    if case .unlisted(let error) = rung.status {
      let isIndex = if case .index = rung.declared?.media { true } else { false }
      var found = finding(
        .rungDead, isIndex ? "index" : "playlist", .error,
        "\(isIndex ? "the index" : "the playlist") can't be read: \(error.reason)",
        fix: isIndex ? "write the index anew" : "publish the playlist, or remove the rung")
      found.url = error.location ?? found.url
      if case .line(let line, _) = error.place { found.line = line }
      return [found]
    }
    guard !rung.isExcused, !samples.isEmpty else { return [] }
    let failures = samples.compactMap(\.failure)
    if failures.count == samples.count, let first = failures.first {
      if failures.allSatisfy({ $0.part == .initialization }) {
        return [dead("init", "the initialization", first)]
      }
      if failures.allSatisfy({ $0.part == .key }), failures.contains(where: { $0.reason != .unsupported }) {
        return [dead("key", "the key", first)]
      }
    }
    guard !failures.contains(where: { $0.reason == .unsupported }),
      !samples.contains(where: { $0.isPartial && $0.failure == nil })
    else { return [] }
    let hasContent =
      rung.wantsVideo
      ? rung.content.contains { !$0.frames.isEmpty } || hasOnlyAudio
      : rung.content.contains { !$0.sound.isEmpty }
    let wasRead = samples.contains { $0.byteCount > 0 || $0.failure?.reason == .broken || $0.video != nil }
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
      fix: isAbsent ? "upload its segments again" : "encode the rung again")
    found.url = reason?.location ?? found.url
    return [found]
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

  func missing() -> [Finding] {
    guard !rung.isExcused else { return [] }
    var places: [String: [SegmentFacts]] = [:]
    for sample in samples {
      guard let failure = sample.failure, failure.part == .segment || !allFail(failure.part),
        !isExpected(sample, failure)
      else { continue }
      switch failure.reason {
      case .status: places["status", default: []].append(sample)
      case .empty: places["empty", default: []].append(sample)
      case .notMedia: places["not-media", default: []].append(sample)
      case .broken, .unsupported: break
      }
    }
    for (index, size) in rung.sizes.enumerated() where size == 0 && rung.samples[index]?.failure == nil {
      var sample = SegmentFacts(index: index)
      sample.failure = SegmentFailure(.segment, .empty, ReelError(.badMedia, "the segment is empty"))
      places["empty", default: []].append(sample)
    }
    return places.sorted { $0.key < $1.key }.compactMap { kind, samples in
      guard let first = samples.first, let failure = first.failure else { return nil }
      let lost = samples.reduce(0) { $0 + duration($1.index) }
      var found = finding(
        .segmentMissing, kind, .error, at: first.index,
        "\(self.places(samples.map(\.index))): \(failure.error.reason)",
        fix: "upload it again, mark it with EXT-X-GAP, or shorten the list")
      if facts.format == "dash" { found.fix = "upload it again, or shorten the list" }
      found.url = failure.error.location ?? found.url
      found.evidence = [("count", .number(Double(samples.count)))]
      if let status = failure.error.status { found.evidence.append(("status", .number(Double(status)))) }
      if lost > 0 { found.costs = [FindingCost(.lost, lost * 1000)] }
      return found
    }
  }

  private func allFail(_ part: SegmentFailure.Part) -> Bool {
    samples.allSatisfy { $0.failure?.part == part }
  }

  /// True for what a player does not ask for, or not at this time.
  private func isExpected(_ sample: SegmentFacts, _ failure: SegmentFailure) -> Bool {
    guard failure.reason == .status, let segment = segment(sample.index) else { return false }
    if segment.isGap { return true }
    let isLast = sample.index == rung.segments.count - 1
    // The number of segments is rounded up from their duration.
    if facts.format == "dash", isLast, segment.duration.seconds < 0.1 { return true }
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
    var found = finding(
      .segmentTruncated, nil, .error, at: first.index, "\(places(cut.map(\.index))): \(words)",
      fix: "upload it again; see whether the origin closes connections early")
    found.evidence = [("count", .number(Double(cut.count))), ("bytes", .number(Double(first.byteCount)))]
    if let promised = first.promisedByteCount {
      found.evidence.append(("promised_bytes", .number(Double(promised))))
    }
    let lost = cut.reduce(0) { $0 + lostDuration($1) }
    if lost > 0 { found.costs = [FindingCost(.lost, lost * 1000)] }
    return [found]
  }

  /// A packet of MPEG-TS.
  private static let leastMissingByteCount: Int64 = 188

  private func lostDuration(_ sample: SegmentFacts) -> Double {
    guard let track = sample.video ?? sample.audio, let start = track.start, let end = track.end else {
      return duration(sample.index)
    }
    return max(0, duration(sample.index) - (end - start))
  }

  private func isBlamed(_ sample: SegmentFacts) -> Bool { sample.truncation != nil || sample.failure != nil }

  // MARK: Decoding

  func damaged() -> [Finding] {
    var (frames, duration, first): (Int, Double, FrameFacts?) = (0, 0, nil)
    var rejected = 0
    for content in rung.content {
      let isClean = rung.samples[content.segments.lowerBound]?.video?.entry == .idr
      // Without a clean start, frames miss references up to the first that needs none.
      let counted = isClean ? content.frames[...] : content.frames.drop { $0.isDamaged }
      for frame in counted where frame.isDamaged && !(rung.samples[frame.segment].map(isBlamed) ?? false) {
        frames += 1
        duration += frame.duration
        first = first ?? frame
      }
      // The first packet of a run may need one before it.
      rejected += max(0, content.rejectedAudioCount - 1)
    }
    let faults = samples.filter { sample in
      if sample.failure?.part == .segment, sample.failure?.reason == .broken { return true }
      if sample.isWithoutMedia { return true }
      return sample.readingFault?.kind == .badMedia && !isBlamed(sample)
    }
    var findings: [Finding] = []
    if let first {
      let isShort = duration < thresholds.normalized(.decodeErrorShort) && faults.isEmpty
      var found = finding(
        .decodeError, nil, isShort ? .warning : .error, at: first.segment,
        "\(frames.counted("frame")) from \(first.time.seconds) on can't be decoded whole (\(duration.seconds))",
        fix:
          "encode \(rung.segments.isEmpty ? "it" : "segment \(first.segment + 1)") again, or upload it again")
      found.time = first.time...(first.time + max(duration, 0))
      found.evidence = [
        ("frames", .number(Double(frames))), ("duration_ms", .number((duration * 1000).rounded())),
      ]
      found.costs = [FindingCost(.lost, (duration * 1000).rounded())]
      findings.append(found)
    } else if let fault = faults.first,
      case let error = fault.failure?.error ?? fault.readingFault ?? Self.noMedia
    {
      findings.append(
        finding(
          .decodeError, nil, .error, at: fault.index, "\(place(fault.index)): \(error.reason)",
          fix: "package it again, or upload it again"))
    } else if rejected > 0 {
      let index = rung.content.first { $0.rejectedAudioCount > 1 }?.segments.lowerBound
      var found = finding(
        .decodeError, nil,
        Double(rejected) * 0.021 < thresholds.normalized(.decodeErrorShort) ? .warning : .error,
        at: index, "\(rejected.counted("packet")) of audio can't be decoded", fix: "encode the audio again")
      found.evidence = [("packets", .number(Double(rejected)))]
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
        "no-key-frame", noKey, { "does not begin with a key frame" + self.firstEntry(of: $0) },
        fix: "cut segments at key frames: fixed GOPs with -g, -sc_threshold 0, or -force_key_frames"),
      notIndependent(
        "parameter-sets", noSets, { _ in "begins without SPS and PPS" },
        fix: "repeat the parameter sets before each key frame (-bsf:v dump_extra)"),
      notIndependent(
        "open-gop", open,
        {
          "begins with \(($0.video?.leadingCount ?? 0).counted("frame")) that need the segment before it, and segments are declared independent"
        },
        fix: "encode closed GOPs (open-gop=0), or do not declare the segments independent"),
    ].compactMap { $0 }
  }

  private func firstEntry(of sample: SegmentFacts) -> String {
    guard let video = sample.video else { return "" }
    guard let index = video.firstEntryIndex else { return "; there is none in it" }
    return "; the first one is frame \(index + 1)"
  }

  private func notIndependent(
    _ kind: String, _ found: [SegmentFacts], _ words: (SegmentFacts) -> String, fix: String
  ) -> Finding? {
    guard let first = found.first else { return nil }
    let isFirst = first.index == (rung.segments.firstIndex { !$0.isGap } ?? 0)
    var finding = finding(
      .segmentNotIndependent, kind, isFirst ? .error : .warning, at: first.index,
      "\(places(found.map(\.index))) \(words(first))", fix: fix)
    finding.evidence = [("count", .number(Double(found.count))), ("read", .number(Double(samples.count)))]
    if let video = first.video, let entry = video.firstEntryIndex, entry > 0 {
      finding.evidence.append(("first_key_frame", .number(Double(entry))))
      let frame = entry < video.samples.count ? video.samples[entry].start - (video.start ?? 0) : 0
      if frame > 0 { finding.costs = [FindingCost(isFirst ? .start : .switch, (frame * 1000).rounded())] }
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
          let other = StreamFacts.difference(start, end)
          if abs(other) < abs(gap) { gap = other }
        }
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

  /// Packed audio must state its time, and players need not play it otherwise.
  private func withoutTimestamps() -> [Finding] {
    let found = samples.filter { !$0.hasTimestamps && !isBlamed($0) }
    guard let first = found.first else { return [] }
    var finding = finding(
      .timestampBreak, "start", .warning, at: first.index,
      "\(places(found.map(\.index))): packed audio without a timestamp",
      fix: "begin each segment with the ID3 tag of RFC 8216 §3.4")
    finding.evidence = [("count", .number(Double(found.count)))]
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
    var found = finding(
      .timestampBreak, kind, level, at: worst.index, "\(place): \(words)",
      fix: isHLS
        ? "mend the packager's clock, or put EXT-X-DISCONTINUITY before segment \(worst.index + 2)"
        : "mend the packager's clock (baseMediaDecodeTime), or begin another period")
    found.evidence = [
      ("difference_ms", .number((worst.seconds * 1000).rounded())), ("track", .text(worst.track)),
      ("count", .number(Double(count))),
    ]
    if kind != "overlap", worst.seconds > 0 { found.costs = [FindingCost(.stall, (amount * 1000).rounded())] }
    if kind == "overlap" { found.costs = [FindingCost(.lost, (amount * 1000).rounded())] }
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
    found.evidence = [("difference_ms", .number((late * 1000).rounded()))]
    found.costs = [FindingCost(late > 0 ? .stall : .lost, (abs(late) * 1000).rounded())]
    return [found]
  }

  // MARK: Durations

  func durations() -> [Finding] {
    guard !rung.segments.isEmpty, facts.format != "" else { return [] }
    let declared = rung.segments.dropLast().map { $0.duration.seconds }
    let isConstant = declared.count > 1 && declared.allSatisfy { abs($0 - declared[0]) < 0.000_5 }
    let isContiguous = zip(rung.segments, rung.segments.dropFirst()).allSatisfy { segment, next in
      abs((segment.start + segment.duration - next.start).seconds) < 0.02
    }
    if facts.format == "dash", isConstant, isContiguous { return drift() }
    // Playlists of version 2 and less have whole seconds (RFC 8216 §4.3.2.1).
    let isRounded = rung.roundsDurations && declared.allSatisfy { $0 == $0.rounded() }
    var worst: (index: Int, difference: Double, actual: Double)?
    var count = 0
    for sample in samples
    where sample.index < rung.segments.count - 1 && !isBlamed(sample) && !sample.isPartial {
      guard let actual = actualDurations(of: sample) else { continue }
      let stated = duration(sample.index)
      guard let best = actual.min(by: { abs($0 - stated) < abs($1 - stated) }) else { continue }
      let difference = best - stated
      guard abs(difference) > (isRounded ? 0.5 : 0) + thresholds.normalized(.durationMismatch) else {
        continue
      }
      count += 1
      if abs(difference) > abs(worst?.difference ?? 0) { worst = (sample.index, difference, best) }
    }
    guard let worst else { return [] }
    return [mismatch(at: worst.index, stated: duration(worst.index), actual: worst.actual, count: count)]
  }

  /// How long a segment is: up to the next one, and by its own samples.
  private func actualDurations(of sample: SegmentFacts) -> [Double]? {
    guard let track = sample.video ?? sample.audio, let start = entry(of: track), let end = track.end else {
      return nil
    }
    var durations = [StreamFacts.difference(end, start)]
    if let first = track.start { durations.append(StreamFacts.difference(end, first)) }
    if let next = rung.samples[sample.index + 1], !isBlamed(next),
      segment(next.index)?.discontinuity == segment(sample.index)?.discontinuity,
      let nextTrack = sample.video == nil ? next.audio : next.video, let nextStart = entry(of: nextTrack)
    {
      durations.append(StreamFacts.difference(nextStart, start))
    }
    return durations
  }

  /// The time of the first key frame in presentation order: open GOPs count from one to the next.
  private func entry(of track: TrackFacts) -> Double? {
    track.samples.first { $0.isKey }?.start ?? track.start
  }

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
    let count = Double(sample.index - first.index)
    return [mismatch(at: first.index, stated: stated / count, actual: actual / count, count: Int(count))]
  }

  private func mismatch(at index: Int, stated: Double, actual: Double, count: Int) -> Finding {
    let difference = actual - stated
    let isError = abs(difference) > thresholds.normalized(.durationMismatchError)
    var found = finding(
      .segmentDurationMismatch, nil, isError ? .error : .warning, at: index,
      "segment \(index + 1) says \(stated.seconds) and is \(actual.seconds) long",
      fix: facts.format == "hls"
        ? "write the real duration: #EXTINF:\(actual.formatted(places: 3))," : "write the real durations")
    found.evidence = [
      ("declared_ms", .number((stated * 1000).rounded())),
      ("measured_ms", .number((actual * 1000).rounded())),
      ("count", .number(Double(count))),
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
