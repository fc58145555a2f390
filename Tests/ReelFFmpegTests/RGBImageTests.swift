import ReelCore
import ReelFFmpeg
import Testing

@Suite("RGB images")
struct RGBImageTests {
  @Test("The header of a portable pixmap")
  func ppmHeader() {
    let image = RGBImage(size: PixelSize(width: 161, height: 91), pixels: [])
    #expect(String(decoding: image.ppmHeader, as: UTF8.self) == "P6\n161 91\n255\n")
  }
}
