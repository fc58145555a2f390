/// How a frame is fitted into an output with another aspect ratio, as AVFoundation's `AVLayerVideoGravity`.
public enum VideoGravity: String, Sendable, Hashable, CaseIterable {
  /// Keep the aspect ratio and show the whole frame, with black bars.
  case resizeAspect = "fit"
  /// Keep the aspect ratio and fill the output; crop the frame.
  case resizeAspectFill = "fill"
  /// Stretch the frame to the size of the output.
  case resize = "stretch"
}
