package import ReelCore
internal import ReelFFmpeg

/// Writes frames as YUV4MPEG2: samples as decoded, turned upright; aspect ratio and range in the header.
///
/// Confined to one thread at a time.
package final class Y4MWriter {
  /// What is done with a frame that is unlike the first: Y4M has one header for all.
  package enum Change: Sendable {
    case fails
    /// The frame is made like the first: scaled, between bars where its shape is another. Another frame rate has no
    /// effect.
    case converts
  }

  private let file: OutputFile
  private let change: Change
  private var header: [UInt8]?
  private var format: PlanarConverter.Format?
  private let converter = PlanarConverter()

  package init(to file: OutputFile, change: Change = .fails) {
    self.file = file
    self.change = change
  }

  /// Writes a frame and gives its size. Throws `ReelError.unsupported` for frames that the format has no name
  /// for, and where a frame is unlike the first and can't be made like it; `cannotWriteOutput` for what is written
  /// in part.
  package func write(_ frame: borrowing TimedFrame) throws(ReelError) -> PixelSize {
    let image: PlanarImage
    if change == .converts, let format {
      image = try converter.convert(
        frame.decoded, orientation: frame.orientation, sampleAspectRatio: frame.sampleAspectRatio,
        to: format)
    } else {
      image = try PlanarImage(frame.decoded, orientation: frame.orientation)
      try start(with: image, of: frame)
    }
    try file.write(Array("FRAME\n".utf8))
    for plane in image.planes { try file.write(plane) }
    return image.size
  }

  /// Gives the file its name. Throws as `OutputFile.commit()` does.
  package func finish() throws(ReelError) { try file.commit() }

  // MARK: - Private

  /// Writes the header; of a later frame, compares it.
  private func start(with image: PlanarImage, of frame: borrowing TimedFrame) throws(ReelError) {
    let wanted = Self.header(of: image, frame: frame)
    if let header {
      guard header == wanted else {
        throw ReelError(
          .unsupported, "the frames' size or format changes, which Y4M can't hold",
          at: frame.stream.codecName)
      }
      return
    }
    header = wanted
    format = PlanarConverter.Format(
      of: image, frame: frame.decoded, orientation: frame.orientation,
      sampleAspectRatio: frame.sampleAspectRatio)
    try file.write(wanted)
  }

  private static func header(of image: PlanarImage, frame: borrowing TimedFrame) -> [UInt8] {
    let rate = frame.frameRate ?? Rational(25, 1)
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
