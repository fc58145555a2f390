import Foundation
import ReelModels
import ReelTestSupport
import Testing

@Suite("reel feed --player", .hangLimit)
struct FeedPlayerTests {
  private static let items = ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "hls-hevc/index.m3u8"]

  @Test("The same arguments give the same report, page and trace, byte for byte")
  func repeatable() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    var outputs: [[UInt8]] = []
    for number in 0..<2 {
      let result = try await Command.run(
        "feed", feed, "--player", "hls.js", "--pool", "2", "--link", "lte,tcp", "--swipes", "12", "--json",
        "--trace", folder.path("\(number).jsonl"), "--report", folder.path("\(number).html"), status: 0)
      outputs.append(result.output)
    }
    try #require(outputs.count == 2)
    #expect(outputs[0] == outputs[1])
    #expect(try folder.bytes("0.jsonl") == folder.bytes("1.jsonl"))
    let settings = try jsonObject(String(decoding: outputs[0], as: UTF8.self))["settings"] as? [String: Any]
    #expect(settings?["player"] as? String == "hls.js" && settings?["slots"] as? Int == 2)
    #expect(try folder.text("0.html").contains("hls.js preloading one item ahead"))
  }

  @Test("Reports name the player, side by side and with a remark if it was not measured")
  func names() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    let text = try await Command.run(
      "feed", feed, "--player", "media3", "--link", "lte", "--compare", "1,3:ahead:2", "--assert", "failed=0",
      "--details", status: 0
    ).outputText
    #expect(text.contains("media3 (from documentation, not measured)"))
    #expect(text.contains("preloading two items ahead"))
  }

  @Test("A model is printed, changed and used")
  func copied() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    let json = try await Command.run("feed", "--player", "hls.js", "--print-model", status: 0).outputText
    try folder.write(json.replacing("\"hls.js\"", with: "\"ours\""), to: "ours.json")
    let text = try await Command.run(
      "feed", feed, "--player", folder.path("ours.json"), "--link", "lte", status: 0
    ).outputText
    #expect(text.contains("ours"))
    try folder.write(json.replacing("\"swap_ms\": ", with: "\"swap_ms\": -"), to: "ours.json")
    let wrong = try await Command.run("feed", feed, "--player", folder.path("ours.json"), "--link", "lte")
    #expect(wrong.status != 0 && wrong.errorText.contains("costs.swap_ms: can't be negative"))
  }

  @Test(
    "What can't be combined with a model is refused by name",
    arguments: [
      ["--decode-cost", "4ms", "--virtual"], ["--cores", "2"], ["--first-rung", "low"],
      ["--preload", "adaptive"],
    ])
  func refused(options: [String]) async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    let result = try await Command.run(["feed", feed, "--player", "hls.js", "--link", "lte"] + options)
    #expect(result.status != 0)
    #expect(result.errorText.contains(options[0]) || result.errorText.contains("adaptive"))
  }
}
