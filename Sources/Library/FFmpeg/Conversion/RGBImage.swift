public import ReelCore

/// An image in 8-bit RGB: rows from top to bottom without padding, three bytes per pixel.
public struct RGBImage: Sendable, Hashable {
  /// The size in pixels.
  public internal(set) var size: PixelSize
  /// The pixels: `size.width * size.height * 3` bytes, in the order red, green, blue.
  public internal(set) var pixels: [UInt8]

  /// An image without pixels, to pass to `FrameConverter.convert(_:geometry:orientation:into:)`.
  public static let empty = RGBImage(size: PixelSize(width: 0, height: 0), pixels: [])

  /// Creates an image. `pixels` must have `size.width * size.height * 3` bytes.
  public init(size: PixelSize, pixels: [UInt8]) {
    self.size = size
    self.pixels = pixels
  }

  /// The header of a binary portable pixmap (PPM, P6). Header and `pixels` together are a complete file.
  public var ppmHeader: [UInt8] { Array("P6\n\(size.width) \(size.height)\n255\n".utf8) }
}
