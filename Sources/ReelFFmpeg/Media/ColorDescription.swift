internal import CFFmpeg

/// The colour of a frame: what its bitstream states, and the matrix and range that a conversion to RGB takes.
///
/// Where the matrix is not stated, BT.601 is taken below 720 lines and BT.709 from 720 on, as players do.
public struct ColorDescription: Sendable, Hashable {
  /// FFmpeg's names (ISO/IEC 23091-2 code points); nil where unspecified.
  public let matrix: String?
  public let primaries: String?
  public let transfer: String?
  public let isFullRange: Bool
  /// Bits per component.
  public let bitDepth: Int
  /// The matrix that is taken: that of the bitstream, or by the rule above.
  public let assumedMatrix: String

  /// True for the transfer curves of HDR (SMPTE ST 2084 and HLG): the conversion does not tone map them.
  public var isHDR: Bool { transfer == "smpte2084" || transfer == "arib-std-b67" }

  init(_ frame: UnsafePointer<AVFrame>) {
    let space = frame.pointee.colorspace
    matrix =
      space == AVCOL_SPC_UNSPECIFIED || space == AVCOL_SPC_RESERVED
      ? nil : av_color_space_name(space).map { String(cString: $0) }
    let primaries = frame.pointee.color_primaries
    self.primaries =
      primaries == AVCOL_PRI_UNSPECIFIED
      ? nil : av_color_primaries_name(primaries).map { String(cString: $0) }
    let transfer = frame.pointee.color_trc
    self.transfer =
      transfer == AVCOL_TRC_UNSPECIFIED ? nil : av_color_transfer_name(transfer).map { String(cString: $0) }
    let format = AVPixelFormat(frame.pointee.format)
    isFullRange = frame.pointee.color_range == AVCOL_RANGE_JPEG || Self.impliesFullRange(format)
    bitDepth = av_pix_fmt_desc_get(format).map { Int($0.pointee.comp.0.depth) } ?? 8
    assumedMatrix = matrix ?? (frame.pointee.height < 720 ? "smpte170m" : "bt709")
  }

  /// The `yuvj` formats say "full range" by their name.
  private static func impliesFullRange(_ format: AVPixelFormat) -> Bool {
    format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ422P || format == AV_PIX_FMT_YUVJ444P
      || format == AV_PIX_FMT_YUVJ440P
  }
}
