import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Images with several stills") struct ImageSheetTests {
  private static let colors: [[UInt8]] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [128, 128, 128]]

  /// An image of 2x2 parts in different colors.
  private func file(_ format: StillFormat, tile: PixelSize) throws -> [UInt8] {
    var sheet = StillSheet(tile: tile, columns: 2, rows: 2)
    for (index, color) in Self.colors.enumerated() {
      let pixels = (0..<tile.width * tile.height).flatMap { _ in color }
      try sheet.place(Still(size: tile, pixels: .eightBit(pixels), color: .sRGB), at: index)
    }
    return try StillEncoder.encode(sheet.still, as: format, quality: 95)
  }

  @Test(
    "Parts have the colors of the file, whatever its size",
    arguments: [StillFormat.jpeg, .png, .webp],
    [PixelSize(width: 65, height: 37), PixelSize(width: 640, height: 400)])
  func colors(format: StillFormat, tile: PixelSize) throws {
    let sheet = try ImageSheet(decoding: file(format, tile: tile), name: "sheet", logger: silentLogger)
    #expect(sheet.size == PixelSize(width: tile.width * 2, height: tile.height * 2))
    for (index, color) in Self.colors.enumerated() {
      let (x, y) = (index % 2 * tile.width, index / 2 * tile.height)
      let part = try sheet.part(x: x, y: y, size: tile)
      let (found, tags) = (part.size, part.color)
      #expect(found == tile)
      // The tags say what the pixels are.
      #expect(tags.isFullRange && tags.transfer == "iec61966-2-1" && tags.primaries == "bt709")
      let middle = part.withPlane(0) { base, _, _, stride in
        (0..<3).map {
          base.load(fromByteOffset: tile.height / 2 * stride + tile.width / 2 * 3 + $0, as: UInt8.self)
        }
      }
      let distance = zip(middle ?? [], color).map { abs(Int($0) - Int($1)) }.max()
      #expect(distance ?? 255 <= (format == .png ? 0 : 4), "\(format) \(index): \(middle ?? [])")
    }
  }

  @Test("A part outside is an error")
  func outside() throws {
    let tile = PixelSize(width: 20, height: 10)
    let sheet = try ImageSheet(decoding: file(.png, tile: tile), name: "sheet", logger: silentLogger)
    for (x, y) in [(21, 0), (0, 11), (-1, 0)] {
      #expect(throws: ReelError.self) { _ = try sheet.part(x: x, y: y, size: tile) }
    }
  }

  @Test("A file that is cut off is an error at any length", arguments: ["jpg", "png", "webp"])
  func cut(suffix: String) throws {
    let bytes = try Fixtures.bytes("posters/poster.\(suffix)")
    _ = try ImageSheet(decoding: bytes, name: "image", logger: silentLogger)
    // Programs append things to images.
    _ = try ImageSheet(decoding: bytes + [0, 0, 0, 0, 0], name: "image", logger: silentLogger)
    for length in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 60)) {
      let error = #expect(throws: ReelError.self) {
        _ = try ImageSheet(decoding: Array(bytes.prefix(length)), name: "image", logger: silentLogger)
      }
      #expect(error.map { [.badMedia, .unsupported].contains($0.kind) } == true)
    }
  }

  @Test("A JPEG whose rows can't all be decoded is an error")
  func damaged() throws {
    var bytes = try file(.jpeg, tile: PixelSize(width: 160, height: 90))
    // In the middle of the scan.
    let middle = bytes.count * 3 / 4
    for index in stride(from: middle, to: bytes.count - 2, by: 5) { bytes[index] ^= 0x5a }
    let error = #expect(throws: ReelError.self) {
      _ = try ImageSheet(decoding: bytes, name: "sheet", logger: silentLogger)
    }
    #expect(error?.kind == .badMedia)
  }
}
