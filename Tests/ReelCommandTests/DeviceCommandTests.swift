import Foundation
import ReelTestSupport
import Testing

@Suite("Devices on the command line", .hangLimit)
struct DeviceCommandTests {
  private static let walk = ["--virtual", "--link", "lte", "--swipes", "5", "--dwell", "fixed:1s"]

  private func list(_ folder: TemporaryFolder) throws -> String {
    let path = folder.path + "/feed.txt"
    try ["hls-fmp4/master.m3u8", "media/audio-aac.mp4", "hls-ts/master.m3u8"].map(Fixtures.path)
      .joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  private func object(_ text: some StringProtocol) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  @Test("A device is part of the settings, and its costs are those of the walk")
  func device() async throws {
    let folder = try TemporaryFolder()
    let feed = try list(folder)
    var second: [Double] = []
    for device in ["high", "low"] {
      // A link that hides no cost.
      let arguments = [
        "feed", feed, "--json", "--device", device, "--virtual", "--link", "1Gbit/1ms", "--swipes", "5",
        "--dwell", "fixed:1s",
      ]
      let result = try await Command.run(arguments)
      #expect(result.status == 0, "\(result.errorText)")
      #expect(try await Command.run(arguments).output == result.output)
      let report = try object(result.outputText)
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
      "feed", try list(folder), "--device", "low", "--swipes", "2", "--dwell", "fixed:0.3s", "--json")
    #expect(result.status == 0, "\(result.errorText)")
    #expect(result.outputText.contains("\"device\":\"low\""))
  }

  @Test(
    "What contradicts a device is refused",
    arguments: [["--decode-cost", "4ms"], ["--cores", "2"]])
  func exclusions(options: [String]) async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(["feed", try list(folder), "--device", "low"] + options + Self.walk)
    #expect(result.status == 64)
    #expect(result.errorText.contains("--device"), "\(result.errorText)")
  }

  @Test("What is no device")
  func fault() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(["feed", try list(folder), "--device", "medium"] + Self.walk)
    #expect(result.status == 64, "\(result.errorText)")
    #expect(result.output.isEmpty)
    expectErrorLine(result, names: "medium", words: "write one of low, mid, high")
  }
}
