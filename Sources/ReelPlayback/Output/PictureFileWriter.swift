package import ReelCore
package import ReelFFmpeg

/// Makes upright RGB pictures with square pixels of decoded ones, and writes them as files.
///
/// Confined to one thread at a time.
package final class PictureFileWriter {
  private let format: PictureFormat
  private let size: PixelSize?
  private let gravity: VideoGravity
  private let converter = FrameConverter()
  /// Used again for pictures of one size.
  private var image = RGBImage.empty

  /// `size` is that of the files' pictures, nil for each picture's own; `gravity` says how a picture fits it.
  package init(format: PictureFormat, size: PixelSize?, gravity: VideoGravity) {
    self.format = format
    self.size = size
    self.gravity = gravity
  }

  /// Makes the picture that `write(to:)` writes, and gives its size. Throws `ReelError.unsupported` for a pixel format
  /// that can't be converted.
  package func convert(_ picture: borrowing TimedPicture) throws(ReelError) -> PixelSize {
    try converter.convert(
      picture.frame, geometry: picture.geometry(target: size, gravity: gravity),
      orientation: picture.orientation, into: &image)
    return image.size
  }

  /// Writes the last converted picture and gives the file its name. Throws `ReelError.cannotWriteOutput` or
  /// `cannotCreateOutput`.
  package func write(to file: OutputFile) throws(ReelError) {
    switch format {
    case .png: try file.write(try PNGEncoder.encode(image))
    case .ppm:
      try file.write(image.ppmHeader)
      try file.write(image.pixels)
    }
    try file.commit()
  }
}
