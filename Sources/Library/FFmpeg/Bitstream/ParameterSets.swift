internal import ReelCore

/// The in-band parameter sets of a stream, for decoders that start in its middle.
///
/// A stream may send its parameter sets only once. A decoder opened at a later key frame has not received
/// them, so all known sets are prepended to each key frame that lacks one.
struct ParameterSets {
  private struct Key: Hashable, Comparable {
    let type: UInt8
    let id: UInt32

    /// Orders sets before those that refer to them: referring sets have higher unit types.
    static func < (a: Key, b: Key) -> Bool { (a.type, a.id) < (b.type, b.id) }
  }

  private let codec: VideoCodec
  private let framing: NALFraming
  private var sets: [Key: [UInt8]] = [:]
  private var fields = FieldSyntax()

  /// What an access unit says before its first slice, and in its header.
  struct Contents {
    /// True if decoding can start at the unit, and it lacks a set that was recorded.
    fileprivate(set) var lacksSets = false
    /// The field, if the unit is one.
    fileprivate(set) var field: FieldPicture?
  }

  /// H.264 has at most 32 sequence and 256 picture parameter sets.
  private static let maximumCount = 512
  private static let maximumByteCount = 4096

  /// Nil for codecs without parameter sets.
  init?(_ stream: StreamInfo) {
    guard let codec = stream.videoCodec, codec == .h264 || codec == .hevc else { return nil }
    self.codec = codec
    framing = stream.nalFraming
    guard codec == .h264 else { return }
    stream.configuration.withUnsafeBytes { bytes in
      bytes.forEachConfigurationUnit(framing: framing) { fields.record($0) }
    }
  }

  /// True if pictures may be fields, by the sets of the container's configuration and those that were recorded.
  var allowFields: Bool { fields.isPossible }

  /// Records the sets of an access unit.
  mutating func read(_ packet: Packet) -> Contents {
    var own: Set<Key> = []
    var isRecoveryPoint = false
    var contents = Contents()
    let slice = packet.firstSlice(codec: codec, framing: framing) { header, unit in
      if header.isPictureSlice {
        if codec == .h264 { contents.field = fields.field(unit, isRecoveryPoint: isRecoveryPoint) }
        return
      }
      if let key = key(of: unit, type: header.type), record(unit, as: key) { own.insert(key) }
      if codec == .h264, fields.isPossible, RecoveryPoint.frameCount(unit) != nil { isRecoveryPoint = true }
    }
    let isKey = packet.isKey || slice?.isRandomAccess == true
    contents.lacksSets = isKey && own.count < sets.count
    return contents
  }

  /// Returns a unit with all recorded sets prepended.
  func prepended(to packet: Packet) throws(ReelError) -> Packet {
    try packet.prefixed(by: sets.keys.sorted().flatMap { framed(sets[$0] ?? []) })
  }

  // MARK: - Private

  private mutating func record(_ unit: UnsafeRawBufferPointer, as key: Key) -> Bool {
    // Zero bytes before the next start code are not part of a unit.
    var end = unit.count
    if framing == .annexB { while end > 0, unit[end - 1] == 0 { end -= 1 } }
    guard end <= Self.maximumByteCount, sets.count < Self.maximumCount || sets[key] != nil else {
      return false
    }
    let bytes = UnsafeRawBufferPointer(rebasing: unit[..<end])
    if sets[key]?.elementsEqual(bytes) != true {
      sets[key] = Array(bytes)
      if codec == .h264 { fields.record(bytes) }
    }
    return true
  }

  private func framed(_ unit: [UInt8]) -> [UInt8] {
    switch framing {
    case .annexB: return [0, 0, 0, 1] + unit
    case .lengthPrefixed(let width):
      guard width == 4 || unit.count < 1 << (8 * width) else { return [] }
      return (0..<width).reversed().map { UInt8(truncatingIfNeeded: unit.count >> (8 * $0)) } + unit
    }
  }

  /// Returns nil for units that are not parameter sets or can't be read.
  private func key(of unit: UnsafeRawBufferPointer, type: UInt8) -> Key? {
    var bits = BitReader(unit)
    switch (codec, type) {
    case (.h264, 7):
      // ISO/IEC 14496-10 §7.3.2.1.1: profile, constraints, level, id
      bits.skip(32)
    case (.h264, 8):
      bits.skip(8)
    case (.hevc, 32):
      // ISO/IEC 23008-2 §7.3.2.1
      bits.skip(16)
      let id = bits.read(4)
      return bits.hasFailed ? nil : Key(type: type, id: id)
    case (.hevc, 33):
      skipToSequenceID(&bits)
    case (.hevc, 34):
      bits.skip(16)
    default:
      return nil
    }
    let id = bits.exponentialGolomb()
    return bits.hasFailed ? nil : Key(type: type, id: id)
  }

  /// ISO/IEC 23008-2 §7.3.2.2.1 and §7.3.3.
  private func skipToSequenceID(_ bits: inout BitReader) {
    bits.skip(16 + 4)
    let subLayers = Int(bits.read(3))
    bits.skip(1 + 96)
    let flags = (0..<subLayers).map { _ in (profile: bits.read(1), level: bits.read(1)) }
    if subLayers > 0 { bits.skip(2 * (8 - subLayers)) }
    for flag in flags { bits.skip(Int(flag.profile) * 88 + Int(flag.level) * 8) }
  }
}

/// The fields that Reel itself needs from an H.264 sequence parameter set (ISO/IEC 14496-10 §7.3.2.1.1).
struct SequenceParameterSet {
  let id: UInt32
  /// `separate_colour_plane_flag`.
  let hasColorPlanes: Bool
  /// The number of bits of `frame_num`.
  let frameNumberBitCount: Int
  /// `gaps_in_frame_num_value_allowed_flag`.
  let allowsFrameNumberGaps: Bool
  /// False if every picture is a frame (`frame_mbs_only_flag`).
  let allowsFields: Bool

  /// Nil if the unit is too short or invalid. `unit` is the NAL unit with its header.
  init?(_ unit: UnsafeRawBufferPointer) {
    var bits = BitReader(unit)
    bits.skip(8)
    let profile = bits.read(8)
    bits.skip(16)
    id = bits.exponentialGolomb()
    var hasColorPlanes = false
    if Self.highProfiles.contains(profile) {
      let chroma = bits.exponentialGolomb()
      if chroma == 3 { hasColorPlanes = bits.read(1) == 1 }
      _ = bits.exponentialGolomb()
      _ = bits.exponentialGolomb()
      bits.skip(1)
      if bits.read(1) == 1 {
        for index in 0..<(chroma == 3 ? 12 : 8) where bits.read(1) == 1 {
          Self.skipScalingList(&bits, count: index < 6 ? 16 : 64)
        }
      }
    }
    self.hasColorPlanes = hasColorPlanes
    // log2_max_frame_num_minus4 is at most 12.
    frameNumberBitCount = Int(min(bits.exponentialGolomb(), 12)) + 4
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
    allowsFrameNumberGaps = bits.read(1) == 1
    guard !bits.hasFailed else { return nil }
    // The size in macroblocks.
    _ = bits.exponentialGolomb()
    _ = bits.exponentialGolomb()
    allowsFields = bits.read(1) == 0 && !bits.hasFailed
  }

  /// The profiles whose parameter sets state the chroma format.
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

/// The fields that Reel needs from an H.264 picture parameter set (ISO/IEC 14496-10 §7.3.2.2).
struct PictureParameterSet {
  let id: UInt32
  /// The id of its sequence parameter set.
  let sequence: UInt32
  /// True if `entropy_coding_mode_flag` selects CAVLC.
  let usesCAVLC: Bool

  /// Nil if the unit is too short. `unit` is the NAL unit with its header.
  init?(_ unit: UnsafeRawBufferPointer) {
    var bits = BitReader(unit)
    bits.skip(8)
    id = bits.exponentialGolomb()
    sequence = bits.exponentialGolomb()
    usesCAVLC = bits.read(1) == 0
    guard !bits.hasFailed else { return nil }
  }
}

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
