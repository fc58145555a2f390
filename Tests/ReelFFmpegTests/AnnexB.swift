/// Builds NAL units with start codes, for streams that no encoder would write.
enum AnnexB {
  /// An H.264 NAL unit.
  static func h264(_ type: UInt8, longStartCode: Bool = true, payload: [UInt8] = []) -> [UInt8] {
    startCode(longStartCode) + [type == 9 || type == 6 ? type : 0x60 | type] + payload
  }

  /// A slice of an H.264 frame that begins with this macroblock.
  static func h264Slice(
    _ type: UInt8 = 1, firstMacroblock: Int = 0, longStartCode: Bool = true, byteCount: Int = 40
  ) -> [UInt8] {
    h264(type, longStartCode: longStartCode, payload: exponentialGolomb(firstMacroblock) + filler(byteCount))
  }

  /// A HEVC NAL unit of a layer.
  static func hevc(
    _ type: UInt8, layer: UInt8 = 0, longStartCode: Bool = true, payload: [UInt8] = []
  ) -> [UInt8] {
    startCode(longStartCode) + [type << 1 | layer >> 5, (layer & 31) << 3 | 1] + payload
  }

  /// A slice segment of a HEVC frame.
  static func hevcSlice(
    _ type: UInt8 = 1, isFirst: Bool = true, layer: UInt8 = 0, longStartCode: Bool = true, byteCount: Int = 40
  ) -> [UInt8] {
    hevc(
      type, layer: layer, longStartCode: longStartCode, payload: [isFirst ? 0x80 : 0x40] + filler(byteCount))
  }

  /// Bytes that hold no start code; never the same twice in a row.
  static func filler(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(0x10 + ($0 * 37 + count) % 0xe0) } }

  private static func startCode(_ isLong: Bool) -> [UInt8] { isLong ? [0, 0, 0, 1] : [0, 0, 1] }

  /// `ue(v)`, and ones up to the next byte.
  private static func exponentialGolomb(_ value: Int) -> [UInt8] {
    let digits = String(value + 1, radix: 2)
    var bits = String(repeating: "0", count: digits.count - 1) + digits
    while bits.count % 8 != 0 { bits += "1" }
    var bytes: [UInt8] = []
    while !bits.isEmpty {
      bytes.append(UInt8(bits.prefix(8), radix: 2) ?? 0)
      bits.removeFirst(8)
    }
    return bytes
  }
}
