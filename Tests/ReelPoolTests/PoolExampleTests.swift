import Foundation
import Logging
import Reel
import ReelLab
import ReelTesting
import ReelTestSupport
import Synchronization
import Testing

// The examples of Docs/Pool.md, word for word.

/// A swipe in a feed, and how long the viewer waited after it.
struct Swipe: Sendable {
  let name: String
  /// How far the item was loaded.
  let stage: PreloadStage
  /// From the call to the first frame: in the handover on a hit, else on the surface.
  let firstFrame: Duration?
  /// From the call to the second frame on the surface.
  let secondFrame: Duration?
}

/// Swipes from the first item of `feed` to the last. Watches each until it plays and the next one is loaded, but no longer
/// than `limit`.
func measureSwipes(over feed: Feed, limit: Duration = .seconds(10)) async throws -> [Swipe] {
  let logger = Logger(label: "example")
  var configuration = PoolConfiguration()
  configuration.slotCount = 3
  configuration.policy = AdjacentPreload()
  configuration.showsPosters = false  // The surface gets frames of the videos only.
  let pool = PlayerPool(
    fetcher: TransportFetcher(logger: logger), configuration: configuration, logger: logger)
  defer { pool.close() }

  // The surface follows the current item. It is called with each frame as it is due.
  let clock = SystemMonotonicClock()
  let shown = Mutex<[FeedItem.ID: [Duration]]>([:])
  try pool.setSurface(
    CallbackOutput { [weak pool] _ in
      guard let id = pool?.surfaceItem else { return }
      shown.withLock { $0[id, default: []].append(clock.now) }
    })
  let service = PlayerService(pool: pool, feeds: [feed])

  var swipes: [Swipe] = []
  for (index, item) in feed.items.enumerated() {
    let began = clock.now
    let handover = service.go(to: index)
    let inHand = clock.now - began  // On a hit, `handover.frame` has the frame now.

    while clock.now - began < limit {
      let slots = pool.slotReadiness
      let (current, next) = (slots.first { $0.index == index }, slots.first { $0.index == index + 1 })
      let isMoving = shown.withLock { $0[item.id, default: []].count > 1 }
      let isNextLoaded = next.map { [.atTarget, .failed].contains($0.waiting) } ?? false
      if isMoving || current?.waiting == .failed, isNextLoaded || item == feed.items.last { break }
      try await clock.sleep(for: .milliseconds(20))
    }
    let times = shown.withLock { $0[item.id, default: []].map { $0 - began } }
    swipes.append(
      Swipe(
        name: item.name, stage: handover.stage, firstFrame: handover.isHit ? inHand : times.first,
        secondFrame: times.dropFirst().first))
  }
  return swipes
}

/// Prints the swipes through the first feed of a feed file, and their percentiles.
func printSwipes(throughFeedAt path: String) async throws {
  let swipes = try await measureSwipes(over: try FeedFile(path: path).feeds[0])
  for swipe in swipes {
    let times = [swipe.firstFrame, swipe.secondFrame].map { $0.map { "\(WaitTime($0))" } ?? "-" }
    print("\(swipe.name): \(swipe.stage), first frame \(times[0]), second frame \(times[1])")
  }
  if let hits = LatencySummary(swipes.filter { $0.stage >= .firstFrame }.compactMap(\.firstFrame)) {
    let times = [hits.p50, hits.p95, hits.p99, hits.max].map { WaitTime($0) }
    print("\(hits.count) hits: p50 \(times[0]), p95 \(times[1]), p99 \(times[2]), longest \(times[3])")
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
  print(service.beginSwipe(to: 1))
  service.settle()

  // It keeps playing in a separate window while the viewer switches feeds. The first feed continues at its position.
  let pinned = try pool.startPictureInPicture(to: window)
  service.select(feed: feeds[1].name)
  service.select(feed: feeds[0].name)
  service.next()
  pinned.stop()
  for entry in pool.memory.entries { print("\(entry.item?.source ?? "-"): \(entry.account.byteCount) bytes") }
}

@Suite("Docs/Pool.md", .hangLimit)
struct PoolExampleTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test(
    "The Swift examples in Docs/Pool.md are the code in this file",
    arguments: [["func measureSwipes", "func printSwipes"], ["func browse"]])
  func pageHoldsThisCode(functions: [String]) throws {
    let page = try String(contentsOf: Self.root.appending(path: "Docs/Pool.md"), encoding: .utf8)
    let code = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let blocks = page.components(separatedBy: "```swift\n").dropFirst().compactMap {
      $0.components(separatedBy: "```").first
    }
    let example = try #require(blocks.first { $0.contains(functions[0]) })
    let lines = example.split(separator: "\n", omittingEmptySubsequences: false)
    let imports = lines.prefix { !$0.isEmpty }
    #expect(imports.contains("import Reel") && imports.allSatisfy { $0.hasPrefix("import ") })
    #expect(imports.allSatisfy { "\n\(code)".contains("\n\($0)\n") })
    // The file imports what the tests need too, so that the rest is compared apart from the imports.
    let body = lines.dropFirst(imports.count + 1).joined(separator: "\n")
    #expect(functions.allSatisfy(body.contains))
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

  @Test("The Swift example finds what was preloaded, and waits for what was not")
  func measures() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "reel-readme-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let origin = try await Origin.start(
      Origin.Configuration(directory: Self.root.appending(path: "Fixtures")))
    let items = ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8", "missing.mp4"]
    let path = folder.appending(path: "feed.txt").path
    try items.map { origin.url($0).absoluteString }.joined(separator: "\n").write(
      toFile: path, atomically: true, encoding: .utf8)
    let result: Result<[Swipe], any Error>
    do {
      result = .success(
        try await measureSwipes(over: try FeedFile(path: path).feeds[0], limit: HangLimit.duration))
    } catch {
      result = .failure(error)
    }
    await origin.stop()
    let swipes = try result.get()
    try #require(swipes.map(\.name) == ["hls-fmp4", "dash-number", "hls-ts", "missing"])
    // Nothing is there at the beginning; then each was loaded while the one before was looked at.
    #expect(swipes.map { $0.stage >= .firstFrame } == [false, true, true, false])
    for swipe in swipes.dropLast() {
      let (first, secondFrame) = (try #require(swipe.firstFrame), try #require(swipe.secondFrame))
      // Two threads measure them: on a busy machine the second may be known first.
      #expect(first > .zero && secondFrame > .zero)
    }
    #expect(swipes[3].firstFrame == nil && swipes[3].secondFrame == nil)
  }
}
