import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelReading
import ReelSources
import ReelTesting
import ReelTestSupport
import Testing

/// When the simulations begin: 2026-01-31T12:00:00Z.
private let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)

private func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value, timescale: 1_000_000) }

/// The low rung of the fixtures that carry the same encode: 3 segments of 30 frames, endless.
private func looped(_ golden: String, from segment: Int, count: Int) throws -> [String] {
  let frames = try Golden(golden).frames.map(\.md5)
  return (0..<count).map { frames[(segment * 30 + $0) % frames.count] }
}

@Suite("Live presentations", .hangLimit)
struct LiveTests {
  private let clock = ManualClock(launch)

  private func source(of origin: Origin, _ path: String) -> MediaSource {
    .url(origin.baseURL.appending(path: path))
  }

  private func configuration() -> LoadingConfiguration {
    var configuration = LoadingConfiguration()
    configuration.clock = clock
    return configuration
  }

  /// Frames of a live source that has gone on for `elapsed` seconds when it is opened.
  private func frames(
    _ selection: FrameSelection, of simulation: any DynamicResource, at path: String, faults: [FaultRule] = []
  ) async throws -> [Shown] {
    try await Origin.use(.init(resources: [simulation], faults: faults)) { origin in
      let extractor = FrameExtractor(
        fetcher: makeFetcher(attempts: 0), configuration: configuration(), logger: silentLogger)
      let frames = Locked<[Shown]>([])
      try await extractor.extract(selection, from: source(of: origin, path)) { frame in
        let shown = try Shown(frame)
        frames.withLock { $0.append(shown) }
      }
      return frames.withLock { $0 }
    }
  }

  private func hls(
    _ name: String = "hls-ts/master.m3u8", _ options: HLSLiveSimulation.Options = .init(),
    after elapsed: Double = 100
  ) throws -> HLSLiveSimulation {
    clock.set(launch + seconds(elapsed))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: name))
    return try HLSLiveSimulation(material, start: launch, options: options) { [clock] in clock.now }
  }

  private func dash(
    _ name: String = "dash-number/manifest.mpd", _ options: DASHLiveSimulation.Options = .init(),
    after elapsed: Double = 100
  ) throws -> DASHLiveSimulation {
    clock.set(launch + seconds(elapsed))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: name))
    return try DASHLiveSimulation(material, start: launch, options: options) { [clock] in clock.now }
  }

  // MARK: HLS

  @Test(
    "HLS is played from three target durations before the edge, and on through a minute",
    arguments: [("hls-ts/master.m3u8", "hls-ts-high"), ("hls-fmp4/master.m3u8", "hls-fmp4-high")])
  func hlsGoesOn(name: String, golden: String) async throws {
    let live = try hls(name)
    let shown = try await frames(.count(1800), of: live, at: live.manifestPath)
    #expect(shown.map(\.md5) == (try looped(golden, from: 97, count: 1800)))
    for (index, frame) in shown.enumerated() {
      // The window's oldest segment is number 94: the timeline begins there.
      let expected = MediaTime(value: Int64(3 * 30 + index), timescale: 30)
      #expect(abs((frame.time - expected).seconds) < 0.02, "frame \(index)")
    }
  }

  @Test("A media playlist by itself is followed too")
  func mediaPlaylist() async throws {
    let live = try hls("hls-ts/low/index.m3u8")
    let shown = try await frames(.count(400), of: live, at: live.manifestPath)
    #expect(shown.map(\.md5) == (try looped("hls-ts-low", from: 97, count: 400)))
  }

  @Test("A stream that ends is played to its end")
  func ending() async throws {
    let live = try hls(options(.init(segmentCount: 108)))
    let shown = try await frames(.count(0), of: live, at: live.manifestPath)
    #expect(shown.map(\.md5) == (try looped("hls-ts-high", from: 97, count: 11 * 30)))
  }

  private func options(_ options: HLSLiveSimulation.Options) -> HLSLiveSimulation.Options { options }

  private func hls(_ options: HLSLiveSimulation.Options) throws -> HLSLiveSimulation {
    try hls("hls-ts/master.m3u8", options)
  }

  @Test("Old copies, a stall, and an EVENT playlist make no difference")
  func disturbances() async throws {
    let disturbed = LiveDisturbances(
      stalls: [.init(after: seconds(104), length: seconds(5))],
      staleCopies: .init(every: 2, age: seconds(2)))
    for isEvent in [false, true] {
      let live = try hls(.init(isEvent: isEvent, disturbances: disturbed))
      let shown = try await frames(.count(900), of: live, at: live.manifestPath)
      #expect(shown.map(\.md5) == (try looped("hls-ts-high", from: 97, count: 900)))
    }
  }

  @Test("A stream that brings nothing new any more is given up")
  func stall() async throws {
    let stalled = LiveDisturbances(stalls: [.init(after: seconds(104), length: seconds(100_000))])
    let live = try hls(.init(disturbances: stalled))
    let error = await #expect(throws: ReelError.self) {
      _ = try await frames(.count(0), of: live, at: live.manifestPath)
    }
    #expect(error?.kind == .timedOut)
    #expect(error?.reason.contains("no new segment") == true)
    #expect((clock.now - launch).seconds > 130)
  }

  @Test("A segment that is not to be had is passed over, and the time goes on")
  func missingSegment() async throws {
    let live = try hls()
    let shown = try await frames(
      .count(150), of: live, at: live.manifestPath, faults: FaultRule.parse("*-100.ts=status:404"))
    let expected = try looped("hls-ts-high", from: 97, count: 180)
    try #require(shown.map(\.md5) == Array(expected[0..<90] + expected[120..<180]))
    #expect(abs((shown[90].time - shown[89].time).seconds - 1.0333) < 0.02)
  }

  @Test("Connections that break are waited out, and nothing is lost")
  func outage() async throws {
    let live = try hls()
    let shown = try await frames(
      .count(300), of: live, at: live.manifestPath, faults: FaultRule.parse("*-100.ts=reset:0x5"))
    #expect(shown.map(\.md5) == (try looped("hls-ts-high", from: 97, count: 300)))
  }

  @Test("Segments that fail one after the other end it")
  func allMissing() async throws {
    let live = try hls()
    let error = await #expect(throws: ReelError.self) {
      _ = try await frames(
        .count(0), of: live, at: live.manifestPath, faults: FaultRule.parse("*.ts=status:404"))
    }
    #expect(error?.kind == .server)
  }

  @Test("Playlists that can't be had for a while are asked for again")
  func failingPlaylist() async throws {
    let live = try hls()
    let shown = try await frames(
      .count(600), of: live, at: live.manifestPath,
      faults: FaultRule.parse("*/high/index.m3u8=delay:1msx2,*/high/index.m3u8=status:503x4"))
    #expect(shown.map(\.md5) == (try looped("hls-ts-high", from: 97, count: 600)))
  }

  // MARK: DASH

  @Test(
    "DASH is played from its delay before the edge, and on through new periods",
    arguments: [
      DASHCase("by number, a period each loop", .init(minimumUpdatePeriod: seconds(2))),
      DASHCase("by number, by the clock alone", .init(periods: .single, minimumUpdatePeriod: nil)),
      DASHCase(
        "a growing timeline", .init(addressing: .timeline, periods: .single, minimumUpdatePeriod: seconds(2))),
      DASHCase("a timeline and new periods", .init(addressing: .timeline, minimumUpdatePeriod: seconds(1))),
      DASHCase("whenever more is needed", .init(addressing: .timeline, minimumUpdatePeriod: .zero)),
      DASHCase(
        "a clock that is off, set by HEAD",
        .init(minimumUpdatePeriod: seconds(2), timeSchemes: [.httpHead], serverClockOffset: seconds(5000))),
      DASHCase(
        "a clock that is off, told directly",
        .init(
          periods: .single, minimumUpdatePeriod: nil, timeSchemes: [.direct],
          serverClockOffset: seconds(-3000))),
      DASHCase(
        "a clock that is off, set by a text",
        .init(
          periods: .single, minimumUpdatePeriod: seconds(5), timeSchemes: [.httpISO],
          serverClockOffset: seconds(77))),
      DASHCase(
        "a clock that is behind all listed segments",
        .init(
          addressing: .timeline, periods: .single, minimumUpdatePeriod: seconds(2),
          serverClockOffset: seconds(30))),
      DASHCase(
        "a clock that is far behind, and new periods",
        .init(
          addressing: .timeline, minimumUpdatePeriod: seconds(1), timeShiftBufferDepth: seconds(5),
          serverClockOffset: seconds(7203))),
      DASHCase(
        "a clock that is ahead of all listed segments",
        .init(
          addressing: .timeline, periods: .single, minimumUpdatePeriod: seconds(2),
          serverClockOffset: seconds(-1800))),
    ])
  func dashGoesOn(variant: DASHCase) async throws {
    var options = variant.options
    options.suggestedPresentationDelay = seconds(4)
    let live = try dash("dash-number/manifest.mpd", options, after: 3100)
    let shown = try await frames(.count(1200), of: live, at: live.manifestPath)
    // 4 s before the edge, in whole segments; where the clock is set by whole seconds, maybe one segment more.
    let edge = Int((3100 + options.serverClockOffset.seconds).rounded(.down))
    let expected = try looped("dash-number-1", from: edge - 4, count: 1200)
    let earlier = try looped("dash-number-1", from: edge - 5, count: 1200)
    #expect(shown.map(\.md5) == expected || shown.map(\.md5) == earlier)
    for (earlier, later) in zip(shown, shown.dropFirst()) {
      #expect(abs((later.time - earlier.time).seconds - 1.0 / 30) < 0.02)
    }
  }

  struct DASHCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let options: DASHLiveSimulation.Options

    init(_ description: String, _ options: DASHLiveSimulation.Options) {
      testDescription = description
      self.options = options
    }
  }

  @Test("A broadcast that ends becomes static and is played to its end")
  func dashEnding() async throws {
    let live = try dash(
      "dash-number/manifest.mpd",
      .init(minimumUpdatePeriod: seconds(2), suggestedPresentationDelay: seconds(4), passCount: 35))
    let shown = try await frames(.count(0), of: live, at: live.manifestPath)
    #expect(shown.map(\.md5) == (try looped("dash-number-1", from: 96, count: 9 * 30)))
  }

  @Test("An MPD that begins anew, from another zero, is followed on", arguments: [true, false])
  func dashRestart(isByNumber: Bool) async throws {
    let options = DASHLiveSimulation.Options(
      addressing: isByNumber ? .number : .timeline, periods: .single, minimumUpdatePeriod: seconds(2),
      suggestedPresentationDelay: seconds(4))
    let first = try dash("dash-number/manifest.mpd", options, after: 100)
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "dash-number/manifest.mpd"))
    let restart = launch + seconds(110)
    let second = try DASHLiveSimulation(material, start: restart, options: options) { [clock] in clock.now }
    let live = Restarted(first: first, second: second, at: restart + seconds(6)) { [clock] in clock.now }
    let shown = try await frames(.count(1200), of: live, at: first.manifestPath)
    try #require(shown.count == 1200)
    // 40 s of frames, and what was not there while it began anew.
    let span = (shown[1199].time - shown[0].time).seconds
    #expect(span >= 39.9 && span < 52, "\(span)")
    for (earlier, later) in zip(shown, shown.dropFirst()) { #expect(later.time > earlier.time) }
  }

  /// One presentation, and from a time on another in its place.
  private struct Restarted: DynamicResource {
    let first: DASHLiveSimulation
    let second: DASHLiveSimulation
    let time: WallTime
    let now: @Sendable () -> WallTime

    init(
      first: DASHLiveSimulation, second: DASHLiveSimulation, at time: WallTime,
      now: @escaping @Sendable () -> WallTime
    ) {
      (self.first, self.second, self.time, self.now) = (first, second, time, now)
    }

    func response(at path: String) -> Origin.Response? {
      (now() < time ? first : second).response(at: path)
    }
  }
}
