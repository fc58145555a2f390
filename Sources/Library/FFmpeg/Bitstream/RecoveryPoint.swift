/// Reads the recovery point of an H.264 supplemental enhancement information unit (ISO/IEC 14496-10 §D.1.8).
enum RecoveryPoint {
  /// `recovery_frame_cnt`: the number of frames after which pictures are whole. `unit` is the NAL unit with its header; nil
  /// if it has no recovery point.
  static func frameCount(_ unit: UnsafeRawBufferPointer) -> Int? {
    guard let first = unit.first, first & 0x1f == 6 else { return nil }
    var bits = BitReader(unit)
    bits.skip(8)
    while let type = number(&bits), let size = number(&bits) {
      if type == 6 {
        let count = bits.exponentialGolomb()
        // frame_num has at most 16 bits.
        return bits.hasFailed || count > 1 << 16 ? nil : Int(count)
      }
      guard size <= unit.count else { return nil }
      bits.skip(size * 8)
    }
    return nil
  }

  /// The type or the size of a message; nil at the end.
  private static func number(_ bits: inout BitReader) -> Int? {
    var value = 0
    while !bits.hasFailed {
      let byte = Int(bits.read(8))
      value += byte
      if byte < 255 { return bits.hasFailed ? nil : value }
    }
    return nil
  }
}
