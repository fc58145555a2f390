import ArgumentParser
import ReelFFmpeg

/// The format of files with frames: those of `reel frames` and `reel poster`, and the sheets of `reel storyboard`.
enum StillFileFormat: String, ExpressibleByArgument, CaseIterable {
  case jpeg
  case png
  case webp
  case avif
  /// Binary portable pixmap (P6), 8-bit RGB.
  case ppm
  /// YUV4MPEG2: the decoded samples unchanged, all frames of a source in one file.
  case y4m

  init?(argument: String) { self.init(rawValue: argument == "jpg" ? "jpeg" : argument) }

  /// The format that the ending of a file's name stands for; nil if that is none of an image.
  init?(fileName: String) {
    guard let dot = fileName.lastIndex(of: "."), dot != fileName.startIndex else { return nil }
    self.init(argument: fileName[fileName.index(after: dot)...].lowercased())
  }

  /// Nil for decoded samples.
  var still: StillFormat? { StillFormat(rawValue: rawValue) }
  var fileExtension: String { still?.fileExtension ?? rawValue }
}
