/// What Reel itself has to know of an H.264 picture parameter set (ISO/IEC 14496-10 §7.3.2.2).
enum PictureParameterSet {
  /// True where `entropy_coding_mode_flag` asks for CAVLC; nil where the unit is too short. `unit` is the NAL unit with its
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
