internal import ReelCore

/// The framing of NAL units in a packet.
enum NALFraming: Hashable {
  /// Start codes (ISO/IEC 14496-10 Annex B).
  case annexB
  /// A big-endian length of this many bytes before each unit (ISO/IEC 14496-15).
  case lengthPrefixed(Int)

  /// The framing that `extradata` of a stream implies: avcC and hvcC records begin with version 1.
  init(codec: VideoCodec, extradata: UnsafeRawBufferPointer) {
    switch codec {
    case .h264 where extradata.count >= 7 && extradata[0] == 1:
      self = .lengthPrefixed(Int(extradata[4] & 3) + 1)
    case .hevc where extradata.count >= 23 && (extradata[0] == 1 || extradata[1] != 0 || extradata[2] > 1):
      self = .lengthPrefixed(Int(extradata[21] & 3) + 1)
    default:
      self = .annexB
    }
  }
}

/// The header of a NAL unit, for H.264 (ISO/IEC 14496-10 §7.4.1) and HEVC (ISO/IEC 23008-2 §7.4.2.2).
struct NALUnitHeader {
  let type: UInt8
  /// True for a slice of a picture of the base layer.
  let isPictureSlice: Bool
  /// True for instantaneous decoder refresh: H.264 type 5; HEVC 19 and 20.
  let isIDR: Bool
  /// True for HEVC pictures that can be followed by leading pictures: BLA_W_*, IDR_W_RADL, CRA.
  let mayHaveLeadingPictures: Bool
  /// True for HEVC RADL and RASL.
  let isLeading: Bool
  /// True for HEVC IRAP and H.264 IDR.
  let isRandomAccess: Bool
  /// True if the unit can only precede the first slice of a picture.
  let precedesPicture: Bool

  init?(codec: VideoCodec, bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return nil }
    switch codec {
    case .h264:
      type = first & 0x1f
      isPictureSlice = (1...5).contains(type)
      isIDR = type == 5
      mayHaveLeadingPictures = false
      isLeading = false
      isRandomAccess = type == 5
      // Not 14 to 18, because scalable streams have a prefix before each slice.
      precedesPicture = (6...9).contains(type)
    case .hevc:
      guard bytes.count >= 2 else { return nil }
      type = (first >> 1) & 0x3f
      let layer = (first & 1) << 5 | bytes[1] >> 3
      isPictureSlice = type < 32 && layer == 0
      isIDR = type == 19 || type == 20
      mayHaveLeadingPictures = (16...17).contains(type) || type == 19 || type == 21
      isLeading = (6...9).contains(type)
      isRandomAccess = (16...23).contains(type)
      precedesPicture =
        layer == 0
        && ((32...35).contains(type) || type == 39 || (41...44).contains(type) || (48...55).contains(type))
    default:
      return nil
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Calls `body` with each NAL unit, header included, until it returns false. A unit whose length exceeds
  /// the buffer is truncated.
  func forEachNALUnit(framing: NALFraming, _ body: (UnsafeRawBufferPointer) -> Bool) {
    switch framing {
    case .annexB:
      var start = firstStartCode(from: 0).map { $0 + 3 }
      while let begin = start {
        let next = firstStartCode(from: begin)
        guard body(UnsafeRawBufferPointer(rebasing: self[begin..<(next ?? count)])) else { return }
        start = next.map { $0 + 3 }
      }
    case .lengthPrefixed(let width):
      var offset = 0
      while offset + width < count {
        let length = self[offset..<(offset + width)].reduce(0) { $0 << 8 | Int($1) }
        offset += width
        let end = Swift.min(offset + length, count)
        guard length > 0 else { continue }
        guard body(UnsafeRawBufferPointer(rebasing: self[offset..<end])) else { return }
        offset = end
      }
    }
  }

  /// True if the buffer consists of NAL units: with start codes, or with lengths that add up to its size.
  func areWholeUnits(framing: NALFraming) -> Bool {
    guard case .lengthPrefixed(let width) = framing else { return firstStartCode(from: 0) != nil }
    var (offset, hasUnit) = (0, false)
    while offset + width <= count {
      let length = self[offset..<(offset + width)].reduce(0) { $0 << 8 | Int($1) }
      if length > 0 { hasUnit = true }
      offset += width + length
    }
    return hasUnit && offset == count
  }

  /// Calls `body` with each NAL unit of a codec configuration, which is an `avcC` record (ISO/IEC 14496-15 §5.3.3.1)
  /// or an Annex B stream.
  func forEachConfigurationUnit(framing: NALFraming, _ body: (UnsafeRawBufferPointer) -> Void) {
    guard case .lengthPrefixed = framing else {
      return forEachNALUnit(framing: .annexB) { unit in
        body(unit)
        return true
      }
    }
    guard count > 6 else { return }
    var offset = 6
    // The number of sequence parameter sets, then that of picture parameter sets.
    var left = Int(self[5] & 0x1f)
    for _ in 0..<2 {
      while left > 0, offset + 2 <= count {
        let end = offset + 2 + (Int(self[offset]) << 8 | Int(self[offset + 1]))
        guard end <= count else { return }
        body(UnsafeRawBufferPointer(rebasing: self[(offset + 2)..<end]))
        offset = end
        left -= 1
      }
      guard offset < count else { return }
      left = Int(self[offset])
      offset += 1
    }
  }

  /// Returns the offset of the first `00 00 01` at or after `from`.
  func firstStartCode(from: Int) -> Int? {
    guard count >= 3 else { return nil }
    var index = from
    // The third byte decides how far can be skipped.
    while index + 2 < count {
      let third = self[index + 2]
      if third > 1 {
        index += 3
      } else if third == 1 {
        if self[index] == 0, self[index + 1] == 0 { return index }
        index += 3
      } else {
        index += 1
      }
    }
    return nil
  }
}
