import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@Suite("Encrypted sources", .hangLimit)
struct EncryptedCommandTests {
  private static let id = "31323334-3536-3738-3930-313233343536"
  private static let key = "32333435363738393031323334353637"
  /// The second key id and key of the rotation fixture.
  private static let rotated = "MjM0NTY3ODkwMTIzNDU2MQ:MzQ1Njc4OTAxMjM0NTY3Mg"
  private static let rotatedTwice = "33343536373839303132333435363132:34353637383930313233343536373233"
  private static var keys: [String] { ["--key", "\(id):\(key)", "--key", rotated, "--key", rotatedTwice] }

  private func golden() throws -> [String] { try Fixtures.golden("encrypted-clear") }

  @Test(arguments: ["cbcs/video.mp4", "cenc/manifest.mpd", "rotation/manifest.mpd", "hls-ts/rotating.m3u8"])
  func frames(path: String) async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      ["frames", Fixtures.path("encrypted/\(path)"), "--count", "0", "--md5", "-o", folder.path] + Self.keys,
      status: 0)
    #expect(result.outputLines.map { String($0.suffix(32)) } == (try golden()))
  }

  /// Frames and audio match the clear original.
  @Test(arguments: ["cenc", "cens", "cbc1", "cbcs", "rotation", "clear-lead"])
  func play(folder: String) async throws {
    let output = try TemporaryFolder()
    let list = try output.write(
      "\(Self.id):\(Self.key) # the first\n\(Self.rotated)\n\n\(Self.rotatedTwice)\n",
      to: "keys.txt")
    let result = try await Command.run(
      "play", Fixtures.path("encrypted/\(folder)/manifest.mpd"), "--rate", "max", "--md5", "--json",
      "--key-file",
      list, "--wav", output.path + "/a.wav", status: 0)
    #expect(try PlayEvents(result).md5s == (try golden()))
    try await Command.run(
      "play", Fixtures.path("encrypted/clear.mp4"), "--rate", "max", "--wav", output.path + "/clear.wav",
      status: 0)
    // The delay of the encoder is before the first frame, and so in neither file.
    let samples = try output.bytes("a.wav")
    #expect(samples.count > 280_000)
    let isSame = try samples == output.bytes("clear.wav")
    #expect(isSame)
  }

  @Test(arguments: ["rotation/manifest.mpd", "hls-ts/rotating.m3u8", "cbcs/video.mp4"])
  func loop(path: String) async throws {
    let result = try await Command.run(
      [
        "play", Fixtures.path("encrypted/\(path)"), "--rate", "max", "--loop", "--duration", "7", "--md5",
        "--json",
      ]
        + Self.keys, status: 0)
    let shown = try PlayEvents(result).md5s
    #expect(shown.count > 150)
    #expect(Array(shown.prefix(150)) == (try golden() + golden()))
  }

  @Test func soundOfTransportStreams() async throws {
    let output = try TemporaryFolder()
    let source = Fixtures.path("encrypted/hls-ts/master.m3u8")
    let result = try await Command.run(
      "play", source, "--rate", "max", "--md5", "--json", "--wav", output.path + "/a.wav", status: 0)
    #expect(try PlayEvents(result).md5s == (try golden()))
    #expect(try output.bytes("a.wav").count > 250_000)
  }

  @Test func otherCommands() async throws {
    let source = Fixtures.path("encrypted/cbcs/video.mp4")
    let probe = try await Command.run(["probe", source, "--json"] + Self.keys, status: 0)
    #expect(probe.outputText.contains(try golden()[0]))
    let folder = try TemporaryFolder()
    let list = try folder.writeFeed([source, "encrypted/cenc/manifest.mpd"])
    try await Command.run(
      ["feed", list, "--swipes", "1", "--dwell", "fixed:0.2s", "--assert", "failed=0"] + Self.keys, status: 0)
    try await Command.run(["memory", source] + Self.keys, status: 0)
  }

  @Test func withoutAKey() async throws {
    let folder = try TemporaryFolder()
    let source = Fixtures.path("encrypted/clear-lead/manifest.mpd")
    try await Command.run("frames", source, "-o", folder.path, status: 0)
    let all = try await Command.run(
      "frames", source, "--count", "0", "--md5", "-o", folder.path + "/all", status: 65)
    #expect(all.outputLines.map { String($0.suffix(32)) } == Array(try golden().prefix(25)))
    for word in ["cbcs", "Widevine", "PlayReady", "key id 31323334353637383930313233343536"] {
      #expect(all.errorText.contains(word), "\(all.errorText)")
    }
    let play = try await Command.run("play", source, "--rate", "max", "--md5", "--json")
    #expect(play.status != 0)
    #expect(try PlayEvents(play).md5s == Array(try golden().prefix(25)))
    #expect(play.errorText.contains("cbcs") || play.outputText.contains("cbcs"))
  }

  @Test("A key that is not there is named with its media") func missingKey() async throws {
    let folder = try TemporaryFolder()
    for name in ["index.m3u8", "segment-0.ts"] {
      try folder.write(Fixtures.bytes("hls-aes128/\(name)"), to: name)
    }
    let result = try await Command.run(
      "frames", folder.path("index.m3u8"), "-o", folder.path("out"), status: 66)
    #expect(result.errorText.contains("key.bin: no such file (the key of "), "\(result.errorText)")
    #expect(result.errorText.contains("segment-0.ts)"), "\(result.errorText)")
  }

  /// Covers keys given by the user as well as those from a server or a playlist.
  @Test(arguments: [
    ["frames", "cbcs/video.mp4", "--json"], ["frames", "hls-ts/data-key.m3u8", "--json"],
    ["play", "hls-ts/rotating.m3u8", "--rate", "max", "--json"],
    ["probe", "rotation/manifest.mpd", "--json"],
    ["manifest", "hls-ts/data-key.m3u8"], ["play", "cenc/manifest.mpd", "--rate", "max"],
    ["memory", "cbcs/master.m3u8", "--json"],
    ["feed", "FEED", "--swipes", "1", "--dwell", "fixed:0.2s", "--json"],
    ["frames", "clear-lead/manifest.mpd", "--count", "0"],
  ])
  func noOutputHasAKey(arguments: [String]) async throws {
    let folder = try TemporaryFolder()
    var arguments = arguments
    arguments[1] = Fixtures.path("encrypted/\(arguments[1])")
    if arguments[0] == "feed" {
      arguments += ["--trace", folder.path + "/trace.jsonl"]
      arguments[1] = try folder.writeFeed(["encrypted/hls-ts/data-key.m3u8", "encrypted/cbcs/master.m3u8"])
    }
    if arguments[0] == "frames" { arguments += ["-o", folder.path] }
    if arguments[0] != "manifest" {
      // The last key is wrong and not needed.
      arguments +=
        Self.keys + [
          "--key", "6b65792d69642d6f662d616e6f746865:6e6f7420746865207269676874206f6e", "--verbose",
        ]
    }
    let result = try await Command.run(arguments)
    let trace = try? folder.bytes("trace.jsonl")
    #expect((trace == nil) == (arguments[0] != "feed"))
    let text = result.outputText + result.errorText + String(decoding: trace ?? [], as: UTF8.self)
    #expect(!text.isEmpty)
    for secret in [
      Self.key, "2345678901234567", "MjM0NTY3ODkwMTIzNDU2Nw", "MzQ1Njc4OTAxMjM0NTY3Mg",
      "33343536373839303132333435363732", "34353637383930313233343536373233", "another key",
      "YW5vdGhlciBrZXks", "616e6f74686572",
      "6e6f742074686520", "not the right on",
    ] {
      #expect(!text.lowercased().contains(secret.lowercased()), "\(secret) in the output of \(arguments[0])")
    }
  }

  @Test(arguments: [
    ["--key", "secret"], ["--key", "31323334353637383930313233343536:secret"], ["--key", "secret:"],
    ["--key-file", "KEYS"],
  ])
  func whatIsNoKeyIsAnErrorOfUsage(arguments: [String]) async throws {
    let folder = try TemporaryFolder()
    let list = try folder.write("\n\nsecret\n", to: "keys.txt")
    let result = try await Command.run(
      ["frames", "x.mp4"] + arguments.map { $0 == "KEYS" ? list : $0 }, status: 64)
    #expect(result.errorText.contains("key"))
    #expect(!result.errorText.contains("secret"))
    if arguments[0] == "--key-file" { #expect(result.errorText.contains("line 3")) }
  }

  @Test func aKeyFileThatIsNotThere() async throws {
    let result = try await Command.run("frames", "x.mp4", "--key-file", "/nowhere/keys", status: 64)
    #expect(result.errorText.contains("/nowhere/keys"))
  }
}
