import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelCommand
import ReelPlayback

/// What `reel play` says of media that was not shown: each part has a place and a reason, and with what was played they
/// add up to the timeline.
@Suite("Media that reel play does not show", .hangLimit)
struct PlayLossTests {
  /// A copy of a presentation of three segments of a second.
  private struct Scene {
    let folder: TemporaryFolder
    let playlist: String

    init(_ name: String) throws {
      folder = try TemporaryFolder()
      let copy = folder.url.appending(path: "copy")
      try FileManager.default.copyItem(at: Fixtures.folder.appending(path: name), to: copy)
      playlist = copy.appending(path: "index.m3u8").path
    }

    func url(_ segment: String) -> URL { folder.url.appending(path: "copy/\(segment)") }

    func cut(_ segment: String, to share: Double) throws {
      let bytes = try Data(contentsOf: url(segment))
      try bytes.prefix(Int(Double(bytes.count) * share)).write(to: url(segment))
    }
  }

  private struct Part {
    let from: Double
    let to: Double
    let reason: String
    let message: String?

    init?(_ object: [String: Any]) {
      guard let from = object["from"] as? Double, let to = object["to"] as? Double,
        let reason = object["reason"] as? String
      else { return nil }
      (self.from, self.to, self.reason) = (from, to, reason)
      message = (object["error"] as? [String: Any])?["message"] as? String
    }
  }

  private func parts(_ summary: [String: Any]) -> [Part] {
    (summary["skipped_parts"] as? [[String: Any]] ?? []).compactMap(Part.init)
  }

  private func outcomes(_ summary: [String: Any]) -> [String] {
    (summary["failure_list"] as? [[String: Any]] ?? []).compactMap { $0["outcome"] as? String }
  }

  /// What was played and what was skipped add up to `span`, the parts to what was skipped, and the phases to the wall
  /// clock.
  private func expectSums(
    _ summary: [String: Any], span: Double, tolerance: Double = 0.002,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let played = try #require(summary["played"] as? Double, sourceLocation: sourceLocation)
    let skipped = try #require(summary["skipped"] as? Double, sourceLocation: sourceLocation)
    #expect(
      abs(played + skipped - span) < tolerance, "\(played) + \(skipped)", sourceLocation: sourceLocation)
    let reasons = try #require(
      summary["skipped_reasons"] as? [String: Double], sourceLocation: sourceLocation)
    #expect(abs(reasons.values.reduce(0, +) - skipped) < 0.001, sourceLocation: sourceLocation)
    let listed = parts(summary).map { $0.to - $0.from }.reduce(0, +)
    #expect(abs(listed - skipped) < 0.001, "\(parts(summary))", sourceLocation: sourceLocation)
    let shown =
      Double(try #require((summary["frames"] as? [String: Int])?["shown"], sourceLocation: sourceLocation))
      / 30
    #expect(abs(played - shown) < 0.04, "\(played) s of \(shown) s", sourceLocation: sourceLocation)
    let wall = try #require(summary["wall"] as? [String: Double], sourceLocation: sourceLocation)
    let total = try #require(summary["wall_ms"] as? Double, sourceLocation: sourceLocation)
    #expect(abs(wall.values.reduce(0, +) - total) < 0.01, sourceLocation: sourceLocation)
  }

  private func play(
    _ source: String, _ options: String..., status: Int32 = 0,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> [String: Any] {
    let result = try await Command.run(
      ["play", source, "--json"] + options, sourceLocation: sourceLocation)
    #expect(result.status == status, "\(result.errorText)", sourceLocation: sourceLocation)
    return try #require(try PlayEvents(result).summary, sourceLocation: sourceLocation)
  }

  // MARK: Segments

  @Test(
    "Half a segment is missing",
    arguments: [("hls-fmp4/high", "segment-1.m4s"), ("hls-ts/low", "segment-1.ts")])
  func halfSegment(path: String, segment: String) async throws {
    let scene = try Scene(path)
    try scene.cut(segment, to: 0.5)
    let summary = try await play(scene.playlist, "--rate", "max")
    let damaged = parts(summary).filter { $0.reason == "damaged" }
    #expect(damaged.allSatisfy { $0.from > 1 && $0.to < 2.04 }, "\(damaged)")
    #expect((1.96..<2.04).contains(try #require(damaged.last).to), "\(damaged)")
    #expect(damaged.allSatisfy { $0.message?.contains(segment) == true }, "\(damaged)")
    #expect(outcomes(summary).contains("damaged"))
    #expect((summary["loss"] as? [String: Any])?["exit_code"] as? Int == 65)
    try expectSums(summary, span: 3)
    #expect((summary["wall"] as? [String: Double])?["frozen_ms"] ?? 0 == 0)
    // In real time, the player waits for the next frame.
    let longest = damaged.map { $0.to - $0.from }.max() ?? 0
    let bytes = Array(try Data(contentsOf: scene.url(segment)))
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasSuffix(segment) ? .bytes(bytes) : .none
    }
    let waited = try await PlayJobTests.play("\(path)/index.m3u8", fetcher: fetcher, "--rate", "4")
    let frozen = waited.verdict.summary.wall.times[.frozen].milliseconds / 1e3
    #expect(frozen > longest / 4 - 0.05, "\(frozen) of \(longest)")
  }

  @Test("A segment of MPEG-TS that ends between two packets is damaged too")
  func wholePackets() async throws {
    let scene = try Scene("hls-ts/low")
    let bytes = try Data(contentsOf: scene.url("segment-1.ts"))
    try bytes.prefix(bytes.count / 2 / 188 * 188).write(to: scene.url("segment-1.ts"))
    let summary = try await play(scene.playlist, "--rate", "max")
    #expect(parts(summary).map(\.reason) == ["damaged"])
    #expect(outcomes(summary).contains("damaged"))
    try expectSums(summary, span: 3)
  }

  @Test(
    "A segment that is no media, or not there", arguments: ["segment-0.ts", "segment-1.ts", "segment-2.ts"])
  func noSegment(segment: String) async throws {
    let scene = try Scene("hls-ts/low")
    try Data("<html><body>Not found</body></html>".utf8).write(to: scene.url(segment))
    for isThere in [true, false] {
      if !isThere { try FileManager.default.removeItem(at: scene.url(segment)) }
      let summary = try await play(scene.playlist, "--rate", "max")
      let found = parts(summary)
      let place = Double(try #require(Int(segment.dropFirst(8).prefix(1))))
      #expect(found.count == 1 && found.first?.reason == "missing", "\(found)")
      let part = try #require(found.first)
      #expect(abs(part.from - place) < 0.02 && abs(part.to - place - 1) < 0.02, "\(part)")
      #expect(part.message?.contains(segment) == true)
      #expect(outcomes(summary) == ["missing"])
      try expectSums(summary, span: 3)
    }
  }

  @Test(
    "A segment that the list has again is shown once, and so is what follows timestamps that go back",
    arguments: [("hls-fmp4/high", "m4s"), ("hls-ts/low", "ts")])
  func repeatedSegments(path: String, suffix: String) async throws {
    let scene = try Scene(path)
    let list = try String(contentsOf: URL(filePath: scene.playlist), encoding: .utf8)
    let head = list.prefix(upTo: try #require(list.firstRange(of: "#EXTINF")).lowerBound)
    var orders: [(order: [Int], part: ClosedRange<Double>)] = [([0, 0, 0, 0], 1...4), ([0, 0, 2], 1...2)]
    // In MPEG-TS, a jump back by more than a second is joined.
    if suffix == "m4s" { orders.append(([1, 2, 0, 0], 2...4)) }
    for (order, place) in orders {
      let segments = order.map { "#EXTINF:1.0,\nsegment-\($0).\(suffix)\n" }.joined()
      try Data((head + segments + "#EXT-X-ENDLIST\n").utf8).write(to: URL(filePath: scene.playlist))
      for threads in ["1", "2"] {
        let summary = try await play(
          scene.playlist, "--rate", "max", "--threads", threads, "--strict", status: 65)
        let found = parts(summary)
        #expect(found.map(\.reason) == ["jumped"], "\(order): \(found)")
        let part = try #require(found.first)
        #expect(abs(part.from - place.lowerBound) < 0.05 && abs(part.to - place.upperBound) < 0.05, "\(part)")
        #expect(outcomes(summary) == ["jumped"])
        try expectSums(summary, span: Double(order.count))
      }
    }
  }

  @Test("Text and page tell where and why")
  func reports() async throws {
    let scene = try Scene("hls-ts/low")
    try FileManager.default.removeItem(at: scene.url("segment-1.ts"))
    let page = scene.folder.path("page.html")
    let result = try await Command.run("play", scene.playlist, "--rate", "max", "--report", page, status: 0)
    #expect(result.outputText.contains("2 s in"))
    #expect(result.outputText.contains("skipped      1.000 s to 2.000 s, missing: "), "\(result.outputText)")
    #expect(result.outputLines.contains { $0.hasPrefix("  failure ") && $0.hasSuffix("(left out)") })
    let html = try scene.folder.text("page.html")
    #expect(html.contains("Skipped") && html.contains("missing") && html.contains("left out"))
  }

  /// Segments of a second, what is skipped of them, and the whole timeline.
  private struct Account: Sendable {
    let what: String
    /// The name and the stated duration of each segment, with tags before it.
    let segments: [String]
    let skipped: ClosedRange<Double>
    let reason: String
    let span: Double
  }

  private static let accounts = [
    Account(
      what: "a gap", segments: ["1.0 segment-0", "1.0 #EXT-X-GAP gap", "1.0 segment-2"], skipped: 1...2,
      reason: "missing", span: 3),
    Account(
      what: "a file that is not there", segments: ["1.0 segment-0", "1.0 none", "1.0 segment-2"],
      skipped: 1...2, reason: "missing", span: 3),
    Account(
      what: "a hole before a discontinuity",
      segments: ["2.5 segment-0", "1.0 #EXT-X-DISCONTINUITY segment-1"], skipped: 1...2.5, reason: "damaged",
      span: 3.5),
    Account(
      what: "a last segment that is shorter than stated", segments: ["1.0 segment-0", "3.5 segment-1"],
      skipped: 2...4.5, reason: "damaged", span: 4.5),
    Account(
      what: "no picture in the last segments", segments: ["1.0 segment-0", "1.0 noise-1", "1.0 noise-2"],
      skipped: 1...3, reason: "damaged", span: 3),
    Account(
      what: "no picture in the middle", segments: ["1.0 segment-0", "1.0 noise-1", "1.0 segment-2"],
      skipped: 1...2, reason: "damaged", span: 3),
  ]

  @Test("Played and skipped add up to the timeline, whatever is missing", arguments: accounts.indices)
  func account(_ number: Int) async throws {
    let account = Self.accounts[number]
    let scene = try Scene("hls-ts/low")
    for index in 1..<3 {
      var bytes = try [UInt8](Data(contentsOf: scene.url("segment-\(index).ts")))
      Self.overwriteVideo(of: &bytes)
      try Data(bytes).write(to: scene.url("noise-\(index).ts"))
    }
    let segments = account.segments.map { segment in
      let words = segment.split(separator: " ")
      return (words.dropFirst().dropLast() + ["#EXTINF:\(words[0]),", "\(words[words.count - 1]).ts"])
        .joined(separator: "\n")
    }
    let text =
      "#EXTM3U\n#EXT-X-VERSION:8\n#EXT-X-TARGETDURATION:4\n\(segments.joined(separator: "\n"))\n#EXT-X-ENDLIST\n"
    try Data(text.utf8).write(to: URL(filePath: scene.playlist))
    let result = try await Command.run("play", scene.playlist, "--json", "--rate", "max", "--strict")
    #expect([65, 66].contains(result.status), "\(result.errorText)")
    let summary = try #require(try PlayEvents(result).summary)
    let found = parts(summary)
    #expect(found.map(\.reason) == [account.reason], "\(account.what): \(found)")
    let part = try #require(found.first)
    #expect(
      abs(part.from - account.skipped.lowerBound) < 0.15 && abs(part.to - account.skipped.upperBound) < 0.15,
      "\(account.what): \(part)")
    // The duration of the last frame in a transport stream is a guess.
    try expectSums(summary, span: account.span, tolerance: 0.01)
  }

  /// Overwrites the payload of the video, after the headers of PES packets.
  private static func overwriteVideo(of bytes: inout [UInt8]) {
    var random = SplitMix(seed: 1)
    for start in stride(from: 0, to: bytes.count - 187, by: 188) {
      let pid = Int(bytes[start + 1] & 0x1f) << 8 | Int(bytes[start + 2])
      guard pid == 256 else { continue }
      var offset = start + 4
      if bytes[start + 3] & 0x20 != 0 { offset += 1 + Int(bytes[offset]) }
      if bytes[start + 1] & 0x40 != 0 { offset += 9 + Int(bytes[offset + 8]) }
      for index in offset..<max(offset, start + 188) {
        bytes[index] = UInt8.random(in: 4...255, using: &random)
      }
    }
  }

  @Test("A gap between two periods is missing")
  func periodGap() async throws {
    func period(_ number: Int, start: Int) -> String {
      """
      <Period start="PT\(start)S" duration="PT1S"><AdaptationSet mimeType="video/mp4">
      <SegmentTemplate timescale="1000" duration="1000" startNumber="\(number)" presentationTimeOffset="\((number - 1) * 1000)"
       initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/segment-$Number%05d$.m4s"/>
      <Representation id="0" bandwidth="300000" codecs="avc1.64000b"/></AdaptationSet></Period>
      """
    }
    let text = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT4S" minBufferTime="PT1S">
      \(period(1, start: 0))\(period(2, start: 3))</MPD>
      """
    try await withOrigin(routes: [
      "/dash-number/gap.mpd": Origin.Response(text, contentType: "application/dash+xml")
    ]) {
      origin in
      let summary = try await play(
        origin.url("dash-number/gap.mpd").absoluteString, "--rate", "max", "--strict", status: 65)
      let found = parts(summary)
      #expect(found.map(\.reason) == ["missing"], "\(found)")
      let part = try #require(found.first)
      #expect(abs(part.from - 1) < 0.02 && abs(part.to - 3) < 0.02, "\(part)")
      try expectSums(summary, span: 4)
    }
  }

  // MARK: Files

  /// A clip, and its media that is overwritten.
  struct Undecodable: Sendable, CustomTestStringConvertible {
    let path: String
    var isVideo = true
    let times: Range<Double>
    var isNoise = true
    var testDescription: String { "\(path) \(isVideo) \(times) \(isNoise)" }
  }

  private static let undecodableClips: [Undecodable] = {
    let times = [0.6..<9, 0.3..<0.6, 0..<0.3]
    var clips = times.map { Undecodable(path: "media/h264-faststart.mp4", isVideo: false, times: $0) }
    for isNoise in [true, false] {
      clips += times.flatMap { times in
        ["media/h264-gops.mp4", "media/hevc-gops.mp4"].map {
          Undecodable(path: $0, times: times, isNoise: isNoise)
        }
      }
      clips.append(Undecodable(path: "media/vp9.webm", times: times[1], isNoise: isNoise))
    }
    clips.append(Undecodable(path: "media/h264.mkv", times: times[1]))
    for path in ["media/audio-ac3.mp4", "media/audio-eac3.mp4"] {
      clips += (times + [-1..<9]).map {
        Undecodable(path: path, isVideo: false, times: $0, isNoise: $0.lowerBound > 0)
      }
    }
    return clips
  }()

  /// A copy of a clip with other bytes in place of some of its packets, and the end of its video.
  private func overwritten(_ clip: Undecodable) throws -> (bytes: [UInt8], end: Double) {
    var bytes = try Fixtures.bytes(clip.path)
    var options = ContainerReader.Options()
    options.wantsAudio = true
    let format = Fixtures.containerFormat(of: clip.path)
    let container = try ContainerReader(
      source: MemorySource(bytes), format: format, options: options, name: clip.path, logger: silentLogger)
    var random = SplitMix(seed: 1)
    var end = 0.0
    func overwrite(_ packet: Packet, of stream: StreamInfo?, isVideo: Bool) throws {
      let unit = try #require(stream).timeBase.value
      let time = Double(try #require(packet.presentationTicks)) * unit
      if isVideo { end = max(end, time + max(Double(packet.durationTicks) * unit, 0.033)) }
      guard isVideo == clip.isVideo, clip.times.contains(time + 0.001) else { return }
      // The header of a block in Matroska stays.
      let start = Int(try #require(packet.position)) + (format == .matroska ? 8 : 0)
      for index in start..<start + packet.byteCount - (format == .matroska ? 8 : 0) {
        bytes[index] = clip.isNoise ? UInt8.random(in: 0...255, using: &random) : 0
      }
    }
    while true {
      switch try container.next() {
      case .video(let packet): try overwrite(packet, of: container.video, isVideo: true)
      case .audio(let packet): try overwrite(packet, of: container.audio, isVideo: false)
      case .programChanged: break
      case .end: return (bytes, end)
      }
    }
  }

  @Test("Media that can't be decoded is lost, wherever it is", arguments: undecodableClips)
  func undecodableMedia(_ clip: Undecodable) async throws {
    let folder = try TemporaryFolder()
    let (bytes, end) = try overwritten(clip)
    let name = clip.path.replacing("media/", with: "")
    try folder.write(bytes, to: name)
    let summary = try await play(folder.path(name), "--rate", "max", "--strict", status: 65)
    #expect(outcomes(summary).contains("damaged"), "\(summary)")
    let played = try #require(summary["played"] as? Double)
    let skipped = try #require(summary["skipped"] as? Double)
    // After missing frames, a decoder may return some out of order.
    #expect(abs(played + skipped - end) < 0.1, "\(played) + \(skipped), \(end)")
    if clip.isVideo { #expect(skipped > 0.15, "\(skipped)") }
    let check = try await Command.run("check", folder.path(name), "--sample", "all", status: 1)
    #expect(check.outputText.contains("decode-error"), "\(check.outputText)")
  }

  @Test(
    "A file that ends inside of a packet, and a tail that is no media, are damaged",
    arguments: ["hevc.ts", "h264.mkv", "vp9.webm", "h264-fragmented.mp4"], ["cut", "zeros", "noise"])
  func damagedTail(name: String, damage: String) async throws {
    let folder = try TemporaryFolder()
    let bytes = try Fixtures.bytes("media/\(name)")
    let intact = Array(bytes.prefix(bytes.count * 2 / 3 + 1))
    var random = SplitMix(seed: 1)
    let tail: [UInt8] =
      damage == "cut"
      ? []
      : (intact.count..<bytes.count).map { _ in
        damage == "zeros" ? 0 : UInt8.random(in: 0...255, using: &random)
      }
    try folder.write(intact + tail, to: name)
    try folder.write(bytes, to: "intact-\(name)")
    _ = try await play(folder.path(name), "--rate", "max", "--strict", status: 65)
    _ = try await play(folder.path("intact-\(name)"), "--rate", "max", "--strict")
    _ = try await Command.run("check", folder.path(name), "--sample", "all", status: 1)
  }

  @Test("With --duration too, what follows the last frame that can be decoded is skipped")
  func undecodableTail() async throws {
    let folder = try TemporaryFolder()
    let clip = Undecodable(path: "media/h264-faststart.mp4", times: 0.6..<9)
    try folder.write(try overwritten(clip).bytes, to: "tail.mp4")
    let summary = try await play(
      folder.path("tail.mp4"), "--rate", "max", "--duration", "900ms", "--strict", status: 65)
    let played = try #require(summary["played"] as? Double)
    let skipped = try #require(summary["skipped"] as? Double)
    #expect(abs(played - 0.6) < 0.1, "\(played)")
    #expect((0.2..<0.45).contains(skipped), "\(skipped)")
    _ = try await play(folder.path("tail.mp4"), "--rate", "max", "--duration", "500ms", "--strict")
  }

  /// The third fragment, and those after it, begin `seconds` later.
  private func jump(by seconds: Double, in name: String) throws -> [UInt8] {
    var bytes = try Fixtures.bytes(name)
    let starts = bytes.indices.dropLast(20).filter { Array(bytes[$0..<$0 + 4]) == Array("tfdt".utf8) }
    let scale = try timescale(of: bytes)
    for start in starts.dropFirst(2) {
      let size = bytes[start + 4] == 1 ? 8 : 4
      let field = start + 8..<start + 8 + size
      let value = bytes[field].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      bytes.replaceSubrange(field, with: bigEndian(value + UInt64(seconds * scale), bytes: size))
    }
    #expect(starts.count > 2)
    return bytes
  }

  private func timescale(of bytes: [UInt8]) throws -> Double {
    let start = try #require(bytes.firstRange(of: Array("mdhd".utf8))).upperBound
    let offset = bytes[start] == 1 ? 20 : 12
    return Double(bytes[(start + offset)..<(start + offset + 4)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }

  @Test("Timestamps that jump are skipped, and a wait for them is seen")
  func timestampJump() async throws {
    let folder = try TemporaryFolder()
    let bytes = try jump(by: 12, in: "media/h264-fragmented.mp4")
    try folder.write(bytes, to: "jump.mp4")
    let summary = try await play(folder.path("jump.mp4"), "--rate", "max")
    let part = try #require(parts(summary).first { $0.reason == "jumped" }, "\(summary)")
    #expect(abs(part.to - part.from - 12) < 0.04, "\(part)")
    #expect(part.message?.contains("jump") == true)
    // By its own timescale, the audio jumps by less than 10 s.
    #expect(outcomes(summary) == ["jumped"])
    let wall = try #require(summary["wall"] as? [String: Double])
    #expect(wall["frozen_ms"] ?? 0 == 0, "\(wall)")
    let fetcher = FixtureFetcher { _, _ in .bytes(bytes) }
    let waited = try await PlayJobTests.play("jump.mp4", fetcher: fetcher, "--rate", "8")
    #expect(abs(waited.verdict.summary.wall.times[.frozen].milliseconds - 1500) < 10)
  }

  @Test("Damage in the middle of a file: frames that can't be decoded are skipped")
  func damagedFile() async throws {
    let folder = try TemporaryFolder()
    var bytes = try Fixtures.bytes("media/h264-gops.mp4")
    let media = try #require(bytes.firstRange(of: Array("mdat".utf8))).upperBound
    let end = bytes.firstRange(of: Array("moov".utf8)).map {
      $0.lowerBound > media ? $0.lowerBound : bytes.count
    }
    let middle = media + ((end ?? bytes.count) - media) / 2
    for index in middle..<middle + 400 { bytes[index] = UInt8(truncatingIfNeeded: index &* 89) }
    try folder.write(bytes, to: "damaged.mp4")
    let summary = try await play(folder.path("damaged.mp4"), "--rate", "max")
    #expect(outcomes(summary).contains("damaged"), "\(summary)")
    #expect((summary["loss"] as? [String: Any])?["exit_code"] as? Int == 65)
    #expect(parts(summary).allSatisfy { $0.reason == "damaged" })
    _ = try await play(folder.path("damaged.mp4"), "--rate", "max", "--strict", status: 65)
  }

  @Test("Frames that were late are skipped as dropped, which is no loss")
  func dropped() async throws {
    let folder = try TemporaryFolder()
    let source = Fixtures.path("hls-ts/low/index.m3u8")
    // The reader holds up the output for a while, once the first frame is there.
    let result = try await Command.run(
      "play", source, "--json", "--strict", "--y4m", folder.path("frames"),
      shell: """
        mkfifo "\(folder.path("frames"))" || exit 9
        (exec 3<"\(folder.path("frames"))"; head -c 1 <&3 >/dev/null; sleep 1; cat <&3 >/dev/null) &
        "$@"
        """, status: 0)
    let summary = try #require(try PlayEvents(result).summary)
    #expect(try #require((summary["frames"] as? [String: Int])?["dropped"]) > 5, "\(summary)")
    #expect(!parts(summary).isEmpty && parts(summary).allSatisfy { $0.reason == "dropped" })
    #expect(summary["loss"] == nil && summary["failures"] as? Int == 0)
    try expectSums(summary, span: 3)
  }

  // MARK: Rungs

  @Test("A rung has one row, and a switch its cause")
  func rungs() async throws {
    // The higher rung, which is played, has a segment less.
    try await withOrigin("hls-fmp4/high/segment-1.m4s=status:404") { origin in
      let result = try await Command.run(
        "play", origin.url("hls-fmp4/master.m3u8").absoluteString, "--json", "--rate", "max", "--retries", "0"
      )
      let events = try PlayEvents(result)
      let summary = try #require(events.summary)
      let rungs = try #require(summary["rungs"] as? [[String: Any]])
      let names = rungs.compactMap { $0["rung"] as? String }
      #expect(names.count == 2 && Set(names).count == 2, "\(rungs)")
      #expect(rungs.allSatisfy { ($0["bytes"] as? Int ?? 0) > 0 && ($0["frames_shown"] as? Int ?? 0) > 0 })
      let causes = events.all.compactMap { $0["cause"] as? String }
      #expect(causes == ["failure"], "\(events.all)")
      #expect(outcomes(summary) == ["other_rung"])
      #expect(summary["loss"] == nil)
      try expectSums(summary, span: 3)
    }
  }

  // MARK: Gates

  @Test("--strict ends with the code of the first loss; sound sources pass")
  func strict() async throws {
    let scene = try Scene("hls-ts/low")
    try FileManager.default.removeItem(at: scene.url("segment-1.ts"))
    let missing = try await Command.run(
      "play", scene.playlist, "--rate", "max", "--strict", "--quiet", status: 66)
    expectErrorLine(missing, names: "segment-1.ts", words: "no such file")
    let sound = Fixtures.path("hls-ts/low/index.m3u8")
    let good = try await Command.run("play", sound, "--rate", "max", "--strict", "--quiet")
    #expect(good.status == 0 && good.errorText.isEmpty)
    try await Command.run("play", scene.playlist, sound, "--rate", "max", "--strict", "--quiet", status: 1)
    // What was not to be played is no loss.
    try await Command.run(
      "play", scene.playlist, "--rate", "max", "--duration", "500ms", "--strict", "--quiet", status: 0)
    let half = try Scene("hls-fmp4/high")
    try half.cut("segment-1.m4s", to: 0.5)
    try await Command.run("play", half.playlist, "--rate", "max", "--strict", "--quiet", status: 65)
    try await withOrigin("hls-fmp4/audio/segment-1.m4s=status:404") { origin in
      let source = origin.url("hls-fmp4/master.m3u8").absoluteString
      let arguments = ["play", source, "--rate", "max", "--strict", "--quiet", "--retries", "0"]
      let audio = try await Command.run(arguments, status: 69)
      expectErrorLine(audio, names: "audio/segment-1.m4s", words: "404")
      try await Command.run(arguments + ["--mute"], status: 0)
    }
  }

  @Test("--assert: what holds is printed, what does not ends with 1")
  func assertions() async throws {
    let scene = try Scene("hls-ts/low")
    try FileManager.default.removeItem(at: scene.url("segment-1.ts"))
    let arguments = ["play", scene.playlist, "--rate", "max"]
    let met = try await Command.run(
      arguments + [
        "--assert", "first_frame<600s", "--assert", "skipped.missing>=0.9s", "--assert", "stalls.count=0",
        "--assert",
        "failures<=1", "--assert", "frames.dropped=0%",
      ], status: 0)
    #expect(met.outputLines.contains { $0.hasPrefix("first_frame<600s: met, ") })
    let unmet = try await Command.run(
      arguments + ["--assert", "skipped=0ms", "--assert", "live_latency<1s", "--json"], status: 1)
    #expect(
      unmet.errorLines == [
        "reel: skipped=0ms: not met, 1 s", "reel: live_latency<1s: not met, the source is not live",
      ])
    let outcomes = try #require(try PlayEvents(unmet).summary?["assertions"] as? [[String: Any]])
    #expect(outcomes.map { $0["met"] as? Bool } == [false, false])
    #expect(outcomes.first?["assertion"] as? String == "skipped=0ms")
    // A loss says more than an assertion.
    try await Command.run(arguments + ["--assert", "skipped=0ms", "--strict"], status: 66)
    for wrong in ["first_fram<1s", "first_frame", "bytes<20ms"] {
      let result = try await Command.run(arguments + ["--assert", wrong])
      #expect(result.status == 64 && result.outputText.isEmpty, "\(result.errorText)")
    }
    let hint = try await Command.run(arguments + ["--assert", "first_fram<1s"])
    #expect(hint.errorText.contains("did you mean first_frame?"), "\(hint.errorText)")
  }

  @Test("--junit: a case for each source and assertion")
  func junit() async throws {
    let scene = try Scene("hls-ts/low")
    try FileManager.default.removeItem(at: scene.url("segment-1.ts"))
    let sound = Fixtures.path("hls-ts/low/index.m3u8")
    try await Command.run(
      "play", scene.playlist, sound, Fixtures.path("bad/text.mp4"), "--rate", "max", "--strict", "--quiet",
      "--junit",
      scene.folder.path("out.xml"), "--assert", "skipped=0ms", status: 1)
    let xml = try scene.folder.text("out.xml")
    #expect(xml.contains("<testsuites name=\"reel play\" tests=\"6\" failures=\"3\" errors=\"0\""), "\(xml)")
    let lines = xml.split(separator: "\n").map(String.init)
    #expect(lines.count { $0.contains("<testsuite ") } == 3)
    #expect(lines.count { $0.contains("<failure ") } == 3)
    #expect(xml.contains("type=\"noSuchFile\"") && xml.contains("type=\"badMedia\""))
    #expect(xml.contains("skipped=0ms: not met, 1 s"))
    let missing = try await Command.run(
      "play", sound, "--junit", scene.folder.path("none/out.xml"), status: 73)
    expectErrorLine(missing, names: "none/out.xml", words: "no such file")
  }

  @Test("A report that can't be made ends with 73, before anything is played")
  func noReport() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run("play", goodSource, "--report", folder.path("none/a.html"), status: 73)
    #expect(result.errorLines.count == 1 && result.errorText.hasPrefix("reel: "), "\(result.errorText)")
    #expect(result.outputText.isEmpty)
  }
}
