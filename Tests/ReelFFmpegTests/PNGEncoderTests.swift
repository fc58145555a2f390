import Logging
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@Suite("PNG")
struct PNGEncoderTests {
  @Test(
    "Images decode to their pixels",
    arguments: [
      PixelSize(width: 1, height: 1), PixelSize(width: 161, height: 91), PixelSize(width: 3, height: 300),
    ])
  func pixels(size: PixelSize) throws {
    let pixels = (0..<(size.width * size.height * 3)).map { UInt8(truncatingIfNeeded: $0 * 7) }
    let png = try PNGEncoder.encode(RGBImage(size: size, pixels: pixels))
    // Eight bits, RGB, deflate, adaptive filters, not interlaced.
    #expect(Array(png[24..<29]) == [8, 2, 0, 0, 0])
    let frame = try StillImage(decoding: png, name: "a.png", logger: silentLogger).frame
    let geometry = FrameGeometry(stored: frame.size, sampleAspectRatio: nil, orientation: .upright)
    let image = try FrameConverter().convert(frame, geometry: geometry, orientation: .upright)
    #expect(image == RGBImage(size: size, pixels: pixels))
  }
}
