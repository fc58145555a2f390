import Foundation
import Logging
@testable import ReelCheck
import ReelCore
import ReelManifest
import ReelSimulation
import ReelSources
import ReelTestSupport
import ReelTesting
import Testing

/// Sources of which nothing, or not everything, can be judged, and the limit of time.
@Suite("What can't be judged", .hangLimit)
struct JudgementTests {
  private func check(_ url: URL, within limit: Duration? = nil) async throws -> CheckResult {
    var options = CheckOptions()
    options.timeLimit = limit
    let checker = StreamChecker(
      fetcher: makeFetcher(), configuration: LoadingConfiguration(), options: options, logger: silentLogger)
    return try await checker.check(.url(url))
  }

  /// Checks a fixture on a server with a fault.
  private func check(
    _ path: String, _ pattern: String, _ fault: Fault, within limit: Duration = .seconds(20),
    over link: LinkSpec? = nil
  ) async throws -> CheckResult {
    let configuration = Origin.Configuration(
      directory: Fixtures.folder, link: link, faults: [FaultRule(pattern, fault)])
    return try await Origin.use(configuration) { try await check($0.url(path), within: limit) }
  }

  /// Checks text as a file of this name.
  private func check(_ text: String, as name: String, within limit: Duration? = nil) async throws
    -> CheckResult
  {
    let folder = try TemporaryFolder()
    try folder.write(text, to: name)
    return try await check(folder.url.appending(path: name), within: limit)
  }

  private func errors(_ result: CheckResult) -> [String] {
    result.findings.filter { $0.level == .error }.map(\.name)
  }

  private func kind(_ result: CheckResult) -> Unjudged.Kind? {
    if case .unjudged(let reason) = result.judgement { reason.kind } else { nil }
  }

  // MARK: Silent servers

  @Test(
    "Media that never arrives: each rung is dead with the time that was spent, and nothing is known of the source",
    arguments: [Fault.silence, .stall(after: 0), .stall(after: 12)])
  func allSilent(fault: Fault) async throws {
    let result = try await check("hls-ts/master.m3u8", "*.ts", fault)
    #expect(kind(result) == .unanswered)
    #expect(result.silence?.kind == .timedOut)
    let dead = result.findings.filter { $0.name == "rung-dead/no-answer" }
    #expect(dead.count == result.facts.rungs.count)
    for finding in dead {
      let waited = finding.evidence.first { $0.name == "waited_ms" }
      guard case .number(let milliseconds)? = waited?.value else {
        Issue.record("no time: \(finding.summary)")
        continue
      }
      #expect(milliseconds >= 1000)
    }
  }

  @Test("A silent rung beside others is dead, and the others are judged")
  func oneSilent() async throws {
    let result = try await check("hls-ts/master.m3u8", "*high/*.ts", .silence, within: .seconds(120))
    #expect(result.judgement == .judged && result.silence == nil)
    #expect(errors(result) == ["rung-dead/no-answer"])
    #expect(result.coverage.frameCount > 0)
  }

  @Test("One segment that never arrives, where others come at once, is missing")
  func silentSegment() async throws {
    let result = try await check(
      "hls-ts/low/index.m3u8", "*segment-0.ts", .silence, within: .seconds(120))
    #expect(result.judgement == .judged)
    #expect(errors(result) == ["segment-missing/status"])
  }

  @Test("Playlists that never arrive do not hold up the others")
  func silentPlaylist() async throws {
    let result = try await check("hls-ts/master.m3u8", "*low/index.m3u8", .silence, within: .seconds(120))
    #expect(result.judgement == .judged)
    #expect(errors(result) == ["rung-dead/playlist"])
  }

  @Test("Many silent rungs leave their turns to the others")
  func manySilent() async throws {
    let copy = try TemporaryFolder()
    let target = copy.url.appending(path: "stream")
    try FileManager.default.copyItem(at: Fixtures.folder.appending(path: "hls-ts"), to: target)
    var master = "#EXTM3U\n"
    for number in 1...5 {
      try FileManager.default.copyItem(
        at: target.appending(path: "low"), to: target.appending(path: "silent\(number)"))
      master += "#EXT-X-STREAM-INF:BANDWIDTH=\(500_000 + number)\nsilent\(number)/index.m3u8\n"
    }
    master += "#EXT-X-STREAM-INF:BANDWIDTH=900000\nlow/index.m3u8\n"
    try master.write(to: target.appending(path: "many.m3u8"), atomically: true, encoding: .utf8)
    let configuration = Origin.Configuration(
      directory: target, faults: [FaultRule("*silent*/*.ts", .silence)])
    let result = try await Origin.use(configuration) {
      try await check($0.url("many.m3u8"), within: .seconds(120))
    }
    #expect(result.judgement == .judged)
    #expect(result.findings.count { $0.name == "rung-dead/no-answer" } == 5, "\(result.notChecked)")
    #expect(result.facts.rungs.last?.judgement == .judged)
  }

  // MARK: Sound servers

  private static let gaps = """
    #EXTM3U
    #EXT-X-VERSION:8
    #EXT-X-TARGETDURATION:4
    #EXT-X-GAP
    #EXTINF:4,
    0.ts
    #EXT-X-ENDLIST
    """
  private static let empty = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
  private static let unknown = """
    #EXTM3U
    #EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="zzzz.1"
    0.m3u8
    """
  private static let external = """
    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S">
    <Period xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="http://127.0.0.1:1/p.xml"/></MPD>
    """
  private static let subtitles = """
    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S">
    <Period><AdaptationSet mimeType="text/vtt" lang="en"><Representation id="t" bandwidth="100">
    <BaseURL>a.vtt</BaseURL></Representation></AdaptationSet></Period></MPD>
    """

  @Test(
    "A source of which nothing can be judged fails, and says why",
    arguments: [
      (gaps, "a.m3u8", Unjudged.Kind.empty), (empty, "a.m3u8", .empty), (external, "a.mpd", .external),
      (subtitles, "a.mpd", .empty),
    ])
  func unjudged(text: String, name: String, kind: Unjudged.Kind) async throws {
    let result = try await check(text, as: name, within: .seconds(20))
    #expect(self.kind(result) == kind)
    #expect(errors(result).contains("not-checked/\(kind.rawValue)"))
  }

  @Test("A codec that nothing is known of")
  func unknownCodec() async throws {
    let folder = try TemporaryFolder()
    try folder.write(Self.unknown, to: "a.m3u8")
    try FileManager.default.copyItem(
      atPath: Fixtures.path("hls-ts/low/index.m3u8"), toPath: folder.path("0.m3u8"))
    let result = try await check(folder.url.appending(path: "a.m3u8"))
    #expect(kind(result) == .unsupported)
    #expect(errors(result).contains("not-checked/unsupported"))
    #expect(result.notChecked.contains { $0.rung != nil && $0.unjudged?.kind == .unsupported })
  }

  @Test(
    "Files that Reel can't decode",
    arguments: [
      ("bad/codec-png.mp4", Unjudged.Kind.unsupported), ("bad/codec-qtrle.mov", .unsupported),
      ("bad/codec-dirac.ts", .unsupported), ("bad/codec-truehd.mka", .unsupported),
      ("bad/encrypted-cenc.mp4", .encrypted),
      ("hls-sample-aes/index.m3u8", .encrypted), ("encrypted/cbcs/manifest.mpd", .encrypted),
    ])
  func undecodable(path: String, kind: Unjudged.Kind) async throws {
    let result = try await check(Fixtures.folder.appending(path: path))
    #expect(self.kind(result) == kind)
    #expect(errors(result) == ["not-checked/\(kind.rawValue)"])
  }

  @Test("Rungs that were not judged are findings only if they are wanted")
  func omissions() {
    var result = CheckResult(source: "a")
    result.notChecked = [
      NotChecked(Unjudged(.encrypted, "encrypted: Widevine"), rung: "720p"),
      NotChecked(Unjudged(.leftOut, "it is for fast forward and rewind"), rung: "trick"),
      NotChecked(.avOffset, "there is no reference"),
    ]
    #expect(result.omissions.map(\.name) == ["not-checked/encrypted"])
    #expect(result.omissions.first?.rung == "720p")
  }

  // MARK: Time

  @Test("The limit bounds work that does not react to it")
  func limit() async throws {
    let clock = SystemMonotonicClock()
    let hasStopped = Locked(false)
    let outcome: Void? = try await TimeLimit.run(until: clock.now + .milliseconds(50)) {
      await withCheckedContinuation { continuation in
        WorkerThreads.shared.run(named: "test") {
          while !hasStopped.withLock({ $0 }) {}
          continuation.resume()
        }
      }
    }
    #expect(outcome == nil)
    hasStopped.withLock { $0 = true }
    #expect(try await TimeLimit.run(until: clock.now + .seconds(60)) { 1 } == 1)
    let isExtended = Locked(true)
    let later = try await TimeLimit.run(
      until: clock.now,
      extended: { isExtended.withLock { $0.take() } ? clock.now + .seconds(60) : nil }
    ) { 2 }
    #expect(later == 2)
    await #expect(throws: ReelError.self) {
      try await TimeLimit.run(until: clock.now + .seconds(60)) { throw ReelError(.badMedia, "a") }
    }
  }

  @Test(
    "Segments that a server refused are findings, although the time ended reading, and make no rung dead whose others may play"
  )
  func refusedInTime() async throws {
    let result = try await check(
      "hls-ts/low/index.m3u8", "*segment-0.ts", .status(404), within: .seconds(20),
      over: try LinkSpec(parsing: "12kbit/10ms"))
    #expect(errors(result).contains("segment-missing/status"))
    #expect(!errors(result).contains { $0.hasPrefix("rung-dead") })
    #expect(result.notChecked.contains { $0.unjudged?.kind == .time })
    #expect(result.omissions.map(\.name).contains("not-checked/time"))
  }

  @Test("Segments that were refused are told apart from those that did not come")
  func refusedAndSilent() async throws {
    let configuration = Origin.Configuration(
      directory: Fixtures.folder,
      faults: [FaultRule("*segment-0.ts", .status(404)), FaultRule("*segment-1.ts", .stall(after: 12))])
    let result = try await Origin.use(configuration) {
      try await check($0.url("hls-ts/low/index.m3u8"), within: .seconds(40))
    }
    let missing = result.findings.filter { $0.name == "segment-missing/status" }
    #expect(missing.map(\.segment) == [1, 2], "\(missing.map(\.summary))")
    #expect(missing.map { $0.summary.hasSuffix("404 Not Found") } == [true, false])
  }

  @Test("A start is not enough where the time ended before anything else was decoded")
  func startAlone() {
    var facts = StreamFacts()
    facts.start = StartFacts()
    #expect(facts.judgement(openingError: nil) != .judged, "its tracks are not known")
    facts.presentation = Presentation(format: .hls, duration: nil, periods: [])
    var rung = RungFacts(name: "720p", kind: .video)
    rung.status = .cutOff("the time limit was reached")
    facts.rungs = [rung]
    guard case .unjudged(let reason) = facts.judgement(openingError: nil) else {
      Issue.record("it counts as judged")
      return
    }
    #expect(reason.kind == .time)
    // What was read is enough on purpose.
    var sample = SegmentFacts(index: 0)
    sample.isPartial = true
    rung.status = .read
    rung.samples[0] = sample
    facts.rungs = [rung]
    #expect(facts.judgement(openingError: nil) == .judged)
  }

  @Test("An error says by its type why something can't be judged")
  func reasons() {
    func kind(_ error: ReelError, isProtected: Bool = false) -> Unjudged.Kind {
      Unjudged(error, isProtected: isProtected).kind
    }
    #expect(kind(ReelError(.unsupported, found: .encrypted, "a")) == .encrypted)
    #expect(kind(ReelError(.unsupported, found: .reference, "a")) == .external)
    #expect(kind(ReelError(.unsupported, "an encrypted xlink: of a name")) == .unsupported)
    #expect(kind(ReelError(.unsupported, "a"), isProtected: true) == .encrypted)
    #expect(kind(ReelError(found: .otherStreams, "a")) == .unsupported)
    #expect(kind(ReelError(found: .notMedia, "a")) == .faulty)
    #expect(kind(ReelError(.timedOut, "a")) == .unanswered)
  }

  @Test(
    "Manifests of absurd length are checked in part",
    arguments: [
      #"type="static""#, #"type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z""#,
    ])
  func absurd(attributes: String) async throws {
    let sets = videoSet(
      #"<SegmentTemplate timescale="1" media="$Time$.m4s"><SegmentTimeline><S t="0" d="2" r="2000000000"/></SegmentTimeline></SegmentTemplate>"#
    )
    let result = try await check(
      mpd(sets, attributes: attributes, period: #"start="PT0S""#), as: "a.mpd", within: .seconds(300))
    #expect(result.notChecked.contains { $0.reason.contains("too many segments") })
    let rung = try #require(result.facts.rungs.first)
    #expect(rung.segments.count == 100_000 && rung.omittedCount == 900_000)
    #expect(result.judgement != .judged && !errors(result).isEmpty)
  }
}

extension Bool {
  /// Returns the value, and clears it.
  fileprivate mutating func take() -> Bool {
    defer { self = false }
    return self
  }
}
