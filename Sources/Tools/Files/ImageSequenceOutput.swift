internal import Foundation
public import ReelCore
public import ReelPlayback
public import ReelFFmpeg
public import ReelReading

/// An output that writes each frame to its own image file, such as `STEM-000001.png`, upright and with square pixels.
/// HDR is mapped to SDR.
public final class ImageSequenceOutput: FrameOutput {
  /// True.
  public let isExternal = true
  private let directory: String
  private let stem: String
  private let format: ImageFormat
  private let existing: ExistingFiles
  private let state: Locked<State>

  private struct State {
    let writer: ImageFileWriter
    var number: Int
    var isFinished = false
  }

  /// Creates an output. Existing files with the same names are replaced.
  ///
  /// - Parameters:
  ///   - directory: The directory for the files. It is created if needed.
  ///   - stem: The beginning of the files' names, without a slash.
  ///   - format: The format of the files.
  ///   - size: The size of all images. Nil for each frame's own upright size, which may change between frames.
  ///   - gravity: How a frame fits into `size`.
  ///   - startNumber: The number of the first file. Names have at least six digits.
  ///
  /// Throws `ReelError.cannotCreateOutput` if the directory does not exist and can't be created, and `usage` if `stem`
  /// is empty or contains a slash or a null character.
  public convenience init(
    directory: String, stem: String, format: ImageFormat = .ppm, size: PixelSize? = nil,
    gravity: VideoGravity = .resizeAspect, startNumber: Int = 1
  ) throws(ReelError) {
    try self.init(
      directory: directory, stem: stem, format: format, size: size.map { .exactly($0, gravity) },
      startNumber: startNumber, existing: .replaced)
  }

  /// - Parameter existing: The treatment of existing files with the same names.
  ///
  /// Throws like the other initializer, and `cannotCreateOutput` if the first file may not be written.
  package init(
    directory: String, stem: String, format: ImageFormat, size: ImageSize?, startNumber: Int = 1,
    existing: ExistingFiles
  ) throws(ReelError) {
    guard !stem.isEmpty, !stem.contains("/"), !stem.contains("\0") else {
      throw ReelError(.usage, "\"\(stem)\" can't start a file name")
    }
    do {
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    } catch {
      throw ReelError(.cannotCreateOutput, "the folder can't be created", at: directory)
    }
    let first = format.still.fileName(stem: stem, number: startNumber)
    try existing.check((directory as NSString).appendingPathComponent(first))
    self.existing = existing
    self.directory = directory
    self.stem = stem
    self.format = format
    state = Locked(
      State(writer: ImageFileWriter(format: format.still, size: size), number: startNumber),
      rank: .transfer)
  }

  /// The number of the next frame's file.
  package var nextNumber: Int { state.withLock { $0.number } }

  /// Writes a frame to the next file.
  ///
  /// Throws `ReelError.cannotCreateOutput` or `cannotWriteOutput`, `unsupported` if the pixel format can't be
  /// converted, and `usage` after ``finish()``. The frame then has no file.
  public func show(_ frame: VideoFrame) throws {
    try state.withLock { state in
      if state.isFinished { throw ReelError(.usage, "the output has ended and can't show frames") }
      _ = try state.writer.convert(frame)
      let name = format.still.fileName(stem: stem, number: state.number)
      try state.writer.write(
        to: OutputFile(path: (directory as NSString).appendingPathComponent(name), existing: existing))
      state.number += 1
    }
  }

  /// Ends the output. All files are already complete.
  public func finish() { state.withLock { $0.isFinished = true } }
}

/// The size of the images of frames.
package enum ImageSize: Sendable, Hashable {
  /// All images are so large; the gravity says how a frame fits.
  case exactly(PixelSize, VideoGravity)
  /// Frames keep their aspect ratio, and are never enlarged.
  case within(SizeLimit)
}

/// Converts decoded frames to upright RGB images with square pixels, HDR to SDR, and writes them to files.
///
/// Confined to one thread at a time.
package final class ImageFileWriter {
  private let format: StillFormat
  private let quality: Int?
  private let size: ImageSize?
  private let renderer = StillRenderer()
  /// Reused for frames of the same size.
  private var image = RGBImage.empty

  /// - Parameters:
  ///  - quality: From 1 to 100, of formats that have one; nil for the format's default.
  ///  - size: The size of the images; nil for each frame's own.
  package init(format: StillFormat, quality: Int? = nil, size: ImageSize?) {
    self.format = format
    self.quality = quality
    self.size = size
  }

  /// Converts a frame for `write(to:)`, and returns its size. Throws `ReelError.unsupported` for a pixel format
  /// that can't be converted.
  package func convert(_ frame: VideoFrame) throws(ReelError) -> PixelSize {
    try renderer.convert(
      frame.decoded, geometry: geometry(of: frame), orientation: frame.orientation, into: &image)
    return image.size
  }

  private func geometry(of frame: VideoFrame) -> FrameGeometry {
    switch size {
    case nil: frame.geometry(target: nil, gravity: .resize)
    case .exactly(let size, let gravity): frame.geometry(target: size, gravity: gravity)
    case .within(let limit):
      frame.geometry(target: limit.fitted(frame.presentationSize), gravity: .resize)
    }
  }

  /// Writes the last converted frame and gives the file its name. Throws `ReelError.cannotWriteOutput` or
  /// `cannotCreateOutput`.
  package func write(to file: OutputFile) throws(ReelError) {
    switch format {
    case .png: try file.write(try PNGEncoder.encode(image))
    case .ppm:
      try file.write(image.ppmHeader)
      try file.write(image.pixels)
    case .jpeg, .webp, .avif:
      try file.write(try StillEncoder.encode(Still(image), as: format, quality: quality))
    }
    try file.commit()
  }
}

/// The format of an image file. The raw value is the file's extension.
public enum ImageFormat: String, Sendable, Hashable, CaseIterable {
  /// Binary portable pixmap (P6), 8-bit RGB.
  case ppm
  /// PNG (ISO/IEC 15948), 8-bit RGB.
  case png

  package var still: StillFormat {
    switch self {
    case .ppm: .ppm
    case .png: .png
    }
  }
}

extension StillFormat {
  /// Returns the name of a file of the series: `STEM-000001.png`.
  package func fileName(stem: String, number: Int) -> String {
    "\(stem)-\(String(format: "%06d", number)).\(fileExtension)"
  }
}
