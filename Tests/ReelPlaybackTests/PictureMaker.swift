import Foundation
import Logging
import ReelCore
import ReelPlayback
import ReelTestSupport

@testable import ReelFFmpeg

/// Makes pictures of two sizes with any times.
final class PictureMaker: Sendable {
  private let small: TimedPicture
  private let large: TimedPicture
  let smallByteCount: Int
  let largeByteCount: Int

  init() throws {
    small = try Self.read("odd-420-158x86.mp4")
    large = try Self.read("h264-faststart.mp4")
    smallByteCount = small.frame.byteCount
    largeByteCount = large.frame.byteCount
  }

  func make(_ time: MediaTime, isLarge: Bool = false) throws -> TimedPicture {
    let original = isLarge ? try large.clone() : try small.clone()
    return TimedPicture(
      frame: try original.frame.clone(), time: time, stream: original.stream, frameRate: nil)
  }

  /// What every picture of this maker holds: gone when the maker and all its pictures are.
  var heldByAll: [AnyObject] { [small.stream.parameters, large.stream.parameters] }

  // MARK: - Private

  private static func read(_ name: String) throws -> TimedPicture {
    let path = Fixtures.folder.appending(path: "media/\(name)").path
    let reader = try PictureReader(
      source: FileByteSource(path: path), format: .mp4, options: PictureReader.Options(), name: name,
      logger: silentLogger)
    guard let frame = try reader.firstPicture() else { throw ReelError(.badMedia, "no picture in \(name)") }
    return TimedPicture(frame: frame, time: .zero, stream: reader.stream, frameRate: nil)
  }
}
