internal import CFFmpeg
internal import ReelCore

/// What stands before the picture data of a packet.
struct CodedPicture: Equatable {
  /// A field of an H.264 picture.
  struct Field: Equatable {
    let isBottom: Bool
    let frameNumber: UInt32
  }

  /// H.264 IDR; HEVC IDR and BLA.
  var isSequenceStart = false
  /// HEVC IRAP.
  var isRandomAccess = false
  /// HEVC RASL.
  var isSkippedLeading = false
  /// VP8: decoded for reference only.
  var isHidden = false
  var field: Field?

  func isFirstField(of other: CodedPicture) -> Bool {
    guard let field, let next = other.field else { return false }
    return field.isBottom != next.isBottom && field.frameNumber == next.frameNumber
  }
}

/// Reads what an `OutputOrder` needs from packets, and notices sequence parameter sets that were not there before.
struct CodedPictureReader {
  private let codec: VideoCodec
  private let framing: NALFraming
  /// The sequence parameter sets that hold, with their headers; H.264 by their ids.
  private var sets: [(id: UInt32, unit: [UInt8])] = []
  /// Of the newest set.
  private var layout: SequenceParameterSet.PictureLayout?

  init(_ stream: StreamInfo, codec: VideoCodec) {
    self.codec = codec
    framing = stream.nalFraming
    let parameters = stream.parameters.pointer.pointee
    guard codec == .h264 else { return }
    UnsafeRawBufferPointer(start: parameters.extradata, count: Int(parameters.extradata_size))
      .forEachConfigurationUnit(framing: framing) { unit in
        if (unit.first ?? 0) & 0x1f == 7 { _ = note(unit) }
      }
  }

  /// - Returns: The picture, nil where there is none, and whether a new sequence parameter set precedes it.
  mutating func read(_ packet: borrowing Packet) -> (picture: CodedPicture?, hasNewSet: Bool) {
    switch codec {
    case .h264, .hevc: return readUnits(packet)
    case .vp8:
      var picture = CodedPicture()
      // RFC 6386 §9.1: show_frame.
      picture.isHidden = packet.withBytes { $0.first.map { $0 & 0x10 == 0 } ?? true }
      return (picture, false)
    default:
      return (packet.byteCount > 0 ? CodedPicture() : nil, false)
    }
  }

  // MARK: - Private

  private mutating func readUnits(_ packet: borrowing Packet) -> (picture: CodedPicture?, hasNewSet: Bool) {
    var picture: CodedPicture?
    var hasNewSet = packet.newExtradata != nil
    let (codec, framing) = (codec, framing)
    packet.withBytes { bytes in
      bytes.forEachNALUnit(framing: framing) { unit in
        guard let header = NALUnitHeader(codec: codec, bytes: unit) else { return true }
        if header.type == (codec == .h264 ? 7 : 33) { if note(unit) { hasNewSet = true } }
        guard header.isPictureSlice else { return true }
        var made = CodedPicture()
        made.isSequenceStart = header.isIDR || codec == .hevc && (16...18).contains(header.type)
        made.isRandomAccess = header.isRandomAccess
        made.isSkippedLeading = codec == .hevc && (8...9).contains(header.type)
        if codec == .h264 { made.field = layout?.field(ofSlice: unit) }
        picture = made
        return false
      }
    }
    return (picture, hasNewSet)
  }

  /// True if the set differs from the one that it replaces.
  private mutating func note(_ unit: UnsafeRawBufferPointer) -> Bool {
    let id = codec == .h264 ? SequenceParameterSet.id(unit) : 0
    let index = sets.firstIndex { $0.id == id }
    if let index, sets[index].unit.count == unit.count, unit.elementsEqual(sets[index].unit) { return false }
    if let index { sets[index].unit = Array(unit) } else { sets.append((id, Array(unit))) }
    if codec == .h264 { layout = SequenceParameterSet.PictureLayout(unit) }
    return true
  }
}
