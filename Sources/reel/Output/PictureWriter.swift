import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback

/// What was written of one picture.
struct WrittenPicture: Sendable {
  let path: String
  let ticks: Int64?
  let timeBase: Rational
  let time: MediaTime
  let size: PixelSize
  let isKey: Bool
  let isDamaged: Bool
  let isHDR: Bool
  let md5: String?
}

/// Writes the pictures of one source.
///
/// Confined to one thread at a time.
final class PictureWriter {
  struct Options: Sendable {
    var directory: String
    var format: PictureFormat
    var size: PixelSize?
    var gravity: VideoGravity
    var computesMD5: Bool
    var toStandardOutput: Bool { directory == "-" }
  }

  private let options: Options
  private let stem: String
  private let converter = FrameConverter()
  /// Used again for pictures of one size.
  private var image = RGBImage.empty
  private var index = 0
  private var y4m: Y4MWriter?

  init(options: Options, stem: String) {
    self.options = options
    self.stem = stem
  }

  /// Converts and writes a picture; `converted` is how long the conversion took.
  func write(_ picture: borrowing TimedPicture) throws -> (written: WrittenPicture, converted: Duration) {
    index += 1
    let start = ContinuousClock.now
    let md5 = options.computesMD5 ? try picture.frame.md5() : nil
    let path: String
    let size: PixelSize
    let converted: Duration
    if options.format == .y4m {
      path = options.toStandardOutput ? "-" : filePath("\(stem).y4m")
      let writer = try y4m ?? Y4MWriter(to: openFile(path))
      y4m = writer
      size = try writer.write(picture)
      converted = ContinuousClock.now - start
    } else {
      try converter.convert(
        picture.frame, geometry: picture.geometry(target: options.size, gravity: options.gravity),
        orientation: picture.orientation, into: &image)
      converted = ContinuousClock.now - start
      size = image.size
      let number = String(format: "%06d", index)
      path = options.toStandardOutput ? "-" : filePath("\(stem)-\(number).\(options.format.rawValue)")
      let file = try openFile(path)
      if options.format == .png {
        try file.write(try PNGEncoder.encode(image))
      } else {
        try file.write(image.ppmHeader)
        try file.write(image.pixels)
      }
      try file.commit()
    }
    let written = WrittenPicture(
      path: path, ticks: picture.frame.presentationTicks, timeBase: picture.stream.timeBase,
      time: picture.time,
      size: size, isKey: picture.frame.isKey, isDamaged: picture.frame.isDamaged,
      isHDR: picture.frame.color.isHDR,
      md5: md5)
    return (written, converted)
  }

  /// Ends what goes on over several pictures.
  func finish() throws {
    try y4m?.finish()
    y4m = nil
  }

  /// Removes what is not whole.
  func abandon() { y4m = nil }

  // MARK: - Private

  private func openFile(_ path: String) throws(ReelError) -> OutputFile {
    options.toStandardOutput ? .standardOutput() : try OutputFile(path: path)
  }

  private func filePath(_ name: String) -> String {
    options.directory == "." ? name : (options.directory as NSString).appendingPathComponent(name)
  }
}
