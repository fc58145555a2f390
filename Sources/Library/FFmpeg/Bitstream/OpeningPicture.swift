internal import ReelCore

/// The first access unit of a stream as a starting point for decoding.
package struct OpeningPicture: Sendable, Hashable {
  /// The kind of starting point.
  package enum Entry: String, Sendable {
    /// A clean start: no later picture needs earlier ones, and none is shown before it.
    case idr
    /// A clean start whose leading pictures need earlier ones (HEVC CRA, BLA; H.264 recovery point).
    case openGOP = "open_gop"
    /// Not a starting point.
    case none
  }

  package let entry: Entry
  /// True for an HEVC leading picture.
  let isLeading: Bool
  let isRandomAccess: Bool
  /// True if no edit list leaves it out.
  let isShown: Bool
  /// H.264: the number of frames after a recovery point until pictures are complete; 0 if the first one is.
  /// Nil if the unit is not a recovery point.
  let recoveryFrameCount: Int?
  /// False if the unit has no picture: in H.264 and HEVC a unit without a slice, in others a unit of zeros.
  let hasPicture: Bool
  /// True if later pictures may be shown before it.
  private let mayBePreceded: Bool

  /// True if decoding this picture alone gives the earliest frame.
  package var canBeDecodedAlone: Bool { entry == .idr && !mayBePreceded && isShown }

  init(
    _ packet: Packet, codec: VideoCodec?, framing: NALFraming
  ) {
    isShown = !packet.isDiscarded
    if let codec, codec.isMPEGVideo {
      let picture = packet.withBytes { MPEGPicture(codec: codec, bytes: $0) }
      recoveryFrameCount = nil
      hasPicture = packet.hasContent
      entry = picture?.isIntra != true ? .none : picture?.isClosedGroup == true ? .idr : .openGOP
      isLeading = false
      isRandomAccess = picture?.isIntra ?? false
      // The decoder itself determines the first frame.
      mayBePreceded = true
      return
    }
    guard let codec, codec == .h264 || codec == .hevc else {
      entry = packet.isKey ? .idr : .none
      recoveryFrameCount = nil
      hasPicture = packet.hasContent
      isLeading = false
      isRandomAccess = packet.isKey
      // AV1 and VP9 show a picture with its packet, so a frame is requested after each packet.
      mayBePreceded = true
      return
    }
    var recovery: Int?
    let slice = packet.firstSlice(codec: codec, framing: framing) { _, unit in
      if codec == .h264, recovery == nil { recovery = RecoveryPoint.frameCount(unit) }
    }
    isRandomAccess = slice?.isRandomAccess ?? false
    isLeading = slice?.isLeading ?? false
    recoveryFrameCount = slice?.isIDR == true ? nil : recovery
    hasPicture = slice != nil || packet.byteCount == 0
    entry =
      if slice?.isIDR == true { .idr } else if isRandomAccess || packet.isKey || recovery != nil {
        .openGOP
      } else { .none }
    let hasNoDelay = packet.decodingTicks.map { $0 >= packet.presentationTicks ?? .max } ?? false
    // In H.264, no picture after an IDR picture is shown before it; in HEVC, type 19 may have RADL pictures.
    mayBePreceded = slice?.mayHaveLeadingPictures ?? true && !hasNoDelay
  }
}

extension Packet {
  /// False if there are only zeros.
  fileprivate var hasContent: Bool { byteCount == 0 || withBytes { bytes in bytes.contains { $0 != 0 } } }

  /// Returns the header of the first slice of a picture in H.264 and HEVC; nil if there is none, and for other codecs.
  ///
  /// - Parameter body: Called with the NAL units up to that slice, and with the slice itself.
  @discardableResult
  func firstSlice(
    codec: VideoCodec, framing: NALFraming,
    through body: (NALUnitHeader, UnsafeRawBufferPointer) -> Void = { _, _ in }
  ) -> NALUnitHeader? {
    guard codec == .h264 || codec == .hevc else { return nil }
    var slice: NALUnitHeader?
    withBytes { bytes in
      bytes.forEachNALUnit(framing: framing) { unit in
        guard let header = NALUnitHeader(codec: codec, bytes: unit) else { return true }
        body(header, unit)
        if header.isPictureSlice { slice = header }
        return !header.isPictureSlice
      }
    }
    return slice
  }
}

/// The header of the first picture in a unit of MPEG-1, MPEG-2 or MPEG-4 Part 2 video (ISO/IEC 11172-2 and 13818-2
/// §6.2.3, ISO/IEC 14496-2 §6.2.5).
struct MPEGPicture {
  /// True for an I picture, which is decoded without any other.
  let isIntra: Bool
  /// True for a B picture: shown before a picture that is decoded earlier, and never used for prediction.
  let isBidirectional: Bool
  /// True if it begins a group of pictures that can be decoded without earlier pictures.
  let isClosedGroup: Bool
  /// The offset of the group's header, or else the picture's. Any bytes before it are sequence headers.
  let offset: Int

  /// Nil if the unit has no picture.
  init?(codec: VideoCodec, bytes: UnsafeRawBufferPointer) {
    guard codec.isMPEGVideo else { return nil }
    var group: (offset: Int, isClosed: Bool)?
    var next = bytes.firstStartCode(from: 0)
    while let start = next, start + 5 < bytes.count {
      switch bytes[start + 3] {
      case 0xb8 where codec != .mpeg4:
        // The flag follows a time code of 25 bits.
        group = (start, start + 7 < bytes.count && bytes[start + 7] & 0x40 != 0)
      case 0xb3 where codec == .mpeg4:
        group = (start, start + 6 < bytes.count && bytes[start + 6] & 0x20 != 0)
      case 0x00 where codec != .mpeg4:
        let type = bytes[start + 5] >> 3 & 7
        self.init(isIntra: type == 1, isBidirectional: type == 3, group: group, at: start)
        return
      case 0xb6 where codec == .mpeg4:
        let type = bytes[start + 4] >> 6
        self.init(
          isIntra: type == 0, isBidirectional: type == 2 || bytes.count <= Self.notCodedByteCount,
          group: group,
          at: start)
        return
      default: break
      }
      next = bytes.firstStartCode(from: start + 3)
    }
    return nil
  }

  private init(isIntra: Bool, isBidirectional: Bool, group: (offset: Int, isClosed: Bool)?, at start: Int) {
    self.isIntra = isIntra
    self.isBidirectional = isBidirectional
    isClosedGroup = isIntra && group?.isClosed == true
    offset = group?.offset ?? start
  }

  /// A unit of at most this size contains a picture that is not coded. DivX writes it as a placeholder for the B
  /// picture that was packed into the previous unit (`MAX_NVOP_SIZE` in libavcodec/h263dec.c).
  static let notCodedByteCount = 19
}

/// Reads the recovery point of an H.264 supplemental enhancement information unit (ISO/IEC 14496-10 §D.1.8).
enum RecoveryPoint {
  /// Returns `recovery_frame_cnt`: the number of frames after which pictures are complete. `unit` is the NAL
  /// unit with its header; nil if it has no recovery point.
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

  /// Returns the type or the size of a message; nil at the end.
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
