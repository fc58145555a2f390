import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelTestSupport
import Testing

/// Calls `body` with the first pictures of a clip, as the player gets them; 0 for all of them.
func withPictures(
  of path: String, count: Int = 0, _ body: @escaping @Sendable (borrowing TimedPicture) throws -> Void
) async throws {
  let extractor = FrameExtractor(fetcher: makeFetcher(), logger: silentLogger)
  let source = try MediaSource(argument: Fixtures.folder.appending(path: path).path)
  try await extractor.extract(count == 0 ? .count(0) : .count(count), from: source) { try body($0) }
}

/// Shows the first pictures of a clip; 0 for all of them.
func show(_ path: String, count: Int = 0, on output: any FrameOutput) async throws {
  try await withPictures(of: path, count: count) { try output.show($0) }
}

/// A folder of a test's own, removed with it.
final class OutputFolder: Sendable {
  let url = FileManager.default.temporaryDirectory.appending(path: "reel-test-\(UUID().uuidString)")

  init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appending(path: name).path }

  /// All names in it, hidden ones too, in alphabetical order.
  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() }

  func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: url.appending(path: name))) }
}
