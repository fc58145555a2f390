internal import Foundation
internal import ReelCore
internal import ReelManifest

/// Judges what a start reads: `moov-last`, `start-bytes` and `first-rung-heavy`.
///
/// Bytes at the start are found whatever they cost. `StartReplay` measures that, and drops the findings that cost little.
package enum StartFindings {
  package static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    guard facts.start != nil else { return [] }
    var findings: [Finding] = []
    if let file = facts.file, let url = facts.url?.absoluteString {
      if let finding = indexLast(file, url, thresholds) { findings.append(finding) }
      findings += file.surplus.filter { $0.kind == .edit || $0.byteCount >= leastSurplus }
        .map { surplusFinding($0, file, url) }
    }
    findings += manifestSurplus(facts)
    if let finding = keyFrame(facts) { findings.append(finding) }
    if let finding = order(facts) { findings.append(finding) }
    return findings
  }

  // MARK: - Private

  /// Fewer bytes cost nothing on any link.
  private static let leastSurplus: Int64 = 4096
  /// The shortest stretch of a track whose rate is known, in seconds.
  private static let leastRateDuration = 2.0

  private static func indexLast(_ file: FileFacts, _ url: String, _ thresholds: Thresholds) -> Finding? {
    guard file.isIndexLast, !file.isFragmented, let index = file.index else { return nil }
    let isSmall = file.byteCount.map { Double($0) < thresholds[.moovSmallFile] } ?? false
    var finding = Finding(
      .moovLast, nil, isSmall ? .note : .warning,
      "the index (moov) of \(bytes(index.length ?? 0)) comes after the media",
      fix: "move it to the front: ffmpeg -i IN -c copy -movflags +faststart OUT")
    finding.byte = index.offset
    finding.evidence = [
      ("index_offset", .integer(index.offset)), ("index_bytes", .integer(index.length ?? 0)),
    ]
    if let size = file.byteCount { finding.evidence.append(("file_bytes", .integer(size))) }
    finding.change = .moveToFront(url: url, index)
    return finding
  }

  private static func surplusFinding(
    _ surplus: FileSurplus, _ file: FileFacts, _ url: String
  ) -> Finding {
    let size = bytes(surplus.byteCount)
    let summary: String
    let fix: String
    switch surplus.kind {
    case .padding:
      summary = "\(size) before the end of the first frame are padding"
      fix = "write the file without free space: ffmpeg -i IN -c copy -movflags +faststart OUT"
    case .interleaving:
      summary = "\(size) of other tracks, more than 0.5 s ahead, come before the end of the first frame"
      fix = "interleave the tracks: ffmpeg -i IN -c copy -movflags +faststart OUT"
    case .edit:
      summary =
        "the edit list hides \(file.hiddenSampleCount) frames before the first one: \(size) more are fetched, and all of them decoded"
      fix = "cut at a key frame: encode the part up to the next key frame again, and copy the rest"
    case .moov:
      summary = "\(size) of the index are metadata, which the first frame waits for"
      fix =
        "move covers and metadata out of the file: ffmpeg -i IN -c copy -map_metadata -1 -map 0:v:0 -map 0:a? -movflags +faststart OUT"
    }
    var finding = Finding(.startBytes, surplus.kind.rawValue, .warning, summary, fix: fix)
    finding.byte = surplus.kind == .edit ? file.firstSample?.offset : surplus.ranges.first?.offset
    finding.evidence = [("surplus_bytes", .integer(surplus.byteCount))]
    if surplus.kind == .edit {
      finding.evidence.append(("hidden_frames", .integer(file.hiddenSampleCount)))
    }
    let ranges = surplus.ranges.map { StartBytes(url: url, range: $0) }
    finding.change =
      switch surplus.kind {
      // A player seeks over a long gap, so the bytes alone are not what it costs.
      case .padding, .interleaving: .remove(ranges)
      case .edit: .free(ranges, hiddenFrameCount: file.hiddenSampleCount)
      case .moov: .free(ranges)
      }
    return finding
  }

  private static func manifestSurplus(_ facts: StreamFacts) -> [Finding] {
    (facts.start?.surplus ?? []).filter { $0.byteCount >= leastSurplus }.map { surplus in
      let size = bytes(surplus.byteCount)
      let url = surplus.ranges.first?.url
      var finding: Finding
      switch surplus.kind {
      case .padding:
        let isInitialization = url == facts.startSegment?.initialization?.url.absoluteString
        finding = Finding(
          .startBytes, "padding", .warning, rung: facts.startRung?.name, url: url,
          isInitialization
            ? "\(size) of the initialization are padding"
            : "\(size) of the first segment, before the end of its first frame, are padding",
          fix: isInitialization
            ? "write it without free boxes"
            : "write segments without null packets and free boxes: do not set -muxrate")
        if !isInitialization { finding.segment = 1 }
      case .playlist:
        finding = Finding(
          .startBytes, "playlist", .warning, url: url,
          "\(size) of the manifest are comments and descriptions of events, which a start does not need",
          fix: "leave comments out of the manifest, and events that are over or far ahead")
      }
      finding.byte = surplus.ranges.first?.range.offset
      finding.evidence = [("surplus_bytes", .integer(surplus.byteCount))]
      finding.change = .free(surplus.ranges)
      return finding
    }
  }

  /// A key frame that is larger than one second of its track.
  private static func keyFrame(_ facts: StreamFacts) -> Finding? {
    guard let rung = facts.presentation == nil ? facts.rungs.first : facts.startRung,
      let video = (rung.samples[0] ?? rung.samples.min { $0.key < $1.key }?.value)?.video,
      let start = video.start, let end = video.end, end - start >= leastRateDuration
    else { return nil }
    let rate = Double(video.byteCount) / (end - start)
    guard let (url, frame) = keyFramePlace(facts, video), let size = frame.length, Double(size) > rate,
      rate > 0
    else { return nil }
    // What encoders make of the limits in `fix`.
    let target = Int64(rate / 2)
    var finding = Finding(
      .startBytes, "key-frame", .warning, rung: facts.presentation == nil ? nil : rung.name, url: url,
      "the first key frame has \(bytes(size)), more than 1 s of its track at \(bytes(Int64(rate)))/s",
      fix: "encode with a limit on key frames: -maxrate and -bufsize of the rate, or a higher -qmin")
    finding.byte = frame.offset
    finding.evidence = [("key_frame_bytes", .integer(size)), ("bytes_per_second", .number(rate.rounded()))]
    finding.change = .free([
      StartBytes(url: url, range: ByteRange(offset: frame.offset + target, length: size - target))
    ])
    return finding
  }

  private static func keyFramePlace(_ facts: StreamFacts, _ video: TrackFacts) -> (
    url: String, range: ByteRange
  )? {
    if let file = facts.file, !file.isFragmented {
      guard file.hiddenSampleCount == 0, let url = facts.url, let range = file.firstSample else { return nil }
      return (url.absoluteString, range)
    }
    guard let start = facts.start, let url = start.mediaURL ?? facts.url, let end = start.firstFrameEnd,
      let size = video.samples.first.flatMap({ $0.isKey ? $0.byteCount : nil })
    else { return nil }
    let offset = facts.startSegment?.byteRange?.offset ?? 0
    return (
      url.absoluteString, ByteRange(offset: offset + max(0, end - Int64(size)), length: min(Int64(size), end))
    )
  }

  /// A heavy variant that is listed first, so that players begin with it.
  private static func order(_ facts: StreamFacts) -> Finding? {
    guard let presentation = facts.presentation, let order = RungOrder(facts) else { return nil }
    let (first, best) = (facts.rungs[order.first], facts.rungs[order.best])
    let rates = [first, best].map { ($0.declared?.bitsPerSecond ?? 0) / 1000 }
    // Players of DASH do not go by the order.
    let level: FindingLevel = presentation.format == .hls ? .warning : .note
    var finding = Finding(
      .firstRungHeavy, nil, level, rung: first.name,
      "\(first.name), \(rates[0]) kbit/s, is listed first, so players without a measurement begin with it",
      fix: "list \(best.name), \(rates[1]) kbit/s, first")
    finding.naming = .rung
    finding.evidence = [
      ("first_bits_per_second", .integer(first.declared?.bitsPerSecond ?? 0)),
      ("middle_bits_per_second", .integer(best.declared?.bitsPerSecond ?? 0)),
    ]
    return finding
  }

  /// A number of bytes for a person.
  private static func bytes(_ count: Int64) -> String {
    switch count {
    case ..<10_000: "\(count) bytes"
    case ..<1_000_000: "\((count + 500) / 1000) kB"
    default: "\(count / 1_000_000).\(count / 100_000 % 10) MB"
    }
  }
}
