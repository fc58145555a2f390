/// Gzip (RFC 1952) without compression: the bytes are in stored blocks of deflate (RFC 1951 §3.2.4).
enum StoredGzip {
  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    // The magic number, deflate, no flags, no time, no extra flags, an unknown file system.
    var result: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]
    result.reserveCapacity(bytes.count + bytes.count / 65_535 * 5 + 32)
    var rest = bytes[...]
    repeat {
      let block = rest.prefix(65_535)
      rest = rest.dropFirst(block.count)
      result.append(rest.isEmpty ? 1 : 0)
      let length = UInt16(block.count)
      result.append(littleEndian: length)
      result.append(littleEndian: ~length)
      result.append(contentsOf: block)
    } while !rest.isEmpty
    result.append(littleEndian: checksum(bytes))
    result.append(littleEndian: UInt32(truncatingIfNeeded: bytes.count))
    return result
  }

  /// CRC-32 (RFC 1952 §8).
  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { crc, byte in table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8) }
  }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
  }
}

extension [UInt8] {
  mutating func append(littleEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}
