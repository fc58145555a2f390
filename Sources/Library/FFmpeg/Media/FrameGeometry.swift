package import ReelCore

/// The position and size of a frame in an upright output with square pixels.
package struct FrameGeometry: Sendable, Hashable {
  /// The size of the output in pixels.
  package let output: PixelSize
  /// The size to which the stored frame is scaled, before it is turned.
  let scaled: PixelSize
  /// The position of the upper left corner of the turned frame in the output; negative if the frame is cropped.
  let origin: (x: Int, y: Int)

  /// Fits a frame into an output.
  ///
  /// - Parameters:
  ///   - stored: The size of the frame in stored pixels.
  ///   - sampleAspectRatio: The ratio of pixel width to pixel height. Nil or a value outside of 0.01 to 100 means
  ///     square pixels.
  ///   - orientation: How the frame is turned to be upright.
  ///   - target: The size of the output. Nil for the natural size of the frame: its stored height, and its stored width
  ///     times the aspect ratio, turned.
  ///   - gravity: How the frame is fitted into `target`.
  package init(
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

  package static func == (left: FrameGeometry, right: FrameGeometry) -> Bool {
    left.output == right.output && left.scaled == right.scaled && left.origin == right.origin
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(output)
    hasher.combine(scaled)
  }

  private static func scale(_ size: PixelSize, by factor: Double) -> PixelSize {
    PixelSize(
      width: max(1, Int((Double(size.width) * factor).rounded())),
      height: max(1, Int((Double(size.height) * factor).rounded())))
  }
}

/// The way a frame is fitted into an output with another aspect ratio, like AVFoundation's
/// `AVLayerVideoGravity`.
public enum VideoGravity: String, Sendable, Hashable, CaseIterable {
  /// Keep the aspect ratio and show the whole frame, with black bars.
  case resizeAspect = "fit"
  /// Keep the aspect ratio and fill the output; crop the frame.
  case resizeAspectFill = "fill"
  /// Stretch the frame to the size of the output.
  case resize = "stretch"
}
