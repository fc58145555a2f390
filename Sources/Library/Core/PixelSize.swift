/// A width and a height in pixels.
public struct PixelSize: Sendable, Hashable {
  /// The width in pixels.
  public let width: Int
  /// The height in pixels.
  public let height: Int

  /// Creates a size. The values are not checked.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// The size with width and height exchanged.
  public var transposed: PixelSize { PixelSize(width: height, height: width) }
}

extension PixelSize: CustomStringConvertible {
  /// Width and height, such as `1920x1080`.
  public var description: String { "\(width)x\(height)" }
}
