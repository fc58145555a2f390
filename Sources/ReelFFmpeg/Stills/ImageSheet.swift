internal import CFFmpeg
package import Logging
package import ReelCore

/// A decoded image that holds several stills.
///
/// Its pixels are 8-bit sRGB, converted with the matrix and the range of the image: full-range BT.601 for JPEG (JFIF 1.02).
package struct ImageSheet: Sendable {
  package let size: PixelSize
  /// The stream for showing a part of it.
  package let stream: StreamInfo
  private let pixels: [UInt8]

  /// Decodes the bytes of a JPEG, PNG or WebP file.
  ///
  /// - Throws: `ReelError`: `unsupported` for another format, `badMedia` for what can't be decoded, is damaged or cut off, or
  ///   is larger than `StillImage` decodes.
  package init(decoding bytes: [UInt8], name: String, logger: Logger) throws(ReelError) {
    let image = try StillImage(decoding: bytes, name: name, refusesDamage: true, logger: logger)
    // A decoder fills up what is missing.
    guard Self.isWhole(bytes) else { throw ReelError(.badMedia, "the image is cut off", at: name) }
    size = image.frame.size
    stream = image.stream
    let geometry = FrameGeometry(
      stored: size, sampleAspectRatio: nil, orientation: .upright, target: size, gravity: .resize)
    let still = try StillRenderer().render(image.frame, geometry: geometry, orientation: .upright)
    guard case .eightBit(let pixels) = still.pixels else {
      throw ReelError(.internalFault, "an image with 16-bit pixels", at: name)
    }
    self.pixels = pixels
  }

  /// Returns a copy of a part.
  ///
  /// - Throws: `ReelError.internalFault` if the part is not inside the image, or memory runs out.
  package func part(x: Int, y: Int, size part: PixelSize) throws(ReelError) -> Frame {
    guard x >= 0, y >= 0, part.width > 0, part.height > 0, x + part.width <= size.width,
      y + part.height <= size.height
    else { throw ReelError(.internalFault, "a tile outside of its image") }
    let frame = try ImageCodec.frame(size: part, format: AV_PIX_FMT_RGB24)
    var rows: [UInt8] = []
    rows.reserveCapacity(part.width * part.height * 3)
    for row in y..<(y + part.height) {
      let start = (row * size.width + x) * 3
      rows += pixels[start..<(start + part.width * 3)]
    }
    frame.fill(rows, rowBytes: part.width * 3)
    frame.tag(.sRGB, isRGB: true)
    return frame
  }

  // MARK: - Private

  /// False if the end of the file is missing.
  private static func isWhole(_ bytes: [UInt8]) -> Bool {
    if bytes.starts(with: [0xff, 0xd8]) { return isWholeJPEG(bytes) }
    if bytes.starts(with: "RIFF".utf8), bytes.count >= 12 {
      // Little endian, of what follows (RFC 9649 §2.4).
      let count = (0..<4).reduce(0) { $0 | Int(bytes[4 + $1]) << (8 * $1) }
      return bytes.count - 8 >= count
    }
    // The last chunk of a PNG has no content (ISO/IEC 15948 §11.2.5).
    let end = Array("IEND".utf8)
    return bytes.indices.reversed().contains { bytes[$0] == end[0] && bytes[$0...].starts(with: end) }
  }

  /// Looks for the marker EOI after the header of the first scan (ITU-T T.81 §B.1.1). The header may contain a smaller
  /// image, with a marker of its own.
  private static func isWholeJPEG(_ bytes: [UInt8]) -> Bool {
    var place = 2
    while place + 3 < bytes.count {
      guard bytes[place] == 0xff else {
        place += 1
        continue
      }
      switch bytes[place + 1] {
      case 0xff: place += 1
      case 0x00, 0x01, 0xd0...0xd8: place += 2
      case 0xda:
        let end = bytes.indices.dropFirst(place).dropLast().last {
          bytes[$0] == 0xff && bytes[$0 + 1] == 0xd9
        }
        return end != nil
      default: place += 2 + (Int(bytes[place + 2]) << 8 | Int(bytes[place + 3]))
      }
    }
    return false
  }
}
