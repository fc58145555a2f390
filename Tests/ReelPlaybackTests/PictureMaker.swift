import Foundation
import Logging
import ReelCore
import ReelTestSupport

@testable import ReelFFmpeg
@testable import ReelPlayback

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
    let packets = try readPackets("media/\(name)").filter { $0.kind == .video }.map(\.packet)
    let decoder = TrackDecoder(
      PacketList(packets), options: TrackDecoder.Options(name: name, logger: silentLogger))
    guard case .frame(let frame) = try decoder.next(isFirst: true, threads: 1) else {
      throw ReelError(.badMedia, "no picture in \(name)")
    }
    return frame
  }
}
