import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback

/// Writes the frames of one source.
///
/// Confined to one thread at a time.
final class FrameWriter {
  struct Options: Sendable {
    var directory: String
    var format: StillFileFormat
    var size: PixelSize?
    var gravity: VideoGravity
    var computesMD5: Bool
    var existing: ExistingFiles
    var toStandardOutput: Bool { directory == "-" }
  }

  private let options: Options
  private var names: FrameNames
  /// For formats with one file per frame.
  private let files: ImageFileWriter?
  private var index = 0
  private var y4m: Y4MWriter?

  init(options: Options, names: FrameNames) {
    self.options = options
    self.names = names
    files = options.format.still.map {
      ImageFileWriter(format: $0, size: options.size, gravity: options.gravity)
    }
  }

  /// Throws `ReelError.cannotCreateOutput` if the file for the first frame may not be written.
  func check() throws(ReelError) {
    guard !options.toStandardOutput else { return }
    guard let name = names.first else { return }
    try options.existing.check(filePath(name))
  }

  /// Converts and writes a frame; `converted` is how long the conversion took.
  func write(_ frame: borrowing TimedFrame) throws -> (written: FramesRecord.Frame, converted: Duration) {
    index += 1
    let start = ContinuousClock.now
    let md5 = options.computesMD5 ? try frame.decoded.md5() : nil
    let path: String
    let size: PixelSize
    let converted: Duration
    if let files {
      size = try files.convert(frame)
      converted = ContinuousClock.now - start
      path =
        options.toStandardOutput ? "-" : filePath(names.next(number: index, time: frame.time))
      try files.write(to: openFile(path))
    } else {
      path = options.toStandardOutput ? "-" : filePath(names.next(number: 1, time: frame.time))
      let writer = try y4m ?? Y4MWriter(to: openFile(path))
      y4m = writer
      size = try writer.write(frame)
      converted = ContinuousClock.now - start
    }
    return (
      FramesRecord.Frame(frame, path: path, size: size, md5: md5, keepsSamples: files == nil), converted
    )
  }

  /// Completes a file with several frames.
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
    if options.toStandardOutput { return .standardOutput() }
    // Lists have folders of their own. One without a file is not made.
    if index == 1 { try OutputFolder.make(options.directory) }
    return try OutputFile(path: path, existing: options.existing)
  }

  private func filePath(_ name: String) -> String {
    options.directory == "." ? name : (options.directory as NSString).appendingPathComponent(name)
  }
}
