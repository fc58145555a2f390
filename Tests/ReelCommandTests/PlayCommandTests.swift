import Foundation
import ReelCore
import ReelTesting
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("reel play", .hangLimit)
struct PlayCommandTests {
  // MARK: What is shown

  @Test("A page of playback")
  func page() async throws {
    let folder = try TemporaryFolder()
    try await Command.run(
      "play", Fixtures.path("hls-fmp4/master.m3u8"), Fixtures.path("bad/html.m3u8"), "--rate", "4",
      "--report",
      folder.path + "/page.html", status: 1)
    let page = try folder.text("page.html")
    for heading in ["Start-up", "Playback over time", "Rungs", "Events", "What was run"] {
      #expect(page.contains("<h2>\(heading)</h2>"), "\(heading)")
    }
    #expect(page.contains("an HTML page"))
    #expect(try await Command.run("play", "x.mp4", "--report", "-").status == 64)
  }

  @Test(
    "Every frame is shown, with the md5s of ffmpeg",
    arguments: [
      "h264-faststart.mp4", "h264-bframes.ts", "h264-open-gop.ts", "hevc-main10.mp4", "h264-moov-last.mp4",
      "h264-clock-wrap.ts", "vp9.webm", "h264-one-frame.mp4", "rate-variable.mp4",
    ])
  func frames(name: String) async throws {
    let events = try await PlayEvents.play(Fixtures.path("media/\(name)"), "--rate", "max", "--md5")
    #expect(events.md5s == (try Fixtures.golden(name)))
    let summary = try #require(events.summary)
    #expect(summary["ended"] as? String == "played_to_end")
    #expect((summary["frames"] as? [String: Int])?["shown"] == events.md5s.count)
    #expect((summary["frames"] as? [String: Int])?["dropped"] == 0)
    #expect(events.names.contains("first_frame"))
    #expect(events.names.suffix(2) == ["played_to_end", "summary"])
    #expect(events.times == events.times.sorted())
  }

  @Test(
    "A file whose audio and video are stored apart, from a server, a pipe and a folder",
    arguments: [
      StoredMP4.Arrangement.videoAhead(-100), .videoAhead(100), .pieces(seconds: 3, videoFirst: true),
    ],
    [true, false])
  func storedApart(arrangement: StoredMP4.Arrangement, indexFirst: Bool) async throws {
    let bytes = try StoredMP4(try Fixtures.bytes("media/h264-long.mp4")).stored(
      arrangement, indexFirst: indexFirst)
    let golden = try Fixtures.golden("h264-long.mp4")
    let configuration = Origin.Configuration(
      routes: ["/apart.mp4": .init(bytes)], link: try LinkSpec(parsing: "10Mbit/20ms"))
    try await Origin.use(configuration) { origin in
      let url = origin.url("apart.mp4").absoluteString
      let events = try await PlayEvents.play(url, "--rate", "max", "--md5")
      #expect(events.md5s == golden)
      let played = origin.requestLog
      // The file, its index, the other stream, and the rest of the first transfer.
      #expect(played.count <= 4)
      // What the server has sent of a transfer that is cut depends on how busy the machine is.
      let received = try #require(events.summary?["bytes"] as? Int)
      #expect(received <= bytes.count + 64 << 10, "\(received) of \(bytes.count)")
      let frames = try await Command.run("frames", url, "--count", "0", "--format", "y4m", "-o", "-")
      let original = try await Command.run(
        "frames", Fixtures.path("media/h264-long.mp4"), "--count", "0", "--format", "y4m", "-o", "-")
      #expect(frames.status == 0)
      #expect(frames.output == original.output)
      #expect(origin.requestLog.count - played.count <= 4)
    }
    let piped = try PlayEvents(
      try await Command.run("play", "-", "--json", "--rate", "max", "--md5", input: bytes))
    #expect(piped.md5s == golden)
    let folder = try TemporaryFolder()
    let copy = try folder.write(bytes, to: "apart.mp4")
    #expect(try await PlayEvents.play(copy, "--rate", "max", "--md5").md5s == golden)
  }

  @Test(
    "Every frame of a presentation in segments",
    arguments: [("hls-fmp4", "hls-fmp4-high"), ("hls-ts", "hls-ts-high")])
  func segments(folder: String, golden: String) async throws {
    try await withSource("\(folder)/master.m3u8") { source in
      let events = try await PlayEvents.play(source, "--rate", "max", "--md5")
      #expect(events.md5s == (try Fixtures.golden(golden)))
      let summary = try #require(events.summary)
      let rungs = try #require(summary["rungs"] as? [[String: Any]])
      try #require(rungs.count == 1)
      #expect(rungs[0]["frames_shown"] as? Int == events.md5s.count)
      let media = try #require(rungs[0]["bytes"] as? Int)
      #expect(media > 0)
      #expect(try #require(summary["bytes"] as? Int) > media)
      #expect(try #require(summary["requests"] as? Int) >= 4)
    }
  }

  @Test(
    "A Y4M is the one of reel frames, in a file and on standard output",
    arguments: ["h264-bframes.ts", "hevc-main10.mp4", "rotate-90.mp4"])
  func y4m(name: String) async throws {
    let folder = try TemporaryFolder()
    let source = Fixtures.path("media/\(name)")
    let frames = try await Command.run("frames", source, "--count", "0", "--format", "y4m", "-o", "-")
    try #require(frames.status == 0)
    try await Command.run("play", source, "--rate", "max", "--y4m", folder.path + "/a.y4m", status: 0)
    #expect(try folder.bytes("a.y4m") == frames.output)
    #expect(folder.names() == ["a.y4m"])
    let output = try await Command.run("play", source, "--rate", "max", "--y4m", "-", status: 0)
    #expect(output.output == frames.output)
    #expect(output.errorText.contains("played to the end"))
    #expect(output.errorText.contains(" shown, 0 dropped"))
  }

  @Test("A file for each frame, with the size and format that were asked for")
  func series() async throws {
    let folder = try TemporaryFolder()
    try await Command.run(
      "play", goodSource, "--rate", "max", "-o", folder.path, "--format", "png", "--size", "64x64",
      "--duration",
      "0.2", status: 0)
    #expect(folder.names() == (1...6).map { "h264-faststart-00000\($0).png" })
    // The size is in the header (ISO/IEC 15948 §11.2.2).
    let bytes = try folder.bytes("h264-faststart-000001.png")
    #expect(bytes[16..<24].elementsEqual([0, 0, 0, 64, 0, 0, 0, 64]))
  }

  // MARK: Sound

  @Test("The sound is written whole")
  func sound() async throws {
    let folder = try TemporaryFolder()
    try await Command.run(
      "play", Fixtures.path("media/audio-aac.mp4"), "--rate", "max", "--wav", "\(folder.path)/loud.wav",
      status: 0)
    let loud = try WaveSamples(folder.bytes("loud.wav"))
    // Two seconds, to a frame of AAC.
    #expect(abs(loud.samples.count / loud.channelCount - 2 * loud.sampleRate) <= 1024)
    #expect(loud.samples.contains { abs(Int($0)) > 1000 })
  }

  @Test("Sound in segments of its own is written, and not fetched where it is muted")
  func separateSound() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      let source = origin.url("hls-fmp4/master.m3u8").absoluteString
      let muted = try await PlayEvents.play(source, "--rate", "max", "--mute", "--md5")
      #expect(muted.md5s == (try Fixtures.golden("hls-fmp4-high")))
      #expect(!origin.snapshot.requests.contains { $0.path.contains("/audio/") })
      try await Command.run("play", source, "--rate", "max", "--wav", "\(folder.path)/a.wav", status: 0)
      #expect(origin.snapshot.requests.contains { $0.path.contains("/audio/") })
      let sound = try WaveSamples(folder.bytes("a.wav"))
      #expect(abs(sound.samples.count / sound.channelCount - 3 * sound.sampleRate) <= 2048)
    }
  }

  @Test(
    "The audio that is written has the length that was played, at any rate",
    arguments: ["media/audio-aac.mp4", "media/audio-aac.ts", "media/audio-mp3.ts", "hls-fmp4/master.m3u8"],
    ["max", "8"])
  func soundOfDuration(path: String, rate: String) async throws {
    let folder = try TemporaryFolder()
    for duration in [0.5, 1.3] {
      try await Command.run(
        "play", Fixtures.path(path), "--rate", rate, "--duration", "\(duration)", "--wav",
        "\(folder.path)/a.wav", status: 0)
      let sound = try WaveSamples(folder.bytes("a.wav"))
      let length = Double(sound.samples.count / sound.channelCount) / Double(sound.sampleRate)
      // Within an audio frame and the 0.1 s by which audio may be late. At a real-time rate, it ends a little later.
      #expect(length > duration - 0.15, "\(length) s")
      if rate == "max" { #expect(length < duration + 0.25, "\(length) s") }
    }
  }

  // MARK: Times

  @Test("Playback begins at --start")
  func start() async throws {
    let events = try await PlayEvents.play(goodSource, "--rate", "max", "--md5", "--start", "0.5")
    #expect(events.md5s == Array(try Fixtures.golden("h264-faststart.mp4").suffix(15)))
    #expect(events.times.first == 0.5)
  }

  @Test(
    "--start with a time as it is printed names its frame; behind the end it is the last one",
    arguments: [
      "h264.ts", "h264-open-gop.ts", "rate-24000-1001.mp4", "h264.mkv",
    ])
  func printedStart(name: String) async throws {
    let source = Fixtures.path("media/\(name)")
    let all = try await PlayEvents.play(source, "--rate", "max", "--md5")
    for index in [1, 4, 7, all.times.count - 1] {
      // In microseconds: the frame may be a little later.
      let time = String(format: "%.6f", all.times[index])
      let events = try await PlayEvents.play(source, "--rate", "max", "--md5", "--start", time)
      #expect(events.md5s == Array(all.md5s[index...]), "\(time)")
    }
    for start in ["2", "100", "1000", "100000"] {
      let events = try await PlayEvents.play(source, "--rate", "max", "--md5", "--start", start)
      #expect(events.md5s.count == 1 && events.md5s.last == all.md5s.last, "\(start)")
      #expect(events.summary?["ended"] as? String == "played_to_end")
    }
  }

  @Test("Playback ends after --duration")
  func duration() async throws {
    let events = try await PlayEvents.play(
      goodSource, "--rate", "max", "--md5", "--start", "0.2", "--duration", "0.3")
    #expect(events.md5s == Array(try Fixtures.golden("h264-faststart.mp4")[6..<15]))
    #expect(events.summary?["ended"] as? String == "duration")
    #expect(events.summary?["played"] as? Double == 0.3)
    #expect((events.summary?["frames"] as? [String: Int])?["shown"] == 9)
    let rungs = try #require(events.summary?["rungs"] as? [[String: Any]])
    #expect(rungs.map { $0["frames_shown"] as? Int } == [9])
  }

  @Test("Playback ends after --duration, and counts no other frames", arguments: ["max", "1"])
  func durationOfRungs(rate: String) async throws {
    try await withSource("hls-fmp4/master.m3u8") { source in
      let events = try await PlayEvents.play(source, "--rate", rate, "--md5", "--duration", "0.4")
      let summary = try #require(events.summary)
      #expect(summary["ended"] as? String == "duration")
      #expect((summary["frames"] as? [String: Int])?["shown"] == events.md5s.count)
      let rungs = try #require(summary["rungs"] as? [[String: Any]])
      #expect(rungs.compactMap { $0["frames_shown"] as? Int }.reduce(0, +) == events.md5s.count)
    }
  }

  @Test("Playback ends after --duration where no frame comes then")
  func durationWithinFrame() async throws {
    // Ten frames a second at rate 0.25: the next one is 400 ms away.
    let events = try await PlayEvents.play(
      Fixtures.path("media/rate-variable.mp4"), "--rate", "0.25", "--duration", "0.01", "--md5")
    #expect(events.summary?["ended"] as? String == "duration")
    #expect(events.summary?["played"] as? Double == 0.01)
    #expect(events.md5s.count == 1)
    #expect(try #require(events.summary?["wall_ms"] as? Double) >= 40)
  }

  @Test("A loop shows everything again, until --duration")
  func loop() async throws {
    let golden = try Fixtures.golden("h264-faststart.mp4")
    let events = try await PlayEvents.play(
      goodSource, "--rate", "max", "--md5", "--loop", "--duration", "2.5")
    #expect(events.md5s == golden + golden + golden.prefix(15))
    #expect(events.names.filter { $0 == "looped" }.count == 2)
    #expect((events.summary?["loop_gaps_ms"] as? [Double])?.count == 2)
    #expect(events.summary?["played"] as? Double == 2.5)
  }

  @Test("A second takes its time at any rate", arguments: [("1", 990.0), ("4", 240), ("0.5", 1990)])
  func rate(rate: String, least: Double) async throws {
    let events = try await PlayEvents.play(goodSource, "--rate", rate)
    let summary = try #require(events.summary)
    #expect(try #require(summary["wall_ms"] as? Double) >= least)
    let frames = try #require(summary["frames"] as? [String: Int])
    let (shown, dropped) = (try #require(frames["shown"]), try #require(frames["dropped"]))
    #expect(shown > 0 && shown + dropped == 30)
    #expect((summary["lateness"] as? [String: Double])?["p50_ms"] != nil)
  }

  // MARK: What is told

  @Test("The summary tells what it took")
  func summary() async throws {
    try await withSource("hls-fmp4/master.m3u8") { source in
      let events = try await PlayEvents.play(source, "--rate", "max")
      let summary = try #require(events.summary)
      #expect(summary["source"] as? String == source)
      for key in ["position", "duration", "first_frame_ms", "startup", "memory_bytes"] {
        #expect(summary[key] != nil, "\(key)")
      }
      #expect(summary["error"] == nil)
      let startup = try #require(summary["startup"] as? [String: Any])
      #expect(startup["manifest"] is [String: Any])
      #expect(try #require(summary["memory_bytes"] as? Int) > 1 << 20)
      #expect(summary["duration"] as? Double == 3)
      let ready = try #require(events.all.first { $0["event"] as? String == "ready" })
      #expect(ready["width"] as? Int == 256)
      let tracks = try #require(ready["tracks"] as? [[String: Any]])
      #expect(tracks.contains { $0["kind"] as? String == "video" && $0["codec"] as? String == "h264" })
      for event in events.all.dropLast() {
        #expect(event["position"] is Double)
        #expect(event["time_ms"] is Double)
      }
    }
  }

  @Test("Text: what happens on standard error, the summary on standard output; nothing with --quiet")
  func text() async throws {
    let result = try await Command.run("play", goodSource, "--rate", "max", status: 0)
    #expect(result.outputLines.first == "\(goodSource): played to the end")
    #expect(result.outputText.contains("30 shown, 0 dropped, 0 damaged"))
    #expect(result.errorLines.contains { $0.hasSuffix(" s  playing") })
    // The last frame of its sound ends then.
    #expect(result.errorLines.contains("1.003 s  played to the end"))
    // No terminal: neither colours nor a line that is written again.
    #expect(!result.errorText.contains("\u{1b}"))
    #expect(!result.errorText.contains("\r"))
    let quiet = try await Command.run("play", goodSource, "--rate", "max", "--quiet", status: 0)
    #expect(quiet.output.isEmpty)
    #expect(quiet.errorText.isEmpty)
  }

  @Test("Several sources are played one after the other")
  func several() async throws {
    let other = Fixtures.path("media/vp9.webm")
    let result = try await Command.run(
      "play", goodSource, "nowhere.mp4", other, "--rate", "max", "--json", status: 1)
    let events = try PlayEvents(result)
    let summaries = events.all.filter { $0["event"] as? String == "summary" }
    #expect(summaries.map { $0["source"] as? String } == [goodSource, "nowhere.mp4", other])
    #expect(summaries.map { $0["ended"] as? String } == ["played_to_end", "failed", "played_to_end"])
    #expect(summaries.map { ($0["frames"] as? [String: Int])?["shown"] } == [30, 0, 15])
    #expect(result.errorLines.count == 1)
  }

  @Test("Rungs are chosen by a cap, or by what transfers measure")
  func bandwidth() async throws {
    try await withSource("hls-fmp4/master.m3u8") { source in
      let low = try await PlayEvents.play(source, "--rate", "max", "--md5", "--bandwidth", "500k")
      #expect(low.md5s == (try Fixtures.golden("hls-fmp4-low")))
      let height = try await PlayEvents.play(source, "--rate", "max", "--md5", "--max-height", "100")
      #expect(height.md5s == (try Fixtures.golden("hls-fmp4-low")))
      let adaptive = try await PlayEvents.play(source, "--rate", "max", "--md5", "--bandwidth", "auto")
      #expect(adaptive.md5s.count == 90)
      // A command that does not play takes it as well.
      try await Command.run("probe", source, "--bandwidth", "auto", status: 0)
    }
  }

  // MARK: Help and usage

  @Test("No output takes the place of the source, nor of another output, by whatever name")
  func replacements() async throws {
    let folder = try TemporaryFolder()
    let files = FileManager.default
    let source = folder.path + "/a.ts"
    try files.copyItem(atPath: Fixtures.path("media/h264.ts"), toPath: source)
    try files.createDirectory(atPath: folder.path + "/below", withIntermediateDirectories: false)
    try files.createSymbolicLink(atPath: folder.path + "/link.ts", withDestinationPath: "a.ts")
    try files.linkItem(atPath: source, toPath: folder.path + "/hard.ts")
    try files.createSymbolicLink(atPath: folder.path + "/same", withDestinationPath: "below")
    try files.createSymbolicLink(atPath: folder.path + "/b.wav", withDestinationPath: "below/b")
    let names = folder.names()
    let bytes = try folder.bytes("a.ts")
    let refused = [
      ["--nut", source], ["--y4m", source], ["--wav", source], ["--y4m", "\(folder.path)/below/../a.ts"],
      ["--y4m", "\(folder.path)/link.ts"], ["--wav", "\(folder.path)/hard.ts"],
      ["--y4m", "\(folder.path)/b", "--wav", "\(folder.path)/./b"],
      ["--y4m", "\(folder.path)/below/b", "--wav", "\(folder.path)/same/b"],
      ["--y4m", "\(folder.path)/below/b", "--wav", "\(folder.path)/b.wav"],
    ]
    for source in [source, "\(folder.path)/link.ts", URL(filePath: source).absoluteString] {
      for outputs in refused {
        let result = try await Command.run(["play", source, "--rate", "max"] + outputs)
        #expect(result.status == 64, "\(source) \(outputs): \(result.errorText)")
        #expect(folder.names() == names)
        #expect(folder.names("below").isEmpty)
        #expect(try folder.bytes("a.ts") == bytes)
      }
    }
    let others = ["--y4m", "\(folder.path)/below/b", "--wav", "\(folder.path)/b"]
    try await Command.run(["play", source, "--rate", "max"] + others, status: 0)
    try await Command.run(["play", source, "--rate", "max", "--y4m", "/dev/null"], status: 0)
  }
}
