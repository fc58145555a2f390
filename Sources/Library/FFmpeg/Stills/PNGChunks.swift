/// The chunks of a PNG file that state its colors.
enum PNGChunks {
  /// Adds a `cICP` chunk (PNG, third edition, §11.3.2.6) to an HDR image, unless the encoder has written one. SDR images
  /// have the encoder's `sRGB` chunk.
  static func adding(_ color: Still.Color, to png: [UInt8]) -> [UInt8] {
    // The signature, and IHDR with its 13 bytes.
    let start = 8 + 12 + 13
    guard color != .sRGB, png.count > start else { return png }
    let points = color.codePoints
    let body = Array("cICP".utf8) + [points.primaries, points.transfer, 0, 1]
    guard png.firstRange(of: body.prefix(4)) == nil else { return png }
    let checksum = crc(body)
    var chunk: [UInt8] = [0, 0, 0, 4] + body
    for shift in [24, 16, 8, 0] { chunk.append(UInt8(truncatingIfNeeded: checksum >> UInt32(shift))) }
    return png[..<start] + chunk + png[start...]
  }

  /// The checksum of ISO/IEC 15948, Annex D.
  static func crc(_ bytes: [UInt8]) -> UInt32 {
    var value: UInt32 = ~0
    for byte in bytes {
      value ^= UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 0 ? value >> 1 : value >> 1 ^ 0xedb8_8320 }
    }
    return ~value
  }
}
