internal import CFFmpeg

/// The colour of a frame: the properties that its bitstream states, and those that a conversion to RGB uses.
///
/// If the bitstream does not state the matrix, Reel assumes BT.601 below 720 lines and BT.709 from 720 lines, as
/// players commonly do.
public struct ColorDescription: Sendable, Hashable {
  /// FFmpeg's name for the matrix coefficients, such as `bt709` (ISO/IEC 23091-2 §8.3); nil if unspecified.
  public let matrix: String?
  /// FFmpeg's name for the primaries, such as `bt2020` (ISO/IEC 23091-2 §8.1); nil if unspecified.
  public let primaries: String?
  /// FFmpeg's name for the transfer characteristics, such as `smpte2084` (ISO/IEC 23091-2 §8.2); nil if unspecified.
  public let transfer: String?
  /// True if samples use the full range of values; false for the limited range, and if unspecified.
  public let isFullRange: Bool
  /// The number of bits per component.
  public let bitDepth: Int
  /// The matrix that conversions use: `matrix`, or the one assumed by the rule above.
  public let assumedMatrix: String

  /// True for the HDR transfer functions PQ (SMPTE ST 2084) and HLG. Conversions do not tone map them.
  public var isHDR: Bool { hdrTransfer != nil }

  /// The HDR transfer function, `pq` or `hlg`; nil for any other.
  package var hdrTransfer: String? {
    switch transfer {
    case "smpte2084": "pq"
    case "arib-std-b67": "hlg"
    default: nil
    }
  }

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

  /// True for the `yuvj` formats, which are full range by definition.
  private static func impliesFullRange(_ format: AVPixelFormat) -> Bool {
    format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ422P || format == AV_PIX_FMT_YUVJ444P
      || format == AV_PIX_FMT_YUVJ440P
  }
}
