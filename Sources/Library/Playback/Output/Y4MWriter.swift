package import ReelCore
internal import ReelFFmpeg

/// Writes frames as YUV4MPEG2: decoded samples, turned upright, with aspect ratio and range in the header.
///
/// Confined to one thread at a time.
package final class Y4MWriter {
  private let file: OutputFile
  private var header: [UInt8]?
  private let images = UniformImages()

  package init(to file: OutputFile) { self.file = file }

  /// Writes a frame and returns its size. Throws `ReelError.unsupported` for a frame that the format can't
  /// express, or that differs from the first, because Y4M has one header for all frames; `cannotWriteOutput` if writing
  /// fails.
  package func write(_ frame: borrowing TimedFrame) throws(ReelError) -> PixelSize {
    let image = try PlanarImage(frame.decoded, orientation: frame.orientation)
    try start(with: image, of: frame, rate: frame.frameRate ?? Rational(25, 1))
    try write(image)
    return image.size
  }

  /// Like `write(_:)`, but converts a frame that differs from the first: scaled, with bars if its shape differs.
  ///
  /// - Parameter rate: The rate of the header; only the first one has an effect.
  func convert(_ frame: borrowing TimedFrame, rate: Rational) throws(ReelError) -> PlanarImage {
    let image = try images.image(of: frame)
    if header == nil { try start(with: image, of: frame, rate: rate) }
    return image
  }

  /// Writes an image that `convert` has made. Throws `ReelError.cannotWriteOutput`.
  func write(_ image: PlanarImage) throws(ReelError) {
    try file.write(Array("FRAME\n".utf8))
    for plane in image.planes { try file.write(plane) }
  }

  /// Completes the file. Throws like `OutputFile.commit()`.
  package func finish() throws(ReelError) { try file.commit() }

  // MARK: - Private

  /// Writes the header. For a later frame, compares it with the header.
  private func start(
    with image: PlanarImage, of frame: borrowing TimedFrame, rate: Rational
  ) throws(ReelError) {
    let wanted = Self.header(of: image, frame: frame, rate: rate)
    if let header {
      guard header == wanted else {
        throw ReelError(
          .unsupported, "the frames' size or format changes, which Y4M can't hold",
          at: frame.stream.codecName)
      }
      return
    }
    header = wanted
    try file.write(wanted)
  }

  private static func header(
    of image: PlanarImage, frame: borrowing TimedFrame, rate: Rational
  ) -> [UInt8] {
    var aspect = frame.sampleAspectRatio ?? Rational(1, 1)
    if frame.orientation.swapsAxes { aspect = Rational(aspect.denominator, aspect.numerator) }
    let range = image.isFullRange ? " XCOLORRANGE=FULL" : ""
    let text =
      "YUV4MPEG2 W\(image.size.width) H\(image.size.height) F\(rate.numerator):\(rate.denominator) Ip"
      + " A\(aspect.numerator):\(aspect.denominator) C\(colorTag(of: image))\(range)\n"
    return Array(text.utf8)
  }

  private static func colorTag(of image: PlanarImage) -> String {
    let depth = image.bitDepth > 8 ? "p\(image.bitDepth)" : ""
    switch image.chroma {
    case .none: return image.bitDepth > 8 ? "mono\(image.bitDepth)" : "mono"
    case .c422: return "422\(depth)"
    case .c444: return "444\(depth)"
    case .c420 where image.bitDepth > 8: return "420\(depth)"
    case .c420(.left): return "420mpeg2"
    case .c420(.topLeft): return "420paldv"
    case .c420(.other): return "420jpeg"
    }
  }
}
