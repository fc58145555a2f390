/// Reads the fields of an H.264 picture parameter set that Reel needs (ISO/IEC 14496-10 §7.3.2.2).
enum PictureParameterSet {
  /// True if `entropy_coding_mode_flag` selects CAVLC; nil if the unit is too short. `unit` is the NAL unit with its
  /// header.
  static func usesCAVLC(_ unit: UnsafeRawBufferPointer) -> Bool? {
    var bits = BitReader(unit)
    bits.skip(8)
    _ = bits.exponentialGolomb()
    _ = bits.exponentialGolomb()
    let flag = bits.read(1)
    return bits.hasFailed ? nil : flag == 0
  }
}
