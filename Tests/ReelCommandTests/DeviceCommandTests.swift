import Foundation
import ReelTestSupport
import Testing

@Suite("Devices on the command line", .hangLimit)
struct DeviceCommandTests {
  private static let items = ["hls-fmp4/master.m3u8", "media/audio-aac.mp4", "hls-ts/master.m3u8"]
  private static let walk = ["--virtual", "--link", "lte", "--swipes", "5", "--dwell", "fixed:1s"]

  @Test("A device is part of the settings, and its costs are those of the walk")
  func device() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    var second: [Double] = []
    for device in ["high", "low"] {
      // A link that hides no cost.
      let arguments = [
        "feed", feed, "--json", "--device", device, "--virtual", "--link", "1Gbit/1ms", "--swipes", "5",
        "--dwell", "fixed:1s",
      ]
      let result = try await Command.run(arguments, status: 0)
      #expect(try await Command.run(arguments).output == result.output)
      let report = try result.object
      let settings = try #require(report["settings"] as? [String: Any])
      #expect(settings["device"] as? String == device)
      #expect(!(settings["decode_cost_ms"] is NSNumber))
      let swipes = try #require(report["swipes"] as? [[String: Any]])
      second.append(swipes.compactMap { $0["second_frame_ms"] as? Double }.reduce(0, +))
    }
    try #require(second.count == 2)
    #expect(second[1] != second[0])
    let text = try await Command.run(["feed", feed, "--device", "low"] + Self.walk)
    #expect(text.outputText.contains("device low"), "\(text.outputText)")
  }

  @Test("Without --virtual a device gives its limits")
  func realTime() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "feed", try folder.writeFeed(Self.items), "--device", "low", "--swipes", "2", "--dwell", "fixed:0.3s",
      "--json", status: 0)
    #expect(result.outputText.contains("\"device\":\"low\""))
  }
}
