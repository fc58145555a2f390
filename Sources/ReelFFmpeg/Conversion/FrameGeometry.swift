public import ReelCore

/// Where the pixels of a stored frame go in an upright output with square pixels.
public struct FrameGeometry: Sendable, Hashable {
  /// The size of the output.
  public let output: PixelSize
  /// The size that the stored frame is scaled to, before it is turned.
  let scaled: PixelSize
  /// Where the turned frame's upper left corner lies in the output; negative where it is cut.
  let origin: (x: Int, y: Int)

  /// - Parameters:
  ///   - stored: the frame's size in stored pixels.
  ///   - sampleAspectRatio: pixel width to pixel height; nil for square.
  ///   - target: the output's size; nil for the frame's own, which is its height in stored pixels and its width
  ///     times the aspect ratio.
  public init(
    stored: PixelSize, sampleAspectRatio: Rational?, orientation: Orientation, target: PixelSize? = nil,
    gravity: VideoGravity = .resizeAspect
  ) {
    var ratio = 1.0
    if let sampleAspectRatio, sampleAspectRatio.isPositive, (0.01...100).contains(sampleAspectRatio.value) {
      ratio = sampleAspectRatio.value
    }
    let square = PixelSize(
      width: max(1, Int((Double(stored.width) * ratio).rounded())), height: stored.height)
    let upright = orientation.swapsAxes ? square.transposed : square
    guard let target else {
      output = upright
      scaled = square
      origin = (0, 0)
      return
    }
    output = target
    let horizontal = Double(target.width) / Double(upright.width)
    let vertical = Double(target.height) / Double(upright.height)
    let fitted: PixelSize
    switch gravity {
    case .resize: fitted = target
    case .resizeAspect: fitted = Self.scale(upright, by: min(horizontal, vertical))
    case .resizeAspectFill: fitted = Self.scale(upright, by: max(horizontal, vertical))
    }
    scaled = orientation.swapsAxes ? fitted.transposed : fitted
    origin = ((target.width - fitted.width) / 2, (target.height - fitted.height) / 2)
  }

  public static func == (left: FrameGeometry, right: FrameGeometry) -> Bool {
    left.output == right.output && left.scaled == right.scaled && left.origin == right.origin
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(output)
    hasher.combine(scaled)
  }

  private static func scale(_ size: PixelSize, by factor: Double) -> PixelSize {
    PixelSize(
      width: max(1, Int((Double(size.width) * factor).rounded())),
      height: max(1, Int((Double(size.height) * factor).rounded())))
  }
}
