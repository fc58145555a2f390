/// The fields that Reel itself needs from an H.264 sequence parameter set (ISO/IEC 14496-10 §7.3.2.1.1).
enum SequenceParameterSet {
  /// `gaps_in_frame_num_value_allowed_flag`; nil if the unit is too short or makes no sense. `unit` is the NAL unit
  /// with its header.
  static func allowsFrameNumberGaps(_ unit: UnsafeRawBufferPointer) -> Bool? {
    var bits = BitReader(unit)
    guard skipReferences(&bits) else { return nil }
    let flag = bits.read(1)
    return bits.hasFailed ? nil : flag == 1
  }

  /// Skips up to and with `max_num_ref_frames`; false if the unit makes no sense.
  private static func skipReferences(_ bits: inout BitReader) -> Bool {
    bits.skip(8)
    let profile = bits.read(8)
    bits.skip(16)
    _ = bits.exponentialGolomb()
    if highProfiles.contains(profile) {
      let chroma = bits.exponentialGolomb()
      if chroma == 3 { bits.skip(1) }
      _ = bits.exponentialGolomb()
      _ = bits.exponentialGolomb()
      bits.skip(1)
      if bits.read(1) == 1 {
        for index in 0..<(chroma == 3 ? 12 : 8) where bits.read(1) == 1 {
          skipScalingList(&bits, count: index < 6 ? 16 : 64)
        }
      }
    }
    _ = bits.exponentialGolomb()
    switch bits.exponentialGolomb() {
    case 0:
      _ = bits.exponentialGolomb()
    case 1:
      bits.skip(1)
      _ = bits.exponentialGolomb()
      _ = bits.exponentialGolomb()
      let count = bits.exponentialGolomb()
      guard count < 256 else { return false }
      for _ in 0..<count { _ = bits.exponentialGolomb() }
    default: break
    }
    _ = bits.exponentialGolomb()
    return true
  }

  /// Profiles whose parameter sets tell the chroma format.
  private static let highProfiles: Set<UInt32> = [
    100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135,
  ]

  private static func skipScalingList(_ bits: inout BitReader, count: Int) {
    var (last, next) = (8, 8)
    for _ in 0..<count {
      if next != 0 {
        let code = Int(bits.exponentialGolomb())
        // se(v), §9.1.1
        let delta = code % 2 == 0 ? -(code / 2) : (code + 1) / 2
        next = (last + delta + 256) % 256
      }
      last = next == 0 ? last : next
    }
  }
}
