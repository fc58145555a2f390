public import ReelCore

/// A frame of 8-bit RGB: rows from top to bottom without padding, three bytes a pixel.
public struct RGBImage: Sendable, Hashable {
  public internal(set) var size: PixelSize
  /// `size.width * size.height * 3` bytes.
  public internal(set) var pixels: [UInt8]

  /// No frame, to be filled by a converter.
  public static let empty = RGBImage(size: PixelSize(width: 0, height: 0), pixels: [])

  public init(size: PixelSize, pixels: [UInt8]) {
    self.size = size
    self.pixels = pixels
  }

  /// The header of a binary portable pixmap (P6) of this size; `pixels` follow it.
  public var ppmHeader: [UInt8] { Array("P6\n\(size.width) \(size.height)\n255\n".utf8) }
}
