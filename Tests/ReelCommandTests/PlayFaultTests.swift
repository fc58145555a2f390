import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@Suite("What reel play makes of failures", .hangLimit)
struct PlayFaultTests {
  @Test(
    "What can't be played: the error, the summary, and no file",
    arguments: [
      ("media/nowhere.mp4", Int32(66), "no such file"), ("bad/text.mp4", 65, "plain text"),
      ("bad/audio-only.mp4", 65, "no video"), ("bad/encrypted-cenc.mp4", 65, "encrypted"),
      ("bad/unclosed.mpd", 65, "line 4"),
    ])
  func files(path: String, status: Int32, words: String) async throws {
    let source = Fixtures.path(path)
    try await expectFailure(source, status: status, words: words)
  }

  @Test("A server that says no")
  func notFound() async throws {
    try await withSource("media/h264.ts", faults: "h264.ts=status:404") { source in
      try await expectFailure(source, status: 69, words: "404")
    }
  }

  @Test("A server that keeps still is given up")
  func timeout() async throws {
    try await withOrigin("hevc.ts=silence") { origin in
      try await expectFailure(
        origin.url("media/hevc.ts").absoluteString, status: 69, words: "no frame within 3 s",
        options: ["--timeout", "3"])
    }
  }

  @Test("A source that has nothing more to play is given up, and a list goes on with the next")
  func timeoutAfterTheFirstFrame() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin("hls-ts/low/segment-1.ts=silence") { origin in
      let stuck = origin.url("hls-ts/low/index.m3u8").absoluteString
      try folder.write(Array("\(stuck)\n\(origin.url("media/h264.ts"))\n".utf8), to: "list")
      for rate in ["1", "max"] {
        let result = try await Command.run(
          "play", "--input", folder.path("list"), "--rate", rate, "--timeout", "8", "--json", "--overwrite",
          directory: folder.path)
        let ends = try result.objects.filter { $0["event"] as? String == "summary" }
        #expect(ends.map { $0["ended"] as? String } == ["failed", "played_to_end"], "\(result.errorText)")
        let error = try #require(ends.first?["error"] as? [String: Any])
        #expect((error["message"] as? String)?.contains("nothing to play for 8 s") == true, "\(error)")
        #expect(error["exit_code"] as? Int == 69)
      }
    }
  }

  @Test("A reader that keeps an output waiting is no fault of the source")
  func slowReader() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "play", goodSource, "--json", "--timeout", "10", "--y4m", folder.path("frames"), "--rate", "max",
      shell: """
        mkfifo "\(folder.path("frames"))" || exit 9
        (exec 3<"\(folder.path("frames"))"; sleep 13; cat <&3 >/dev/null) &
        "$@"
        """, status: 0)
    #expect(try PlayEvents(result).summary?["ended"] as? String == "played_to_end")
  }

  @Test("An output that can't be made")
  func noOutput() async throws {
    let folder = try TemporaryFolder()
    for option in ["--nut", "--y4m", "--wav"] {
      let result = try await Command.run("play", goodSource, option, folder.path + "/none/a")
      #expect(result.status == 73, "\(option): \(result.errorText)")
      #expect(result.errorText.contains(folder.path + "/none/a"))
    }
    try folder.write([1], to: "file")
    try await Command.run("play", goodSource, "-o", folder.path + "/file/out", status: 73)
    #expect(folder.names() == ["file"])
  }

  @Test("A device that is full")
  func fullDevice() async throws {
    guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
    for arguments in [["--nut", "-"], ["--y4m", "-"], ["--json", "--md5"], []] {
      let result = try await Command.run(
        ["play", goodSource, "--rate", "max"] + arguments, shell: "exec \"$@\" > /dev/full")
      #expect(result.status == 74, "\(arguments): \(result.errorText)")
      #expect(result.errorText.contains("standard output"))
    }
  }

  @Test("A reader that has closed its end ends playback")
  func closedPipe() async throws {
    for arguments in [["--nut", "-"], ["--y4m", "-"], ["--json", "--md5"]] {
      let result = try await Command.run(
        ["play", goodSource, "--rate", "max", "--loop"] + arguments, closesOutputAfter: 100)
      #expect(!result.wasSignalled)
      #expect(result.status == 74, "\(arguments): \(result.errorText)")
      #expect(result.errorLines.filter { $0.hasPrefix("reel: ") }.count == 1)
    }
  }

  // MARK: Ctrl-C

  @Test("Ctrl-C ends playback with the summary, and what was written is whole")
  func interrupt() async throws {
    let folder = try TemporaryFolder()
    let source = Fixtures.path("media/audio-aac.mp4")
    let command = try Command([
      "play", source, "--loop", "--json", "--y4m", folder.path + "/a.y4m", "--wav", folder.path + "/a.wav",
      "-o",
      folder.path + "/frames",
    ])
    // Not a file that is being written, which is taken back.
    try await until {
      folder.names("frames").count { !$0.hasPrefix(".") } >= 5 || !command.isRunning
    }
    command.interrupt()
    let result = try await command.result()
    #expect(result.status == 130, "\(result.errorText)")
    #expect(result.errorText.isEmpty)
    let summary = try #require(try PlayEvents(result).summary)
    #expect(summary["ended"] as? String == "interrupted")
    let shown = try #require((summary["frames"] as? [String: Int])?["shown"])
    #expect(shown >= 5)
    #expect(folder.names() == ["a.wav", "a.y4m", "frames"])
    #expect(folder.names("frames").count == shown)
    // More, where frames are dropped or the clip begins again.
    #expect(try Y4MFrames(folder.bytes("a.y4m")).frames.count >= shown)
    #expect(try WaveSamples(folder.bytes("a.wav")).samples.isEmpty == false)
  }

  @Test(
    "Ctrl-C while a server keeps still",
    arguments: ["master.m3u8=silence", "segment-0.ts=stall:900", "segment-1.ts=stall:3000"])
  func interruptLoading(fault: String) async throws {
    let folder = try TemporaryFolder()
    let result = try await interrupted(at: fault) { source in
      ["play", source, "--y4m", folder.path + "/a.y4m", "--wav", folder.path + "/a.wav"]
    }
    #expect(result.status == 130, "\(result.errorText)")
    #expect(result.outputText.contains("interrupted"))
    #expect(folder.names().allSatisfy { !$0.hasPrefix(".") })
    #expect(folder.names().isEmpty || folder.names().contains("a.y4m"))
  }

  // MARK: - Private

  private func expectFailure(
    _ source: String, status: Int32, words: String, options: [String] = [],
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      [
        "play", source, "--json", "--retries", "0", "--wav", folder.path + "/a.wav", "--y4m",
        folder.path + "/a.y4m",
      ]
        + options, sourceLocation: sourceLocation)
    #expect(!result.wasSignalled, sourceLocation: sourceLocation)
    #expect(result.status == status, "\(result.errorText)", sourceLocation: sourceLocation)
    expectErrorLine(result, names: source, words: words, sourceLocation: sourceLocation)
    #expect(folder.names().isEmpty, sourceLocation: sourceLocation)
    let summary = try #require(try PlayEvents(result).summary, sourceLocation: sourceLocation)
    #expect(summary["ended"] as? String == "failed", sourceLocation: sourceLocation)
    let error = try #require(summary["error"] as? [String: Any], sourceLocation: sourceLocation)
    #expect(error["exit_code"] as? Int == Int(status), sourceLocation: sourceLocation)
  }
}
