import Foundation
import ReelCore
import ReelPlayback
import ReelTestSupport
import Testing

@testable import ReelSources

@Suite("Streams whose codec changes in the middle", .hangLimit)
struct ProgramChangeTests {
  private static let parts = ["h264.ts", "hevc.ts", "h264.ts"]

  private static let playlist = """
    #EXTM3U
    #EXT-X-TARGETDURATION:1
    #EXTINF:1,
    0.ts
    #EXTINF:1,
    1.ts
    #EXTINF:1,
    2.ts
    #EXT-X-ENDLIST
    """

  /// Served as one file, or as segments of one playlist without a discontinuity between them.
  @Test("Every frame of each part is shown once, and in order", arguments: ["all.ts", "index.m3u8"])
  func changes(name: String) async throws {
    let files = try Self.parts.map { try Fixtures.bytes("media/\($0)") }
    let expected = try Self.parts.flatMap { try Golden($0).frames.map(\.md5) }
    let fetcher = FixtureFetcher { request, _ in
      let name = request.url.lastPathComponent
      if name == "index.m3u8" { return .bytes(Array(Self.playlist.utf8)) }
      if name == "all.ts" { return .bytes(files.flatMap { $0 }) }
      return .bytes(files[Int(request.url.deletingPathExtension().lastPathComponent) ?? 0])
    }
    let stage = try SimulatedStage(name, fetcher: fetcher)
    stage.begin(rate: .infinity)
    let end = try await stage.end()
    if case .playedToEnd = end {} else { Issue.record("\(end)") }
    let shown = stage.recording.all
    #expect(shown.map(\.md5) == expected)
    let steps = zip(shown, shown.dropFirst()).map { ($1.time - $0.time).seconds }
    #expect(steps.allSatisfy { abs($0 - 1.0 / 30) < 0.002 })
    #expect(stage.item.errorLog.isEmpty)
    #expect(stage.player.statistics.damagedFrameCount == 0)
    try await stage.close()
  }
}
