package import ReelCore
package import ReelFFmpeg

/// Converts decoded frames to upright RGB images with square pixels, HDR to SDR, and writes them to files.
///
/// Confined to one thread at a time.
package final class ImageFileWriter {
  private let format: StillFormat
  private let size: PixelSize?
  private let gravity: VideoGravity
  private let renderer = StillRenderer()
  /// Reused for frames of the same size.
  private var image = RGBImage.empty

  /// `size` is the size of the images, nil for each frame's own; `gravity` is how a frame fits it.
  package init(format: StillFormat, size: PixelSize?, gravity: VideoGravity) {
    self.format = format
    self.size = size
    self.gravity = gravity
  }

  /// Converts a frame for `write(to:)`, and returns its size. Throws `ReelError.unsupported` for a pixel format
  /// that can't be converted.
  package func convert(_ frame: borrowing TimedFrame) throws(ReelError) -> PixelSize {
    try renderer.convert(
      frame.decoded, geometry: frame.geometry(target: size, gravity: gravity),
      orientation: frame.orientation, into: &image)
    return image.size
  }

  /// Writes the last converted frame and gives the file its name. Throws `ReelError.cannotWriteOutput` or
  /// `cannotCreateOutput`.
  package func write(to file: OutputFile) throws(ReelError) {
    switch format {
    case .png: try file.write(try PNGEncoder.encode(image))
    case .ppm:
      try file.write(image.ppmHeader)
      try file.write(image.pixels)
    case .jpeg, .webp, .avif:
      let still = Still(size: image.size, pixels: .eightBit(image.pixels), color: .sRGB)
      try file.write(try StillEncoder.encode(still, as: format))
    }
    try file.commit()
  }
}
