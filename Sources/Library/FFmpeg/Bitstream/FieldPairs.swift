internal import ReelCore

/// Joins the two fields of an H.264 frame that a container stores one after the other, so that each unit is a frame.
///
/// MPEG-TS and raw streams have an access unit for each field (ISO/IEC 14496-10 §7.4.1.2.4), and muxers that copy them
/// write a sample or block for each.
struct FieldPairs {
  private var first: (packet: Packet, field: FieldPicture)?

  /// False if a field waits for the other one.
  var isEmpty: Bool { first == nil }

  /// Holds the first field of a frame.
  mutating func hold(_ packet: Packet, _ field: FieldPicture) { first = (packet, field) }

  /// Returns the frame of the held field and this one; nil if they do not belong together.
  mutating func join(_ packet: Packet, _ field: FieldPicture?) throws(ReelError) -> Packet? {
    guard let (firstPacket, firstField) = first, let field, field.isSecond(of: firstField),
      packet.newExtradata == nil
    else { return nil }
    first = nil
    let frame = try firstPacket.appending(packet)
    // Muxers that mark second fields too mark intra pictures.
    if firstPacket.isKey, packet.isKey, !firstField.isEntry { frame.unmarkKey() }
    return frame
  }

  /// Returns the held field alone: the stream has no other one.
  mutating func release() -> Packet? {
    guard let (packet, field) = first else { return nil }
    first = nil
    packet.isField = true
    // It may be the second field of a frame that some muxers mark.
    if !field.isEntry { packet.unmarkKey() }
    return packet
  }
}

/// An H.264 picture that is one field of a frame.
struct FieldPicture {
  let isBottom: Bool
  /// `frame_num`, which both fields of a frame have.
  let frameNumber: UInt32
  let isReference: Bool
  let isIDR: Bool
  /// True if decoding can start at it, by its own statement: an IDR picture or a recovery point.
  let isEntry: Bool

  /// Returns true for complementary fields (ISO/IEC 14496-10 §3.30, §3.31).
  func isSecond(of first: FieldPicture) -> Bool {
    isBottom != first.isBottom && frameNumber == first.frameNumber && isReference == first.isReference
      && !isIDR
  }
}

/// The parts of H.264 parameter sets with which the header of a slice shows whether its picture is a field
/// (ISO/IEC 14496-10 §7.3.3).
struct FieldSyntax {
  private struct Sequence {
    let hasColorPlanes: Bool
    let frameNumberBitCount: Int
  }

  /// The sequence parameter sets that allow fields, by id.
  private var sequences: [UInt32: Sequence] = [:]
  /// The sequence parameter set of each picture parameter set, by id.
  private var pictures: [UInt32: UInt32] = [:]

  /// True if pictures may be fields.
  var isPossible: Bool { !sequences.isEmpty }

  /// Records a parameter set. `unit` is the NAL unit with its header.
  mutating func record(_ unit: UnsafeRawBufferPointer) {
    guard let first = unit.first else { return }
    switch first & 0x1f {
    case 7:
      guard let set = SequenceParameterSet(unit), set.id < 32 else { return }
      sequences[set.id] =
        set.allowsFields
        ? Sequence(hasColorPlanes: set.hasColorPlanes, frameNumberBitCount: set.frameNumberBitCount) : nil
    case 8:
      if let set = PictureParameterSet(unit), set.id < 256 { pictures[set.id] = set.sequence }
    default: break
    }
  }

  /// Returns the field that a slice belongs to; nil for frames. `unit` is the NAL unit with its header.
  ///
  /// - Parameter isRecoveryPoint: True if there is a recovery point before the slice.
  func field(_ unit: UnsafeRawBufferPointer, isRecoveryPoint: Bool) -> FieldPicture? {
    guard isPossible, let first = unit.first, [1, 2, 5].contains(first & 0x1f) else { return nil }
    var bits = BitReader(unit)
    bits.skip(8)
    _ = bits.exponentialGolomb()
    _ = bits.exponentialGolomb()
    let picture = bits.exponentialGolomb()
    guard !bits.hasFailed, let id = pictures[picture], let sequence = sequences[id] else { return nil }
    if sequence.hasColorPlanes { bits.skip(2) }
    let number = bits.read(sequence.frameNumberBitCount)
    let isField = bits.read(1) == 1
    let isBottom = bits.read(1) == 1
    guard !bits.hasFailed, isField else { return nil }
    let isIDR = first & 0x1f == 5
    return FieldPicture(
      isBottom: isBottom, frameNumber: number, isReference: first & 0x60 != 0, isIDR: isIDR,
      isEntry: isIDR || isRecoveryPoint)
  }
}
