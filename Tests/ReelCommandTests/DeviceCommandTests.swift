import Foundation
import ReelFFmpeg
import ReelPool
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
    var slow = DeviceModel.low
    slow.decodeCost.opening = .seconds(2)
    let path = folder.path + "/slow.json"
    try slow.json.write(toFile: path, atomically: true, encoding: .utf8)
    var second: [Double] = []
    for device in ["high", path] {
      let arguments = ["feed", feed, "--json", "--device", device] + Self.walk
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
    arguments: [["--decode-cost", "4ms"], ["--calibrate"], ["--cores", "2"]])
  func exclusions(options: [String]) async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(["feed", try list(folder), "--device", "low"] + options + Self.walk)
    #expect(result.status == 64)
    #expect(result.errorText.contains("--device"), "\(result.errorText)")
  }

  @Test("What is no device")
  func faults() async throws {
    let folder = try TemporaryFolder()
    let feed = try list(folder)
    func expect(_ device: String, _ status: Int32, _ words: String) async throws {
      let result = try await Command.run(["feed", feed, "--device", device] + Self.walk)
      #expect(result.status == status, "\(result.errorText)")
      #expect(result.output.isEmpty)
      expectErrorLine(result, names: device, words: words)
    }
    try await expect("medium", 64, "write low, mid, high")
    try await expect(folder.path, 66, "is a folder")
    try await expect(folder.path + "/none.json", 66, "no such file")
    let path = folder.path + "/device.json"
    func write(_ text: String) throws { try text.write(toFile: path, atomically: true, encoding: .utf8) }
    try write("{ \"name\": ")
    try await expect(path, 65, "line 1")
    try write(DeviceModel.mid.json.replacingOccurrences(of: "\"decoders\": 6", with: "\"decoders\": 0"))
    try await expect(path, 65, "line 3: decoders: a device without a decoder")
    try write(DeviceModel.mid.json.replacingOccurrences(of: "\"pixel_ns\": 24", with: "\"pixel_ns\": -24"))
    try await expect(path, 65, "decode.av1.pixel_ns: must be a number from 0")
    try write(DeviceModel.mid.json.replacingOccurrences(of: "\"cores\"", with: "\"kerne\""))
    try await expect(path, 65, "kerne: unknown field")
  }

  @Test("A calibration is a device that feed takes")
  func calibrate() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/here.json"
    let sources = ["media/h264-bframes.mp4", "hls-fmp4/master.m3u8", "media/vp9.webm"].map(Fixtures.path)
    let result = try await Command.run(["calibrate"] + sources + ["-o", path, "--name", "here"])
    #expect(result.status == 0, "\(result.errorText)")
    #expect(result.outputText.contains("h264"))
    #expect(result.outputText.contains("vp9"))
    let device = try DeviceModel(path: path)
    #expect(device.name == "here")
    #expect(device.decoderLimit == nil)
    #expect(device.decodeCost.opening > .zero)
    #expect(Set(device.decodeCost.codecs.keys) == [.h264, .vp9])
    #expect(device.decodeCost.codecs[.h264]?.duration(pixelCount: 921_600) ?? .zero > .zero)
    let walk = try await Command.run(["feed", try list(folder), "--device", path] + Self.walk)
    #expect(walk.status == 0, "\(walk.errorText)")
    let json = try await Command.run(["calibrate", "--json", try #require(sources.first)])
    let record = try object(json.outputText)
    #expect(record["cores"] is NSNumber)
    #expect((record["samples"] as? [[String: Any]])?.first?["codec"] as? String == "h264")
    #expect(
      (record["decode"] as? [[String: Any]])?.compactMap { $0["codec"] as? String } == ["h264", "others"])
    let piped = try await Command.run(["calibrate", "-o", "-", try #require(sources.first)])
    #expect(try DeviceModel(json: piped.output).decodeCost.codecs[.h264] != nil)
  }

  @Test("A calibration without material, or with what can't be decoded")
  func badCalibration() async throws {
    let folder = try TemporaryFolder()
    for arguments in [[], ["-"], [Fixtures.path("media/vp9.webm"), "-o", ""]] {
      #expect(try await Command.run(["calibrate"] + arguments).status == 64)
    }
    let path = folder.path + "/device.json"
    let bad = try await Command.run("calibrate", Fixtures.path("bad/text.mp4"), "-o", path)
    #expect(bad.status == 65)
    #expect(folder.names().isEmpty)
    let missing = try await Command.run("calibrate", folder.path + "/none.mp4")
    #expect(missing.status == 66)
    let output = try await Command.run("calibrate", Fixtures.path("media/vp9.webm"), "-o", folder.path)
    #expect(output.status == 73)
    // One of two counts.
    let part = try await Command.run(
      "calibrate", Fixtures.path("media/vp9.webm"), Fixtures.path("bad/text.mp4"), "-o", path)
    #expect(part.status == 1)
    #expect(try DeviceModel(path: path).decodeCost.codecs.count == 1)
  }

  @Test("feed --calibrate measures a flat cost that can be repeated")
  func feedCalibrate() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(["feed", try list(folder), "--calibrate", "--json"] + Self.walk)
    #expect(result.status == 0, "\(result.errorText)")
    #expect(result.errorText.contains("repeat with --decode-cost"), "\(result.errorText)")
    let settings = try object(result.outputText)["settings"] as? [String: Any]
    #expect(settings?["decode_cost_ms"] as? Double ?? 0 > 0)
  }
}
