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

  package var transposed: PixelSize { PixelSize(width: height, height: width) }
}

extension PixelSize: CustomStringConvertible {
  /// Width and height, such as `1920x1080`.
  public var description: String { "\(width)x\(height)" }
}

/// A limit for the size of an image, which keeps its aspect ratio and is never enlarged.
package enum SizeLimit: Sendable, Hashable {
  /// At most so wide and so high.
  case box(PixelSize)
  /// The shorter side at most so long, as in 720p.
  case shortSide(Int)

  /// At most so wide and so high: a length without a direction.
  package static func square(_ side: Int) -> SizeLimit { .box(PixelSize(width: side, height: side)) }

  /// The largest size of an image that is not larger than the limit and than its natural size.
  package func fitted(_ natural: PixelSize) -> PixelSize {
    let factor = min(1, scale(of: natural))
    return PixelSize(
      width: max(1, Int((Double(natural.width) * factor).rounded())),
      height: max(1, Int((Double(natural.height) * factor).rounded())))
  }

  /// True if an image of this size need not be enlarged to reach the limit.
  package func isReached(by size: PixelSize) -> Bool { scale(of: size) <= 1 }

  /// The factor that scales an image to the limit.
  private func scale(of size: PixelSize) -> Double {
    let (width, height) = (Double(max(1, size.width)), Double(max(1, size.height)))
    switch self {
    case .box(let box): return min(Double(box.width) / width, Double(box.height) / height)
    case .shortSide(let limit): return Double(limit) / min(width, height)
    }
  }
}
