/// How a picture is fitted into an output of another shape; AVFoundation's `AVLayerVideoGravity`.
public enum VideoGravity: String, Sendable, Hashable, CaseIterable {
  /// The whole picture, its shape kept, with black bars.
  case resizeAspect = "fit"
  /// The output is filled, the picture's shape kept; what goes beyond the output is cut off.
  case resizeAspectFill = "fill"
  /// The picture is stretched to the output's shape.
  case resize = "stretch"
}
