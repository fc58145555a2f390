import Logging
import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Stills as files")
struct StillEncoderTests {
  /// Smooth colors, which survive lossy formats.
  private func still(width: Int = 96, height: Int = 64) -> Still {
    var pixels: [UInt8] = []
    for y in 0..<height {
      for x in 0..<width {
        pixels += [UInt8(40 + x * 180 / width), UInt8(60 + y * 180 / height), UInt8(200 - x * 90 / width)]
      }
    }
    return Still(size: PixelSize(width: width, height: height), pixels: .eightBit(pixels), color: .sRGB)
  }

  private func pixels(_ still: Still) throws -> [UInt8] {
    guard case .eightBit(let pixels) = still.pixels else { throw ReelError(.usage, "not 8 bits") }
    return pixels
  }

  /// Decodes a file again, as RGB.
  private func decoded(_ bytes: [UInt8]) throws -> RGBImage {
    let image = try StillImage(decoding: bytes, name: "still", logger: Logger(label: "test"))
    let geometry = FrameGeometry(
      stored: image.frame.size, sampleAspectRatio: nil, orientation: .upright)
    return try FrameConverter().convert(image.frame, geometry: geometry, orientation: .upright)
  }

  private func differences(_ left: [UInt8], _ right: [UInt8]) -> (most: Int, mean: Double) {
    let all = zip(left, right).map { abs(Int($0) - Int($1)) }
    return (all.max() ?? 0, Double(all.reduce(0, +)) / Double(max(1, all.count)))
  }

  @Test("PNG and PPM lose nothing")
  func lossless() throws {
    let still = still()
    #expect(try decoded(StillEncoder.encode(still, as: .png)).pixels == pixels(still))
    let pixmap = try StillEncoder.encode(still, as: .ppm)
    #expect(pixmap == Array("P6\n96 64\n255\n".utf8) + (try pixels(still)))
  }

  @Test("JPEG and WebP keep the colors", arguments: [StillFormat.jpeg, .webp], [60, 95])
  func lossy(format: StillFormat, quality: Int) throws {
    let still = still()
    let image = try decoded(try StillEncoder.encode(still, as: format, quality: quality))
    #expect(image.size == still.size)
    let difference = differences(try pixels(still), image.pixels)
    #expect(difference.mean < 3, "\(difference)")
    #expect(difference.most < 24, "\(difference)")
  }

  @Test("A higher quality takes more bytes", arguments: [StillFormat.jpeg, .webp, .avif])
  func qualities(format: StillFormat) throws {
    let counts = try [1, 30, 60, 100].map { try StillEncoder.encode(still(), as: format, quality: $0).count }
    #expect(counts == counts.sorted())
    #expect(Set(counts).count == counts.count)
  }

  @Test("AVIF is one item with its colors, and decodes")
  func avif() throws {
    let bytes = try StillEncoder.encode(still(), as: .avif, quality: 90)
    #expect(bytes[4..<12].elementsEqual("ftypavif".utf8))
    // Primaries, transfer, matrix, full range.
    let colr = try #require(bytes.firstRange(of: Array("colrnclx".utf8)))
    #expect(Array(bytes[colr.upperBound..<(colr.upperBound + 7)]) == [0, 1, 0, 13, 0, 6, 0x80])
  }

  @Test("A sixteen-bit PNG and an AVIF say that they are HDR")
  func hdr() throws {
    let samples = (0..<(32 * 16 * 3)).map { UInt16($0 * 40) }
    let still = Still(
      size: PixelSize(width: 32, height: 16), pixels: .sixteenBit(samples), color: .pq)
    let png = try StillEncoder.encode(still, as: .png)
    let chunk = try #require(png.firstRange(of: Array("cICP".utf8)))
    #expect(
      Array(png[(chunk.lowerBound - 4)..<(chunk.upperBound + 4)]) == [0, 0, 0, 4] + Array("cICP".utf8) + [
        9, 16, 0, 1,
      ])
    // Sixteen bits of RGB.
    #expect(Array(png[24..<26]) == [16, 2])
    let image = try StillImage(decoding: png, name: "still", logger: Logger(label: "test"))
    #expect(image.frame.pixelFormat == "rgb48be")
    let avif = try StillEncoder.encode(still, as: .avif, quality: 90)
    let colr = try #require(avif.firstRange(of: Array("colrnclx".utf8)))
    #expect(Array(avif[colr.upperBound..<(colr.upperBound + 7)]) == [0, 9, 0, 16, 0, 9, 0x80])
    #expect(throws: ReelError.self) { try StillEncoder.encode(still, as: .jpeg) }
  }

  @Test("The checksum of PNG")
  func checksum() {
    // ISO/IEC 15948: IEND without data.
    #expect(PNGChunks.crc(Array("IEND".utf8)) == 0xae42_6082)
  }

  @Test("A limit lowers the quality as little as needed", arguments: [StillFormat.jpeg, .webp])
  func byteLimit(format: StillFormat) throws {
    let still = still(width: 160, height: 120)
    let full = try StillEncoder.encode(still, as: format, quality: 90).count
    let unchanged = try #require(try StillEncoder.encode(still, as: format, quality: 90, byteLimit: full))
    #expect(unchanged.quality == 90)
    let limit = full * 2 / 3
    let lowered = try #require(try StillEncoder.encode(still, as: format, quality: 90, byteLimit: limit))
    #expect(lowered.bytes.count <= limit)
    let quality = try #require(lowered.quality)
    #expect(quality < 90)
    #expect(try StillEncoder.encode(still, as: format, quality: quality + 1).count > limit)
    #expect(try StillEncoder.encode(still, as: format, byteLimit: 20) == nil)
  }

  @Test("A missing encoder is named")
  func missing() {
    for (format, words) in [
      (StillFormat.webp, "no libwebp encoder"), (.jpeg, "no mjpeg encoder"), (.avif, "no AV1 encoder"),
    ] {
      do throws(ReelError) {
        try StillEncoder.check(format) { _ in false }
        Issue.record("\(format) needs no encoder")
      } catch {
        #expect(error.kind == .unsupported)
        #expect(error.reason.contains(words))
      }
    }
    #expect(throws: ReelError.self) { try StillEncoder.check(.avif) { $0 != "avif" } }
    #expect(throws: Never.self) { try StillEncoder.check(.ppm) { _ in false } }
  }

  @Test("The tables of libjpeg")
  func tables() {
    let half = JPEGTables.tables(quality: 50)
    #expect(half.luma[0] == 16 && half.luma[63] == 99 && half.chroma[0] == 17)
    #expect(JPEGTables.tables(quality: 100).luma.allSatisfy { $0 == 1 })
    #expect(JPEGTables.tables(quality: 75).luma[0] == 8)
    #expect(JPEGTables.tables(quality: 1).luma.allSatisfy { $0 == 255 })
  }
}

@Suite("The size of a still")
struct SizeLimitTests {
  private func size(_ width: Int, _ height: Int) -> PixelSize { PixelSize(width: width, height: height) }

  @Test("Fits inside, and is never enlarged")
  func fitted() {
    #expect(SizeLimit.box(size(320, 320)).fitted(size(1920, 1080)) == size(320, 180))
    #expect(SizeLimit.box(size(320, 100)).fitted(size(1920, 1080)) == size(178, 100))
    #expect(SizeLimit.square(320).fitted(size(1080, 1920)) == size(180, 320))
    #expect(SizeLimit.shortSide(360).fitted(size(1080, 1920)) == size(360, 640))
    #expect(SizeLimit.shortSide(720).fitted(size(640, 360)) == size(640, 360))
    #expect(SizeLimit.square(1).fitted(size(16000, 10)) == size(1, 1))
  }

  @Test("Which rungs are large enough")
  func reached() {
    #expect(SizeLimit.square(320).isReached(by: size(320, 180)))
    #expect(!SizeLimit.square(320).isReached(by: size(319, 180)))
    #expect(SizeLimit.shortSide(720).isReached(by: size(720, 1280)))
    #expect(!SizeLimit.shortSide(720).isReached(by: size(640, 360)))
    // One side of a box is enough.
    #expect(SizeLimit.box(size(640, 640)).isReached(by: size(640, 360)))
  }
}
