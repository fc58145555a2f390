import Foundation
import Reel
import Synchronization

/// Swipes from the first item of a feed to the last, in real time, and prints how long each swipe took.
@main
struct SwipeMeter {
  /// A swipe, and how long the viewer waited.
  struct Swipe {
    let name: String
    /// How far the item was loaded when the swipe began.
    let stage: PreloadStage
    /// From the swipe to the first frame; `nil` if none came.
    let firstFrame: Duration?
    /// From the swipe to the second frame: the item moves.
    let secondFrame: Duration?
  }

  static func main() async {
    do {
      let arguments = CommandLine.arguments.dropFirst()
      guard let path = arguments.first, arguments.count <= 2,
        let slotCount = Int(arguments.dropFirst().first ?? "3"), (1...100).contains(slotCount)
      else {
        throw ReelError(.usage, "usage: SwipeMeter FEED [SLOTS]")
      }
      let feed = try FeedFile(path: path).feeds[0]
      let swipes = try await measure(feed, slotCount: slotCount)
      for swipe in swipes {
        print(
          "\(swipe.name): \(swipe.stage), first frame \(text(swipe.firstFrame)), second \(text(swipe.secondFrame))"
        )
      }
      // The feed begins with the first item; the viewer swipes to the others.
      let waits = swipes.dropFirst().compactMap(\.firstFrame).sorted()
      if let longest = waits.last {
        print("\(waits.count) swipes: median \(text(waits[waits.count / 2])), longest \(text(longest))")
      }
      if swipes.contains(where: { $0.firstFrame == nil }) { exit(1) }
    } catch {
      FileHandle.standardError.write(Data("SwipeMeter: \(error)\n".utf8))
      exit(1)
    }
  }

  /// Looks at each item until it moves and the next one is loaded, but no longer than `limit`.
  static func measure(
    _ feed: Feed, slotCount: Int, limit: Duration = .seconds(10)
  ) async throws -> [Swipe] {
    var configuration = PoolConfiguration()
    configuration.slotCount = slotCount
    configuration.policy = AdjacentPreload()
    configuration.showsPosters = false  // Only frames of the videos count.
    let pool = PlayerPool(fetcher: TransportFetcher(), configuration: configuration)
    defer { pool.close() }

    // The surface follows the current item. It is called with each frame when it is due.
    let clock = ContinuousClock()
    let shown = Mutex<[FeedItem.ID: [ContinuousClock.Instant]]>([:])
    try pool.setSurface(
      CallbackOutput { frame in
        guard let id = frame.item else { return }
        shown.withLock { $0[id, default: []].append(clock.now) }
      })
    let service = PlayerService(pool: pool, feeds: [feed])

    var swipes: [Swipe] = []
    for (index, item) in feed.items.enumerated() {
      let began = clock.now
      let handover = service.go(to: index)
      let inHand = clock.now - began  // On a hit, the frame is there now.

      while clock.now - began < limit {
        let slots = pool.readiness.value
        let (current, next) = (slots.first { $0.index == index }, slots.first { $0.index == index + 1 })
        let isMoving = shown.withLock { $0[item.id, default: []].count > 1 }
        let isNextLoaded = next.map { [.atTarget, .failed].contains($0.waiting) } ?? (slotCount == 1)
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

  private static func text(_ duration: Duration?) -> String { duration.map { "\(WaitTime($0))" } ?? "none" }
}
