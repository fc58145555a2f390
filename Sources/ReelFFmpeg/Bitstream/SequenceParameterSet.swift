/// The fields that Reel itself needs from an H.264 sequence parameter set (ISO/IEC 14496-10 §7.3.2.1.1).
enum SequenceParameterSet {
  /// `gaps_in_frame_num_value_allowed_flag`; nil if the unit is too short or makes no sense. `unit` is the NAL unit
  /// with its header.
  static func allowsFrameNumberGaps(_ unit: UnsafeRawBufferPointer) -> Bool? {
    var bits = BitReader(unit)
    guard readToReferences(&bits) != nil else { return nil }
    let flag = bits.read(1)
    return bits.hasFailed ? nil : flag == 1
  }

  /// `seq_parameter_set_id`. `unit` is the NAL unit with its header.
  static func id(_ unit: UnsafeRawBufferPointer) -> UInt32 {
    var bits = BitReader(unit)
    bits.skip(32)
    return bits.exponentialGolomb()
  }

  /// How slice headers say whether they belong to a frame or to a field (§7.3.3).
  struct PictureLayout {
    private let hasColourPlanes: Bool
    private let frameNumberBits: Int
    private let mayBeField: Bool

    /// Nil where the unit is too short or makes no sense.
    init?(_ unit: UnsafeRawBufferPointer) {
      var bits = BitReader(unit)
      guard let head = SequenceParameterSet.readToReferences(&bits) else { return nil }
      hasColourPlanes = head.hasColourPlanes
      frameNumberBits = head.frameNumberBits
      bits.skip(1)
      _ = bits.exponentialGolomb()
      _ = bits.exponentialGolomb()
      // frame_mbs_only_flag
      mayBeField = bits.read(1) == 0
      guard !bits.hasFailed, (4...16).contains(frameNumberBits) else { return nil }
    }

    /// The field that a slice belongs to; nil for a slice of a frame. `unit` is the NAL unit with its header.
    func field(ofSlice unit: UnsafeRawBufferPointer) -> CodedPicture.Field? {
      guard mayBeField else { return nil }
      var bits = BitReader(unit)
      bits.skip(8)
      for _ in 0..<3 { _ = bits.exponentialGolomb() }
      if hasColourPlanes { bits.skip(2) }
      let number = bits.read(frameNumberBits)
      guard bits.read(1) == 1 else { return nil }
      let isBottom = bits.read(1) == 1
      return bits.hasFailed ? nil : CodedPicture.Field(isBottom: isBottom, frameNumber: number)
    }
  }

  /// Reads up to and with `max_num_ref_frames`; nil where the unit makes no sense.
  private static func readToReferences(
    _ bits: inout BitReader
  ) -> (hasColourPlanes: Bool, frameNumberBits: Int)? {
    bits.skip(8)
    let profile = bits.read(8)
    bits.skip(16)
    _ = bits.exponentialGolomb()
    var hasColourPlanes = false
    if highProfiles.contains(profile) {
      let chroma = bits.exponentialGolomb()
      if chroma == 3 { hasColourPlanes = bits.read(1) == 1 }
      _ = bits.exponentialGolomb()
      _ = bits.exponentialGolomb()
      bits.skip(1)
      if bits.read(1) == 1 {
        for index in 0..<(chroma == 3 ? 12 : 8) where bits.read(1) == 1 {
          skipScalingList(&bits, count: index < 6 ? 16 : 64)
        }
      }
    }
    let frameNumberBits = Int(bits.exponentialGolomb()) + 4
    switch bits.exponentialGolomb() {
    case 0:
      _ = bits.exponentialGolomb()
    case 1:
      bits.skip(1)
      _ = bits.exponentialGolomb()
      _ = bits.exponentialGolomb()
      let count = bits.exponentialGolomb()
      guard count < 256 else { return nil }
      for _ in 0..<count { _ = bits.exponentialGolomb() }
    default: break
    }
    _ = bits.exponentialGolomb()
    return (hasColourPlanes, frameNumberBits)
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
