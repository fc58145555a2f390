import Dispatch
import Foundation
import ReelCore
import ReelFiles
import ReelReading

/// Writes the frames of one source.
///
/// Confined to one thread at a time.
final class FrameWriter {
  private let place: OutputPlace
  private let computesMD5: Bool
  private var names: FrameNames
  /// The writer for formats with one file per frame.
  private let files: ImageFileWriter?
  private var index = 0
  private var y4m: Y4MWriter?

  init(
    to place: OutputPlace, _ names: FrameNames, as format: StillFileFormat, quality: Int?,
    size: ImageSize?, computesMD5: Bool
  ) {
    (self.place, self.names, self.computesMD5) = (place, names, computesMD5)
    files = format.still.map {
      ImageFileWriter(format: $0, quality: quality, size: size)
    }
  }

  /// Throws `ReelError.cannotCreateOutput` if the file for the first frame may not be written.
  func check() throws(ReelError) { try place.check(names.first) }

  /// Converts and writes a frame; `converted` is the duration of the conversion.
  func write(_ frame: VideoFrame) throws -> (written: FramesRecord.Frame, converted: Duration) {
    index += 1
    let start = ContinuousClock.now
    let md5 = computesMD5 ? try frame.md5() : nil
    let name: String
    let size: PixelSize
    let converted: Duration
    if let files {
      size = try files.convert(frame)
      converted = ContinuousClock.now - start
      name = names.next(number: index, time: frame.time)
      try files.write(to: place.open(name))
    } else {
      name = names.next(number: 1, time: frame.time)
      let writer = try y4m ?? Y4MWriter(to: place.open(name))
      y4m = writer
      size = try writer.write(frame)
      converted = ContinuousClock.now - start
    }
    return (
      FramesRecord.Frame(
        frame, path: place.path(name), size: size, md5: md5, keepsSamples: files == nil), converted
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
    return y4m != nil && place.directory != "-"
  }
}

/// Converts and writes frames on its own thread while the next ones are decoded. Only a few frames wait.
final class FramePipeline: Sendable {
  private let queue = DispatchQueue(label: "reel.write")
  private let places = DispatchSemaphore(value: 4)
  private let failure = Locked<(any Error)?>(nil)
  private let process: @Sendable (VideoFrame) throws -> Void

  /// - Parameter process: Called with each frame in order.
  init(process: @escaping @Sendable (VideoFrame) throws -> Void) { self.process = process }

  /// Passes the frame on. Throws the error of an earlier one.
  func submit(_ frame: VideoFrame) throws {
    places.wait()
    if let error = failure.withLock({ $0 }) {
      places.signal()
      throw error
    }
    queue.async { [self] in
      defer { places.signal() }
      guard failure.withLock({ $0 == nil }) else { return }
      do { try process(frame) } catch { failure.withLock { $0 = error } }
    }
  }

  /// Waits until all frames are written. Throws the first error.
  func drain() async throws {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume() }
    }
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
