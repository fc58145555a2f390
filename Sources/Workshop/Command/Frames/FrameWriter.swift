import Dispatch
import Foundation
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelPlayback

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

/// The names of the files of one source.
struct FrameNames: Sendable {
  /// The name of the first file; nil if it is known only with the frame.
  let first: String?
  /// Returns a name for the number of the frame, counted from 1, and its time in seconds. `isTaken` is true
  /// if an earlier frame has the name without a number.
  private let name: @Sendable (_ number: Int, _ time: Double, _ isTaken: Bool) -> String
  /// The names so far, if they are made from times.
  private var taken: Set<String> = []
  private let usesTime: Bool

  /// `STEM-000001.png`, or `STEM.y4m`.
  init(stem: String, format: StillFileFormat) {
    let name: @Sendable (Int) -> String = { number in
      format.still?.fileName(stem: stem, number: number) ?? "\(stem).\(format.fileExtension)"
    }
    first = name(1)
    self.name = { number, _, _ in name(number) }
    usesTime = false
  }

  /// One file with this name.
  init(_ name: String) {
    first = name
    self.name = { _, _, _ in name }
    usesTime = false
  }

  /// - Parameters:
  ///   - first: The name of the first file; nil if it is known only with the frame.
  ///   - usesTime: Whether names are made from times.
  ///   - name: Returns the name of a frame's file, from its number, its time in seconds, and whether an
  ///     earlier frame has the name without a number.
  init(
    first: String?, usesTime: Bool,
    name: @escaping @Sendable (_ number: Int, _ time: Double, _ isTaken: Bool) -> String
  ) {
    self.first = first
    self.usesTime = usesTime
    self.name = name
  }

  /// Returns the name of the next frame's file.
  mutating func next(number: Int, time: MediaTime) -> String {
    let plain = name(number, time.seconds, false)
    guard usesTime else { return plain }
    return taken.insert(plain).inserted ? plain : name(number, time.seconds, true)
  }
}

/// Names for the files of several sources, made distinct if two are equal.
enum OutputNames {
  /// Returns one stem for each source, in order. Stems differ by more than letter case or Unicode
  /// normalization, because some file systems treat such names as the same.
  static func stems(of sources: [MediaSource]) -> [String] {
    var used: Set<String> = []
    return sources.map { source in
      let stem = sanitized(source.stem)
      var candidate = stem
      var number = 2
      while !used.insert(candidate.decomposedStringWithCanonicalMapping.lowercased()).inserted {
        candidate = "\(stem)_\(number)"
        number += 1
      }
      return candidate
    }
  }

  /// The maximum length of a stem in bytes. With a number, an extension and the parts of a temporary name, it
  /// stays within the 255 bytes that file systems allow.
  private static let longestStem = 200

  /// Replaces characters that some file systems reject.
  private static func sanitized(_ name: String) -> String {
    var text = ""
    for character in name.prefix(150) {
      let kept = character == "/" || character.unicodeScalars.contains(where: \.isControl) ? "_" : character
      guard text.utf8.count + kept.utf8.count <= longestStem else { break }
      text.append(kept)
    }
    return text.isEmpty || text == "." || text == ".." ? "source" : text
  }
}
