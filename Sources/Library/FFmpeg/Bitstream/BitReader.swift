/// Reads the bits of a NAL unit and skips emulation prevention bytes (ISO/IEC 14496-10 §7.4.1.1).
struct BitReader {
  private(set) var hasFailed = false
  private let bytes: UnsafeRawBufferPointer
  private var byte = 0
  private var bit = 0
  private var zeros = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func read(_ count: Int) -> UInt32 {
    (0..<count).reduce(0) { value, _ in value << 1 | next() }
  }

  mutating func skip(_ count: Int) { for _ in 0..<count { _ = next() } }

  mutating func exponentialGolomb() -> UInt32 {
    var zeros = 0
    while next() == 0 {
      zeros += 1
      if zeros > 31 || hasFailed {
        hasFailed = true
        return 0
      }
    }
    return (1 << zeros) - 1 + read(zeros)
  }

  private mutating func next() -> UInt32 {
    guard byte < bytes.count else {
      hasFailed = true
      return 0
    }
    if bit == 0, zeros >= 2, bytes[byte] == 3 {
      byte += 1
      zeros = 0
      return next()
    }
    let value = UInt32(bytes[byte] >> (7 - UInt8(bit))) & 1
    bit += 1
    if bit == 8 {
      zeros = bytes[byte] == 0 ? zeros + 1 : 0
      bit = 0
      byte += 1
    }
    return value
  }
}
