import ArgumentParser
import ReelPlayback

/// How `reel frames` writes frames.
enum FramesFormat: String, ExpressibleByArgument, CaseIterable {
  /// Binary portable pixmap (P6), 8-bit RGB.
  case ppm
  case png
  /// YUV4MPEG2: the decoded samples as they are, one file a source.
  case y4m

  /// The format of a file for each frame; nil where one file holds them all.
  var frame: ImageFormat? {
    switch self {
    case .ppm: .ppm
    case .png: .png
    case .y4m: nil
    }
  }
}
