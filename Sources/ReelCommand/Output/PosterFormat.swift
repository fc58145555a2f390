import ArgumentParser
import ReelFFmpeg

/// The output format of `reel poster`.
enum PosterFormat: String, ExpressibleByArgument, CaseIterable {
  case jpeg
  case png
  case webp
  case avif
  /// Binary portable pixmap (P6), 8-bit RGB.
  case ppm
  /// YUV4MPEG2: the decoded samples unchanged.
  case y4m

  init?(argument: String) { self.init(rawValue: argument == "jpg" ? "jpeg" : argument) }

  /// Nil for decoded samples.
  var still: StillFormat? { StillFormat(rawValue: rawValue) }
  var fileExtension: String { still?.fileExtension ?? rawValue }
}
