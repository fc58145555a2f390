import Foundation
import Logging
@testable import ReelCheck
import ReelCore
import ReelSources
import ReelTestSupport
import ReelTransport
import Testing

/// Checks copies of the fixtures with one fault each.
@Suite("Streams with one fault", .hangLimit)
struct BrokenStreamTests {
  /// Copies a folder of fixtures, changes it, and checks its manifest. Returns the names of the findings that are no
  /// notes.
  private func findings(
    in folder: String, _ manifest: String, _ change: (URL) throws -> Void = { _ in }
  ) async throws -> Set<String> {
    let copy = try TemporaryFolder()
    let target = copy.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: folder), to: target)
    try change(target)
    return try await findings(of: target.appending(path: manifest))
  }

  private func findings(of url: URL) async throws -> Set<String> {
    Set(try await check(url).findings.filter { $0.level > .note }.map(\.name))
  }

  private func check(_ url: URL, _ options: CheckOptions = CheckOptions()) async throws -> CheckResult {
    let logger = Logger(label: "check") { _ in SwiftLogNoOpLogHandler() }
    let checker = StreamChecker(
      fetcher: TransportFetcher(logger: logger), configuration: LoadingConfiguration(), options: options,
      logger: logger)
    return try await checker.check(.url(url))
  }

  private func edit(_ url: URL, _ body: (inout String) -> Void) throws {
    var text = try String(contentsOf: url, encoding: .utf8)
    body(&text)
    try text.write(to: url, atomically: true, encoding: .utf8)
  }

  @Test(
    "Whole streams have no findings",
    arguments: [
      ("hls-ts", "master.m3u8"), ("hls-fmp4", "master.m3u8"), ("dash-number", "manifest.mpd"),
      ("dash-timeline", "manifest.mpd"), ("dash-periods", "manifest.mpd"),
      ("dash-segmentlist", "manifest.mpd"),
      ("dash-ondemand", "manifest.mpd"), ("hls-aes128", "index.m3u8"), ("hls-discontinuity", "ts.m3u8"),
      ("hls-byterange-fmp4", "index.m3u8"), ("hls-hevc", "index.m3u8"), ("hls-packed", "aac.m3u8"),
      ("hls-packed", "mp3.m3u8"), ("hls-packed", "ac3.m3u8"),
      ("hls-packed", "ec3.m3u8"), ("hls-open-gop", "index.m3u8"),
    ])
  func whole(folder: String, manifest: String) async throws {
    #expect(try await findings(of: Fixtures.folder.appending(path: "\(folder)/\(manifest)")) == [])
  }

  @Test(
    "The first segments alone have no findings either",
    arguments: [
      "hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-number/manifest.mpd", "hls-packed/mp3.m3u8",
    ])
  func beginnings(path: String) async throws {
    var options = CheckOptions()
    options.sample = .start
    let result = try await check(Fixtures.folder.appending(path: path), options)
    #expect(result.findings.filter { $0.level > .note }.map(\.name) == [])
    #expect(result.notChecked.isEmpty)
  }

  @Test(
    "What Reel can't decode is not checked, and no fault beside what it decodes",
    arguments: ["encrypted/clear-lead/video.mp4"])
  func undecodable(path: String) async throws {
    let result = try await check(Fixtures.folder.appending(path: path))
    #expect(result.findings.filter { $0.level > .note }.map(\.name) == [])
    #expect(!result.notChecked.isEmpty)
  }

  @Test("Elementary streams have no findings", arguments: ["annexb.h264", "annexb.hevc"])
  func elementary(name: String) async throws {
    #expect(try await findings(of: Fixtures.folder.appending(path: "media/\(name)")) == [])
  }

  @Test("Packed audio: segments without a timestamp, with another one, and silent ones")
  func packedAudio() async throws {
    let first = try Fixtures.bytes("hls-packed/aac/0.aac")
    let second = try Fixtures.bytes("hls-packed/aac/1.aac")
    // The tag has 73 bytes.
    let untagged = Data(second.dropFirst(73))
    let shifted = Data(second.prefix(70) + [9] + second.dropFirst(71))
    #expect(
      try await packedFindings { try untagged.write(to: $0.appending(path: "aac/1.aac")) } == [
        "timestamp-break/start"
      ])
    #expect(
      try await packedFindings { try shifted.write(to: $0.appending(path: "aac/1.aac")) } == [
        "timestamp-break/jump"
      ])
    #expect(
      try await packedFindings {
        try Data(first.prefix(73) + first.dropFirst(2000)).write(to: $0.appending(path: "aac/0.aac"))
      }.contains("timestamp-break/gap"))
  }

  /// Checks a copy of packed audio beside its video.
  private func packedFindings(_ change: (URL) throws -> Void) async throws -> Set<String> {
    let copy = try TemporaryFolder()
    for folder in ["hls-packed", "hls-fmp4"] {
      try FileManager.default.copyItem(
        at: Fixtures.folder.appending(path: folder), to: copy.url.appending(path: folder))
    }
    try change(copy.url.appending(path: "hls-packed"))
    return try await findings(of: copy.url.appending(path: "hls-packed/aac.m3u8"))
  }

  @Test("A segment that is not there, is empty, or is a page")
  func missing() async throws {
    let segment = "high/segment-1.ts"
    #expect(
      try await findings(in: "hls-ts", "master.m3u8") {
        try FileManager.default.removeItem(at: $0.appending(path: segment))
      } == ["segment-missing/status"])
    #expect(
      try await findings(in: "hls-ts", "master.m3u8") {
        try Data().write(to: $0.appending(path: segment))
      } == ["segment-missing/empty"])
    #expect(
      try await findings(in: "hls-ts", "master.m3u8") {
        try Data("<html><title>Sign in</title></html>".utf8).write(to: $0.appending(path: segment))
      } == ["segment-missing/not-media"])
  }

  @Test("Damage beside a missing segment is named too")
  func missingAndDamaged() async throws {
    #expect(
      try await findings(in: "hls-fmp4", "high/index.m3u8") {
        try FileManager.default.removeItem(at: $0.appending(path: "high/segment-1.m4s"))
        let url = $0.appending(path: "high/segment-0.m4s")
        var bytes = try Data(contentsOf: url)
        let damage = (0..<2000).map { UInt8(truncatingIfNeeded: $0 * 7) }
        bytes.replaceSubrange(5000..<7000, with: damage)
        try bytes.write(to: url)
      } == ["segment-missing/status", "decode-error"])
  }

  @Test("A segment with tables and no media is damaged, unless it states no duration", arguments: ["1", "0"])
  func tablesAlone(duration: String) async throws {
    let found = try await findings(in: "hls-ts", "high/index.m3u8") {
      let bytes = try Data(contentsOf: $0.appending(path: "high/segment-0.ts"))
      // Three tables, then packets without a payload.
      let empty: [UInt8] = [0x47, 0x1f, 0xff, 0x10] + [UInt8](repeating: 0xff, count: 184)
      let tables = Data(bytes.prefix(3 * 188)) + Data(empty + empty + empty + empty)
      try tables.write(to: $0.appending(path: "high/tables.ts"))
      try edit($0.appending(path: "high/index.m3u8")) { text in
        let start = text.range(of: "#EXTINF")?.lowerBound ?? text.endIndex
        text.insert(contentsOf: "#EXTINF:\(duration),\ntables.ts\n", at: start)
      }
    }
    #expect(found.contains("decode-error") == (duration == "1"))
  }

  @Test("A segment that is cut off")
  func truncated() async throws {
    for (folder, manifest, segment) in [
      ("hls-ts", "master.m3u8", "high/segment-1.ts"), ("hls-fmp4", "master.m3u8", "high/segment-1.m4s"),
    ] {
      #expect(
        try await findings(in: folder, manifest) {
          let url = $0.appending(path: segment)
          let bytes = try Data(contentsOf: url)
          try bytes.prefix(bytes.count / 2 + 7).write(to: url)
        } == ["segment-truncated"])
    }
  }

  @Test("A rung without a playlist, and one without an initialization")
  func dead() async throws {
    #expect(
      try await findings(in: "hls-ts", "master.m3u8") {
        try FileManager.default.removeItem(at: $0.appending(path: "low/index.m3u8"))
      } == ["rung-dead/playlist"])
    // What is no playlist at all is named once.
    for content in ["<html></html>", "", "#EXTM3U\n"] {
      #expect(
        try await findings(in: "hls-ts", "master.m3u8") {
          try Data(content.utf8).write(to: $0.appending(path: "low/index.m3u8"))
        } == ["rung-dead/playlist"])
    }
    #expect(
      try await findings(in: "hls-aes128", "index.m3u8") {
        try FileManager.default.removeItem(at: $0.appending(path: "key.bin"))
      } == ["rung-dead/key"])
  }

  @Test("Media that does not fit its initialization, an initialization alone, and subtitles alone")
  func withoutMedia() async throws {
    let audio = try Fixtures.bytes("hls-fmp4/audio/init.mp4")
    for manifest in ["master.m3u8", "high/index.m3u8"] {
      #expect(
        try await findings(in: "hls-fmp4", manifest) {
          try Data(audio).write(to: $0.appending(path: "high/init.mp4"))
        } == ["rung-dead/no-frame"])
    }
    for track in ["audio", "high"] {
      let found = try await findings(of: Fixtures.folder.appending(path: "hls-fmp4/\(track)/init.mp4"))
      #expect(found == ["rung-dead/no-frame"])
    }
    let folder = try TemporaryFolder()
    let url = folder.url.appending(path: "subtitles.mp4")
    var bytes = try Data(audio) + Data(Fixtures.bytes("hls-fmp4/audio/segment-0.m4s"))
    for (audio, subtitles) in [("soun", "subt"), ("mp4a", "stpp")] {
      while let range = bytes.firstRange(of: Data(audio.utf8)) {
        bytes.replaceSubrange(range, with: Data(subtitles.utf8))
      }
    }
    try bytes.write(to: url)
    let finding = try #require(try await check(url).findings.first)
    #expect(finding.name == "not-checked/unsupported")
    #expect(finding.summary.hasSuffix("no audio that can be decoded, only a stream of another kind"))
  }

  @Test("Gaps in one rung are one finding, which tells how many there are")
  func gaps() async throws {
    let copy = try TemporaryFolder()
    let target = copy.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: "hls-fmp4"), to: target)
    for (segment, ticks) in [(1, UInt64(4608)), (2, UInt64(9216))] {
      try edit(target.appending(path: "low/segment-\(segment).m4s"), decodingTime: { $0 + ticks })
    }
    let found = try await check(target.appending(path: "master.m3u8")).findings.filter { $0.level > .note }
    #expect(
      found.map(\.summary) == [
        "between segments 1 and 2: 0.3 s without video that the manifest does not declare, the largest of 2"
      ])
    try edit(target.appending(path: "low/segment-1.m4s"), decodingTime: { $0 + 15360 * 50 })
    let jump = try #require(
      try await check(target.appending(path: "low/index.m3u8")).findings.first { $0.id == .timestampBreak })
    #expect(jump.kind == "jump" && jump.costs.isEmpty)

    let audio = target.appending(path: "audio/index.m3u8")
    try edit(audio) { $0 = $0.replacingOccurrences(of: "TARGETDURATION:1", with: "TARGETDURATION:") }
    let findings = try await check(audio).findings
    #expect(!findings.isEmpty && findings.allSatisfy { $0.rung == nil }, "\(findings.map(\.summary))")
  }

  /// Changes the decoding time of a fragment (ISO/IEC 14496-12 §8.8.12, version 1).
  private func edit(_ url: URL, decodingTime change: (UInt64) -> UInt64) throws {
    var bytes = try Data(contentsOf: url)
    let start = try #require(bytes.firstRange(of: Data("tfdt".utf8))).upperBound + 4
    let time = bytes[start..<(start + 8)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    let changed = change(time)
    bytes.replaceSubrange(
      start..<(start + 8), with: (0..<8).map { UInt8(truncatingIfNeeded: changed >> (56 - 8 * $0)) })
    try bytes.write(to: url)
  }

  @Test("Of each group, the first and the last rung are read if only these are wanted")
  func firstAndLast() async throws {
    let copy = try TemporaryFolder()
    let target = copy.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: "hls-ts"), to: target)
    try FileManager.default.copyItem(
      at: target.appending(path: "high"), to: target.appending(path: "highest"))
    try edit(target.appending(path: "master.m3u8")) {
      $0 += "#EXT-X-STREAM-INF:BANDWIDTH=950000,RESOLUTION=256x144\nhighest/index.m3u8\n"
    }
    var options = CheckOptions()
    options.rungs = .firstAndLast
    let rungs = try await check(target.appending(path: "master.m3u8"), options).facts.rungs
    #expect(rungs.map(\.status) == [.read, .skipped, .read])
    #expect(rungs.map(\.samples.isEmpty) == [false, true, false])
  }

  @Test("What a manifest says of a rung and is not so")
  func claims() async throws {
    func changed(_ old: String, _ new: String) async throws -> Set<String> {
      try await findings(in: "hls-ts", "master.m3u8") {
        try edit($0.appending(path: "master.m3u8")) { $0 = $0.replacingOccurrences(of: old, with: new) }
      }
    }
    #expect(
      try await changed("BANDWIDTH=900000,AVERAGE-BANDWIDTH=700000", "BANDWIDTH=60000") == [
        "bandwidth-mismatch/understated"
      ])
    #expect(try await changed("RESOLUTION=256x144", "RESOLUTION=640x360") == ["resolution-mismatch"])
    #expect(try await changed("avc1.64000c", "hvc1.1.6.L93.90") == ["codecs-mismatch/family"])
    #expect(try await changed("avc1.64000c", "avc1.42000c") == ["codecs-mismatch/profile"])
    #expect(try await changed("avc1.64000c,mp4a.40.2", "avc1.64000c") == ["codecs-mismatch/missing"])
  }

  @Test(
    "The codecs to write are those of the media",
    arguments: [
      ("hls-ts/high", "avc1.42000c,mp4a.40.2", "avc1.64000c,mp4a.40.2"),
      ("hls-ts/high", "avc1.64000c", "avc1.64000c,mp4a.40.2"),
      ("hls-ts/high", "hvc1.1.6.L93.90,mp4a.40.5", "avc1.64000c,mp4a.40.2"),
      ("hls-hevc", "avc1.64000c", "hvc1.2.4.L30.90"), ("hls-hevc", "hvc1.1.6.L30.90", "hvc1.2.4.L30.90"),
    ])
  func codecs(folder: String, stated: String, right: String) async throws {
    let copy = try TemporaryFolder()
    let target = copy.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: folder), to: target)
    let master = target.appending(path: "master.m3u8")
    try Data("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS=\"\(stated)\"\nindex.m3u8\n".utf8)
      .write(to: master)
    let found = try await check(master).findings.filter { $0.id == .codecsMismatch }
    #expect(!found.isEmpty)
    #expect(found.allSatisfy { $0.fix == "write CODECS=\"\(right)\"" }, "\(found.map(\.fix))")
  }

  @Test("A gap that a manifest declares is a note, and a shortened period cuts all tracks alike")
  func declaredGaps() async throws {
    let copy = try TemporaryFolder()
    let target = copy.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: "dash-timeline"), to: target)
    try FileManager.default.removeItem(at: target.appending(path: "1-700000-15360.m4s"))
    let manifest = target.appending(path: "manifest.mpd")
    try edit(manifest) {
      $0 = $0.replacingOccurrences(
        of: "<S t=\"0\" d=\"15360\" r=\"2\" />",
        with: "<S t=\"0\" d=\"15360\" /><S t=\"30720\" d=\"15360\" />")
    }
    let found = try await check(manifest).findings
    #expect(found.filter { $0.level > .note }.map(\.summary) == [])
    let gaps = found.filter { $0.name == "timestamp-break/gap" }
    #expect(gaps.count == 2)
    #expect(gaps.first?.summary == "between segments 1 and 2: the SegmentTimeline leaves out 1 s")
    #expect(gaps.first?.costs.first?.milliseconds == 1000)

    let list = try TemporaryFolder()
    let media = list.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: "hls-ts/high"), to: media)
    try FileManager.default.removeItem(at: media.appending(path: "segment-1.ts"))
    let playlist = media.appending(path: "index.m3u8")
    try edit(playlist) {
      $0 = $0.replacingOccurrences(of: "segment-1.ts", with: "#EXT-X-GAP\nsegment-1.ts")
    }
    let marked = try await check(playlist).findings
    #expect(marked.filter { $0.level > .note }.map(\.summary) == [])
    let note = marked.first { $0.name == "timestamp-break/gap" }
    #expect(note?.summary == "from segment 2 on: EXT-X-GAP leaves out 1 s")
    #expect(note?.costs.first?.milliseconds == 1000)

    for (folder, duration) in [
      ("dash-timeline", "PT3.0S"), ("dash-number", "PT3"), ("dash-ondemand", "PT3S"),
    ] {
      #expect(
        try await findings(in: folder, "manifest.mpd") {
          try edit($0.appending(path: "manifest.mpd")) {
            $0 = $0.replacingOccurrences(
              of: "mediaPresentationDuration=\"\(duration)[^\"]*\"",
              with: "mediaPresentationDuration=\"PT1.2S\"", options: .regularExpression)
          }
        } == [], "\(folder)")
    }
  }

  @Test("Durations that are not those of the media")
  func durations() async throws {
    #expect(
      try await findings(in: "hls-ts", "master.m3u8") {
        try edit($0.appending(path: "high/index.m3u8")) {
          $0 = $0.replacingOccurrences(of: "#EXTINF:1.000000", with: "#EXTINF:1.900000")
        }
      }.contains("segment-duration-mismatch"))
  }

  @Test("Audio that an edit list cuts off is not out of time")
  func priming() async throws {
    #expect(
      try await findings(in: "hls-fmp4", "master.m3u8") {
        let url = $0.appending(path: "audio/init.mp4")
        var bytes = try Data(contentsOf: url)
        let list = try #require(bytes.firstRange(of: Data("elst".utf8)))
        // The media time of the only edit (ISO/IEC 14496-12 §8.6.6): a quarter of a second.
        let time = list.upperBound + 12
        bytes.replaceSubrange(time..<(time + 4), with: [0, 0, 0x2e, 0xe0])
        try bytes.write(to: url)
      } == [])
  }

  @Test("All wrong durations are named, with those to write")
  func severalDurations() async throws {
    let copy = try TemporaryFolder()
    let target = copy.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: "hls-ts/high"), to: target)
    try edit(target.appending(path: "index.m3u8")) {
      $0 = $0.replacingOccurrences(of: "#EXTINF:1.000000", with: "#EXTINF:1.900000")
    }
    let found = try await check(target.appending(path: "index.m3u8")).findings
    let finding = try #require(found.first { $0.id == .segmentDurationMismatch })
    #expect(
      finding.summary
        == "segments 1 and 2 (2 of the 3 that were read) have wrong durations: segment 1 says 1.9 s and is 1 s long"
    )
    #expect(finding.fix == "write the real durations: #EXTINF:1,")
    #expect(finding.evidence.contains { $0.name == "segments" && $0.value == .text("1 and 2") })
  }
}
