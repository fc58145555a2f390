import ReelCore
import ReelFFmpeg
import Testing

@Suite("PNG")
struct PNGEncoderTests {
  /// The chunks of a PNG file: type and data.
  private func chunks(_ png: [UInt8]) throws -> [(type: String, data: [UInt8])] {
    try #require(png.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]))
    var chunks: [(String, [UInt8])] = []
    var offset = 8
    while offset < png.count {
      try #require(offset + 12 <= png.count)
      let length = png[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) }
      let type = String(decoding: png[(offset + 4)..<(offset + 8)], as: UTF8.self)
      try #require(offset + 12 + length <= png.count)
      chunks.append((type, Array(png[(offset + 8)..<(offset + 8 + length)])))
      offset += 12 + length
    }
    return chunks
  }

  @Test(
    "Signature, header and end",
    arguments: [
      PixelSize(width: 1, height: 1), PixelSize(width: 161, height: 91), PixelSize(width: 3, height: 300),
    ])
  func structure(size: PixelSize) throws {
    let pixels = (0..<(size.width * size.height * 3)).map { UInt8(truncatingIfNeeded: $0 * 7) }
    let found = try chunks(try PNGEncoder.encode(RGBImage(size: size, pixels: pixels)))
    #expect(found.first?.type == "IHDR")
    #expect(found.last?.type == "IEND")
    #expect(found.contains { $0.type == "IDAT" })
    let header = try #require(found.first?.data)
    #expect(header[0..<4].reduce(0) { $0 << 8 | Int($1) } == size.width)
    #expect(header[4..<8].reduce(0) { $0 << 8 | Int($1) } == size.height)
    // Eight bits, RGB, deflate, adaptive filters, not interlaced.
    #expect(Array(header[8...]) == [8, 2, 0, 0, 0])
  }
}
