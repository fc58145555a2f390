/// The header of the first picture in a unit of MPEG-1, MPEG-2 or MPEG-4 Part 2 video (ISO/IEC 11172-2 and 13818-2
/// §6.2.3, ISO/IEC 14496-2 §6.2.5).
struct MPEGPicture {
  /// An I picture, which is decoded without any other.
  let isIntra: Bool
  /// A B picture: shown before a picture that is decoded earlier, and never used for prediction.
  let isBidirectional: Bool
  /// Begins a group of pictures that can be decoded without earlier pictures.
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
  private static let notCodedByteCount = 19
}
