internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading

/// Turns frames into upright planar images of one format: that of the first frame. Other frames are converted
/// and scaled, with bars if their aspect ratio differs.
///
/// Confined to one thread at a time.
final class UniformImages {
  /// Nil before the first frame.
  private(set) var format: PlanarConverter.Format?
  private let converter = PlanarConverter()

  /// Throws `ReelError.unsupported` for a first frame that is not planar YUV, and for one that can't be converted.
  func image(of frame: VideoFrame) throws(ReelError) -> PlanarImage {
    if let format {
      return try converter.convert(
        frame.decoded, orientation: frame.orientation, sampleAspectRatio: frame.sampleAspectRatio,
        to: format)
    }
    let image = try PlanarImage(frame.decoded, orientation: frame.orientation)
    format = PlanarConverter.Format(
      of: image, frame: frame.decoded, orientation: frame.orientation,
      sampleAspectRatio: frame.sampleAspectRatio)
    return image
  }
}
