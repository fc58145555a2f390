import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@Suite("Frames")
struct FrameTests {
  /// Calls `body` with the first frame of a clip.
  private func withFirst<Result>(_ name: String, _ body: (Frame) throws -> Result) throws -> Result {
    let reader = try makeReader(Clip("media/\(name)"))
    guard let frame = try reader.firstFrame() else { throw ReelError(.badMedia, "no frame in \(name)") }
    return try body(frame)
  }

  @Test("Planes, sizes and strides of odd frames")
  func planes() throws {
    let sizes = try withFirst("odd-420-161x91.webm") { frame in
      (0..<4).map { index in
        frame.withPlane(index) { _, rows, bytesPerRow, stride in
          #expect(stride >= bytesPerRow)
          return PixelSize(width: bytesPerRow, height: rows)
        }
      }
    }
    let chroma = PixelSize(width: 81, height: 46)
    #expect(sizes == [PixelSize(width: 161, height: 91), chroma, chroma, nil])
    #expect(try withFirst("odd-420-161x91.webm") { $0.planeCount } == 3)
  }

  @Test("A frame keeps its pixels while the decoder goes on")
  func keeping() throws {
    let golden = try Clip("media/h264.ts").golden().frames[0]
    let reader = try makeReader(Clip("media/h264.ts"))
    let frame = try #require(try reader.firstFrame())
    // The decoder goes on, and would write over pixels that nobody holds.
    _ = try reader.rest()
    let seen = try Seen(frame)
    #expect(seen.md5 == golden.md5)
    #expect(seen.ticks == golden.ticks)
  }

  /// What is said of a frame, and its pixels.
  private struct Said: Equatable {
    let md5: String
    let pixelFormat: String
    let size: PixelSize
    let ticks: Int64?
    let isKey: Bool
    let aspectRatio: Rational?

    init(_ frame: Frame) throws {
      md5 = try frame.md5()
      pixelFormat = frame.pixelFormat
      size = frame.size
      ticks = frame.presentationTicks
      isKey = frame.isKey
      aspectRatio = frame.sampleAspectRatio
    }
  }

  @Test(
    "A smaller copy has the same pixels, and what is said of them",
    arguments: [
      "h264.ts", "h264-high10.mp4", "odd-444-161x91.mp4", "odd-420-161x91.webm", "sar-4-3.mp4",
      "h264-gray.mp4",
    ])
  func compacted(name: String) throws {
    let account = try MemoryAccount()
    try withFirst(name) { frame in
      let copy = try #require(frame.compacted(for: account))
      #expect(copy.byteCount < frame.byteCount)
      #expect(account.frameByteCount >= copy.byteCount)
      #expect(try Said(copy) == Said(frame))
      // There is nothing left to leave out.
      #expect(copy.compacted(for: nil) == nil)
    }
    #expect(account.frameByteCount == 0)
  }

  @Test(
    "Formats and flags",
    arguments: [
      ("h264.ts", "yuv420p", false), ("h264-high10.mp4", "yuv420p10le", false),
      ("odd-444-161x91.mp4", "yuv444p", false), ("h264-interlaced-tff.mp4", "yuv420p", true),
      ("h264-interlaced-bff.ts", "yuv420p", true), ("h264-fields.mp4", "yuv420p", true),
    ])
  func formats(name: String, pixelFormat: String, isInterlaced: Bool) throws {
    let facts = try withFirst(name) { ($0.pixelFormat, $0.isKey, $0.isInterlaced) }
    #expect(facts == (pixelFormat, true, isInterlaced))
  }
}
