internal import Foundation
public import ReelCore
public import ReelFFmpeg

/// Writes each frame to a file of its own, `STEM-000001.png`, upright and with square pixels. HDR is not tone
/// mapped.
public final class ImageSequenceOutput: FrameOutput {
  public let isExternal = true
  private let directory: String
  private let stem: String
  private let format: ImageFormat
  private let owner: OutputFile.Owner?
  private let state: Locked<State>

  private struct State {
    let writer: ImageFileWriter
    var number: Int
    var isFinished = false
  }

  /// - Parameters:
  ///   - directory: where the files go; made if needed.
  ///   - stem: what their names begin with; without a slash.
  ///   - size: of the files' frames; nil for each frame's own, which may change from one to the next.
  ///   - gravity: how a frame fits `size`.
  ///   - startNumber: the first file's number, in six digits or more.
  ///
  /// Throws `ReelError.cannotCreateOutput` where there is no such folder and it can't be made, `usage` for a stem that
  /// is no name.
  public convenience init(
    directory: String, stem: String, format: ImageFormat = .ppm, size: PixelSize? = nil,
    gravity: VideoGravity = .resizeAspect, startNumber: Int = 1
  ) throws(ReelError) {
    try self.init(
      directory: directory, stem: stem, format: format, size: size, gravity: gravity,
      startNumber: startNumber, owner: nil)
  }

  /// - Parameter owner: Existing files are replaced only if this source wrote them. Nil replaces any file.
  ///
  /// Throws like the other initializer, and `cannotCreateOutput` if the first file may not be replaced.
  package init(
    directory: String, stem: String, format: ImageFormat, size: PixelSize?, gravity: VideoGravity,
    startNumber: Int = 1, owner: OutputFile.Owner?
  ) throws(ReelError) {
    guard !stem.isEmpty, !stem.contains("/"), !stem.contains("\0") else {
      throw ReelError(.usage, "\"\(stem)\" can't begin a file's name")
    }
    do {
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    } catch {
      throw ReelError(.cannotCreateOutput, "the folder can't be made", at: directory)
    }
    if let owner {
      try owner.record.check(format.fileName(stem: stem, number: startNumber), of: owner.source)
    }
    self.owner = owner
    self.directory = directory
    self.stem = stem
    self.format = format
    state = Locked(
      State(writer: ImageFileWriter(format: format, size: size, gravity: gravity), number: startNumber),
      rank: .writer)
  }

  /// The number that the next frame's file gets.
  public var nextNumber: Int { state.withLock { $0.number } }

  /// Throws `ReelError.cannotCreateOutput` or `cannotWriteOutput`, and `unsupported` for a pixel format that can't be
  /// converted; there is no file then.
  public func show(_ frame: borrowing TimedFrame) throws {
    let box = SharedFrame(try frame.clone())
    try state.withLock { state in
      if state.isFinished { throw ReelError(.usage, "an output shows no frames after its end") }
      _ = try state.writer.convert(box.frame)
      let name = format.fileName(stem: stem, number: state.number)
      try state.writer.write(
        to: OutputFile(path: (directory as NSString).appendingPathComponent(name), owner: owner))
      state.number += 1
    }
  }

  /// Every file is whole before: nothing is left to write.
  public func finish() { state.withLock { $0.isFinished = true } }
}
