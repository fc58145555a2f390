import Foundation
import ReelCore
import ReelTesting
import Testing

@Suite("reel probe", .timeLimit(.minutes(5)))
struct ProbeCommandTests {
  private func probe(_ path: String) async throws -> [String: Any] {
    let result = try await Command.run("probe", Fixtures.path(path), "--json")
    #expect(result.status == 0, "\(result.errorText)")
    #expect(result.outputLines.count == 1)
    return try #require(try JSONSerialization.jsonObject(with: Data(result.output)) as? [String: Any])
  }

  private func picture(_ record: [String: Any]) throws -> [String: Any] {
    try #require(record["first_picture"] as? [String: Any])
  }

  @Test(
    "Facts of the first picture",
    arguments: [
      ("h264-faststart.mp4", "mp4", "h264", "High", "yuv420p", 8, 0),
      ("h264-baseline.mp4", "mp4", "h264", "Constrained Baseline", "yuv420p", 8, 0),
      ("hevc.ts", "mpegts", "hevc", "Main", "yuv420p", 8, 0),
      ("hevc-main10.mp4", "mp4", "hevc", "Main 10", "yuv420p10le", 10, 0),
      ("rotate-270.mp4", "mp4", "h264", "High", "yuv420p", 8, 270),
      ("h264.mkv", "matroska", "h264", "High", "yuv420p", 8, 0),
    ])
  func firstPicture(
    name: String, kind: String, codec: String, profile: String, format: String, depth: Int, rotation: Int
  ) async throws {
    let record = try await probe("media/\(name)")
    #expect(record["kind"] as? String == kind)
    #expect(record["live"] as? Bool == false)
    let picture = try picture(record)
    #expect(picture["codec_name"] as? String == codec)
    #expect(picture["profile"] as? String == profile)
    #expect(picture["pix_fmt"] as? String == format)
    #expect(picture["bit_depth"] as? Int == depth)
    #expect(picture["rotation"] as? Int == rotation)
    #expect(picture["md5"] as? String == (try Fixtures.golden(name)).first)
    let bytes = try #require(picture["bytes"] as? Int)
    #expect((1000..<(try Fixtures.bytes("media/\(name)").count)).contains(bytes))
  }

  @Test("Shown sizes, open GOPs, colour")
  func details() async throws {
    let turned = try picture(try await probe("media/sar-4-3-rotate-90.mp4"))
    #expect(turned["width"] as? Int == 144)
    #expect(turned["display_width"] as? Int == 108)
    #expect(turned["display_height"] as? Int == 192)
    #expect(turned["sample_aspect_ratio"] as? String == "4:3")
    #expect(try picture(try await probe("media/hevc-open-gop-mid.ts"))["gop"] as? String == "open")
    let hdr = try picture(try await probe("media/colour-hdr10-pq.mp4"))
    #expect(hdr["hdr"] as? Bool == true)
    #expect(hdr["matrix_used"] as? String == "bt2020nc")
  }

  @Test(
    "Rungs, and the one that frames would take",
    arguments: [
      ("hls-fmp4/master.m3u8", "hls", [400_000, 900_000], 900_000, 3),
      ("dash-number/manifest.mpd", "dash", [300_000, 700_000], 700_000, 3),
      ("dash-ondemand/manifest.mpd", "dash", [300_000, 700_000], 700_000, 3),
      ("dash-gpac/multirate-full.mpd", "dash", [5_678_742, 8_308_466, 10_870_369], 5_678_742, 360),
    ])
  func rungs(path: String, kind: String, bandwidths: [Int], chosen: Int, segmentCount: Int) async throws {
    let record = try await probe(path)
    #expect(record["kind"] as? String == kind)
    let rungs = try #require(record["rungs"] as? [[String: Any]])
    #expect(rungs.compactMap { $0["bandwidth"] as? Int } == bandwidths)
    let chosenRungs = rungs.filter { $0["chosen"] as? Bool == true }
    #expect(chosenRungs.compactMap { $0["bandwidth"] as? Int } == [chosen])
    #expect((record["segments"] as? [String: Any])?["count"] as? Int == segmentCount)
    #expect((record["audio"] as? [Any])?.count == 1)
  }

  @Test("Lengths of presentations")
  func durations() async throws {
    #expect(try await probe("hls-ts/master.m3u8")["duration"] as? Double == 3)
    #expect(try await probe("dash-gpac/multirate-full.mpd")["duration"] as? Double == 718.998)
    #expect(try await probe("media/h264-faststart.mp4")["duration"] as? Double == 1)
  }

  @Test("For readers: names, sizes, rates")
  func text() async throws {
    let result = try await Command.run("probe", Fixtures.path("hls-fmp4/master.m3u8"))
    #expect(result.status == 0)
    #expect(result.errorText.isEmpty)
    for words in ["HLS", "3 s", "900 kbit/s", "256x144", "160x90", "30 fps", "English", "avc1", "h264"] {
      #expect(result.outputText.contains(words), "\(words)")
    }
  }

  @Test(
    "What fails, beside what does not",
    arguments: [
      ("media/nowhere.mp4", Int32(66)), ("bad/text.mp4", 65), ("bad/empty.mp4", 65),
      ("bad/audio-only.mp4", 65),
      ("bad/encrypted-cenc.mp4", 65), ("bad/codec-mpeg4.mp4", 65),
    ])
  func failures(path: String, status: Int32) async throws {
    let source = Fixtures.path(path)
    let alone = try await Command.run("probe", source)
    #expect(!alone.wasSignalled)
    #expect(alone.status == status, "\(alone.errorText)")
    expectErrorLine(alone, names: source, words: "")
    let both = try await Command.run("probe", source, goodSource, "--json")
    #expect(both.status == 1)
    #expect(both.outputText.contains("h264-faststart.mp4"))
  }

  @Test("A probe asks for no more than a first picture takes")
  func requests() async throws {
    try await withOrigin { origin in
      let result = try await Command.run("probe", origin.url("dash-gpac/multirate-full.mpd").absoluteString)
      #expect(result.status == 0, "\(result.errorText)")
      let paths = origin.requestLog.map(\.path)
      #expect(!paths.contains { $0.contains("10400k") || $0.contains("13520k") || $0.contains("audio") })
      #expect(paths.count <= 4)
    }
  }
}
