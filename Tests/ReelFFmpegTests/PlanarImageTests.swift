import ReelCore
import ReelFFmpeg
import Testing

@Suite("Planar images")
struct PlanarImageTests {
  private func image(_ name: String, rotation: Int = 0, isMirrored: Bool = false) throws -> PlanarImage {
    let reader = try makeReader(Clip("media/\(name)"))
    guard let frame = try reader.firstFrame() else { throw ReelError(.badMedia, "no frame") }
    return try PlanarImage(frame, orientation: Orientation(rotation: rotation, isMirrored: isMirrored))
  }

  @Test("Planes without padding, in the chroma format of the frame")
  func layout() throws {
    let plain = try image("h264.ts")
    #expect(plain.size == PixelSize(width: 192, height: 108))
    #expect(plain.planes.map(\.count) == [192 * 108, 96 * 54, 96 * 54])
    #expect(plain.chroma == .c420(.left))
    #expect(plain.bitDepth == 8)
    #expect(!plain.isFullRange)
    let odd = try image("odd-420-161x91.webm")
    #expect(odd.planes.map(\.count) == [161 * 91, 81 * 46, 81 * 46])
    let full = try image("odd-444-161x91.mp4")
    #expect(full.chroma == .c444)
    #expect(full.planes.map(\.count) == [161 * 91, 161 * 91, 161 * 91])
    let ten = try image("h264-high10.mp4")
    #expect(ten.bitDepth == 10)
    #expect(ten.planes.map(\.count) == [192 * 108 * 2, 96 * 54 * 2, 96 * 54 * 2])
    #expect(try image("colour-601-full.mp4").isFullRange)
  }

  @Test("A turned frame has every plane turned")
  func turned() throws {
    let stored = try image("rotate-90.mp4")
    let upright = try image("rotate-90.mp4", rotation: 90)
    #expect(upright.size == PixelSize(width: 96, height: 160))
    for (plane, width) in [(0, 160), (1, 80), (2, 80)] {
      let height = stored.planes[plane].count / width
      let expected = (0..<width).flatMap { x in
        (0..<height).reversed().map { y in stored.planes[plane][y * width + x] }
      }
      #expect(upright.planes[plane] == expected)
    }
  }

  @Test("A mirrored frame has every row mirrored, of ten bits too")
  func mirrored() throws {
    let stored = try image("h264-high10.mp4")
    let mirrored = try image("h264-high10.mp4", isMirrored: true)
    try #require(!stored.planes.isEmpty)
    let row = (0..<192).map { Array(stored.planes[0][($0 * 2)..<($0 * 2 + 2)]) }
    try #require(!mirrored.planes.isEmpty)
    #expect(Array(mirrored.planes[0].prefix(384)) == row.reversed().flatMap { $0 })
  }
}
