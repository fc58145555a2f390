import Foundation
import Logging
import Reel
import ReelTesting
import ReelTestSupport
import Testing

// The examples of Docs/Pool.md, word for word.

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
  print(service.endDrag(to: 1))
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
    return (1...count).contains(ahead) ? PreloadTarget(stage: .firstFrame) : .notLoaded
  }
}

@Suite("Docs/Pool.md", .hangLimit)
struct PoolExampleTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

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
