import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelTestSupport
import Testing

/// Calls `body` with the first frames of a clip, as the player gets them; 0 for all of them.
func withFrames(
  of path: String, count: Int = 0, _ body: @escaping @Sendable (borrowing TimedFrame) throws -> Void
) async throws {
  let extractor = FrameExtractor(fetcher: makeFetcher(), logger: silentLogger)
  let source = try MediaSource(argument: Fixtures.folder.appending(path: path).path)
  try await extractor.extract(count == 0 ? .count(0) : .count(count), from: source) { try body($0) }
}

/// Shows the first frames of a clip; 0 for all of them.
///
/// - Parameter start: Added to the output times of the frames.
func show(
  _ path: String, count: Int = 0, on output: any FrameOutput, from start: MediaTime = .zero
) async throws {
  try await withFrames(of: path, count: count) { frame in
    var placed = try frame.clone()
    placed.outputTime = frame.time + start
    try output.show(placed)
  }
}
