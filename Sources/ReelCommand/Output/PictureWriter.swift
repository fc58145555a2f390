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
    var format: FramesFormat
    var size: PixelSize?
    var gravity: VideoGravity
    var computesMD5: Bool
    /// The source that the files belong to.
    var owner: OutputFile.Owner
    var toStandardOutput: Bool { directory == "-" }
  }

  private let options: Options
  private let stem: String
  /// For formats with a file for each picture.
  private let files: PictureFileWriter?
  private var index = 0
  private var y4m: Y4MWriter?

  init(options: Options, stem: String) {
    self.options = options
    self.stem = stem
    files = options.format.picture.map {
      PictureFileWriter(format: $0, size: options.size, gravity: options.gravity)
    }
  }

  /// Throws `ReelError.cannotCreateOutput` if the file for the first frame belongs to another source.
  func check() throws(ReelError) {
    guard !options.toStandardOutput else { return }
    let name = options.format.picture?.fileName(stem: stem, number: 1) ?? "\(stem).y4m"
    try options.owner.record.check(name, of: options.owner.source)
  }

  /// Converts and writes a picture; `converted` is how long the conversion took.
  func write(_ picture: borrowing TimedPicture) throws -> (written: WrittenPicture, converted: Duration) {
    index += 1
    let start = ContinuousClock.now
    let md5 = options.computesMD5 ? try picture.frame.md5() : nil
    let path: String
    let size: PixelSize
    let converted: Duration
    if let format = options.format.picture, let files {
      size = try files.convert(picture)
      converted = ContinuousClock.now - start
      path =
        options.toStandardOutput ? "-" : filePath(format.fileName(stem: stem, number: index))
      try files.write(to: openFile(path))
    } else {
      path = options.toStandardOutput ? "-" : filePath("\(stem).y4m")
      let writer = try y4m ?? Y4MWriter(to: openFile(path))
      y4m = writer
      size = try writer.write(picture)
      converted = ContinuousClock.now - start
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

  /// Removes unfinished output. Returns true if that was a file with all frames.
  func abandon() -> Bool {
    defer { y4m = nil }
    return y4m != nil && !options.toStandardOutput
  }

  // MARK: - Private

  private func openFile(_ path: String) throws(ReelError) -> OutputFile {
    options.toStandardOutput ? .standardOutput() : try OutputFile(path: path, owner: options.owner)
  }

  private func filePath(_ name: String) -> String {
    options.directory == "." ? name : (options.directory as NSString).appendingPathComponent(name)
  }
}
