import Foundation
import Logging
import Reel
import ReelTesting
import ReelTestSupport
import Testing

// The examples of Docs/Pool.md, word for word.

/// Swipes through a feed, and prints the frame on show after each swipe and how long the viewer waited for it.
func printSwipes(through feed: Feed, watching length: Duration = .seconds(3)) async throws {
  let pool = PlayerPool(feed: feed)
  defer { pool.close() }
  pool.play()
  for index in feed.items.indices.dropFirst() {
    try await Task.sleep(for: length)
    print(try await pool.show(index).firstFrame())
  }
}

/// Swipes, opens picture in picture and switches feeds, over one pool.
func browse(_ feeds: [Feed], surface: any FrameOutput, window: any FrameOutput) async throws {
  let pool = PlayerPool(fetcher: TransportFetcher())
  defer { pool.close() }
  try pool.setSurface(surface)
  let service = PlayerService(pool: pool, feeds: feeds, failureRule: .skip)
  service.playFirst()

  // Observed: how ready each slot is, whenever that changes; here until the next item waits for its swipe.
  for await slots in pool.readiness.values {
    for slot in slots where slot.item != nil {
      print("slot \(slot.slot): \(slot.stage), \(slot.bufferedDuration) buffered, \(slot.waiting)")
    }
    if slots.contains(where: { $0.index == 1 && [.atTarget, .failed].contains($0.waiting) }) { break }
  }

  // When the drag ends, the frame is on the surface and in the handover. When the swipe has settled, it plays.
  if let handover = service.beginSwipe(to: 1) { print(handover) }
  service.settle()

  // It keeps playing in a separate window while the viewer switches feeds. The first feed continues at its position.
  let pinned = try pool.startPictureInPicture(to: window)
  service.select(feed: feeds[1].name)
  service.select(feed: feeds[0].name)
  service.next()
  pinned.stop()
  for entry in pool.memory.entries { print("\(entry.item?.source ?? "-"): \(entry.account.byteCount) bytes") }
}

/// Loads the next items up to their first frames, and nothing behind the viewer.
struct AheadOnly: PreloadPolicy {
  let count: Int
  var description: String { "ahead-only:\(count)" }

  func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    let ahead = distance * context.direction
    return (1...count).contains(ahead) ? PreloadTarget(stage: .firstFrame) : .none
  }
}

@Suite("Docs/Pool.md", .hangLimit)
struct PoolExampleTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test(
    "The Swift examples in Docs/Pool.md are the code in this file",
    arguments: ["func printSwipes", "func browse", "struct AheadOnly"])
  func pageHoldsThisCode(function: String) throws {
    let page = try String(contentsOf: Self.root.appending(path: "Docs/Pool.md"), encoding: .utf8)
    let code = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let blocks = page.components(separatedBy: "```swift\n").dropFirst().compactMap {
      $0.components(separatedBy: "```").first
    }
    let example = try #require(blocks.first { $0.contains(function) })
    let lines = example.split(separator: "\n", omittingEmptySubsequences: false)
    let imports = lines.prefix { !$0.isEmpty }
    #expect(imports.contains("import Reel") && imports.allSatisfy { $0.hasPrefix("import ") })
    #expect(imports.allSatisfy { "\n\(code)".contains("\n\($0)\n") })
    // The file imports what the tests need too, so that the rest is compared apart from the imports.
    let body = lines.dropFirst(imports.count + 1).joined(separator: "\n")
    #expect(code.contains(body))
  }

  @Test("The Swift example of several feeds shows frames on the surface and in the window")
  func browses() async throws {
    let origin = try await Origin.start(
      Origin.Configuration(directory: Self.root.appending(path: "Fixtures")))
    let sources = try ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"].map {
      try MediaSource(argument: origin.url($0).absoluteString)
    }
    let (surface, window) = (NullOutput(), NullOutput())
    let feeds = ["recommended", "following"].map { Feed(name: $0, sources: sources) }
    let result: Result<Void, any Error>
    do { result = .success(try await browse(feeds, surface: surface, window: window)) } catch {
      result = .failure(error)
    }
    await origin.stop()
    try result.get()
    #expect(surface.frameCount > 1)
    #expect(window.frameCount > 0)
  }

  @Test("The Swift example swipes to the end, and throws the error of an item that can't be played")
  func measures() async throws {
    try await Origin.use { origin in
      let urls = ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"].map(origin.url)
      try await printSwipes(through: Feed(urls: urls), watching: .milliseconds(1))
      let missing = Feed(urls: urls + [origin.url("missing.mp4")])
      let error = await reelError { try await printSwipes(through: missing, watching: .milliseconds(1)) }
      #expect(error?.status == 404)
    }
  }

  @Test("A pool with a policy of its own preloads what the policy asks for")
  func policy() async throws {
    try await Origin.use { origin in
      let names = ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"]
      var configuration = PoolConfiguration()
      configuration.policy = AheadOnly(count: 1)
      let pool = PlayerPool(feed: Feed(urls: names.map(origin.url)), configuration: configuration)
      try await pool.ready(1)
      #expect(pool.slotReadiness.compactMap(\.index).sorted() == [0, 1])
      pool.close()
    }
  }
}
