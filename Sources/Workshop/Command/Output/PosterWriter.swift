import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback

/// Makes the file of a poster.
struct PosterWriter: Sendable {
  /// Where the file of one source goes.
  struct Target: Sendable {
    /// The folder, or `-` for standard output.
    var directory: String
    var names: FrameNames
    var existing: ExistingFiles

    /// The path of a file of this name; `-` for standard output.
    func path(_ name: String) -> String {
      switch directory {
      case "-": "-"
      case ".": name
      default: (directory as NSString).appendingPathComponent(name)
      }
    }
  }

  var format: StillFileFormat
  var size: StillSize?
  /// Nil for the format's default.
  var quality: Int?
  var byteLimit: Int?
  var hdr = StillRenderer.HDRHandling.sdr

  /// Throws `ReelError.cannotCreateOutput` if the file may not be written.
  func check(_ target: Target) throws(ReelError) {
    guard target.directory != "-", let name = target.names.first else { return }
    try target.existing.check(target.path(name))
  }

  /// Writes the file. Throws `ReelError`: `unsupported` if the format can't hold the frame, or `cannotCreateOutput` if
  /// the file would be larger than the limit at any quality.
  func write(
    _ frame: borrowing TimedFrame, to target: Target
  ) throws(ReelError) -> PosterRecord.File {
    var names = target.names
    let path = target.path(names.next(number: 1, time: frame.time))
    guard let still = format.still else {
      let writer = Y4MWriter(to: try open(path, target))
      let size = try writer.write(frame)
      try writer.finish()
      return PosterRecord.File(
        path: path, format: format.rawValue, width: size.width, height: size.height,
        bytes: nil, quality: nil)
    }
    let natural = frame.geometry().output
    let image = try StillRenderer().render(
      frame.decoded, geometry: frame.geometry(target: size?.fitted(natural), gravity: .resize),
      orientation: frame.orientation, hdr: hdr)
    let (bytes, quality) = try encoded(image, as: still, path: path)
    let file = try open(path, target)
    try file.write(bytes)
    try file.commit()
    return PosterRecord.File(
      path: path, format: format.rawValue, width: image.size.width, height: image.size.height,
      bytes: bytes.count, quality: quality)
  }

  // MARK: - Private

  private func open(_ path: String, _ target: Target) throws(ReelError) -> OutputFile {
    if path == "-" { return .standardOutput() }
    // Lists have folders of their own. One without a file is not made.
    try OutputFolder.make(target.directory)
    return try OutputFile(path: path, existing: target.existing)
  }

  private func encoded(
    _ image: Still, as format: StillFormat, path: String
  ) throws(ReelError) -> (bytes: [UInt8], quality: Int?) {
    let wanted = quality ?? format.defaultQuality
    guard let byteLimit else {
      return (try StillEncoder.encode(image, as: format, quality: wanted), wanted)
    }
    guard let made = try StillEncoder.encode(image, as: format, quality: wanted, byteLimit: byteLimit) else {
      throw ReelError(
        .cannotCreateOutput,
        "a \(format.rawValue) of \(image.size) has more than \(byteLimit) bytes at any quality", at: path,
        advice: "choose a smaller --size")
    }
    return made
  }
}
