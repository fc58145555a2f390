import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@Suite("reel frames", .hangLimit)
struct FramesCommandTests {
  /// Width, height and pixels of a binary pixmap.
  private func pixmap(_ bytes: [UInt8]) throws -> (size: PixelSize, pixels: ArraySlice<UInt8>) {
    let parts = bytes.split(separator: 10, maxSplits: 3, omittingEmptySubsequences: false)
    try #require(parts.count == 4)
    #expect(parts[0].elementsEqual("P6".utf8))
    #expect(parts[2].elementsEqual("255".utf8))
    let numbers = String(decoding: parts[1], as: UTF8.self).split(separator: " ").compactMap { Int($0) }
    try #require(numbers.count == 2)
    #expect(parts[3].count == numbers[0] * numbers[1] * 3)
    return (PixelSize(width: numbers[0], height: numbers[1]), parts[3])
  }

  // MARK: What is written

  @Test("The first frame, by default; the folder is made, with those above it, or is the working folder")
  func folders() async throws {
    let folder = try TemporaryFolder()
    let made = try await Command.run("frames", goodSource, "-o", "\(folder.path)/a/b", "--quiet", status: 0)
    #expect(made.output.isEmpty)
    #expect(folder.names("a/b") == ["h264-faststart-000001.ppm"])
    let here = try await Command.run("frames", goodSource, directory: folder.path)
    #expect(here.outputText == "h264-faststart-000001.ppm\tpts 0\t192x108\n")
    #expect(here.errorText.isEmpty)
    #expect(try pixmap(folder.bytes("h264-faststart-000001.ppm")).size == PixelSize(width: 192, height: 108))
  }

  @Test(
    "All frames, with the md5s of ffmpeg",
    arguments: ["h264-faststart.mp4", "h264-bframes.ts", "hevc-main10.mp4", "h264-moov-last.mp4", "vp9.webm"])
  func all(name: String) async throws {
    let folder = try TemporaryFolder()
    let golden = try Fixtures.golden(name)
    let result = try await Command.run(
      "frames", Fixtures.path("media/\(name)"), "--count", "0", "--md5", "-o", folder.path, status: 0)
    #expect(folder.names().count == golden.count)
    let md5s = result.outputLines.map { $0.split(separator: "\t").last.map(String.init) }
    #expect(md5s == golden.map { "md5 \($0)" })
    let stem = name.split(separator: ".")[0]
    #expect(folder.names().last == "\(stem)-\(String(format: "%06d", golden.count)).ppm")
  }

  @Test("JSON lines with snake_case keys")
  func jsonLines() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      let remote = origin.url("hls-fmp4/master.m3u8").absoluteString
      let result = try await Command.run(
        "frames", goodSource, remote, "--json", "-o", folder.path, "--md5", status: 0)
      #expect(result.outputLines.count == 2)
      let records = try result.objects
      let byName = Dictionary(
        uniqueKeysWithValues: records.compactMap { record in
          (record["source"] as? String).map { ($0, record) }
        })
      for (source, golden, size) in [
        (goodSource, "h264-faststart.mp4", (192, 108)), (remote, "hls-fmp4-high", (256, 144)),
      ] {
        let record = try #require(byName[source])
        let frame = try #require((record["frames"] as? [[String: Any]])?.first)
        #expect(Set(frame.keys).isSuperset(of: ["path", "pts", "pts_time", "time_base", "width", "height"]))
        #expect(frame["width"] as? Int == size.0)
        #expect(frame["height"] as? Int == size.1)
        #expect(frame["time_base"] as? String == "1/15360")
        #expect(frame["md5"] as? String == (try Fixtures.golden(golden)).first)
        #expect(frame["damaged"] as? Bool == false)
        let path = try #require(frame["path"] as? String)
        #expect(FileManager.default.fileExists(atPath: path))
        let startup = try #require(record["startup"] as? [String: Any])
        for stage in ["open", "manifest", "init", "segment", "demux", "decode", "convert"] {
          let entry = try #require(startup[stage] as? [String: Any], "\(stage)")
          #expect(entry["ms"] is NSNumber)
          #expect(entry["requests"] is NSNumber)
          #expect(entry["bytes"] is NSNumber)
        }
        #expect(record["damaged"] as? Int == 0)
        #expect(record["error"] == nil)
      }
      let remoteRecord = try #require(byName[remote])
      let frame = try #require((remoteRecord["frames"] as? [[String: Any]])?.first)
      #expect(frame["pts"] as? Int == 1014)
      #expect(frame["pts_time"] as? Double == 0.066016)
      #expect(frame["time"] as? Double == 0)
      let startup = try #require(remoteRecord["startup"] as? [String: Any])
      let initialization = try #require(startup["init"] as? [String: Any])
      #expect(initialization["requests"] as? Int == 1)
      #expect(initialization["bytes"] as? Int == 847)
    }
  }

  @Test(
    "Y4M holds the decoded samples",
    arguments: [
      ("h264-faststart.mp4", "YUV4MPEG2 W192 H108 F30:1 Ip A1:1 C420mpeg2"),
      ("odd-444-161x91.mp4", "YUV4MPEG2 W161 H91 F30:1 Ip A1:1 C444"),
      ("h264-high10.mp4", "YUV4MPEG2 W192 H108 F30:1 Ip A1:1 C420p10"),
      ("rate-30000-1001.mp4", "YUV4MPEG2 W160 H90 F30000:1001 Ip A1:1 C420mpeg2"),
      ("sar-4-3.mp4", "YUV4MPEG2 W144 H108 F30:1 Ip A4:3 C420mpeg2"),
    ])
  func y4m(name: String, header: String) async throws {
    let folder = try TemporaryFolder()
    let golden = try Fixtures.golden(name).prefix(6)
    let result = try await Command.run(
      "frames", Fixtures.path("media/\(name)"), "--format", "y4m", "--count", "6", "-o", folder.path,
      status: 0)
    #expect(result.outputLines.count == 6)
    let stem = try #require(name.split(separator: ".").first)
    #expect(folder.names() == ["\(stem).y4m"])
    let bytes = try folder.bytes("\(stem).y4m")
    let end = try #require(bytes.firstIndex(of: 10))
    #expect(String(decoding: bytes[..<end], as: UTF8.self).hasPrefix(header))
    let payload = bytes[(end + 1)...]
    #expect(payload.count % golden.count == 0)
    let size = payload.count / golden.count
    let md5s = try (0..<golden.count).map { index in
      let frame = payload.dropFirst(index * size).prefix(size)
      #expect(frame.starts(with: "FRAME\n".utf8))
      return try md5(frame.dropFirst(6))
    }
    #expect(md5s == Array(golden))
  }

  @Test(
    "Sizes and gravities",
    arguments: [
      ("h264-faststart.mp4", "64x64", "fit"), ("h264-faststart.mp4", "64x64", "fill"),
      ("h264-faststart.mp4", "64x64", "stretch"), ("rotate-90.mp4", "33x77", "fit"),
      ("sar-4-3.mp4", "1x1", "fill"),
      ("odd-420-161x91.webm", "320X180", "fit"),
    ])
  func sizes(name: String, size: String, gravity: String) async throws {
    let folder = try TemporaryFolder()
    try await Command.run(
      "frames", Fixtures.path("media/\(name)"), "--size", size, "--gravity", gravity, "-o", folder.path,
      status: 0)
    let wanted = size.lowercased().split(separator: "x").compactMap { Int($0) }
    let file = try #require(folder.names().first)
    let image = try pixmap(folder.bytes(file))
    #expect(image.size == PixelSize(width: wanted[0], height: wanted[1]))
    if size == "64x64" {
      let (top, left) = (image.pixels.prefix(64 * 3), stride(from: 0, to: image.pixels.count, by: 64 * 3))
      // Fit leaves bars of (64 - 36) / 2 lines.
      #expect(top.allSatisfy { $0 == 0 } == (gravity == "fit"))
      #expect(left.contains { image.pixels[image.pixels.startIndex + $0] != 0 })
    }
  }

  @Test(
    "One number is a box for every command, in which the aspect ratio is kept; 90p is the shorter side",
    arguments: [["frames", "--format", "ppm"], ["poster", "--format", "ppm"]],
    [("rotate-90.mp4", "80", 48, 80), ("rotate-90.mp4", "48p", 48, 80), ("h264-faststart.mp4", "64", 64, 36)])
  func box(command: [String], still: (name: String, size: String, width: Int, height: Int)) async throws {
    let folder = try TemporaryFolder()
    try await Command.run(
      command + [Fixtures.path("media/\(still.name)"), "--size", still.size, "-o", folder.path], status: 0)
    let image = try pixmap(folder.bytes(try #require(folder.names().first)))
    #expect(image.size == PixelSize(width: still.width, height: still.height))
  }

  @Test("The quality of JPEG files, and formats that have none")
  func quality() async throws {
    let folder = try TemporaryFolder()
    for quality in ["20", "95"] {
      try await Command.run(
        "frames", goodSource, "--quality", quality, "-o", "\(folder.path)/\(quality).jpg", status: 0)
    }
    #expect(try folder.bytes("20.jpg").count < folder.bytes("95.jpg").count)
    let refused = try await Command.run(
      "frames", goodSource, "--quality", "20", "-o", folder.path, status: 64)
    #expect(refused.errorText.contains("ppm has no quality"), "\(refused.errorText)")
  }

  @Test("Frames at times, and at every step")
  func times() async throws {
    let folder = try TemporaryFolder()
    let source = Fixtures.path("media/h264-gops.mp4")
    let golden = try Fixtures.golden("h264-gops.mp4")
    let at = try await Command.run(
      "frames", source, "--at", "0.5", "--at", "0", "--at", "1.1", "--md5", "-o", folder.path, status: 0)
    #expect(at.outputLines.map { $0.suffix(32) } == [golden[0], golden[15], golden[33]].map { $0[...] })
    let every = try await Command.run(
      "frames", source, "--every", "0.4", "--md5", "-o", folder.path + "/every")
    #expect(every.outputLines.map { $0.suffix(32) } == [golden[0], golden[12], golden[24]].map { $0[...] })
    let count = try await Command.run("frames", source, "--count", "3", "--md5", "-o", folder.path + "/count")
    #expect(count.outputLines.map { $0.suffix(32) } == golden.prefix(3).map { $0[...] })
  }

  @Test("A printed time names the frame that it was printed for")
  func printedTimes() async throws {
    let folder = try TemporaryFolder()
    let source = Fixtures.path("media/rate-24000-1001.mp4")
    let all = try await Command.run("frames", source, "--count", "0", "--md5", "-o", folder.path)
    for line in all.outputLines.dropFirst().prefix(5) {
      let time = try #require(line.split(separator: "\t").first { $0.hasPrefix("pts ") }).dropFirst(4)
      let one = try await Command.run(
        "frames", source, "--at", String(time), "--md5", "-o", folder.path, "--overwrite")
      #expect(one.outputLines.first?.suffix(32) == line.suffix(32), "\(time)")
    }
  }

  @Test("Sources of one name do not overwrite each other")
  func names() async throws {
    let folder = try TemporaryFolder()
    try await Command.run(
      "frames", Fixtures.path("media/h264.ts"), Fixtures.path("media/h264.mkv"),
      Fixtures.path("media/h264.flv"),
      Fixtures.path("hls-ts/low/index.m3u8"), Fixtures.path("hls-ts/high/index.m3u8"), "-o", folder.path,
      status: 0)
    #expect(folder.names().count == 5)
    #expect(folder.names().filter { $0.hasPrefix("h264") }.count == 3)
    // Of playlists called index, the folders.
    #expect(folder.names().filter { ["low-000001.ppm", "high-000001.ppm"].contains($0) }.count == 2)
  }

  @Test(
    "The rung by bandwidth and height",
    arguments: [(["--bandwidth", "500k"], "160x90"), (["--max-height", "100"], "160x90"), ([], "256x144")])
  func rungs(options: [String], size: String) async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      ["frames", Fixtures.path("hls-ts/master.m3u8"), "-o", folder.path] + options)
    #expect(result.outputText.contains("\t\(size)\n"))
  }

  @Test("Headers are sent")
  func headers() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      try await Command.run(
        "frames", origin.url("media/h264.ts").absoluteString, "--header", "X-Token: a b", "-o", folder.path,
        status: 0)
      #expect(origin.requestLog.first?.header("X-Token") == "a b")
    }
  }

  @Test("HDR is tone mapped as in posters, except in Y4M", arguments: ["colour-hdr10-pq", "colour-hlg"])
  func hdr(name: String) async throws {
    let (folder, source) = (try TemporaryFolder(), Fixtures.path("media/\(name).mp4"))
    let result = try await Command.run("frames", source, "-o", folder.path, "--format", "ppm")
    #expect(result.outputText.contains("\tHDR, tone mapped"))
    try await Command.run(
      "poster", source, "-o", folder.path, "--format", "ppm", "--first", status: 0)
    #expect(try folder.bytes("\(name)-000001.ppm") == folder.bytes("\(name).ppm"))
    let json = try await Command.run("frames", source, "-o", folder.path, "--json", "--overwrite")
    #expect(json.outputText.contains("\"tone_mapped\":true"))
    #expect(json.outputText.contains("\"hdr_not_tone_mapped\":false"))
    let samples = try await Command.run("frames", source, "-o", folder.path, "--format", "y4m", "--json")
    #expect(samples.outputText.contains("\"hdr_not_tone_mapped\":true"))
    #expect(samples.outputText.contains("\"tone_mapped\":false"))
  }

  // MARK: Standard input and output

  @Test(
    "Standard input",
    arguments: ["h264-faststart.mp4", "h264-moov-last.mp4", "h264.ts", "h264-fragmented.mp4", "h264.mkv"])
  func standardInput(name: String) async throws {
    let folder = try TemporaryFolder()
    let golden = try Fixtures.golden(name)
    let first = try await Command.run(
      "frames", "-", "--md5", "-o", folder.path, input: Fixtures.bytes("media/\(name)"), status: 0)
    #expect(first.outputText.contains(golden[0]))
    #expect(folder.names() == ["stdin-000001.ppm"])
    let all = try await Command.run(
      "frames", "-", "--md5", "--count", "0", "-o", folder.path + "/all",
      input: Fixtures.bytes("media/\(name)"))
    #expect(all.outputLines.map { $0.suffix(32) } == golden.map { $0[...] })
    let file = try await Command.run(
      "frames", "-", "--md5", "-o", folder.path + "/file",
      shell: "exec \"$@\" < '\(Fixtures.path("media/\(name)"))'")
    #expect(file.outputText.contains(golden[0]))
  }

  @Test("Standard input that is nothing, or no media")
  func badStandardInput() async throws {
    let folder = try TemporaryFolder()
    for (input, words) in [([], "empty"), (Array("only text\n".utf8), "plain text")] {
      let result = try await Command.run("frames", "-", "-o", folder.path, input: input, status: 65)
      expectErrorLine(result, names: "standard input", words: words)
      #expect(folder.names().isEmpty)
    }
  }

  @Test("Standard output holds the frame and nothing else")
  func standardOutput() async throws {
    let result = try await Command.run("frames", goodSource, "-o", "-", status: 0)
    #expect(try pixmap(result.output).size == PixelSize(width: 192, height: 108))
    let y4m = try await Command.run("frames", goodSource, "-o", "-", "--format", "y4m", "--count", "0")
    #expect(y4m.output.starts(with: "YUV4MPEG2 ".utf8))
    let header = try #require(y4m.output.firstIndex(of: 10)) + 1
    #expect(y4m.output.count == header + 30 * (6 + 31104))
  }

  // MARK: Help and usage

  @Test(
    "Sources that can't be meant are usage errors, or named as not supported",
    arguments: [("", Int32(64)), ("http://", 64), ("rtmp://host/a", 65)])
  func sources(argument: String, status: Int32) async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run("frames", argument, "-o", folder.path, status: status)
    expectErrorLine(result, names: argument, words: "")
    #expect(folder.names().isEmpty)
  }
}
