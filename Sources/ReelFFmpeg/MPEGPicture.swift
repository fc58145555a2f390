/// What a unit of MPEG-1, MPEG-2 or MPEG-4 Part 2 video says of its first picture (ISO/IEC 11172-2 and 13818-2 §6.2.3,
/// ISO/IEC 14496-2 §6.2.5).
struct MPEGPicture {
  /// Needs no other picture.
  let isIntra: Bool
  /// Shown before the picture that was decoded before it; no picture is predicted from it.
  let isBidirectional: Bool
  /// Begins a group of pictures that needs nothing from before it.
  let isClosedGroup: Bool
  /// Where the group's or the picture's own header begins: what stands before is of the sequence.
  let offset: Int

  /// Nil where there is no picture in the unit.
  init?(codec: VideoCodec, bytes: UnsafeRawBufferPointer) {
    guard codec.isMPEGVideo else { return nil }
    var group: (offset: Int, isClosed: Bool)?
    var next = bytes.firstStartCode(from: 0)
    while let start = next, start + 5 < bytes.count {
      switch bytes[start + 3] {
      case 0xb8 where codec != .mpeg4:
        // Behind a time code of 25 bits.
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

  /// A unit so small has a picture that is not coded: it stands where the one is shown that was packed with the unit
  /// before, as DivX does it (`MAX_NVOP_SIZE` in libavcodec/h263dec.c).
  private static let notCodedByteCount = 19
}
