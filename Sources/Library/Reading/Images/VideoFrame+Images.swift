public import Foundation
public import ReelCore
public import ReelFFmpeg

#if canImport(CoreGraphics)
  public import CoreGraphics
#endif
#if canImport(CoreVideo)
  public import CoreVideo
#endif

/// Images of a frame as a viewer sees it: upright, with square pixels, in sRGB. HDR (PQ, HLG) is mapped to SDR by the curve
/// of ITU-R BT.2390, as `reel frames` does.
///
/// All throw `ReelError` of kind `unsupported` for a pixel format that FFmpeg can't convert, and `internalFault` if a
/// conversion fails.
extension VideoFrame {
  /// The pixels as red, green, blue and 255, a byte each: `presentationSize.height` rows from top to bottom, without
  /// padding. Throws if the pixel format can't be converted.
  public var rgba: Data { get throws(ReelError) { Data(try image().quads(isBlueFirst: false)) } }

  /// Like ``rgba``, in the order blue, green, red, 255. Throws if the pixel format can't be converted.
  public var bgra: Data { get throws(ReelError) { Data(try image().quads(isBlueFirst: true)) } }

  /// Returns a JPEG file.
  ///
  /// - Parameter quality: 0 to 1, a hundredth of libjpeg's.
  public func jpeg(quality: Double = 0.85) throws(ReelError) -> Data {
    let percent = quality.isFinite ? Int((min(max(quality, 0), 1) * 100).rounded()) : nil
    return Data(try StillEncoder.encode(Still(try image()), as: .jpeg, quality: percent))
  }

  /// Returns a PNG file with 8 bits per component.
  public func png() throws(ReelError) -> Data {
    Data(try StillEncoder.encode(Still(try image()), as: .png))
  }

  /// Returns the frame in RGB at the largest size that fits into `maximumSize`. The frame is not enlarged.
  public func scaled(toFit maximumSize: PixelSize) throws(ReelError) -> VideoFrame {
    try scaled(to: SizeLimit.box(maximumSize).fitted(presentationSize), gravity: .resize)
  }

  /// Returns the frame in RGB at a size.
  ///
  /// - Parameters:
  ///   - size: The new size.
  ///   - gravity: How the frame fits into it.
  public func scaled(
    to size: PixelSize, gravity: VideoGravity = .resizeAspect
  ) throws(ReelError) -> VideoFrame {
    try replacingPixels(with: Still(try image(size: size, gravity: gravity)))
  }

  /// A frame of the pixels of a still, which does not come from a stream.
  package init(_ still: Still, time: MediaTime) throws(ReelError) {
    self.init(
      try StillEncoder.frame(of: still), time: time, stream: try StreamInfo(still: still.size), frameRate: nil
    )
  }

  /// Returns the frame with other pixels: those of a still, which is upright and has square pixels.
  package func replacingPixels(with still: Still) throws(ReelError) -> VideoFrame {
    var copy = self
    copy.decoded = try StillEncoder.frame(of: still)
    copy.stream = try StreamInfo(still: still.size)
    return copy
  }

  // MARK: - Private

  private func image(
    size: PixelSize? = nil, gravity: VideoGravity = .resizeAspect
  ) throws(ReelError) -> RGBImage {
    var image = RGBImage.empty
    try StillRenderer().convert(
      decoded, geometry: geometry(target: size, gravity: gravity), orientation: orientation, into: &image)
    return image
  }
}

extension FrameConverter {
  /// Converts a frame into a new image: upright, with square pixels.
  ///
  /// - Parameters:
  ///   - frame: The frame to convert.
  ///   - target: The size of the image. Nil for the frame's own, `VideoFrame.presentationSize`.
  ///   - gravity: How the frame fits into `target`.
  /// - Throws: `ReelError` of kind `unsupported` for a pixel format that swscale can't read, or `internalFault` if the
  ///   conversion fails.
  package func convert(
    _ frame: VideoFrame, target: PixelSize? = nil, gravity: VideoGravity = .resizeAspect
  ) throws(ReelError) -> RGBImage {
    try convert(
      frame.decoded, geometry: frame.geometry(target: target, gravity: gravity),
      orientation: frame.orientation)
  }
}

#if canImport(CoreGraphics)
  extension VideoFrame {
    /// The frame as an image of Core Graphics. Not tested.
    public var cgImage: CGImage {
      get throws(ReelError) {
        let size = presentationSize
        guard let provider = CGDataProvider(data: try rgba as CFData),
          let space = CGColorSpace(name: CGColorSpace.sRGB),
          let image = CGImage(
            width: size.width, height: size.height, bitsPerComponent: 8, bitsPerPixel: 32,
            bytesPerRow: size.width * 4, space: space,
            bitmapInfo: CGBitmapInfo(rawValue: CGImageAlphaInfo.noneSkipLast.rawValue), provider: provider,
            decode: nil, shouldInterpolate: true, intent: .defaultIntent)
        else { throw ReelError(.internalFault, "the image can't be created") }
        return image
      }
    }
  }
#endif

#if canImport(CoreVideo)
  extension VideoFrame {
    /// The frame as a pixel buffer of the format `kCVPixelFormatType_32BGRA`. Not tested.
    public var pixelBuffer: CVPixelBuffer {
      get throws(ReelError) {
        let (size, pixels) = (presentationSize, try bgra)
        let attributes = [kCVPixelBufferIOSurfacePropertiesKey: [:] as CFDictionary] as CFDictionary
        var made: CVPixelBuffer?
        CVPixelBufferCreate(nil, size.width, size.height, kCVPixelFormatType_32BGRA, attributes, &made)
        guard let buffer = made, CVPixelBufferLockBaseAddress(buffer, []) == kCVReturnSuccess else {
          throw ReelError(.internalFault, "the pixel buffer can't be created")
        }
        defer { CVPixelBufferUnlockBaseAddress(buffer, []) }
        guard let base = CVPixelBufferGetBaseAddress(buffer) else {
          throw ReelError(.internalFault, "the pixel buffer has no memory")
        }
        let (stride, rowByteCount) = (CVPixelBufferGetBytesPerRow(buffer), size.width * 4)
        pixels.withUnsafeBytes { bytes in
          guard let source = bytes.baseAddress else { return }
          for row in 0..<size.height {
            (base + row * stride).copyMemory(from: source + row * rowByteCount, byteCount: rowByteCount)
          }
        }
        return buffer
      }
    }
  }
#endif
