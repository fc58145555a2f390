import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@Suite("reel serve", .hangLimit)
struct ServeCommandTests {
  /// Runs `body` with the URL that `reel serve` prints, then interrupts it.
  private func withServer(_ arguments: [String], _ body: (URL) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    let command = try Command(
      ["serve", "--port", "0"] + arguments, shell: "exec \"$@\" >'\(folder.path)/output'")
    defer { command.interrupt() }
    var text = ""
    try await until {
      text = (try? String(contentsOfFile: "\(folder.path)/output", encoding: .utf8)) ?? ""
      return text.hasSuffix("\n") || !command.isRunning
    }
    try await body(try #require(URL(string: text.trimmingCharacters(in: .newlines))))
    command.interrupt()
    #expect(try await command.result().status == 130)
  }

  @Test("A presentation is served as HLS, redirected and passed through", arguments: [[], ["--proxy"]])
  func presentation(options: [String]) async throws {
    let origin = try await Origin.start(.init(directory: Fixtures.folder))
    let source = origin.baseURL.appending(path: "dash-number/manifest.mpd").absoluteString
    try await withServer([source] + options) { url in
      let record = try await Command.run(
        "frames", url.absoluteString, "--count", "0", "--json", "--md5", "-o", try TemporaryFolder().path,
        status: 0
      ).object
      let frames = try #require(record["frames"] as? [[String: Any]])
      #expect(frames.compactMap { $0["md5"] as? String } == (try Fixtures.golden("dash-number-1")))
    }
    await origin.stop()
  }

  @Test("A presentation on this machine is passed through")
  func localPresentation() async throws {
    try await withServer([Fixtures.path("dash-ondemand/manifest.mpd")]) { url in
      let result = try await Command.run(
        "frames", url.absoluteString, "--json", "--md5", "-o", try TemporaryFolder().path, status: 0)
      #expect(result.outputText.contains(try Fixtures.golden("dash-number-1")[0]))
    }
  }

  @Test("A folder is served as it is")
  func folder() async throws {
    try await withServer([Fixtures.folder.path]) { url in
      let result = try await Command.run(
        "frames", url.appending(path: "hls-ts/master.m3u8").absoluteString, "--json", "--md5", "-o",
        try TemporaryFolder().path)
      #expect(result.outputText.contains(try Fixtures.golden("hls-ts-high")[0]))
    }
  }

  @Test("A folder on a recorded link")
  func recordedLink() async throws {
    let link = Fixtures.path("links/oboe-3.txt") + ",scale=8,rtt=20ms,start=30s"
    try await withServer([Fixtures.folder.path, "--link", link]) { url in
      let result = try await Command.run(
        "frames", url.appending(path: "hls-ts/master.m3u8").absoluteString, "--json", "--md5", "-o",
        try TemporaryFolder().path)
      #expect(result.outputText.contains(try Fixtures.golden("hls-ts-high")[0]))
    }
  }

  @Test(
    "Usage and failures",
    arguments: [
      ([Fixtures.folder.path, "--proxy"], Int32(64)),
      ([Fixtures.path("dash-number/manifest.mpd"), "--link", "3g"], 64),
      (["--port", "70000", Fixtures.folder.path], 64), (["/nowhere/a.mpd"], 66),
      ([Fixtures.path("media/h264.ts")], 65), ([Fixtures.path("bad/encrypted.mpd"), "--port", "0"], 65),
      ([Fixtures.folder.path, "--link", "fast", "--port", "0"], 64),
      ([Fixtures.folder.path, "--link", "lte,tcp", "--port", "0"], 64),
      ([Fixtures.folder.path, "--link", "lte,start=seed", "--port", "0"], 64),
      ([Fixtures.folder.path, "--link", Fixtures.path("links"), "--port", "0"], 64),
      ([Fixtures.folder.path, "--link", Fixtures.path("bad/html.m3u8"), "--port", "0"], 65),
    ] as [([String], Int32)])
  func failures(arguments: [String], status: Int32) async throws {
    let result = try await Command.run(["serve"] + arguments, status: status)
    #expect(!result.errorText.isEmpty)
  }
}
