import Foundation
import Logging
import ReelCore
import ReelTestSupport

@testable import ReelFFmpeg
@testable import ReelReading
import ReelSources

/// Makes frames of two sizes with any times.
final class FrameMaker: Sendable {
  private let small: VideoFrame
  private let large: VideoFrame
  let smallByteCount: Int
  let largeByteCount: Int

  init() throws {
    small = try Self.read("odd-420-158x86.mp4")
    large = try Self.read("h264-faststart.mp4")
    smallByteCount = small.byteCount
    largeByteCount = large.byteCount
  }

  func make(_ time: MediaTime, isLarge: Bool = false) -> VideoFrame {
    let original = isLarge ? large : small
    return VideoFrame(original.decoded, time: time, stream: original.stream, frameRate: nil)
  }

  /// What every frame of this maker holds: gone when the maker and all its frames are.
  var heldByAll: [AnyObject] { [small.stream.parameters, large.stream.parameters] }

  // MARK: - Private

  private static func read(_ name: String) throws -> VideoFrame {
    let packets = try readPackets("media/\(name)").filter { $0.kind == .video }
    let decoder = TrackDecoder(
      PacketList(packets), options: TrackDecoder.Options(name: name, logger: silentLogger))
    guard case .frame(let frame) = try decoder.next(isFirst: true, threads: 1) else {
      throw ReelError(.badMedia, "no frame in \(name)")
    }
    return frame
  }
}
