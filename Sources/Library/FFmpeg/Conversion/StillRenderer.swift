internal import CFFmpegShims
package import ReelCore

/// An upright image with square pixels, ready to be encoded.
package struct Still: Sendable {
  /// Rows from top to bottom without padding, in the order red, green, blue.
  package enum Pixels: Sendable {
    case eightBit([UInt8])
    case sixteenBit([UInt16])
  }

  /// The meaning of the pixels: code points of ISO/IEC 23091-2.
  package enum Color: Sendable, Hashable {
    /// The primaries of BT.709 and the transfer function of sRGB. The R'G'B' of SDR video is taken for it unchanged, as
    /// players show it.
    case sRGB
    /// BT.2020 with PQ (SMPTE ST 2084).
    case pq
    /// BT.2020 with HLG.
    case hlg

    /// Primaries, transfer characteristics, and the matrix for Y'CbCr.
    var codePoints: (primaries: UInt8, transfer: UInt8, matrix: UInt8) {
      switch self {
      case .sRGB: (1, 13, 6)
      case .pq: (9, 16, 9)
      case .hlg: (9, 18, 9)
      }
    }
  }

  package let size: PixelSize
  package let pixels: Pixels
  package let color: Color

  package init(size: PixelSize, pixels: Pixels, color: Color) {
    self.size = size
    self.pixels = pixels
    self.color = color
  }

  /// A still of SDR pixels.
  package init(_ image: RGBImage) {
    self.init(size: image.size, pixels: .eightBit(image.pixels), color: .sRGB)
  }
}

/// Converts decoded frames to stills: upright, with square pixels, and with colors that their tags describe.
///
/// The frame's own matrix and range are used. SDR is assumed to be sRGB; if its primaries are those of
/// BT.2020, they are converted. Other primaries are treated as those of BT.709, which differ little.
///
/// Confined to one thread at a time.
package final class StillRenderer {
  /// The handling of HDR.
  package enum HDRHandling: String, Sendable, Hashable, CaseIterable {
    /// Map it to SDR (`ToneMapper`).
    case sdr
    /// Keep it, in 16 bits.
    case keep
  }

  private let converter = FrameConverter()
  /// The mapper used for the last frame, with its transfer function and peak.
  private var mapper: (transfer: ToneMapper.Transfer, peak: Double?, mapper: ToneMapper)?

  package init() {}

  /// - Parameters:
  ///   - geometry: The size of the still, and the position of the frame in it.
  ///   - orientation: How to turn the frame. Must be the orientation that `geometry` was made with.
  /// - Throws: `ReelError` of kind `unsupported` for a pixel format that swscale can't read, or `internalFault` if the
  ///   conversion fails.
  package func render(
    _ frame: Frame, geometry: FrameGeometry, orientation: Orientation, hdr: HDRHandling = .sdr
  ) throws(ReelError) -> Still {
    let color = frame.color
    let transfer: ToneMapper.Transfer? =
      switch color.transfer {
      case "smpte2084": .pq
      case "arib-std-b67": .hlg
      default: color.primaries == "bt2020" ? .sdr : nil
      }
    guard let transfer else {
      let image = try converter.convertExactly(frame, geometry: geometry, orientation: orientation)
      return Still(size: image.size, pixels: .eightBit(image.pixels), color: .sRGB)
    }
    let samples = try converter.convertDeep(frame, geometry: geometry, orientation: orientation)
    if hdr == .keep, transfer != .sdr {
      return Still(
        size: geometry.output, pixels: .sixteenBit(samples), color: transfer == .pq ? .pq : .hlg)
    }
    return Still(
      size: geometry.output, pixels: .eightBit(mapper(transfer, for: frame).map(samples)), color: .sRGB)
  }

  /// Like `render`, but converts only the colors of HDR: the primaries of SDR are left unchanged.
  ///
  /// - Parameter image: Its memory is reused for SDR.
  package func convert(
    _ frame: Frame, geometry: FrameGeometry, orientation: Orientation, into image: inout RGBImage
  ) throws(ReelError) {
    guard frame.color.isHDR else {
      return try converter.convert(frame, geometry: geometry, orientation: orientation, into: &image)
    }
    let samples = try converter.convertDeep(frame, geometry: geometry, orientation: orientation)
    let transfer: ToneMapper.Transfer = frame.color.transfer == "smpte2084" ? .pq : .hlg
    image = RGBImage(size: geometry.output, pixels: mapper(transfer, for: frame).map(samples))
  }

  // MARK: - Private

  private func mapper(_ transfer: ToneMapper.Transfer, for frame: Frame) -> ToneMapper {
    let stated = reel_frame_peak_luminance(frame.pointer)
    let peak = stated > 0 ? stated : nil
    if let mapper, mapper.transfer == transfer, mapper.peak == peak { return mapper.mapper }
    let made = ToneMapper(transfer, peak: peak)
    mapper = (transfer, peak, made)
    return made
  }
}
