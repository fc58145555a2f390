/// Gzip data that is small and grows large.
enum GzipBomb {
  /// Zeros: one literal, then copies of the 258 bytes before, in one block with fixed codes (RFC 1951
  /// §3.2.6). The checksum at the end is missing, as nobody is to come so far.
  static func zeros(megabytes: Int) -> [UInt8] {
    var writer = BitWriter(bytes: [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
    writer.put(0b011, count: 3)
    // The literal 0 has the code 00110000, length 285 the code 11000101, distance 1 the code 00000; codes are
    // written from their first bit on.
    writer.put(0b0000_1100, count: 8)
    for _ in 0..<(megabytes << 20) / 258 { writer.put(0b00000_1010_0011, count: 13) }
    writer.put(0, count: 7)
    return writer.bytes
  }

  private struct BitWriter {
    var bytes: [UInt8]
    var pending = 0
    var pendingCount = 0

    mutating func put(_ bits: Int, count: Int) {
      pending |= bits << pendingCount
      pendingCount += count
      while pendingCount >= 8 {
        bytes.append(UInt8(truncatingIfNeeded: pending))
        pending >>= 8
        pendingCount -= 8
      }
    }
  }
}
