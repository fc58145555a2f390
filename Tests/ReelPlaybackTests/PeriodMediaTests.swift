import Foundation
import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelLab
import ReelTesting
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

/// Presentations whose periods carry different media: `a` for audio, `v` for video.
@Suite("Periods that carry different media", .hangLimit)
struct PeriodMediaTests {
  /// A complete presentation with a one-second period for each of `kinds`, made from the media of `dash-number`.
  private func presentation(_ kinds: [String]) -> (source: MediaSource, fetcher: FixtureFetcher) {
    let periods = kinds.enumerated().map { index, kinds in
      let template = """
        <SegmentTemplate timescale="1000" duration="1000" startNumber="\(index + 1)"
         presentationTimeOffset="\(index * 1000)" initialization="$RepresentationID$/init.mp4"
         media="$RepresentationID$/segment-$Number%05d$.m4s"/>
        """
      let video = """
        <AdaptationSet mimeType="video/mp4">\(template)<Representation id="0" bandwidth="300000"
         codecs="avc1.64000b"/></AdaptationSet>
        """
      let audio = """
        <AdaptationSet mimeType="audio/mp4">\(template)<Representation id="2" bandwidth="32000"
         codecs="mp4a.40.2"/></AdaptationSet>
        """
      let sets = (kinds.contains("v") ? video : "") + (kinds.contains("a") ? audio : "")
      return "<Period id=\"p\(index)\" duration=\"PT1S\">\(sets)</Period>"
    }
    let text = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT\(kinds.count)S" minBufferTime="PT1S">
      \(periods.joined())</MPD>
      """
    let fetcher = FixtureFetcher { request, _ in
      request.url.lastPathComponent == "periods.mpd" ? .bytes(Array(text.utf8)) : .none
    }
    let url = URL(string: "https://origin.example/dash-number/periods.mpd") ?? Fixtures.folder
    return (.url(url), fetcher)
  }

  /// The frames of the periods that have video.
  private func expected(_ kinds: [String]) throws -> [Shown] {
    let golden = try Golden("dash-number-0")
    return kinds.indices.filter { kinds[$0].contains("v") }.flatMap { index in
      golden.frames[index * 30..<(index + 1) * 30].map { Shown(time: golden.time($0.ticks), md5: $0.md5) }
    }
  }

  private static let patterns = [
    ["a", "av", "av"], ["av", "a", "av"], ["av", "av", "a"], ["a", "a", "av"], ["v", "av", "v"],
    ["av", "v", "av"],
    ["a", "v", "a"], ["v", "a", "v"],
  ]

  // MARK: Extraction

  @Test("Frames come from the periods with video", arguments: patterns)
  func frames(kinds: [String]) async throws {
    let (source, fetcher) = presentation(kinds)
    let all = try await extract(.count(0), from: source, fetcher: fetcher)
    let wanted = try expected(kinds)
    #expect(all.frames == wanted)
    let first = try await extract(.first, from: source, fetcher: fetcher)
    #expect(first.frames == Array(wanted.prefix(1)))
  }

  @Test("At a time without video, the last frame before it is taken")
  func timesBetween() async throws {
    let kinds = ["av", "a", "av"]
    let (source, fetcher) = presentation(kinds)
    let times = [0.5, 1.5, 2.0].map { MediaTime(seconds: $0) }
    let shown = try await extract(.times(times), from: source, fetcher: fetcher).frames
    let all = try expected(kinds)
    #expect(shown == [all[15], all[29], all[30]])
    // Before the first frame, the first one is taken.
    let late = presentation(["a", "av"])
    let early = try await extract(.times([MediaTime(seconds: 0.5)]), from: late.source, fetcher: late.fetcher)
    let first = try expected(["a", "av"]).prefix(1)
    #expect(early.frames == Array(first))
  }

  @Test("Without any video, the error names what there is")
  func noVideo() async throws {
    let (source, fetcher) = presentation(["a", "a"])
    let error = await reelError { _ = try await extract(.first, from: source, fetcher: fetcher) }
    #expect(error?.kind == .unsupported)
    #expect(error?.reason == "no video, only audio")
    let player = try await simulate(source, fetcher: fetcher)
    guard case .failed(let failure) = player.end else {
      Issue.record("it did not fail")
      return
    }
    #expect(failure.reason == "no video, only audio")
  }

  @Test("A probe describes the first period that has video")
  func probe() async throws {
    let (source, fetcher) = presentation(["a", "av"])
    let description = try await SourceProber(fetcher: fetcher, logger: silentLogger).probe(source)
    #expect(description.failure == nil)
    #expect(description.chosenPeriod == 1)
    #expect(description.chosenRung?.id == "0")
    let first = try expected(["a", "av"]).first
    #expect(description.firstFrame?.md5 == first?.md5)
  }

  // MARK: Playback

  /// Records each piece of audio that was played, with its time on the player's clock.
  private final class Sound: AudioOutput {
    struct Piece: Sendable {
      var start: Double
      var end: Double
      var heard: Duration
    }

    let pieces = Locked<[Piece]>([])
    private let clock: any MonotonicClock

    init(_ clock: any MonotonicClock) { self.clock = clock }

    func write(_ audio: TimedAudio) throws {
      let end = (audio.time + audio.buffer.duration).seconds
      pieces.withLock { $0.append(Piece(start: audio.time.seconds, end: end, heard: clock.now)) }
    }

    func finish() throws {}

    /// How much of a range was heard, in seconds.
    func heard(_ range: Range<Double>) -> Double {
      pieces.withLock { pieces in
        pieces.reduce(0) { $0 + max(0, min($1.end, range.upperBound) - max($1.start, range.lowerBound)) }
      }
    }
  }

  /// Records each frame that was shown, with its time on the player's clock.
  private final class Screen: FrameOutput {
    let isExternal = false
    let frames = Locked<[(shown: Shown, at: Duration)]>([])
    private let clock: any MonotonicClock

    init(_ clock: any MonotonicClock) { self.clock = clock }

    func show(_ frame: VideoFrame) throws {
      let shown = try Shown(frame)
      frames.withLock { $0.append((shown, clock.now)) }
    }

    func finish() throws {}

    var all: [(shown: Shown, at: Duration)] { frames.withLock { $0 } }
  }

  private struct Played {
    let screen: Screen
    let sound: Sound
    let events: [PlayerEvent]
    let statistics: PlayerStatistics
  }

  /// Plays in a simulation to the end, or to a time of the simulation.
  private func play(
    _ source: MediaSource, _ fetcher: any Fetching, in simulation: SimulatedRuntime = SimulatedRuntime(),
    until limit: Duration = .seconds(120), configure: (inout PlayerConfiguration) -> Void = { _ in },
    prepare: (SimulatedStage) async throws -> Void = { _ in }
  ) async throws -> Played {
    let stage = try SimulatedStage(source, fetcher: fetcher, in: simulation, configure: configure)
    let (screen, sound) = (Screen(simulation), Sound(simulation))
    try stage.player.attach(screen)
    stage.player.attach(sound)
    stage.begin()
    try await prepare(stage)
    await simulation.run(by: limit) { stage.events.contains(where: \.isEnd) }
    let (events, statistics) = (stage.events, stage.player.statistics)
    try await stage.close()
    return Played(screen: screen, sound: sound, events: events, statistics: statistics)
  }

  @Test("A complete presentation plays through, with audio in the periods that have it", arguments: patterns)
  func playing(kinds: [String]) async throws {
    let (source, fetcher) = presentation(kinds)
    let played = try await play(source, fetcher)
    #expect(played.screen.all.map(\.shown) == (try expected(kinds)), "\(played.events)")
    #expect(played.statistics.droppedFrameCount == 0)
    for (index, kinds) in kinds.enumerated() {
      let (start, end) = (Double(index), Double(index + 1))
      let heard = played.sound.heard(start..<end)
      #expect(kinds.contains("a") ? heard > 0.9 : heard < 0.1, "period \(index): \(heard) s")
    }
    guard case .playedToEnd(let time)? = played.events.last(where: \.isEnd) else {
      Issue.record("\(played.events)")
      return
    }
    let last = Double((kinds.lastIndex { $0.contains("v") || $0.contains("a") } ?? 0) + 1)
    #expect(abs(time.seconds - last) < 0.1, "\(time.seconds)")
    #expect(
      played.events.filter { if case .gapSkipped = $0 { true } else { false } }.isEmpty, "\(played.events)")
    #expect(played.events.filter { if case .firstFrame = $0 { true } else { false } }.count == 1)
  }

  @Test("Frames wait for the audio before them, and the last one stays visible")
  func pacing() async throws {
    for kinds in [["a", "av", "av"], ["av", "a", "av"]] {
      let (source, fetcher) = presentation(kinds)
      let played = try await play(source, fetcher)
      let begin = try #require(played.sound.pieces.withLock { $0.first }).heard
      let following = try #require(played.screen.all.first { $0.shown.time.seconds >= 1 })
      // By the presentation's clock, which never runs faster than the player's.
      #expect(following.at - begin >= .seconds(following.shown.time.seconds - 0.05), "\(kinds)")
    }
  }

  @Test(
    "A seek to a position without video stays there", arguments: [["a", "av", "av"], ["av", "a", "av"]])
  func seeking(kinds: [String]) async throws {
    let (source, fetcher) = presentation(kinds)
    let place = (Double(kinds.firstIndex(of: "a") ?? 0) + 0.25)
    let played = try await play(
      source, fetcher,
      prepare: { stage in
        _ = try await stage.seek(to: MediaTime(seconds: place))
        #expect(abs(stage.player.currentTime.seconds - place) < 0.2)
      })
    let all = try expected(kinds)
    #expect(played.screen.all.suffix(10).map(\.shown).allSatisfy { all.suffix(30).contains($0) })
    #expect(played.sound.heard(place + 0.05..<place + 0.7) > 0.6)
    #expect(played.events.contains { if case .playedToEnd = $0 { true } else { false } })
  }

  // MARK: Live

  /// A live presentation with one period per pass, some of which lack a kind of media.
  private struct Thinned: DynamicResource {
    let base: DASHLiveSimulation
    /// The kind of media that an iteration lacks: `video`, `audio`, or nil.
    let lack: @Sendable (Int) -> String?

    func response(at path: String) -> Origin.Response? {
      guard var response = base.response(at: path),
        path == "/" + base.manifestPath || path == base.manifestPath
      else { return base.response(at: path) }
      let text = String(decoding: response.bytes, as: UTF8.self)
      var parts = text.components(separatedBy: "<Period id=\"p")
      for index in parts.indices.dropFirst() {
        guard let loop = Int(parts[index].prefix { $0.isNumber }), let kind = lack(loop) else { continue }
        let sets = parts[index].components(separatedBy: "<AdaptationSet")
        parts[index] =
          sets.first.map { first in
            first
              + sets.dropFirst().map { set in
                guard set.contains("contentType=\"\(kind)\"") else { return "<AdaptationSet" + set }
                return set.components(separatedBy: "</AdaptationSet>").last ?? ""
              }.joined()
          } ?? ""
      }
      response.bytes = Array(parts.joined(separator: "<Period id=\"p").utf8)
      return response
    }
  }

  /// Joins in a complete pass (which begins at 99 s), or in one that lacks media (from 102 s).
  @Test(
    "A live presentation goes on without video or audio, and resumes it later",
    arguments: [100.5, 104.8], ["video", "audio"])
  func live(join: Double, lacking: String) async throws {
    let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)
    let runtime = SimulatedRuntime()
    let wall = SimulatedWallClock(runtime, beginning: launch + MediaTime(seconds: join))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "dash-number/manifest.mpd"))
    let simulation = try DASHLiveSimulation(
      material, start: launch,
      options: .init(
        minimumUpdatePeriod: MediaTime(value: 1, timescale: 1),
        timeShiftBufferDepth: MediaTime(value: 4, timescale: 1),
        suggestedPresentationDelay: MediaTime(value: 2, timescale: 1))
    ) { wall.now }
    let thinned = Thinned(base: simulation) { $0 % 2 == 0 ? lacking : nil }
    let url = try #require(URL(string: "http://origin\(simulation.manifestPath)"))
    let played = try await play(
      .url(url), SimulationFetcher(resource: thinned), in: runtime, until: .seconds(15),
      configure: { $0.loading.clock = wall })
    let ends = played.events.filter(\.isEnd)
    #expect(ends.isEmpty, "\(played.events)")
    let begin = join - 2
    let times = played.screen.all.map(\.shown.time.seconds)
    #expect(times == times.sorted())
    // Passes last 3 s. Those from 102, 108 and 114 s lack the media.
    let isLacking = { (time: Double) in Int(time / 3) % 2 == 0 }
    if lacking == "video" {
      #expect(times.allSatisfy { !isLacking($0 + 0.001) }, "\(times)")
      #expect(times.contains { $0 >= 105 && $0 < 108 }, "\(times)")
      #expect(times.contains { $0 >= 111 }, "\(times)")
      #expect(played.sound.heard(begin + 2..<111) > 111 - begin - 3, "\(played.events)")
    } else {
      #expect(times.contains { isLacking($0) })
      #expect(times.last.map { $0 > 111 } == true)
      #expect(played.sound.heard(105..<108) > 2.5)
      #expect(played.sound.heard(108.1..<110.9) == 0)
      #expect(played.sound.heard(111..<112) > 0.5, "\(played.events)")
    }
  }

  @Test("Frames of a live presentation come from the periods with video")
  func liveFrames() async throws {
    let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)
    let clock = ManualClock(launch + MediaTime(seconds: 104.5))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "dash-number/manifest.mpd"))
    let simulation = try DASHLiveSimulation(
      material, start: launch,
      options: .init(
        minimumUpdatePeriod: MediaTime(value: 1, timescale: 1),
        suggestedPresentationDelay: MediaTime(value: 2, timescale: 1))
    ) { clock.now }
    let thinned = Thinned(base: simulation) { $0 % 2 == 0 ? "video" : nil }
    try await Origin.use(.init(resources: [thinned])) { origin in
      var configuration = LoadingConfiguration()
      configuration.clock = clock
      let extractor = FrameExtractor(
        fetcher: makeFetcher(attempts: 0), configuration: configuration, logger: silentLogger)
      let times = Locked<[Double]>([])
      try await extractor.extract(
        .count(200), from: .url(origin.baseURL.appending(path: simulation.manifestPath))
      ) { frame in
        times.withLock { $0.append(frame.time.seconds) }
      }
      let shown = times.withLock { $0 }
      #expect(shown.allSatisfy { Int(($0 + 0.001) / 3) % 2 == 1 }, "\(shown)")
      for range in [99.0..<102, 105..<108, 111..<114] {
        #expect(shown.contains { range.contains($0) }, "\(shown)")
      }
      #expect(shown == shown.sorted())
    }
  }
}
