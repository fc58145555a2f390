import Foundation
import ReelCore
import ReelFFmpeg
import ReelSimulation
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

/// EXT-X-START (RFC 8216 §4.3.5.2): where playback begins unless the viewer chooses a position.
@Suite("The start that a playlist states", .hangLimit)
struct StartOffsetTests {
  private static let path = "hls-fmp4/high/index.m3u8"
  private static let clip = Result { try StressClip(path, golden: "hls-fmp4-high", clock: .fromZero) }

  /// A fetcher of fixtures whose playlists of this name begin with EXT-X-START.
  private static func fetcher(_ attributes: String, in name: String = "high/index.m3u8") -> FixtureFetcher {
    FixtureFetcher { request, _ in
      let path = String(request.url.path.dropFirst())
      guard path.hasSuffix(name), let bytes = try? Fixtures.bytes(path) else { return .none }
      return .bytes(inserting(attributes, into: bytes))
    }
  }

  private static func inserting(_ attributes: String, into bytes: [UInt8]) -> [UInt8] {
    let text = String(decoding: bytes, as: UTF8.self)
    return Array(("#EXTM3U\n#EXT-X-START:\(attributes)\n" + text.dropFirst(8)).utf8)
  }

  private static let starts: [(attributes: String, first: Int)] = [
    ("TIME-OFFSET=1.5", 30), ("TIME-OFFSET=-1.5", 30), ("TIME-OFFSET=1.5,PRECISE=YES", 45),
    ("TIME-OFFSET=-0.5,PRECISE=YES", 75), ("TIME-OFFSET=2", 60), ("TIME-OFFSET=0", 0),
    ("TIME-OFFSET=100", 60),
    ("TIME-OFFSET=100,PRECISE=YES", 89), ("TIME-OFFSET=-100", 0), ("TIME-OFFSET=-100,PRECISE=YES", 0),
  ]

  @Test("Playback begins there, at the segment or, if it is precise, at the frame", arguments: starts)
  func playing(attributes: String, first: Int) async throws {
    let clip = try Self.clip.get()
    let source = try MediaSource(argument: "http://fixtures.test/\(Self.path)")
    let played = try await simulate(source, fetcher: Self.fetcher(attributes))
    #expect(clip.indices(of: played.shown) == Array(first..<90))
    #expect(played.item.errorLog.isEmpty)
    if case .playedToEnd(let end) = played.end {
      #expect(abs(end.seconds - 3) < 0.05)
    } else {
      Issue.record("\(played.end)")
    }
  }

  /// Records where audio begins.
  private final class Sound: AudioOutput {
    private let start = Locked<MediaTime?>(nil)

    var beginning: MediaTime? { start.withLock { $0 } }

    func write(_ audio: TimedAudio) { start.withLock { $0 = $0 ?? audio.time } }

    func finish() {}
  }

  @Test(
    "Separate audio begins with the video, whichever playlist states the start",
    arguments: ["master.m3u8", "high/index.m3u8"],
    [("TIME-OFFSET=1.5", 1.0), ("TIME-OFFSET=1.5,PRECISE=YES", 1.5)])
  func audio(name: String, start: (attributes: String, time: Double)) async throws {
    let stage = try SimulatedStage("hls-fmp4/master.m3u8", fetcher: Self.fetcher(start.attributes, in: name))
    let sound = Sound()
    stage.player.attach(sound)
    stage.begin()
    try await stage.end()
    let clip = try Self.clip.get()
    #expect(clip.indices(of: stage.recording.all) == Array(Int(start.time * 30)..<90))
    let beginning = try #require(sound.beginning)
    #expect(abs(beginning.seconds - start.time) < 0.03, "\(beginning)")
    try await stage.close()
  }

  @Test("A start that the program names wins, 0 too", arguments: [(0.0, 0), (0.5, 15), (2.0, 60)])
  func named(seconds: Double, first: Int) async throws {
    let stage = try SimulatedStage(Self.path, fetcher: Self.fetcher("TIME-OFFSET=1.5,PRECISE=YES"))
    stage.player.setRate(.infinity)
    stage.player.replaceCurrentItem(with: stage.item, startingAt: MediaTime(seconds: seconds))
    try await stage.end()
    #expect(try Self.clip.get().indices(of: stage.recording.all) == Array(first..<90))
    try await stage.close()
  }

  @Test("A loop begins again at 0, without a hole")
  func loop() async throws {
    let stage = try SimulatedStage(Self.path, fetcher: Self.fetcher("TIME-OFFSET=1"))
    stage.player.actionAtItemEnd = .loop
    stage.begin(rate: .infinity)
    try await stage.run { stage.recording.all.count >= 150 }
    try await stage.close()
    let shown = try Self.clip.get().indices(of: stage.recording.all)
    #expect(Array(shown.prefix(150)) == Array(30..<90) + Array(0..<90))
  }

  @Test(
    "Extraction counts from 0",
    arguments: ["TIME-OFFSET=1.5", "TIME-OFFSET=-1", "TIME-OFFSET=1.5,PRECISE=YES"])
  func extraction(attributes: String) async throws {
    let expected = try Self.clip.get().expected
    let source = try MediaSource(argument: "http://fixtures.test/\(Self.path)")
    let selections: [(FrameSelection, [Int])] = [
      (.first, [0]), (.count(2), [0, 1]), (.times([MediaTime(seconds: 0.5)]), [15]),
      (.times([.zero, MediaTime(seconds: 1)]), [0, 30]), (.every(MediaTime(seconds: 1)), [0, 30, 60]),
    ]
    for (selection, indices) in selections {
      let frames = try await extract(selection, from: source, fetcher: Self.fetcher(attributes)).frames
      #expect(frames == indices.map { expected[$0] }, "\(selection)")
    }
  }

  // MARK: Live

  /// A live stream whose playlists have EXT-X-START.
  private struct Started: DynamicResource {
    let base: HLSLiveSimulation
    let attributes: String

    func response(at path: String) -> Origin.Response? {
      guard var response = base.response(at: path), path.hasSuffix(".m3u8") else {
        return base.response(at: path)
      }
      response.bytes = StartOffsetTests.inserting(attributes, into: response.bytes)
      return response
    }
  }

  /// Plays a live stream for some seconds. Its window begins at 88 s, which is 0 on the player's timeline.
  private func live(_ attributes: String, startingAt start: MediaTime? = nil) async throws -> SimulatedStage {
    let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)
    let runtime = SimulatedRuntime()
    let wall = SimulatedWallClock(runtime, beginning: launch + MediaTime(seconds: 100))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "hls-fmp4/master.m3u8"))
    let live = try HLSLiveSimulation(material, start: launch, options: .init(windowCount: 12)) { wall.now }
    let url = try #require(URL(string: "http://origin\(live.manifestPath)"))
    let resource = Started(base: live, attributes: attributes)
    let stage = try SimulatedStage(.url(url), fetcher: SimulationFetcher(resource: resource), in: runtime) {
      $0.loading.clock = wall
    }
    if let start {
      stage.player.setRate(1)
      stage.player.replaceCurrentItem(with: stage.item, startingAt: start)
    } else {
      stage.begin()
    }
    await runtime.run(by: .seconds(8)) { false }
    try await stage.close()
    return stage
  }

  private func expectFirst(_ stage: SimulatedStage, at time: Double) throws {
    let first = try #require(stage.recording.all.first)
    #expect(abs(first.time.seconds - time) < 0.04, "\(first)")
    let golden = try Golden("hls-fmp4-high").frames
    #expect(first.md5 == golden[Int(((time + 88) * 30).rounded()) % golden.count].md5)
  }

  @Test(
    "A live stream begins there and keeps that distance",
    arguments: [
      ("TIME-OFFSET=-5", 7.0), ("TIME-OFFSET=-4.5,PRECISE=YES", 7.5), ("TIME-OFFSET=6.2", 6),
      ("TIME-OFFSET=6.2,PRECISE=YES", 6.2),
    ])
  func live(attributes: String, beginning: Double) async throws {
    let stage = try await live(attributes)
    try expectFirst(stage, at: beginning)
    #expect(!stage.eventNames.contains("jumpedToLive"), "\(stage.events)")
    #expect(stage.recording.all.count > 200)
  }

  @Test(
    "An offset beyond a live playlist is its beginning or its end", arguments: [("-100", 0.0), ("100", 11)])
  func liveBeyond(offset: String, beginning: Double) async throws {
    try expectFirst(try await live("TIME-OFFSET=\(offset)"), at: beginning)
  }

  @Test("A start that the program names wins in a live stream too", arguments: [0.0, 5])
  func liveNamed(seconds: Double) async throws {
    let stage = try await live("TIME-OFFSET=-5", startingAt: MediaTime(seconds: seconds))
    try expectFirst(stage, at: seconds)
    if seconds > 0 { #expect(!stage.eventNames.contains("jumpedToLive"), "\(stage.events)") }
  }
}
