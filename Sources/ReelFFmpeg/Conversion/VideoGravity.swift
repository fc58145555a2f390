/// How a frame is fitted into an output of another shape; AVFoundation's `AVLayerVideoGravity`.
public enum VideoGravity: String, Sendable, Hashable, CaseIterable {
  /// The whole frame, its shape kept, with black bars.
  case resizeAspect = "fit"
  /// The output is filled, the frame's shape kept; what goes beyond the output is cut off.
  case resizeAspectFill = "fill"
  /// The frame is stretched to the output's shape.
  case resize = "stretch"
}
