import Foundation
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelReading
import ReelTestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Y4M outputs", .hangLimit)
struct Y4MOutputTests {
  /// A Y4M file in its parts.
  private struct Parsed {
    let header: String
    /// The samples of each frame.
    let frames: [ArraySlice<UInt8>]

    /// `frameByteCount` is what a frame should have.
    init(_ bytes: [UInt8], frameByteCount: Int) throws {
      let end = try #require(bytes.firstIndex(of: 10))
      header = String(decoding: bytes[..<end], as: UTF8.self)
      var frames: [ArraySlice<UInt8>] = []
      var rest = bytes[(end + 1)...]
      while !rest.isEmpty {
        try #require(rest.starts(with: "FRAME\n".utf8))
        rest = rest.dropFirst(6)
        try #require(rest.count >= frameByteCount)
        frames.append(rest.prefix(frameByteCount))
        rest = rest.dropFirst(frameByteCount)
      }
      self.frames = frames
    }
  }

  /// The planes of each frame of a clip, as decoded and turned upright.
  private func planes(of path: String, count: Int = 0) async throws -> [[UInt8]] {
    let frames = Locked<[[UInt8]]>([])
    try await withFrames(of: path, count: count) { frame in
      let image = try PlanarImage(frame.decoded, orientation: frame.orientation)
      frames.withLock { $0.append(image.planes.flatMap { $0 }) }
    }
    return frames.withLock { $0 }
  }

  private func meanDifference(_ left: some Sequence<Double>, _ right: some Sequence<Double>) -> Double {
    let differences = zip(left, right).map { abs($0 - $1) }
    return differences.reduce(0, +) / Double(max(1, differences.count))
  }

  /// The mean luma of each of 16x9 parts of a frame.
  private func blockMeans(_ samples: [UInt8], width: Int, height: Int) -> [Double] {
    let (columns, rows) = (16, 9)
    var sums = [Double](repeating: 0, count: columns * rows)
    for y in 0..<height {
      for x in 0..<width {
        sums[(y * rows / height) * columns + x * columns / width] += Double(samples[y * width + x])
      }
    }
    return sums.map { $0 * Double(columns * rows) / Double(width * height) }
  }

  @Test(
    "Header and samples as decoded, upright",
    arguments: [
      ("h264.ts", "W192 H108 F30:1 Ip A1:1 C420mpeg2"), ("rotate-90.mp4", "W96 H160 F30:1 Ip A1:1 C420mpeg2"),
      ("sar-4-3-rotate-90.mp4", "W108 H144 F30:1 Ip A3:4 C420mpeg2"),
      ("h264-high10.mp4", "W192 H108 F30:1 Ip A1:1 C420p10"),
      ("odd-444-161x91.mp4", "W161 H91 F30:1 Ip A1:1 C444"),
      ("colour-709-full.mp4", "W160 H96 F25:1 Ip A1:1 C420mpeg2 XCOLORRANGE=FULL"),
      ("rate-30000-1001.mp4", "W160 H90 F30000:1001 Ip A1:1 C420mpeg2"),
    ])
  func plain(name: String, header: String) async throws {
    let folder = try TemporaryFolder()
    let output = try Y4MOutput(path: folder.path("clip.y4m"))
    #expect(output.isExternal)
    try await show("media/\(name)", on: output)
    // Under its name only when it is whole.
    #expect(!(folder.names().contains("clip.y4m")))
    try output.finish()
    try output.finish()
    #expect(folder.names() == ["clip.y4m"])
    let frames = try await planes(of: "media/\(name)")
    let expected = Array("YUV4MPEG2 \(header)\n".utf8) + frames.flatMap { Array("FRAME\n".utf8) + $0 }
    #expect(try folder.bytes("clip.y4m") == expected)
    #expect(frames.count > 1)
  }

  @Test("A size that changes: the file goes on in the first one")
  func sizeChange() async throws {
    let folder = try TemporaryFolder()
    let output = try Y4MOutput(path: folder.path("clip.y4m"))
    try await show("media/h264-size-change.ts", on: output)
    try output.finish()
    let parsed = try Parsed(folder.bytes("clip.y4m"), frameByteCount: 160 * 90 * 3 / 2)
    #expect(parsed.header == "YUV4MPEG2 W160 H90 F30:1 Ip A1:1 C420mpeg2")
    let decoded = try await planes(of: "media/h264-size-change.ts")
    #expect(parsed.frames.count == decoded.count)
    #expect(decoded.filter { $0.count == 192 * 108 * 3 / 2 }.count == 15)
    for (frame, original) in zip(parsed.frames, decoded) where original.count == frame.count {
      #expect(frame.elementsEqual(original))
    }
    // The rest shows the whole frame, smaller.
    for index in 15..<30 {
      let small = blockMeans(Array(parsed.frames[index]), width: 160, height: 90)
      let large = blockMeans(decoded[index], width: 192, height: 108)
      #expect(meanDifference(small, large) < 1)
    }
  }

  @Test("Another shape gets bars; a turned frame is turned before")
  func shapeChange() async throws {
    let folder = try TemporaryFolder()
    let output = try Y4MOutput(path: folder.path("clip.y4m"))
    try await show("media/rotate-180.mp4", count: 1, on: output)
    try await show("media/rotate-90.mp4", count: 1, on: output, from: MediaTime(value: 1, timescale: 30))
    try output.finish()
    let parsed = try Parsed(folder.bytes("clip.y4m"), frameByteCount: 160 * 96 * 3 / 2)
    try #require(parsed.frames.count == 2)
    let frame = Array(parsed.frames[1])
    // 96x160 in 160x96 is 58x96, from column 50 or 51 on; 50, as chroma samples are whole.
    for row in [0, 47, 95] {
      let luma = frame[(row * 160)..<((row + 1) * 160)]
      #expect(luma.prefix(50).allSatisfy { $0 == 16 })
      #expect(luma.suffix(52).allSatisfy { $0 == 16 })
      #expect(luma.dropFirst(50).prefix(58).contains { $0 > 40 })
    }
    let chroma = frame[(160 * 96)..<(160 * 96 + 80)]
    #expect(chroma.prefix(25).allSatisfy { $0 == 128 })
    #expect(chroma.suffix(26).allSatisfy { $0 == 128 })
  }

  @Test("Another depth, chroma format and range")
  func formatChange() async throws {
    let folder = try TemporaryFolder()
    let output = try Y4MOutput(path: folder.path("clip.y4m"))
    let names = ["h264-faststart.mp4", "h264-high10.mp4", "colour-601-limited.mp4", "colour-709-full.mp4"]
    for (index, name) in names.enumerated() {
      let start = MediaTime(value: 2 * Int64(index), timescale: 30)
      try await show("media/\(name)", count: 2, on: output, from: start)
    }
    try output.finish()
    let parsed = try Parsed(folder.bytes("clip.y4m"), frameByteCount: 192 * 108 * 3 / 2)
    #expect(parsed.header == "YUV4MPEG2 W192 H108 F30:1 Ip A1:1 C420mpeg2")
    try #require(parsed.frames.count == 8)
    let frames = parsed.frames.map { $0.map(Double.init) }
    // The same frames in ten bits, but for coding and noise.
    #expect(meanDifference(frames[0], frames[2]) < 12)
    // One frame, coded with two matrices and ranges.
    #expect(meanDifference(frames[4], frames[6]) < 3)
    #expect(meanDifference(frames[2], frames[4]) > 12)
  }

  @Test("A hole is filled with the last frame; of two frames at one place the first is written")
  func places() async throws {
    let folder = try TemporaryFolder()
    let output = try Y4MOutput(path: folder.path("clip.y4m"))
    // Places 0, 1; none, as they are taken; 12, 13.
    for start: Int64 in [5000, 5010, 5400] {
      try await show("media/h264.ts", count: 2, on: output, from: MediaTime(value: start, timescale: 1000))
    }
    output.ended(at: MediaTime(value: 6000, timescale: 1000))
    try output.finish()
    let parsed = try Parsed(folder.bytes("clip.y4m"), frameByteCount: 192 * 108 * 3 / 2)
    let decoded = try await planes(of: "media/h264.ts", count: 2)
    let expected = [0] + Array(repeating: 1, count: 11) + [0] + Array(repeating: 1, count: 17)
    #expect(parsed.frames.map { frame in decoded.firstIndex { frame.elementsEqual($0) } } == expected)
  }

  @Test("Without a frame there is no file, and none of a frame that could not be shown")
  func empty() async throws {
    let folder = try TemporaryFolder()
    let output = try Y4MOutput(path: folder.path("clip.y4m"))
    try output.finish()
    #expect(folder.names().isEmpty)
    let error = await reelError { try await show("media/h264.ts", count: 1, on: output) }
    #expect(error?.kind == .usage)
    #expect(folder.names().isEmpty)
  }

  @Test("An output that is let go of before its end leaves nothing")
  func abandoned() async throws {
    let folder = try TemporaryFolder()
    try await show("media/h264.ts", count: 2, on: Y4MOutput(path: folder.path("clip.y4m")))
    // The decoding thread releases the output when it ends.
    try await until { folder.names().isEmpty }
  }

  @Test("A folder that is not there")
  func noFolder() async throws {
    let folder = try TemporaryFolder()
    let error = await reelError { _ = try Y4MOutput(path: folder.path("nowhere/clip.y4m")) }
    #expect(error?.kind == .cannotCreateOutput)
    #expect(error?.location == folder.path("nowhere/clip.y4m"))
  }

  @Test("A device that is full", .enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
  func fullDevice() async throws {
    let output = try Y4MOutput(path: "/dev/full")
    let error = await reelError { try await show("media/h264.ts", count: 1, on: output) }
    #expect(error?.kind == .cannotWriteOutput)
    #expect(error?.location == "/dev/full")
    #expect(error?.reason.contains("space") == true)
    try output.finish()
    let later = await reelError { try await show("media/h264.ts", count: 1, on: output) }
    #expect(later?.kind == .usage)
  }

  @Test("A named pipe: its reader gets the bytes, and one that goes ends the output")
  func namedPipe() async throws {
    // As the command line does: a reader that is gone is an error, not a signal.
    signal(SIGPIPE, SIG_IGN)
    let folder = try TemporaryFolder()
    let path = folder.path("pipe")
    try #require(mkfifo(path, 0o600) == 0)
    // Opened for both ways, a pipe waits for nobody.
    let reader = open(path, O_RDWR | O_CLOEXEC)
    try #require(reader >= 0)
    let output = try Y4MOutput(path: path)
    try await show("media/h264.ts", count: 1, on: output)
    var bytes = [UInt8](repeating: 0, count: 10)
    #expect(read(reader, &bytes, bytes.count) == 10)
    #expect(bytes == Array("YUV4MPEG2 ".utf8))
    close(reader)
    let error = await reelError {
      try await show("media/h264.ts", count: 1, on: output, from: MediaTime(value: 1, timescale: 30))
    }
    #expect(error?.kind == .cannotWriteOutput)
    #expect(error?.location == path)
    #expect(folder.names() == ["pipe"])
  }
}
