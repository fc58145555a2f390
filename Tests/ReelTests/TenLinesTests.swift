import Foundation
import Reel
import ReelTestSupport
import ReelTesting
import Synchronization
import Testing

@Suite("The program of ten lines", .hangLimit) struct TenLinesTests {
  @Test("README.md has the code of TenLines.swift")
  func readme() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
    let root = folder.deletingLastPathComponent().deletingLastPathComponent()
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let code = try String(contentsOf: folder.appending(path: "TenLines.swift"), encoding: .utf8)
    let section = try #require(readme.components(separatedBy: "## From Swift\n").last)
    let blocks = section.components(separatedBy: "```swift\n").dropFirst()
    let example = try #require(blocks.first?.components(separatedBy: "```").first)
    let lines = example.split(separator: "\n")
    #expect(lines.first == "import Reel")
    #expect(lines.count <= 10)
    let body = lines.dropFirst().map { "  \($0)\n" }.joined()
    #expect(code.contains("{\n\(body)}\n"))
    // The version for any pool is the same from the second line on.
    #expect(code.contains("{\n\(body.split(separator: "\n").dropFirst().joined(separator: "\n"))\n}\n"))
  }

  @Test("The program swipes, and ends")
  func runs() async throws {
    try await Origin.use { origin in
      let urls = ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"].map(origin.url)
      let items = Set(Feed(urls: urls).items.map(\.id))
      let drawn = Mutex<[FeedItem.ID?]>([])
      try await tenLines(urls: urls) { frame in drawn.withLock { $0.append(frame.item) } }
      #expect(drawn.withLock { $0 }.allSatisfy { $0.map(items.contains) == true })
      #expect(origin.requestLog.contains { $0.path.contains("dash-number") })
    }
  }

  @Test("The program runs with a fake pool")
  func fake() async throws {
    let pool = FakePlayerPool(frames: [
      .solid(.red, width: 90, height: 160), .solid(.blue, width: 90, height: 160),
    ])
    try await tenLines(pool: pool) { _ in }
    #expect(pool.isPlaying && pool.currentItem?.id == pool.memory.entries[1].item)
    let failure = ReelError(.badMedia, "the item can't be played")
    pool.setFailure(failure, of: try #require(pool.currentItem).id)
    #expect(await reelError { try await tenLines(pool: pool) { _ in } } == failure)
  }

  @Test("The program says why an item can't be shown")
  func fails() async throws {
    try await Origin.use { origin in
      let urls = ["hls-fmp4/master.m3u8", "bad/text.mp4"].map(origin.url)
      let error = await reelError { try await tenLines(urls: urls) { _ in } }
      #expect(error?.location?.hasSuffix("bad/text.mp4") == true)
    }
  }
}
