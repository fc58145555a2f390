import Foundation
import ReelTestSupport
import Testing

/// The delays of twelve simulated walks, from a settle 250 ms after each drag, as they were recorded with every frame
/// decoded. However a walk is simulated, they stay the same.
///
/// `REEL_RECORD=1` records them again in `Fixtures/golden/walks.json`.
@Suite("Delays of recorded walks", .hangLimit)
struct WalkDelaysTests {
  /// HLS in TS and fMP4, DASH, MP4; H.264 with B-frames, open GOPs, fields and other sizes; HEVC; encrypted media.
  private static let items = [
    "hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-timeline/manifest.mpd", "hls-hevc/index.m3u8",
    "media/h264-bframes.mp4", "media/hevc-open-gop.mp4", "media/h264-gops.mp4", "media/hevc-hev1-inband.mp4",
    "media/h264-size-change.ts", "media/h264-interlaced-tff.mp4", "media/audio-aac.mp4",
    "hls-discontinuity/ts.m3u8", "media/h264-open-gop.ts", "dash-gpac/multirate.mpd", "media/mpeg2.ts",
    "hls-aes128/index.m3u8", "media/h264-moov-last.mp4",
  ]

  private static let walks: [String: [String]] = [
    "adjacent": ["--link", "2Mbit/40ms,ideal", "--preload", "adjacent"],
    "adjacent-fast": ["--link", "20Mbit/10ms,ideal", "--preload", "adjacent", "--seed", "4"],
    "adaptive": ["--link", "2Mbit/40ms,ideal"],
    "adaptive-rungs": ["--link", "1Mbit/40ms,ideal", "--bandwidth", "auto", "--seed", "2"],
    "adaptive-first-rung": ["--link", "3Mbit/60ms,ideal", "--bandwidth", "auto", "--first-rung", "auto"],
    "none": ["--link", "20Mbit/10ms,ideal", "--preload", "none"],
    "budget": ["--link", "2Mbit/40ms,ideal", "--preload", "budget:40MB", "--pool", "5"],
    "one-slot": ["--link", "lte,ideal", "--pool", "1"],
    "low": ["--link", "lte,ideal", "--device", "low"],
    "low-rungs": ["--link", "4Mbit/80ms,ideal", "--device", "low", "--bandwidth", "auto", "--seed", "9"],
    "bursts": ["--link", "3Mbit/60ms,ideal", "--bursts", "20%", "--seed", "7"],
    "tcp": ["--link", "5Mbit/50ms,ideal,tcp", "--back", "40%", "--seed", "5"],
  ]

  /// The delays of each swipe, in order. A swipe that does not count has none.
  private struct Delays: Codable, Equatable {
    var firstFrame: [Double?]
    var secondFrame: [Double?]
  }

  private static func delays(_ options: [String]) async throws -> Delays {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(items)
    let result = try await Command.run(
      ["feed", feed, "--virtual", "--swipes", "24", "--dwell", "exp:1500ms", "--settle", "250ms", "--json"]
        + options, status: 0)
    let json = try JSONSerialization.jsonObject(with: Data(result.output)) as? [String: Any]
    let swipes = try #require(json?["swipes"] as? [[String: Any]])
    return Delays(
      firstFrame: swipes.map { $0["first_frame_ms"] as? Double },
      secondFrame: swipes.map { $0["second_frame_ms"] as? Double })
  }

  private static let path = "golden/walks.json"

  @Test("The delays of a walk are those recorded", arguments: walks.keys.sorted())
  func recorded(name: String) async throws {
    let options = try #require(Self.walks[name])
    let measured = try await Self.delays(options)
    #expect(measured.secondFrame.contains { $0 ?? 0 > 0 })
    let golden = try JSONDecoder().decode([String: Delays].self, from: Data(try Fixtures.bytes(Self.path)))
    #expect(measured == golden[name])
  }

  @Test("Records the delays", .enabled(if: ProcessInfo.processInfo.environment["REEL_RECORD"] != nil))
  func record() async throws {
    var all: [String: Delays] = [:]
    for (name, options) in Self.walks { all[name] = try await Self.delays(options) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    try encoder.encode(all).write(to: URL(filePath: Fixtures.path(Self.path)))
  }
}
