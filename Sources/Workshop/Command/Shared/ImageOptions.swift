import ArgumentParser
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelPool

/// The place and format of files of frames.
struct FileOptions: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The folder to write to, created if needed; see above for other forms. Default: the current one (play: none).",
      valueName: "dir"), completion: .file())
  var output: String?

  @Option(
    help: ArgumentHelp(
      """
      The format: jpeg, png, webp, avif, ppm (P6) or y4m (decoded samples); play: ppm or png. Default: that of the \
      file's name, or jpeg (frames and play: ppm).
      """, valueName: "format"))
  var format: StillFileFormat?

  /// The folder, by default the current one; or `-` for standard output.
  var place: String { output ?? "." }
}

struct FrameSizeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      The size of the written frames: exactly 320x180, as --gravity says; or at most a box of 320 by 320 pixels (320), \
      or a shorter side of 720 (720p), with the aspect ratio kept and never enlarged. Default: that of the frame.
      """, valueName: "size"),
    transform: ImageOptions.imageSize)
  var size: ImageSize?

  @Option(
    help: ArgumentHelp(
      "How a frame fits a --size of width and height: fit (with bars), fill (cropped) or stretch. Default: fit.",
      valueName: "gravity"), completion: .list(VideoGravity.allCases.map(\.rawValue)),
    transform: ImageOptions.gravity)
  var gravity: VideoGravity?

  /// `--size` with `--gravity`; nil for the size of each frame.
  var imageSize: ImageSize? {
    guard case .exactly(let size, _) = size else { return size }
    return .exactly(size, gravity ?? .resizeAspect)
  }

  func validate() throws {
    if gravity != nil, case .within = size {
      throw ValidationError("--gravity takes a --size of width and height, such as 320x180")
    }
  }
}

/// The size and the quality of stills, which keep their aspect ratio.
struct StillOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      The largest size: a box of 320 by 180 pixels (320x180), of 320 by 320 (320), or a shorter side of 720 (720p). \
      The aspect ratio is kept, and frames are never enlarged. Default: that of the frame (storyboard: 320).
      """,
      valueName: "size"),
    transform: ImageOptions.stillSize)
  var size: SizeLimit?

  @OptionGroup var compression: QualityOptions

  var quality: Int? { compression.quality }
}

/// The quality of files in lossy formats.
struct QualityOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      The quality of JPEG (default: 85), WebP (80) and AVIF (60), from 1 (smallest) to 100 (best). ffmpeg's -q:v for \
      JPEG runs from 31 to 2 (best): 85 is about 4 there. WebP has ffmpeg's -quality. ffmpeg's -crf for AVIF runs from \
      63 to 0 (best): 60 is 25.
      """, valueName: "q"))
  var quality: Int?

  func validate() throws { try OptionValue.check(quality, of: "--quality", in: 1...100) }

  /// Throws `ValidationError` if the format has no quality.
  func check(_ format: StillFileFormat) throws {
    guard quality != nil, format.still?.defaultQuality == nil else { return }
    throw ValidationError("\(format.rawValue) has no quality: --quality takes jpeg, webp or avif")
  }
}

/// Readers of option values that describe frames.
enum ImageOptions {
  /// `320x180`.
  static func size(_ text: String) throws -> PixelSize {
    let parts = text.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let width = parts[0], let height = parts[1], (1...16384).contains(width),
      (1...16384).contains(height)
    else {
      throw ValidationError("'\(text)' is not a size: width and height from 1 to 16384, such as 320x180")
    }
    return PixelSize(width: width, height: height)
  }

  /// `720` or `720p`.
  static func lines(_ text: String) throws -> Int {
    let digits = text.lowercased().hasSuffix("p") ? text.dropLast() : text[...]
    guard let lines = Int(digits), lines > 0 else {
      throw ValidationError("'\(text)' is not a number of lines: write 720 or 720p")
    }
    return lines
  }

  /// `320x180`, which frames have exactly, `320` or `720p`.
  static func imageSize(_ text: String) throws -> ImageSize {
    if text.lowercased().contains("x") { return .exactly(try size(text), .resizeAspect) }
    return .within(try stillSize(text))
  }

  /// `320x180`, `320` or `720p`.
  static func stillSize(_ text: String) throws -> SizeLimit {
    if text.lowercased().contains("x") { return .box(try size(text)) }
    let isShortSide = text.lowercased().hasSuffix("p")
    guard let length = Int(isShortSide ? text.dropLast() : text[...]), (1...16384).contains(length) else {
      throw ValidationError(
        "'\(text)' is not a size: write it as 320x180, 320 or 720p, with numbers from 1 to 16384")
    }
    return isShortSide ? .shortSide(length) : .square(length)
  }

  /// `64MB`.
  static func budget(_ text: String) throws -> Int {
    try OptionValue.read { () throws(ReelError) in try ByteSize(parsing: text, needsUnit: true).byteCount }
  }

  /// `30kB`, or 0.
  static func byteSize(_ text: String) throws -> Int {
    do { return try ByteSize(parsing: text).byteCount } catch { throw ValidationError(error.description) }
  }

  /// `30kB`.
  static func byteCount(_ text: String) throws -> Int {
    let count = try byteSize(text)
    guard count > 0 else { throw ValidationError("'\(text)' is not a size above 0") }
    return count
  }

  /// `fit`, `fill` or `stretch`.
  static func gravity(_ text: String) throws -> VideoGravity {
    guard let gravity = VideoGravity(rawValue: text) else {
      throw ValidationError("'\(text)' is not a gravity: use fit, fill or stretch")
    }
    return gravity
  }
}

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

  /// The format for the extension of a file's name; nil if it is not that of an image.
  init?(fileName: String) {
    guard let dot = fileName.lastIndex(of: "."), dot != fileName.startIndex else { return nil }
    self.init(argument: fileName[fileName.index(after: dot)...].lowercased())
  }

  /// Nil for decoded samples.
  var still: StillFormat? { StillFormat(rawValue: rawValue) }
  var fileExtension: String { still?.fileExtension ?? rawValue }
}
