internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Findings about what a manifest says of its rungs, and about how they go together.
enum LadderFindings {
  static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    let judge = LadderJudge(facts: facts, thresholds: thresholds)
    var findings: [Finding] = []
    for rung in facts.rungs where !rung.isExcused && !rung.samples.isEmpty {
      findings += judge.absentTracks(rung)
      findings += judge.codecs(rung)
      findings += judge.resolution(rung)
      findings += judge.frameRate(rung)
      findings += judge.bandwidth(rung)
    }
    for period in Dictionary(grouping: facts.rungs, by: { $0.place.period }).sorted(by: { $0.key < $1.key }) {
      findings += judge.shortTracks(period.value)
      findings += judge.aspects(period.value)
      findings += judge.alignment(period.value)
      findings += judge.offsets(period.value)
    }
    return findings
  }
}

private struct LadderJudge {
  let facts: StreamFacts
  let thresholds: Thresholds

  private func finding(
    _ id: FindingID, _ kind: String? = nil, _ level: FindingLevel, of rung: RungFacts, _ summary: String,
    fix: String
  ) -> Finding {
    var finding = Finding(id, kind, level, rung: rung.name, summary, fix: fix)
    finding.url = (facts.format == "hls" ? facts.url : nil)?.reelLocation ?? rung.url?.reelLocation
    return finding
  }

  private func frames(of rung: RungFacts) -> [FrameFacts] { rung.content.flatMap(\.frames) }

  private func samples(of rung: RungFacts) -> [SegmentFacts] {
    rung.samples.values.sorted { $0.index < $1.index }.filter { $0.failure == nil && $0.truncation == nil }
  }

  // MARK: Tracks

  func absentTracks(_ rung: RungFacts) -> [Finding] {
    guard let declared = rung.declared else { return [] }
    let read = samples(of: rung).filter { $0.video != nil || $0.audio != nil }
    guard !read.isEmpty else { return [] }
    let families = declared.codecs.map { CodecFamily($0) }
    var missing: [String] = []
    if rung.kind == .video {
      if families.contains(.video), read.allSatisfy({ $0.video == nil }) { missing.append("video") }
      let groups = Set(
        facts.presentation?.periods.flatMap(\.trackGroups).filter { $0.kind == .audio }.compactMap(\.id) ?? []
      )
      let isElsewhere = declared.audioGroup.map { groups.contains($0) } ?? false
      let siblings = facts.rungs.filter {
        $0.kind == .video && $0.place.period == rung.place.period && $0.declared?.audioGroup == nil
          && $0.wantsVideo
      }
      let othersHaveAudio =
        facts.format == "hls" && declared.audioGroup == nil && rung.wantsVideo && groups.isEmpty
        && siblings.contains { other in samples(of: other).contains { $0.audio != nil } }
      if !isElsewhere, families.contains(.audio) || othersHaveAudio, facts.format == "hls",
        read.allSatisfy({ $0.audio == nil || $0.audio?.samples.isEmpty == true }),
        read.contains(where: { !$0.isPartial })
      {
        missing.append("audio")
      }
    } else if read.allSatisfy({ $0.audio == nil }) {
      missing.append("audio")
    }
    return missing.map { track in
      var found = finding(
        .trackMissing, "absent", .error, of: rung,
        "the manifest names \(track) (\(declared.codecs.joined(separator: ","))), and no segment has any",
        fix: track == "audio" ? "map the audio to all rungs" : "map the video to this rung")
      if declared.codecs.isEmpty {
        found.summary = "it has no \(track), and other rungs have some"
      }
      found.evidence = [("track", .text(track))]
      return found
    }
  }

  func shortTracks(_ rungs: [RungFacts]) -> [Finding] {
    guard !facts.isLive else { return [] }
    let limit = thresholds.normalized(.trackShort)
    var findings: [Finding] = []
    let lists = rungs.compactMap { rung -> (rung: RungFacts, duration: Double)? in
      rung.omittedCount > 0 ? nil : rung.shownRange.map { (rung, $0.upperBound - $0.lowerBound) }
    }
    let longest = lists.map(\.duration).max() ?? 0
    for (rung, duration) in lists where longest - duration > limit {
      var found = finding(
        .trackMissing, "short", .warning, of: rung,
        "its list ends after \(duration.seconds), others after \(longest.seconds)",
        fix: rung.kind == .audio ? "map all of the audio to it" : "publish all of its segments")
      found.evidence = [("duration_s", .number(duration)), ("longest_s", .number(longest))]
      found.costs = [FindingCost(.lost, seconds: longest - duration)]
      findings.append(found)
    }
    for rung in rungs where findings.allSatisfy({ $0.rung != rung.name }) {
      findings += shortMuxed(rung, limit)
    }
    return findings
  }

  /// A track that ends before the other one of the same segments.
  private func shortMuxed(_ rung: RungFacts, _ limit: Double) -> [Finding] {
    let lastIndex = rung.segments.isEmpty ? 0 : rung.segments.count - 1
    guard let last = rung.samples[lastIndex], last.failure == nil, last.truncation == nil,
      last.readingFault == nil,
      !last.isPartial, let video = last.video, let audio = last.audio,
      let videoEnd = end(of: video, in: rung),
      let audioEnd = end(of: audio, in: rung)
    else { return [] }
    let difference = StreamFacts.difference(videoEnd, audioEnd)
    guard abs(difference) > limit else { return [] }
    // Audio that goes on is heard over the last frame.
    let isAudio = difference > 0
    guard isAudio || abs(difference) > 2 * limit else { return [] }
    var found = finding(
      .trackMissing, "short", .warning, of: rung,
      "\(isAudio ? "audio" : "video") ends \(abs(difference).seconds) before \(isAudio ? "video" : "audio")",
      fix: "map all of the \(isAudio ? "audio" : "video") to it")
    found.evidence = [("difference_ms", .milliseconds(difference))]
    found.costs = [FindingCost(.lost, seconds: abs(difference))]
    return [found]
  }

  /// The end of a track, or that of its period if that is earlier; nil if a file was not read up to there, and its index
  /// does not say.
  private func end(of track: TrackFacts, in rung: RungFacts) -> Double? {
    if let last = rung.segments.last {
      return track.end.map { shown($0, in: rung, last) }
    }
    if let ticks = track.stream.durationTicks, facts.format == "mp4" {
      return (track.start ?? 0) + Double(ticks) * track.stream.timeBase.value
    }
    return nil
  }

  // MARK: Codecs

  func codecs(_ rung: RungFacts) -> [Finding] {
    guard rung.declared != nil else { return [] }
    let read = samples(of: rung)
    let video = read.compactMap(\.video).first
    let audio = read.compactMap(\.audio).first { !$0.samples.isEmpty }
    let declared = statedCodecs(of: rung)
    let right = RightCodecs(
      video: video?.codecString, audio: audio.flatMap { codecString(of: $0, in: rung) }, declared: declared)
    if declared.isEmpty { return missingCodecs(rung, video: video, audio: audio, right) }
    var findings: [Finding] = []
    let videoNames = declared.filter { CodecFamily($0) == .video }
    if let video, let actual = video.stream.videoCodec {
      let value = right.video ?? video.stream.codecName
      if let name = videoNames.first(where: { VideoCodec(manifestName: $0) == actual }) {
        findings += profile(of: name, actual, rung, right)
      } else if let name = videoNames.first {
        findings.append(mismatch("family", .error, rung, says: name, isValue: value, right))
      } else if rung.kind == .video {
        findings.append(
          mismatch("missing", .warning, rung, says: declared.joined(separator: ","), isValue: value, right))
      }
    }
    let audioNames = declared.filter { CodecFamily($0) == .audio }
    if let audio, let actual = audio.stream.audioCodec {
      let value = right.audio ?? audio.stream.codecName
      if let name = audioNames.first(where: { AudioCodec(manifestName: $0) == actual }) {
        findings += objectType(of: name, actual, rung, right)
      } else if let name = audioNames.first {
        findings.append(mismatch("family", .error, rung, says: name, isValue: value, right))
      } else if video != nil || rung.kind == .audio {
        findings.append(
          mismatch("missing", .warning, rung, says: declared.joined(separator: ","), isValue: value, right))
      }
    }
    return findings
  }

  /// The codecs of a rung as they are, in the form of manifests (RFC 6381).
  private struct RightCodecs {
    var video: String?
    var audio: String?
    /// The stated ones.
    var declared: [String]

    /// The list to write: the stated one, with what is wrong or missing put right.
    var list: String {
      var left = [CodecFamily.video: video, .audio: audio].compactMapValues(\.self)
      var names = declared.map { left.removeValue(forKey: CodecFamily($0)) ?? $0 }
      names += [left[.video], left[.audio]].compactMap(\.self)
      return names.joined(separator: ",")
    }
  }

  private func codecString(of audio: TrackFacts, in rung: RungFacts) -> String? {
    audio.stream.codecString(
      openedBy: nil, audioProfile: rung.content.lazy.compactMap(\.audioProfile).first)
  }

  /// The codecs of a rung. A rendition of HLS has those of the variants that it belongs to.
  private func statedCodecs(of rung: RungFacts) -> [String] {
    let own = rung.declared?.codecs ?? []
    guard own.isEmpty, rung.kind == .audio, let group = groupID(of: rung) else { return own }
    let variants = facts.rungs.filter {
      $0.declared?.audioGroup == group && $0.declared?.codecs.isEmpty == false
    }
    return variants.first?.declared?.codecs ?? []
  }

  private func missingCodecs(
    _ rung: RungFacts, video: TrackFacts?, audio: TrackFacts?, _ right: RightCodecs
  ) -> [Finding] {
    // A playlist of a single rung has no place for it, and renditions have that of their variants.
    guard rung.kind == .video, facts.format == "dash" || rung.declared?.bitsPerSecond != nil, video != nil
    else { return [] }
    let others = facts.rungs.filter { $0.kind == .video && $0.place.period == rung.place.period }
    let isOnlyOne = others.contains { $0.declared?.codecs.isEmpty == false }
    var right = right
    // The codecs of a variant are also those of its renditions (RFC 8216 §4.3.4.2).
    if right.audio == nil, let group = rung.declared?.audioGroup {
      let renditions = facts.rungs.filter { $0.kind == .audio && groupID(of: $0) == group }
      right.audio =
        renditions.lazy.compactMap { rendition in
          samples(of: rendition).lazy.compactMap(\.audio).first.flatMap { codecString(of: $0, in: rendition) }
        }.first
    }
    var found = finding(
      .codecsMismatch, "missing", isOnlyOne ? .warning : .note, of: rung,
      "the manifest states no codecs\(isOnlyOne ? ", and does for other rungs" : "")", fix: fix(right))
    let names = [video?.stream.codecName, audio?.stream.codecName].compactMap(\.self)
    found.evidence = [("measured", .text(right.list.isEmpty ? names.joined(separator: ",") : right.list))]
    return [found]
  }

  private func fix(_ right: RightCodecs) -> String {
    let attribute = facts.format == "hls" ? "CODECS" : "codecs"
    return right.list.isEmpty || right.list == right.declared.joined(separator: ",")
      ? "state the real codecs in \(attribute)" : "write \(attribute)=\"\(right.list)\""
  }

  private func mismatch(
    _ kind: String, _ level: FindingLevel, _ rung: RungFacts, says: String, isValue actual: String,
    _ right: RightCodecs
  ) -> Finding {
    let words =
      kind == "missing"
      ? "the codecs are stated as \(says), without \(actual)"
      : "the manifest says \(says), and it is \(actual)"
    var found = finding(.codecsMismatch, kind, level, of: rung, words, fix: fix(right))
    found.evidence = [("declared", .text(says)), ("measured", .text(actual))]
    return found
  }

  private func profile(
    of name: String, _ codec: VideoCodec, _ rung: RungFacts, _ right: RightCodecs
  ) -> [Finding] {
    let content = rung.content.first { $0.profile != nil }
    guard let profile = content?.profile else { return [] }
    let parts = name.split(separator: ".")
    var findings: [Finding] = []
    func add(_ kind: String, _ words: String) {
      let value = right.video.map { "\($0) (\(words))" } ?? words
      findings.append(mismatch(kind, .warning, rung, says: name, isValue: value, right))
    }
    switch codec {
    case .h264:
      guard parts.count == 2, parts[1].count == 6, let number = Int(parts[1], radix: 16) else { return [] }
      let stated = number >> 16
      if let actual = Self.h264Profiles[profile], actual != stated { add("profile", "\(profile) profile") }
      if let level = content?.level, level > number & 0xff, !(number & 0xff == 11 && number >> 12 & 1 == 1) {
        add("level", "level \((Double(level) / 10).formatted(places: 1))")
      }
    case .hevc:
      guard parts.count >= 4 else { return [] }
      let stated = Int(parts[1].drop { $0.isLetter })
      if let actual = Self.hevcProfiles[profile], let stated, actual != stated {
        add("profile", "\(profile) profile")
      }
      if let level = content?.level, let statedLevel = Int(parts[3].dropFirst()), level > statedLevel {
        add("level", "level \((Double(level) / 30).formatted(places: 1))")
      }
    default: break
    }
    return findings
  }

  /// `profile_idc` by libavcodec's names.
  private static let h264Profiles = [
    "Baseline": 66, "Constrained Baseline": 66, "Main": 77, "Extended": 88, "High": 100, "High 10": 110,
    "High 4:2:2": 122, "High 4:4:4 Predictive": 244,
  ]
  /// `general_profile_idc` by libavcodec's names.
  private static let hevcProfiles = ["Main": 1, "Main 10": 2, "Main Still Picture": 3, "Rext": 4]

  private func objectType(
    of name: String, _ codec: AudioCodec, _ rung: RungFacts, _ right: RightCodecs
  ) -> [Finding] {
    guard codec == .aac, let profile = rung.content.lazy.compactMap(\.audioProfile).first,
      let actual = StreamInfo.objectTypes[profile]
    else { return [] }
    let parts = name.split(separator: ".")
    guard parts.count == 3, let stated = Int(parts[2]), Set(StreamInfo.objectTypes.values).contains(stated),
      stated != actual
    else {
      return []
    }
    return [
      mismatch("profile", .warning, rung, says: name, isValue: "mp4a.40.\(actual) (\(profile))", right)
    ]
  }

  // MARK: Sizes

  func resolution(_ rung: RungFacts) -> [Finding] {
    guard let declared = rung.declared?.size, let frame = frames(of: rung).first else { return [] }
    var sizes = Set(frames(of: rung).prefix(600).flatMap { [$0.size, $0.presentationSize] })
    for size in sizes {
      // Coded in whole macroblocks.
      sizes.insert(PixelSize(width: (size.width + 15) / 16 * 16, height: (size.height + 15) / 16 * 16))
      sizes.insert(PixelSize(width: size.width, height: (size.height + 15) / 16 * 16))
    }
    let isNear = sizes.contains {
      abs($0.width - declared.width) <= 2 && abs($0.height - declared.height) <= 2
    }
    guard !isNear else { return [] }
    var found = finding(
      .resolutionMismatch, nil, .warning, of: rung, "the manifest says \(declared), and it is \(frame.size)",
      fix: facts.format == "hls"
        ? "write RESOLUTION=\(frame.presentationSize)" : "write the width and height as they are")
    found.evidence = [("declared", .text("\(declared)")), ("measured", .text("\(frame.size)"))]
    return [found]
  }

  func frameRate(_ rung: RungFacts) -> [Finding] {
    guard let declared = rung.declared?.frameRate?.value, declared > 0 else { return [] }
    var highest = 0.0
    var isVariable = false
    for content in rung.content {
      var times: [Double] = []
      for frame in content.frames where frame.time > (times.last ?? -.infinity) + 0.001 {
        times.append(frame.time)
      }
      let count = max(1, Int(declared.rounded()))
      // A second, but no less than eight frames.
      let span = max(8, min(count, times.count - 1))
      guard times.count > span, (times.last ?? 0) - (times.first ?? 0) >= 0.9 else { continue }
      for index in 0..<(times.count - span) where times[index + span] > times[index] {
        highest = max(highest, Double(span) / (times[index + span] - times[index]))
      }
      let steps = zip(times, times.dropFirst()).map { $1 - $0 }
      if let least = steps.min(), let most = steps.max(), most > 1.5 * least { isVariable = true }
    }
    guard highest > 0 else { return [] }
    let isInterlaced = frames(of: rung).first?.isInterlaced ?? false
    if isInterlaced, abs(highest * 2 / declared - 1) < 0.05 { return [] }
    let isHigh = highest > declared * thresholds.normalized(.frameRateHigh)
    let isLow = highest < declared * thresholds.normalized(.frameRateLow) && !isVariable
    guard isHigh || isLow else { return [] }
    var found = finding(
      .frameRateMismatch, nil, .warning, of: rung,
      "the manifest says \(declared.formatted(places: 3)) frames per second, and it has \(highest.formatted(places: 3))",
      fix: facts.format == "hls"
        ? "write FRAME-RATE=\(highest.formatted(places: 3))" : "write the frame rate as it is")
    found.evidence = [
      ("declared", .number(declared)), ("measured", .number((highest * 1000).rounded() / 1000)),
    ]
    return [found]
  }

  func aspects(_ rungs: [RungFacts]) -> [Finding] {
    var findings: [Finding] = []
    let groups = Dictionary(grouping: rungs.filter { $0.kind == .video }, by: { $0.place.group })
    for (_, same) in groups.sorted(by: { $0.key < $1.key }) {
      let aspects = same.compactMap { rung -> (rung: RungFacts, value: Double)? in
        guard let size = frames(of: rung).first?.presentationSize, size.height > 0 else { return nil }
        return (rung, Double(size.width) / Double(size.height))
      }
      let limit = thresholds.normalized(.aspect)
      func isLike(_ a: Double, _ b: Double) -> Bool { abs(a / b - 1) <= limit }
      guard
        let usual = aspects.max(by: { left, right in
          aspects.count { isLike($0.value, left.value) } < aspects.count { isLike($0.value, right.value) }
        })
      else { continue }
      for (rung, value) in aspects where !isLike(value, usual.value) {
        var found = finding(
          .aspectDiffers, nil, .warning, of: rung,
          "it is shown as \(value.formatted(places: 3)):1, and \(usual.rung.name) as \(usual.value.formatted(places: 3)):1",
          fix: "scale all rungs alike, or write the sample aspect ratio")
        found.evidence = [("aspect", .number(value)), ("usual", .number(usual.value))]
        findings.append(found)
      }
    }
    return findings
  }

  // MARK: Alignment

  /// The start of a sample on the presentation's timeline, or in HLS by its timestamps.
  private func start(of sample: SegmentFacts, in rung: RungFacts, _ track: (SegmentFacts) -> TrackFacts?)
    -> Double?
  {
    guard let start = track(sample)?.start else { return nil }
    guard rung.segments.indices.contains(sample.index) else { return start }
    return shown(start, in: rung, rung.segments[sample.index])
  }

  /// A time of a container on the presentation's timeline, within the period; in HLS the time itself.
  private func shown(_ time: Double, in rung: RungFacts, _ segment: SegmentReference) -> Double {
    guard let offset = segment.timestampOffset?.seconds else { return time }
    return (time + offset).clamped(to: rung.span)
  }

  func alignment(_ rungs: [RungFacts]) -> [Finding] {
    var findings: [Finding] = []
    let groups = Dictionary(
      grouping: rungs.filter { $0.kind == .video && $0.wantsVideo }, by: { $0.place.group })
    for (_, same) in groups.sorted(by: { $0.key < $1.key }) {
      let readable = same.filter { !samples(of: $0).isEmpty && !$0.segments.isEmpty }
      guard let reference = Self.usual(of: readable) else { continue }
      for rung in readable where rung.name != reference.name {
        if let found = misalignment(of: rung, from: reference) { findings.append(found) }
      }
    }
    return findings
  }

  /// The rung whose list is like those of most others.
  private static func usual(of rungs: [RungFacts]) -> RungFacts? {
    rungs.max { left, right in
      rungs.count { $0.segments.count == left.segments.count }
        < rungs.count { $0.segments.count == right.segments.count }
    }
  }

  private func misalignment(of rung: RungFacts, from reference: RungFacts) -> Finding? {
    let frame = frames(of: rung).lazy.map(\.duration).first { $0 > 0 } ?? 0
    let otherFrame = frames(of: reference).lazy.map(\.duration).first { $0 > 0 } ?? 0
    let limit = max(thresholds.normalized(.alignment), max(frame, otherFrame) * 1.05)
    var worst: (index: Int, difference: Double)?
    var count = 0
    if rung.segments.count == reference.segments.count {
      for sample in samples(of: rung) {
        guard let other = reference.samples[sample.index], other.failure == nil,
          rung.segments[sample.index].discontinuity == reference.segments[sample.index].discontinuity,
          let own = start(of: sample, in: rung, \.video), let start = start(of: other, in: reference, \.video)
        else { continue }
        let difference = StreamFacts.difference(own, start)
        guard abs(difference) > limit else { continue }
        count += 1
        if abs(difference) > abs(worst?.difference ?? 0) { worst = (sample.index, difference) }
      }
    } else if !facts.isLive {
      let starts = reference.segments.map { reference.shownRange(of: $0).lowerBound }
      for (index, segment) in rung.segments.enumerated() {
        let own = rung.shownRange(of: segment).lowerBound
        let next = starts.indices.bisect { starts[$0] > own }
        let neighbours = starts[max(0, next - 1)..<min(starts.count, next + 1)]
        guard let near = neighbours.min(by: { abs($0 - own) < abs($1 - own) }),
          let end = reference.segments.last,
          own <= end.start.seconds + limit
        else { continue }
        guard abs(near - own) > limit else { continue }
        count += 1
        if abs(near - own) > abs(worst?.difference ?? 0) { worst = (index, own - near) }
      }
    }
    guard let worst else { return nil }
    var found = finding(
      .rungsNotAligned, nil, rung.claimsAlignment ? .error : .warning, of: rung,
      "segment \(worst.index + 1) begins \(abs(worst.difference).seconds) \(worst.difference > 0 ? "after" : "before") that of \(reference.name)",
      fix: "encode all rungs with the same GOPs, and cut them at the same frames")
    found.segment = worst.index + 1
    found.naming = .segmentFirst
    found.evidence = [
      ("difference_ms", .milliseconds(worst.difference)), ("count", .integer(count)),
      ("reference", .text(reference.name)),
    ]
    return found
  }

  // MARK: Audio and video

  func offsets(_ rungs: [RungFacts]) -> [Finding] {
    var findings: [Finding] = []
    for rung in rungs {
      guard let first = rung.samples[rung.segments.firstIndex { !$0.isGap } ?? 0], first.failure == nil,
        let video = start(of: first, in: rung, \.video), let audio = start(of: first, in: rung, \.audio)
      else { continue }
      if let found = offset(of: audio, from: video, in: rung, "audio") { findings.append(found) }
    }
    let videos = rungs.filter { $0.kind == .video }
    guard
      let video = videos.lazy.compactMap({ rung -> (RungFacts, Double)? in
        guard let first = rung.samples[0], first.failure == nil,
          let start = start(of: first, in: rung, \.video)
        else {
          return nil
        }
        return (rung, start)
      }).first
    else { return findings }
    for rung in rungs where rung.kind == .audio {
      guard let first = rung.samples[0], first.failure == nil, first.hasTimestamps,
        let audio = start(of: first, in: rung, \.audio),
        rung.segments.first?.discontinuity == video.0.segments.first?.discontinuity
      else { continue }
      if let found = offset(of: audio, from: video.1, in: rung, "it") { findings.append(found) }
    }
    return findings
  }

  private func offset(of audio: Double, from video: Double, in rung: RungFacts, _ what: String) -> Finding? {
    let difference = StreamFacts.difference(audio, video)
    guard abs(difference) > thresholds.normalized(.avOffset) else { return nil }
    let isError = abs(difference) > thresholds.normalized(.avOffsetError)
    var found = finding(
      .avOffset, nil, isError ? .error : .warning, of: rung,
      "\(what) begins \(abs(difference).seconds) \(difference > 0 ? "after" : "before") the video",
      fix: "shift it with -itsoffset, or write an edit list")
    found.evidence = [("difference_ms", .milliseconds(difference))]
    found.costs = [FindingCost(.lost, seconds: abs(difference))]
    return found
  }

  // MARK: Bit rates

  func bandwidth(_ rung: RungFacts) -> [Finding] {
    guard let declared = rung.declared?.bitsPerSecond, declared > 0, !rung.segments.isEmpty,
      rung.kind == .video || facts.format == "dash", let own = peak(of: rung)
    else { return [] }
    let audio = rung.declared?.audioGroup.map { group in
      facts.rungs.filter { $0.kind == .audio && groupID(of: $0) == group }.compactMap { peak(of: $0)?.rate }
        .max() ?? 0
    }
    let measured = own.rate + (audio ?? 0)
    let stated = Double(declared)
    let limit = thresholds.normalized(facts.isLive ? .bandwidthUnderstatedLive : .bandwidthUnderstated)
    var findings: [Finding] = []
    // Some kilobits more stall nobody: the framing of audio at a low rate.
    if measured > stated * limit, measured - stated > 16_000 {
      findings.append(bandwidth("understated", .warning, rung, stated: stated, measured: measured))
    } else if own.isComplete, rung.segments.count >= 4,
      measured < stated * thresholds.normalized(.bandwidthOverstated)
    {
      findings.append(bandwidth("overstated", .warning, rung, stated: stated, measured: measured))
    }
    if let average = rung.declared?.averageBitsPerSecond, own.isComplete, rung.segments.count >= 4,
      average > 0
    {
      let total = own.average + (audio ?? 0)
      if abs(total / Double(average) - 1) > 0.1, audio == nil || total > Double(average) * 1.1 {
        findings.append(bandwidth("average", .note, rung, stated: Double(average), measured: total))
      }
    }
    return findings
  }

  private func groupID(of rung: RungFacts) -> String? {
    facts.presentation.flatMap { presentation in
      guard presentation.periods.indices.contains(rung.place.period),
        presentation.periods[rung.place.period].trackGroups.indices.contains(rung.place.group)
      else { return nil }
      return presentation.periods[rung.place.period].trackGroups[rung.place.group].id
    }
  }

  private func bandwidth(
    _ kind: String, _ level: FindingLevel, _ rung: RungFacts, stated: Double, measured: Double
  ) -> Finding {
    let value = Int(measured.rounded(.up))
    let words =
      switch kind {
      case "understated": "the manifest says \(Int(stated)) bit/s, and the peak is \(value)"
      case "overstated": "the manifest says \(Int(stated)) bit/s, and the peak is only \(value)"
      default: "the manifest says an average of \(Int(stated)) bit/s, and it is \(value)"
      }
    let attribute =
      kind == "average" ? "AVERAGE-BANDWIDTH" : facts.format == "hls" ? "BANDWIDTH" : "bandwidth"
    var found = finding(.bandwidthMismatch, kind, level, of: rung, words, fix: "write \(attribute)=\(value)")
    found.evidence = [("declared_bps", .number(stated)), ("measured_bps", .integer(value))]
    return found
  }

  /// The peak bit rate (RFC 8216 §4.1: the largest of any neighbouring segments that last between 0.5 and 1.5 target
  /// durations), and the average. Nil if too little is known.
  private func peak(of rung: RungFacts) -> (rate: Double, average: Double, isComplete: Bool)? {
    let segments = ratedSegments(of: rung)
    let durations = segments.map { $0.duration.seconds }
    let isComplete = segments.indices.allSatisfy { rung.sizes[$0] != nil || segments[$0].isGap }
    let target = max(durations.max() ?? 0, 0.001)
    guard durations.count > 1 || durations.reduce(0, +) >= 2 else { return nil }
    var peak = 0.0
    for start in durations.indices {
      var (bits, seconds) = (0.0, 0.0)
      for index in start..<durations.count {
        guard let size = rung.sizes[index], size > 0 else { break }
        bits += Double(size) * 8
        seconds += durations[index]
        if seconds > 1.5 * target { break }
        if seconds >= 0.5 * target { peak = max(peak, bits / seconds) }
      }
    }
    let total = rung.sizes.prefix(segments.count).reduce(0) { $0 + Double($1 ?? 0) * 8 }
    let length = durations.reduce(0, +)
    guard peak > 0, length > 0 else { return nil }
    // An MPD states the rate at which a buffer of some seconds does not run out (ISO/IEC 23009-1 §5.3.5.2).
    let average = total / length
    return (facts.format == "dash" ? max(average, bucket(rung)) : peak, average, isComplete)
  }

  /// The segments whose rates count: without a last one that the end of its period cuts off, since its bytes are those of
  /// more media than is shown.
  private func ratedSegments(of rung: RungFacts) -> ArraySlice<SegmentReference> {
    let segments = Array(rung.segments)[...]
    guard let last = segments.last, let usual = segments.dropLast().last?.duration.seconds,
      (last.start + last.duration).seconds > rung.span.upperBound - 0.001,
      last.duration.seconds < 0.9 * usual
    else { return segments }
    return segments.dropLast()
  }

  /// The least rate at which the segments of an MPD arrive in time, if `@minBufferTime` is buffered first.
  private func bucket(_ rung: RungFacts) -> Double {
    var (bits, seconds, least) = (0.0, 0.0, 0.0)
    let buffer = facts.presentation?.minBufferTime?.seconds ?? 2
    for (segment, size) in zip(ratedSegments(of: rung), rung.sizes) {
      bits += Double(size ?? 0) * 8
      seconds += segment.duration.seconds
      least = max(least, bits / (seconds + buffer))
    }
    return least
  }
}
