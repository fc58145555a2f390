import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@Suite("reel probe", .hangLimit)
struct ProbeCommandTests {
  private func probe(_ path: String) async throws -> [String: Any] {
    let path = path.hasPrefix("/") ? path : Fixtures.path(path)
    let result = try await Command.run("probe", path, "--json", status: 0)
    #expect(result.outputLines.count == 1)
    return try result.object
  }

  private func frame(_ record: [String: Any]) throws -> [String: Any] {
    try #require(record["first_frame"] as? [String: Any])
  }

  @Test(
    "Facts of the first frame",
    arguments: [
      ("h264-faststart.mp4", "mp4", "h264", "High", "yuv420p", 8, 0),
      ("h264-baseline.mp4", "mp4", "h264", "Constrained Baseline", "yuv420p", 8, 0),
      ("hevc.ts", "mpegts", "hevc", "Main", "yuv420p", 8, 0),
      ("hevc-main10.mp4", "mp4", "hevc", "Main 10", "yuv420p10le", 10, 0),
      ("rotate-270.mp4", "mp4", "h264", "High", "yuv420p", 8, 270),
      ("h264.mkv", "matroska", "h264", "High", "yuv420p", 8, 0),
    ])
  func firstFrame(
    name: String, kind: String, codec: String, profile: String, format: String, depth: Int, rotation: Int
  ) async throws {
    let record = try await probe("media/\(name)")
    #expect(record["kind"] as? String == kind)
    #expect(record["live"] as? Bool == false)
    let frame = try frame(record)
    #expect(frame["codec_name"] as? String == codec)
    #expect(frame["profile"] as? String == profile)
    #expect(frame["pix_fmt"] as? String == format)
    #expect(frame["bit_depth"] as? Int == depth)
    #expect(frame["rotation"] as? Int == rotation)
    #expect(frame["md5"] as? String == (try Fixtures.golden(name)).first)
    let bytes = try #require(frame["bytes"] as? Int)
    #expect((1000..<(try Fixtures.bytes("media/\(name)").count)).contains(bytes))
  }

  @Test("Shown sizes, open GOPs, colour")
  func details() async throws {
    let turned = try frame(try await probe("media/sar-4-3-rotate-90.mp4"))
    #expect(turned["width"] as? Int == 144)
    #expect(turned["display_width"] as? Int == 108)
    #expect(turned["display_height"] as? Int == 192)
    #expect(turned["sample_aspect_ratio"] as? String == "4:3")
    #expect(try frame(try await probe("media/hevc-open-gop-mid.ts"))["gop"] as? String == "open")
    let hdr = try frame(try await probe("media/colour-hdr10-pq.mp4"))
    #expect(hdr["hdr"] as? Bool == true)
    #expect(hdr["matrix_used"] as? String == "bt2020nc")
  }

  @Test("A probe lists the periods and describes a rung of the first one with video")
  func periods() async throws {
    let folder = try TemporaryFolder()
    let media = Fixtures.folder.appending(path: "dash-number").absoluteString
    let set = { (kind: String, id: Int) in
      """
      <AdaptationSet mimeType="\(kind)/mp4"><SegmentTemplate timescale="1000" duration="1000"
       initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/segment-$Number%05d$.m4s"/>
      <Representation id="\(id)" bandwidth="300000"/></AdaptationSet>
      """
    }
    let mpd = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT2S" minBufferTime="PT1S">
      <BaseURL>\(media)/</BaseURL><Period id="talk" duration="PT1S">\(set("audio", 2))</Period>
      <Period id="film" duration="PT1S">\(set("video", 0))\(set("audio", 2))</Period></MPD>
      """
    let path = try folder.write(mpd, to: "a.mpd")
    let record = try await probe(path)
    #expect(record["periods"] as? Int == 2)
    let periods = try #require(record["period_list"] as? [[String: Any]])
    #expect(periods.compactMap { $0["id"] as? String } == ["talk", "film"])
    #expect(periods.compactMap { $0["start"] as? Double } == [0, 1])
    #expect(periods.compactMap { $0["media"] as? [String] } == [["audio"], ["audio", "video"]])
    let rungs = try #require(record["rungs"] as? [[String: Any]])
    #expect(rungs.compactMap { $0["chosen"] as? Bool } == [true])
    #expect(rungs.first?["period"] as? Int == 1)
    #expect(try frame(record)["md5"] as? String == (try Fixtures.golden("dash-number-0")).first)
    let text = try await Command.run("probe", path)
    #expect(text.outputLines.contains("    period 1  talk, at 0 s, 1 s long, audio"), "\(text.outputText)")
    #expect(text.outputLines.contains("    period 2  film, at 1 s, 1 s long, audio and video"))
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
    let result = try await Command.run("probe", Fixtures.path("hls-fmp4/master.m3u8"), status: 0)
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
      ("bad/encrypted-cenc.mp4", 65), ("bad/codec-png.mp4", 65),
    ])
  func failures(path: String, status: Int32) async throws {
    let source = Fixtures.path(path)
    let alone = try await Command.run("probe", source)
    #expect(!alone.wasSignalled)
    #expect(alone.status == status, "\(alone.errorText)")
    expectErrorLine(alone, names: source, words: "")
    let both = try await Command.run("probe", source, goodSource, "--json", status: 1)
    #expect(both.outputText.contains("h264-faststart.mp4"))
  }

  @Test("A probe asks for no more than a first frame takes")
  func requests() async throws {
    try await withOrigin { origin in
      try await Command.run("probe", origin.url("dash-gpac/multirate-full.mpd").absoluteString, status: 0)
      let paths = origin.requestLog.map(\.path)
      #expect(!paths.contains { $0.contains("10400k") || $0.contains("13520k") || $0.contains("audio") })
      #expect(paths.count <= 4)
    }
  }
}
