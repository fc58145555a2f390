import Foundation
import ReelCore
import ReelTesting
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Numbers that reel prints", .hangLimit)
struct NumbersTests {
  private func stage(_ name: String, of record: [String: Any]) throws -> [String: Any] {
    try #require((record["startup"] as? [String: Any])?[name] as? [String: Any])
  }

  // MARK: Requests and bytes

  @Test("Five redirects count as six requests", arguments: ["frames", "probe", "play"])
  func redirects(command: String) async throws {
    let folder = try TemporaryFolder()
    let options = ["frames": ["-o", folder.path], "play": ["--rate", "max"]][command] ?? []
    try await withOrigin("h264-bframes.mp4=redirects:5") { origin in
      let record = try await Command.run(
        [command, origin.url("media/h264-bframes.mp4").absoluteString, "--json"] + options, status: 0
      ).object
      #expect(try stage("open", of: record)["requests"] as? Int == 6)
      #expect(try stage("segment", of: record)["requests"] as? Int == 0)
      #expect(origin.snapshot.requests.count == 6)
      guard command == "play" else { return }
      #expect(record["requests"] as? Int == 6)
      #expect((record["rungs"] as? [[String: Any]])?.map { $0["requests"] as? Int } == [6])
    }
  }

  @Test("Redirects of playlists and segments count in the total and in their rung")
  func redirectsOfParts() async throws {
    try await withOrigin("hls-ts/high/index.m3u8=redirects:2,hls-ts/high/segment-*=redirects:1") { origin in
      let source = origin.url("hls-ts/master.m3u8").absoluteString
      let record = try #require(try await PlayEvents.play(source, "--rate", "max").summary)
      #expect(try stage("open", of: record)["requests"] as? Int == 1)
      #expect(try stage("manifest", of: record)["requests"] as? Int == 3)
      #expect(record["requests"] as? Int == origin.snapshot.requests.count)
      #expect((record["rungs"] as? [[String: Any]])?.map { $0["requests"] as? Int } == [6])
    }
  }

  @Test("Start-up counts each byte once, over the network and from a local file")
  func startupBytes() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      for source in [Fixtures.path("media/h264.mkv"), origin.url("media/h264.mkv").absoluteString] {
        let result = try await Command.run(
          "frames", source, "--count", "0", "--json", "--overwrite", "-o", folder.path)
        // Not the whole file, only the bytes up to the first frame.
        let record = try result.object
        let bytes = try ["open", "segment"].map {
          try #require(try stage($0, of: record)["bytes"] as? Int)
        }
        #expect(bytes[0] > 0)
        #expect(bytes.reduce(0, +) <= (try Fixtures.bytes("media/h264.mkv").count))
        let needed = try #require(record["first_frame_bytes"] as? Int)
        #expect(bytes.reduce(0, +) >= needed)
      }
    }
  }

  @Test(
    "A local source has the same bytes in the total, as local bytes and in its rung",
    arguments: ["media/h264-bframes.mp4", "hls-fmp4/master.m3u8"])
  func local(path: String) async throws {
    let source = Fixtures.path(path)
    let record = try #require(try await PlayEvents.play(source, "--rate", "max").summary)
    let (bytes, requests) = (try #require(record["bytes"] as? Int), try #require(record["requests"] as? Int))
    #expect(record["local_bytes"] as? Int == bytes)
    #expect(record["local_requests"] as? Int == requests)
    let rungs = try #require(record["rungs"] as? [[String: Any]])
    let (media, opened) = (rungs.first?["bytes"] as? Int, rungs.first?["requests"] as? Int)
    if path.hasPrefix("media") {
      #expect(media == bytes)
      #expect(opened == requests)
    } else {
      #expect(try #require(media) < bytes)
      #expect(try #require(opened) < requests)
    }
    let text = try await Command.run("play", source, "--rate", "max").outputText
    #expect(text.contains(/\n  read +[0-9.]+ kB of local files\n/))
    #expect(!text.contains("network") && !text.contains("request"))
  }

  @Test("Sizes have decimal units everywhere")
  func units() async throws {
    try await withSource("media/h264-bframes.mp4") { source in
      let text = try await Command.run("play", source, "--rate", "max").outputText
      #expect(text.contains(/\n  network +[0-9.]+ kB in 1 request\n/))
      #expect(text.contains(/; the process [0-9.]+ MB/))
      #expect(!text.contains("iB"))
    }
  }

  // MARK: Times

  @Test("On a starved link the parts of the time add up to the wall clock")
  func starved() async throws {
    try await withSource("hls-fmp4/master.m3u8", link: try LinkSpec(parsing: "64kbit/20ms")) { source in
      let events = try await PlayEvents.play(source, "--bandwidth", "500k", "--duration", "1.2", "--mute")
      let summary = try #require(events.summary)
      let wall = try #require(summary["wall"] as? [String: Double])
      let total = try #require(summary["wall_ms"] as? Double)
      #expect(
        Set(wall.keys) == [
          "preparing_ms", "startup_ms", "buffering_ms", "playing_ms", "frozen_ms", "stalled_ms", "seeking_ms",
          "paused_ms",
        ])
      #expect(abs(wall.values.reduce(0, +) - total) < 0.01)
      let startup = try #require(summary["first_frame_ms"] as? Double)
      #expect(abs(try #require(wall["startup_ms"]) - startup) < 0.01)
      #expect(wall["stalled_ms"] == summary["stalled_ms"] as? Double)
      // The first frame stays until half a second of media is buffered.
      let buffering = try #require(wall["buffering_ms"])
      #expect(buffering > 0)
      let secondFrame = try #require(summary["second_frame_ms"] as? Double)
      #expect(secondFrame >= startup + buffering)
      let (playing, stalled) = (try #require(wall["playing_ms"]), try #require(wall["stalled_ms"]))
      let ratio = try #require(summary["rebuffering"] as? Double)
      #expect(abs(ratio - stalled / (playing + stalled)) < 0.000_01)
      // On a busy machine, frames are late.
      let (played, skipped) = (
        try #require(summary["played"] as? Double), try #require(summary["skipped"] as? Double)
      )
      #expect(abs(played + skipped - 1.2) < 0.000_01)
      #expect((summary["skipped_reasons"] as? [String: Double])?["dropped"] == skipped)
    }
  }

  @Test("The text output shows how the time was spent")
  func timeText() async throws {
    let text = try await Command.run("play", goodSource, "--rate", "max").outputText
    #expect(text.contains(/\n  time +.*start-up [0-9.]+ ms, .*playing [0-9.]+ ms/))
    #expect(text.contains(/\n  second frame after [0-9.]+ ms\n/))
  }

  @Test("ready lists all streams, although the first frame does not wait for the audio")
  func ready() async throws {
    try await withSource("hls-fmp4/master.m3u8", faults: "hls-fmp4/audio/index.m3u8=delay:300ms") { source in
      let events = try await PlayEvents.play(source, "--rate", "max")
      let ready = try #require(events.all.first { $0["event"] as? String == "ready" })
      let tracks = try #require(ready["tracks"] as? [[String: Any]])
      #expect(tracks.map { $0["kind"] as? String } == ["video", "audio"])
      #expect(tracks.last?["sample_rate"] is Int)
      #expect(events.names.filter { $0 == "ready" }.count == 1)
    }
    for path in ["hls-ts/master.m3u8", "media/audio-aac.mp4", "media/audio-aac.ts", "media/audio-aac.flv"] {
      let events = try await PlayEvents.play(Fixtures.path(path), "--rate", "max")
      let ready = try #require(events.all.first { $0["event"] as? String == "ready" })
      let kinds = (ready["tracks"] as? [[String: Any]])?.compactMap { $0["kind"] as? String }
      #expect(kinds == ["video", "audio"], "\(path)")
    }
  }

  @Test("Errors repeat a short time limit as it was given", arguments: ["frames", "probe", "play", "memory"])
  func shortTimeout(command: String) async throws {
    let folder = try TemporaryFolder()
    try await withSource("media/h264.ts", faults: "h264.ts=silence") { source in
      let result = try await Command.run(
        [command, source, "--timeout", "0.001"] + (command == "frames" ? ["-o", folder.path] : []))
      #expect(result.status != 0)
      #expect(result.errorText.contains("within 1 ms"), "\(result.errorText)")
    }
  }

  // MARK: Outcomes

  @Test("After Ctrl-C each source has one line, with a frame or an error")
  func interruptedSources() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin("hevc.ts=silence") { origin in
      let sources = ["h264.ts", "hevc.ts", "h264-bframes.ts", "h264-open-gop.ts"].map {
        origin.url("media/\($0)").absoluteString
      }
      let command = try Command(["frames"] + sources + ["--json", "--jobs", "1", "-o", folder.path])
      await origin.wait { $0.requests.contains { $0.path.hasSuffix("hevc.ts") } }
      command.interrupt()
      let result = try await command.result()
      #expect(result.status == 130, "\(result.errorText)")
      #expect(result.errorText.contains("interrupted: 1 of 4 sources done"), "\(result.errorText)")
      let records = try result.outputLines.map {
        try jsonObject($0)
      }
      #expect(records.map { $0["source"] as? String } == sources)
      for (index, record) in records.enumerated() {
        let frames = try #require(record["frames"] as? [Any])
        let error = record["error"] as? [String: Any]
        #expect(frames.count == (index == 0 ? 1 : 0))
        #expect(error?["kind"] as? String == (index == 0 ? nil : "cancelled"))
      }
      #expect(folder.names() == ["h264-000001.ppm"])
    }
  }
}
