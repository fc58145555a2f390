import ArgumentParser
import ReelPlayback

/// The output format of `reel frames`.
enum FramesFormat: String, ExpressibleByArgument, CaseIterable {
  /// Binary portable pixmap (P6), 8-bit RGB.
  case ppm
  case png
  /// YUV4MPEG2: the decoded samples unchanged, one file per source.
  case y4m

  /// The format of each frame's file; nil if one file holds them all.
  var frame: ImageFormat? {
    switch self {
    case .ppm: .ppm
    case .png: .png
    case .y4m: nil
    }
  }
}
