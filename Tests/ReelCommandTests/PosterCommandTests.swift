import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@Suite("reel poster", .hangLimit)
struct PosterCommandTests {
  private let poor = Fixtures.path("stills/poor-start.mp4")

  @Test("A JPEG of the best frame, and why")
  func text() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run("poster", poor, "-o", folder.path, "--size", "160", status: 0)
    #expect(folder.names() == ["poor-start.jpg"])
    let line = try #require(result.outputLines.first).split(separator: "\t")
    #expect(result.outputLines.count == 1)
    #expect(line[0] == "\(folder.path)/poor-start.jpg")
    #expect(line[1] == "4 s" || line[1] == "5 s")
    #expect(line[2] == "160x90")
    #expect(line[3] == "best of 6, rejected 1 black, 1 uniform, 1 faded, 1 blurred")
    #expect(try folder.bytes("poor-start.jpg").starts(with: [0xff, 0xd8, 0xff]))
  }

  @Test("JSON lists the candidates with their measures and what was read")
  func record() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      let source = origin.url("stills/master.m3u8").absoluteString
      let record = try await Command.run(
        "poster", source, "-o", folder.path, "--size", "160x160", "--json", "--format", "webp", "--quality",
        "50", status: 0
      ).object
      #expect(record["source"] as? String == source)
      #expect(record["good"] as? Bool == true)
      #expect(record["rung"] as? String == "1")
      let file = try #require(record["file"] as? [String: Any])
      #expect(file["format"] as? String == "webp")
      #expect(file["quality"] as? Int == 50)
      #expect(file["width"] as? Int == 160 && file["height"] as? Int == 90)
      #expect(file["bytes"] as? Int == (try folder.bytes("stills.webp").count))
      let candidates = try #require(record["candidates"] as? [[String: Any]])
      #expect(candidates.count == 6)
      #expect(candidates[0]["flaws"] as? [String] == ["black", "uniform", "faded"])
      for key in [
        "time", "score", "mean", "deviation", "contrast", "dark_share", "uniform_share", "entropy",
        "sharpness", "bytes",
      ] {
        #expect(candidates[5][key] is NSNumber, "\(key)")
      }
      let chosen = try #require(record["chosen"] as? Int)
      #expect(candidates[chosen]["time"] as? Double == record["time"] as? Double)
      let read = try #require(record["read"] as? [String: Any])
      let floor = ["manifest_bytes", "init_bytes", "key_frame_bytes"].compactMap { read[$0] as? Int }.reduce(
        0, +)
      let bytes = try #require(read["bytes"] as? Int)
      #expect(bytes >= floor && bytes <= floor * 12 / 10 + 16384 + 5 * 8192)
    }
  }

  @Test("The least bad frame is named so")
  func leastBad() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "poster", Fixtures.path("stills/all-poor.mp4"), "-o", folder.path, status: 0)
    #expect(result.outputLines.first?.hasSuffix("2 s\t320x180\tleast bad of 3, faded") == true)
  }

  @Test("A time, turned upright, with square pixels")
  func geometry() async throws {
    let folder = try TemporaryFolder()
    for (name, size) in [("rotate-90.mp4", "96 160"), ("sar-4-3.mp4", "192 108")] {
      let frames = try await Command.run(
        "frames", Fixtures.path("media/\(name)"), "--at", "0.3", "-o", folder.path, "--overwrite")
      let poster = try await Command.run(
        "poster", Fixtures.path("media/\(name)"), "--at", "0.3", "--format", "ppm", "-o", folder.path,
        "--overwrite")
      let stem = name.replacing(".mp4", with: "")
      #expect(poster.status == 0, "\(poster.errorText)")
      let (still, frame) = (try folder.bytes("\(stem).ppm"), try folder.bytes("\(stem)-000001.ppm"))
      #expect(still.starts(with: Array("P6\n\(size)\n".utf8)) && still.count == frame.count, "\(name)")
      // The colors of stills are more exact, which shows at edges. Turned otherwise, they would differ by 40 and more.
      let difference = zip(still, frame).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
      #expect(difference < 10 * still.count, "\(name)")
      #expect(frames.status == 0)
    }
  }

  @Test("A limit for the bytes")
  func maximumBytes() async throws {
    let folder = try TemporaryFolder()
    let record = try await Command.run(
      "poster", poor, "--at", "4", "-o", folder.path, "--max-bytes", "8kB", "--json", status: 0
    ).object
    let file = try #require(record["file"] as? [String: Any])
    let quality = try #require(file["quality"] as? Int)
    #expect(quality < 85)
    #expect(try folder.bytes("poor-start.jpg").count <= 8000)
    let refused = try await Command.run(
      "poster", poor, "--at", "4", "-o", folder.path + "/none", "--max-bytes", "100", status: 73)
    expectErrorLine(refused, names: "poor-start.jpg", words: "more than 100 bytes at any quality")
    #expect(folder.names("none").isEmpty)
  }

  @Test("To standard output")
  func standardOutput() async throws {
    let result = try await Command.run("poster", poor, "--first", "--format", "png", "-o", "-", status: 0)
    #expect(result.output.starts(with: [0x89, 0x50, 0x4e, 0x47]))
    #expect(result.errorText.hasPrefix("-\t0 s\t320x180\tfirst frame"))
  }

  @Test("Several sources; one that fails does not end the others")
  func several() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "poster", poor, Fixtures.path("bad/audio-only.mp4"), goodSource, "-o", folder.path, status: 1)
    #expect(folder.names() == ["h264-faststart.jpg", "poor-start.jpg"])
    expectErrorLine(result, names: "audio-only.mp4", words: "no video")
  }
}
