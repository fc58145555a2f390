public import ReelCore
internal import ReelFFmpeg
public import ReelReading

extension VideoFrame {
  /// The color of a ``solid(_:width:height:at:)`` frame, in sRGB.
  public struct SolidColor: Sendable, Hashable {
    let red, green, blue: UInt8

    /// A color of components from 0 to 255.
    public init(red: UInt8, green: UInt8, blue: UInt8) {
      self.red = red
      self.green = green
      self.blue = blue
    }

    /// 255, 0, 0.
    public static let red = SolidColor(red: 255, green: 0, blue: 0)
    /// 0, 255, 0.
    public static let green = SolidColor(red: 0, green: 255, blue: 0)
    /// 0, 0, 255.
    public static let blue = SolidColor(red: 0, green: 0, blue: 255)
    /// 0, 0, 0.
    public static let black = SolidColor(red: 0, green: 0, blue: 0)
    /// 255, 255, 255.
    package static let white = SolidColor(red: 255, green: 255, blue: 255)
  }

  /// A frame of one color, for tests: upright, with square pixels, in RGB.
  ///
  /// - Parameters:
  ///   - color: The color of all pixels.
  ///   - width: The width in pixels, greater than 0.
  ///   - height: The height in pixels, greater than 0.
  ///   - time: The frame's time.
  public static func solid(
    _ color: SolidColor, width: Int, height: Int, at time: MediaTime = .zero
  ) -> VideoFrame {
    let size = PixelSize(width: width, height: height)
    let pixels = (0..<width * height).flatMap { _ in [color.red, color.green, color.blue] }
    do {
      return try VideoFrame(Still(size: size, pixels: .eightBit(pixels), color: .sRGB), time: time)
    } catch {
      preconditionFailure("\(error)")
    }
  }
}
