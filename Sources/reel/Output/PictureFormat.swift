import ArgumentParser

/// How pictures are written.
enum PictureFormat: String, ExpressibleByArgument, CaseIterable {
  /// Binary portable pixmap (P6), 8-bit RGB.
  case ppm
  case png
  /// YUV4MPEG2: the decoded samples as they are, one file a source.
  case y4m
}
