import Foundation
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelReading
import ReelTestSupport
import Testing

@Suite("Outputs of one file a frame", .hangLimit)
struct ImageSequenceOutputTests {
  /// The first frames of a clip as PPM.
  private func portablePixmaps(
    of path: String, count: Int, size: PixelSize? = nil, gravity: VideoGravity = .resizeAspect
  ) async throws -> [[UInt8]] {
    let files = Locked<[[UInt8]]>([])
    try await withFrames(of: path, count: count) { frame in
      let image = try FrameConverter().convert(frame, target: size, gravity: gravity)
      files.withLock { $0.append(image.ppmHeader + image.pixels) }
    }
    return files.withLock { $0 }
  }

  @Test("Files are numbered, whole, and hold the frames")
  func series() async throws {
    let folder = try TemporaryFolder()
    let output = try ImageSequenceOutput(directory: folder.path("deep/er"), stem: "clip")
    #expect(output.isExternal)
    try await show("media/rotate-90.mp4", count: 3, on: output)
    output.finish()
    output.finish()
    let names = (1...3).map { "clip-00000\($0).ppm" }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("deep/er")).sorted() == names)
    let expected = try await portablePixmaps(of: "media/rotate-90.mp4", count: 3)
    #expect(try names.map { try folder.bytes("deep/er/\($0)") } == expected)
    #expect(Set(expected).count == 3)
  }

  @Test("A number to begin with, a size, and a gravity")
  func options() async throws {
    let folder = try TemporaryFolder()
    let size = PixelSize(width: 48, height: 80)
    let output = try ImageSequenceOutput(
      directory: folder.url.path, stem: "clip", size: size, gravity: .resizeAspectFill, startNumber: 999_999)
    try await show("media/h264.ts", count: 2, on: output)
    #expect(output.nextNumber == 1_000_001)
    #expect(folder.names() == ["clip-1000000.ppm", "clip-999999.ppm"])
    let expected = try await portablePixmaps(
      of: "media/h264.ts", count: 2, size: size, gravity: .resizeAspectFill)
    #expect(try folder.bytes("clip-999999.ppm") == expected[0])
    #expect(try folder.bytes("clip-1000000.ppm") == expected[1])
  }

  @Test("PNG")
  func png() async throws {
    let folder = try TemporaryFolder()
    let output = try ImageSequenceOutput(directory: folder.url.path, stem: "clip", format: .png)
    try await show("media/sar-9-8.mp4", count: 1, on: output)
    let bytes = try folder.bytes("clip-000001.png")
    #expect(bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]))
    // IHDR: width and height.
    #expect(bytes[16..<24] == [0, 0, 0, 180, 0, 0, 0, 120])
  }

  @Test("A name that is taken by a folder: an error, nothing half done, and the next frame has the number")
  func nameTaken() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("clip-000001.ppm"), withIntermediateDirectories: true)
    let output = try ImageSequenceOutput(directory: folder.url.path, stem: "clip")
    let error = await reelError { try await show("media/h264.ts", count: 1, on: output) }
    #expect(error?.kind == .cannotCreateOutput)
    #expect(error?.location == folder.path("clip-000001.ppm"))
    #expect(folder.names() == ["clip-000001.ppm"])
    try FileManager.default.removeItem(atPath: folder.path("clip-000001.ppm"))
    try await show("media/h264.ts", count: 1, on: output)
    #expect(folder.names() == ["clip-000001.ppm"])
  }

  @Test("A folder that can't be made, and stems that are no names")
  func refused() async throws {
    let folder = try TemporaryFolder()
    try folder.write([1], to: "file")
    let below = await reelError {
      _ = try ImageSequenceOutput(directory: folder.path("file/out"), stem: "clip")
    }
    #expect(below?.kind == .cannotCreateOutput)
    #expect(below?.location == folder.path("file/out"))
    for stem in ["", "../clip", "a/b"] {
      let error = await reelError { _ = try ImageSequenceOutput(directory: folder.url.path, stem: stem) }
      #expect(error?.kind == .usage)
    }
  }

  @Test("After the end nothing is written")
  func afterEnd() async throws {
    let folder = try TemporaryFolder()
    let output = try ImageSequenceOutput(directory: folder.url.path, stem: "clip")
    output.finish()
    let error = await reelError { try await show("media/h264.ts", count: 1, on: output) }
    #expect(error?.kind == .usage)
    #expect(folder.names().isEmpty)
  }
}
