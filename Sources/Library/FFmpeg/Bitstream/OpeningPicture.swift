internal import CFFmpeg
internal import CFFmpegShims
internal import ReelCore

/// How decoding can start with the first access unit of a stream.
package struct OpeningPicture: Sendable, Hashable {
  /// How the stream can be entered.
  package enum Entry: String, Sendable {
    /// Nothing after it needs or precedes anything before it.
    case idr
    /// A clean start whose leading pictures need what came before (HEVC CRA, BLA; H.264 recovery point).
    case openGOP = "open_gop"
    /// Not a place to start at.
    case none
  }

  package let entry: Entry
  /// A field, not a frame, of a picture.
  let isField: Bool
  /// HEVC leading picture.
  let isLeading: Bool
  let isRandomAccess: Bool
  /// Not left out by an edit list.
  let isShown: Bool
  /// H.264: the number of frames after a recovery point until pictures are whole; 0 if the first one is. Nil if the unit is
  /// no recovery point.
  let recoveryFrameCount: Int?
  /// False if the unit is no picture: in H.264 and HEVC one without a slice, in others one of zeros.
  let hasPicture: Bool
  /// Pictures may follow that are shown before it.
  private let mayBePreceded: Bool

  /// True if decoding this picture and nothing else gives the earliest one.
  package var canBeDecodedAlone: Bool { entry == .idr && !mayBePreceded && !isField && isShown }

  init(
    _ packet: borrowing Packet, codec: VideoCodec?, framing: NALFraming, parameters: CodecParameters
  ) throws(ReelError) {
    isShown = !packet.isDiscarded
    if let codec, codec.isMPEGVideo {
      let picture = packet.withBytes { MPEGPicture(codec: codec, bytes: $0) }
      recoveryFrameCount = nil
      hasPicture = packet.hasContent
      entry = picture?.isIntra != true ? .none : picture?.isClosedGroup == true ? .idr : .openGOP
      isField = false
      isLeading = false
      isRandomAccess = picture?.isIntra ?? false
      // The decoder itself determines which frame is first.
      mayBePreceded = true
      return
    }
    guard let codec, codec == .h264 || codec == .hevc else {
      entry = packet.isKey ? .idr : .none
      recoveryFrameCount = nil
      hasPicture = packet.hasContent
      isField = false
      isLeading = false
      isRandomAccess = packet.isKey
      // AV1 and VP9 show a picture with its packet, so the decoder is asked after each packet.
      mayBePreceded = true
      return
    }
    var slice: NALUnitHeader?
    var recovery: Int?
    packet.withBytes { bytes in
      bytes.forEachNALUnit(framing: framing) { unit in
        guard let header = NALUnitHeader(codec: codec, bytes: unit), header.isPictureSlice else {
          if codec == .h264, recovery == nil { recovery = RecoveryPoint.frameCount(unit) }
          return true
        }
        slice = header
        return false
      }
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
    // No H.264 picture after an IDR picture is shown before it; in HEVC type 19 may have RADL pictures.
    mayBePreceded = slice?.mayHaveLeadingPictures ?? true && !hasNoDelay
    isField = codec == .h264 && Self.isField(packet, parameters: parameters)
  }

  /// Asks libavcodec's parser, which knows the SPS.
  private static func isField(_ packet: borrowing Packet, parameters: CodecParameters) -> Bool {
    guard let context = avcodec_alloc_context3(nil) else { return false }
    defer {
      var context: UnsafeMutablePointer<AVCodecContext>? = context
      avcodec_free_context(&context)
    }
    guard avcodec_parameters_to_context(context, parameters.pointer) >= 0,
      let parser = av_parser_init(Int32(parameters.pointer.pointee.codec_id.rawValue))
    else { return false }
    defer { av_parser_close(parser) }
    parser.pointee.flags |= PARSER_FLAG_COMPLETE_FRAMES
    var output: UnsafeMutablePointer<UInt8>?
    var outputSize: Int32 = 0
    _ = av_parser_parse2(
      parser, context, &output, &outputSize, packet.pointer.pointee.data, packet.pointer.pointee.size,
      reel_nopts(), reel_nopts(), 0)
    let structure = parser.pointee.picture_structure
    return structure == AV_PICTURE_STRUCTURE_TOP_FIELD || structure == AV_PICTURE_STRUCTURE_BOTTOM_FIELD
  }
}

extension Packet {
  /// False for nothing but zeros.
  fileprivate var hasContent: Bool { byteCount == 0 || withBytes { bytes in bytes.contains { $0 != 0 } } }
}
