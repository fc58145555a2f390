import Foundation
import ReelTestSupport
import Testing

@Suite("reel memory", .hangLimit)
struct MemoryCommandTests {
  private static let kinds = [
    "manifest_bytes", "in_flight_bytes", "packets_bytes", "frames_bytes", "decoder_bytes", "internals_bytes",
    "allocator_bytes", "output_bytes",
  ]

  private func memory(_ record: [String: Any]) throws -> [String: Int] {
    let memory = try #require(record["memory"] as? [String: Any])
    return memory.compactMapValues { $0 as? Int }
  }

  @Test("Every player by kind, then all of them")
  func players() async throws {
    let source = Fixtures.path("hls-fmp4/master.m3u8")
    let records = try await Command.run("memory", source, "--players", "4", "--json", status: 0).objects
    #expect(records.map { $0["type"] as? String } == ["player", "player", "player", "player", "summary"])
    #expect(records.dropLast().map { $0["player"] as? Int } == [1, 2, 3, 4])
    for record in records.dropLast() {
      #expect(record["source"] as? String == source)
      #expect(record["stage"] as? String == "buffered")
      let memory = try memory(record)
      #expect(memory["sum_bytes"] == Self.kinds.reduce(0) { $0 + (memory[$1] ?? 0) })
      // Of the smaller rung, 160 by 90 samples at 12 bits.
      #expect(try #require(memory["frames_bytes"]) >= 160 * 90 * 3 / 2)
      #expect(try #require(memory["packets_bytes"]) > 10_000)
      #expect(try #require(record["stage_ms"] as? [String: Double])["first_frame"] != nil)
    }
    let summary = try #require(records.last)
    #expect(summary["players"] as? Int == 4)
    #expect(summary["failed"] as? Int == 0)
    let sums = try records.dropLast().map { try #require(try memory($0)["sum_bytes"]) }
    #expect(summary["ledger_bytes"] as? Int == sums.reduce(0, +))
    #expect(summary["min_bytes"] as? Int == sums.min())
    #expect(summary["max_bytes"] as? Int == sums.max())
    let growth = try #require(summary["growth_bytes"] as? Int)
    let before = try #require(summary["before"] as? [String: Int])
    let after = try #require(summary["after"] as? [String: Int])
    #expect(growth == (after["anonymous_bytes"] ?? 0) - (before["anonymous_bytes"] ?? 0))
    // Nil with a sanitizer.
    let shared = summary["shared_bytes"] as? Int ?? 0
    #expect(summary["unexplained_bytes"] as? Int == growth - sums.reduce(0, +) - shared)
    let decoder = try #require(summary["warm_decoder"] as? [String: Any])
    #expect(try #require(decoder["warm_second_frame_ms"] as? Double) > 0)
    #expect(try #require(decoder["cold_second_frame_ms"] as? Double) > 0)
  }

  @Test("Players that rest have no thread of their own")
  func threads() async throws {
    let result = try await Command.run(
      "memory", Fixtures.path("hls-ts/low/index.m3u8"), "--players", "24", "--json", status: 0)
    let summary = try #require(try result.objects.last)
    let before = try #require((summary["before"] as? [String: Int])?["threads"])
    let after = try #require((summary["after"] as? [String: Int])?["threads"])
    #expect(after < before + 12, "\(before) threads, then \(after)")
  }

  @Test(
    "Loading stops at the stage that was asked for",
    arguments: [
      ("manifest", "manifest"), ("initialization", "initialization"), ("first_frame", "first_frame"),
      ("firstFrame", "first_frame"), ("first-frame", "first_frame"),
    ])
  func stages(name: String, stage: String) async throws {
    let records = try await Command.run(
      "memory", Fixtures.path("hls-fmp4/master.m3u8"), "--stage", name, "--json", status: 0
    ).objects
    // One source: three players.
    #expect(records.count == 4)
    for record in records.dropLast() {
      let memory = try memory(record)
      #expect(record["stage"] as? String == stage)
      #expect(((memory["frames_bytes"] ?? 0) > 0) == (stage == "first_frame"))
      if stage == "manifest" { #expect(memory["packets_bytes"] == 0) }
    }
  }

  @Test(
    "A buffer that is full before the first frame is known counts as buffered, though it is short by a frame")
  func reordered() async throws {
    try await Command.run(
      "memory", Fixtures.path("media/annexb-bframes.h264"), "--players", "2", "--buffer", "200ms", "--play",
      "100ms", "--timeout", "300", status: 0)
  }

  @Test("Open decoders hold frames")
  func warm() async throws {
    let arguments = ["memory", Fixtures.path("hls-fmp4/master.m3u8"), "--players", "2", "--json"]
    let cold = try await Command.run(arguments).objects
    let warm = try await Command.run(arguments + ["--warm"]).objects
    for (cold, warm) in zip(cold.dropLast(), warm.dropLast()) {
      #expect(
        try #require(try memory(warm)["frames_bytes"]) > (try #require(try memory(cold)["frames_bytes"])))
    }
    #expect(warm.last?["warm"] as? Bool == true)
  }

  @Test("What is printed for people, and how many fit")
  func text() async throws {
    let result = try await Command.run(
      "memory", goodSource, Fixtures.path("hls-ts/low/index.m3u8"), "--budget", "1GB", status: 0)
    let text = result.outputText.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    for words in ["in flight", "mean", "standard deviation", "grown by", "unexplained", "open decoder takes"]
    {
      #expect(text.contains(words), "\(text)")
    }
    #expect(text.contains("1 GB holds "))
  }

  @Test("A source that fails is reported once, and the others are counted")
  func failure() async throws {
    let missing = Fixtures.path("media/missing.mp4")
    let both = try await Command.run("memory", missing, goodSource, "--players", "4", "--json", status: 1)
    expectErrorLine(both, names: "missing.mp4", words: "")
    let records = try both.objects
    #expect(records.count == 5)
    #expect(records.filter { $0["error"] != nil }.map { $0["player"] as? Int } == [1, 3])
    #expect(records.last?["players"] as? Int == 2)
    #expect(records.last?["failed"] as? Int == 2)
    try await Command.run("memory", missing, status: 66)
  }

  @Test("Holds the players, and can be interrupted then")
  func hold() async throws {
    let folder = try TemporaryFolder()
    let command = try Command(
      ["memory", goodSource, "--hold", "1000s"], shell: "exec \"$@\" 2> '\(folder.path)/errors'")
    try await until {
      ((try? folder.bytes("errors")) ?? []).contains(UInt8(ascii: "\n")) || !command.isRunning
    }
    command.interrupt()
    let result = try await command.result()
    #expect(result.status == 130)
    #expect(try folder.text("errors").contains("holds 3 players"))
    // The report came before.
    #expect(result.outputLines.first?.contains("player  source") == true, "\(result.outputText)")
    #expect(result.outputLines.last?.contains("not measured: --hold") == true, "\(result.outputText)")
  }

  @Test("Players that play: open decoders, and fewer fit")
  func playing() async throws {
    let source = Fixtures.path("media/h264-faststart.mp4")
    let records = try await Command.run(
      "memory", source, Fixtures.path("hls-ts/low/index.m3u8"), "--players", "2", "--stage", "playing",
      "--play", "500ms", "--json", status: 0
    ).objects
    #expect(records.map { $0["stage"] as? String } == ["playing", "playing", "playing"])
    for record in records.dropLast() {
      #expect(try #require(try memory(record)["frames_bytes"]) > 0)
    }
    let summary = try #require(records.last)
    #expect(try #require(summary["rest"] as? [String: Double])["ms"] ?? 0 >= 500)
    #expect(summary["playing"] == nil && summary["playing_absence"] == nil)
    #expect((summary["warm_decoder_absence"] as? String)?.contains("open decoders") == true)
    let resting = try #require(
      try await Command.run("memory", source, "--players", "2", "--play", "500ms", "--json").objects.last)
    let playing = try #require(resting["playing"] as? [String: Any])
    #expect(playing["players"] as? Int == 2)
    let fitting = try #require(playing["budget_players"] as? Int)
    #expect(fitting < (try #require((resting["budget"] as? [String: Any])?["players"] as? Int)))
  }

  @Test(
    "Media of one frame has no second one to wait for, and the report says so",
    arguments: [[], ["--warm"]])
  func oneFrame(options: [String]) async throws {
    // Longer than a command may take here.
    let arguments =
      ["memory", Fixtures.path("media/h264-one-frame.mp4"), "--players", "2", "--timeout", "1000"] + options
    let text = try await Command.run(arguments, status: 0)
    #expect(text.outputLines.last?.hasPrefix("open decoder    unknown: ") == true, "\(text.outputText)")
    #expect(text.outputLines.last?.hasSuffix("h264-one-frame.mp4 has one frame") == true)
    let summary = try #require(try await Command.run(arguments + ["--json"]).objects.last)
    #expect(summary["warm_decoder"] == nil)
    #expect((summary["warm_decoder_absence"] as? String)?.contains("one frame") == true)
  }

  @Test(
    "Why open decoders were not tried",
    arguments: [(["--players", "1"], "two players"), (["--stage", "manifest"], "no decoder")])
  func untried(options: [String], reason: String) async throws {
    let result = try await Command.run(["memory", goodSource] + options, status: 0)
    #expect(
      result.outputLines.last?.hasPrefix("open decoder    not measured: ") == true, "\(result.outputText)")
    #expect(result.outputLines.last?.contains(reason) == true, "\(result.outputText)")
  }
}
