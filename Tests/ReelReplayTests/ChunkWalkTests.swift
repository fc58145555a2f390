import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import ReelReplay
import ReelTestSupport
import Testing

@Suite("Walks by the arithmetic of chunks", .hangLimit)
struct ChunkWalkTests {
  /// Loads the next item before the current one has more than half a second ahead.
  private struct NextFirst: PreloadPolicy {
    var description: String { "next-first" }
    func plan(in situation: PoolSituation) -> PreloadPlan {
      PreloadPlan(
        neighbours: [
          PreloadPlan.Neighbour(
            distance: situation.direction,
            target: PreloadTarget(stage: .buffered, bufferDuration: .milliseconds(500), peakBitRate: 100_000))
        ],
        current: LoadingBounds(forwardBufferDuration: .milliseconds(500), startPeakBitRate: 1))
    }
  }

  /// Items of chunks of 1 s; their rungs have chunks of 25 kB (200 kbit), times their place.
  private func chunks(itemCount: Int, chunkCount: Int = 3, rungCount: Int = 1) -> FeedChunks {
    let rungs = (1...rungCount).map { place in
      ItemChunks.Rung(
        id: "\(place)", bitRate: 200_000 * place, headerByteCount: 1000, headerRequestCount: 2,
        chunks: Array(
          repeating: ItemChunks.Chunk(duration: .seconds(1), byteCount: 25_000 * Int64(place)),
          count: chunkCount))
    }
    return FeedChunks(
      Array(repeating: .success(ItemChunks(manifestByteCount: 100, rungs: rungs)), count: itemCount))
  }

  private func walk(
    _ chunks: FeedChunks, swipes: Int, dwell: String = "fixed:2s", link: String, slots: Int = 2,
    policy: any PreloadPolicy = AdjacentPreload(), seed: UInt64 = 1
  ) throws -> ChunkWalk {
    let urls = (0..<chunks.items.count).compactMap { URL(string: "http://origin/\($0).m3u8") }
    var configuration = PoolConfiguration()
    configuration.slotCount = slots
    configuration.policy = policy
    let settings = WalkSettings(
      feed: "made", itemCount: urls.count, slotCount: slots, policy: policy.description, link: link,
      dwell: dwell, seed: seed, device: "mid")
    return ChunkWalk(
      Feed(name: "made", urls: urls), chunks: chunks,
      plan: try WalkPlan(
        itemCount: urls.count, swipeCount: swipes, dwell: try DwellSpec(parsing: dwell), seed: seed),
      settings: settings, label: "made", configuration: configuration, link: try LinkSpec(parsing: link))
  }

  @Test("Two items over a constant link: a chunk takes 100 ms to be answered and 200 ms to come")
  func constant() throws {
    let report = try walk(chunks(itemCount: 2), swipes: 1, link: "1Mbit/100ms").run()
    #expect(report.duration == .milliseconds(4250))
    #expect(report.swipes.count == 2)
    let (first, second) = (report.swipes[0], report.swipes[1])
    #expect(first.kind == .start)
    #expect(first.timeToFirstFrame == .milliseconds(300))
    #expect(first.timeToSecondFrame == .milliseconds(300))
    #expect(first.waitParts.map(\.stage) == ["segment answer", "segment transfer"])
    #expect(first.waitParts.map(\.duration) == [.milliseconds(100), .milliseconds(200)])
    #expect(first.watched == .seconds(2))
    #expect(first.byteCount == 75_000)
    #expect(first.rung == "1")
    #expect(first.rungBitRate == 200_000)
    #expect(first.rungs == [ShownRung(rung: "1", bitRate: 200_000, duration: .milliseconds(1700))])
    // The first item is there after 900 ms, the second after 1,800 ms.
    #expect(second.time == .milliseconds(2250))
    #expect(second.stage == .buffered)
    #expect(second.timeToFirstFrame == .zero)
    #expect(second.timeToSecondFrame == .zero)
    #expect(second.waitParts.isEmpty)
    #expect(second.loadedByteCount == 75_000)
    #expect(report.totals.stallCount == 0)
    #expect(report.fetchedByteCount == 150_000)
    // 1.3 s of the first item, and the last second of the second one.
    #expect(report.unshownByteCount == 57_500)
    #expect(report.settings.isChunkLevel && report.settings.isVirtual && report.settings.device == nil)
    #expect(report.totals.poolHighWaterByteCount == nil)
  }

  @Test("An item that has ended is at its start again when it is left, and plays from there")
  func rewind() throws {
    struct Watching: PreloadPolicy {
      let seen: Locked<[PoolSituation]>
      var description: String { "watching" }
      func plan(in situation: PoolSituation) -> PreloadPlan {
        seen.withLock { $0.append(situation) }
        return AdjacentPreload().plan(in: situation)
      }
    }
    let seen = Locked<[PoolSituation]>([])
    var walk = try walk(
      chunks(itemCount: 2), swipes: 3, dwell: "fixed:4s", link: "2Mbit/50ms", policy: Watching(seen: seen))
    // To the other item and back.
    #expect(walk.plan.steps.map(\.target) == [1, 0, 1])
    let report = walk.run()
    #expect(report.swipes.dropFirst().allSatisfy { $0.timeToSecondFrame == .zero })
    for swipe in report.swipes.dropFirst() { #expect(swipe.rungs.map(\.duration) == [.seconds(3)]) }
    let left = seen.withLock { $0 }.compactMap { $0.currentIndex == 1 ? $0[distance: -1] : nil }
    #expect(!left.isEmpty)
    #expect(left.allSatisfy { $0.position == .zero && $0.bufferedDuration == .seconds(3) })
    #expect(report.unshownByteCount == 0)
    walk.configuration.policy = NoPreload()
    #expect(walk.run().fetchedByteCount > report.fetchedByteCount)
  }

  @Test("Playback stalls until the next chunk is there")
  func stall() throws {
    let report = try walk(
      chunks(itemCount: 1, chunkCount: 2), swipes: 0, dwell: "fixed:6s", link: "100kbit/0ms"
    ).run()
    let swipe = report.swipes[0]
    #expect(swipe.timeToFirstFrame == .seconds(2))
    #expect(swipe.stallCount == 1)
    #expect(swipe.stallDuration == .seconds(1))
    #expect(swipe.longestStall == .seconds(1))
    #expect(swipe.rungs.map(\.duration) == [.seconds(2)])
    #expect(report.totals.rebufferingRatio == 0.25)
    #expect(report.unshownByteCount == 0)
  }

  @Test("A download goes on when its item is left, and the next item waits for it")
  func abandoned() throws {
    let report = try walk(
      chunks(itemCount: 2), swipes: 1, dwell: "fixed:1s", link: "100kbit/0ms", policy: NoPreload()
    ).run()
    #expect(report.swipes.map(\.timeToFirstFrame) == [nil, nil])
    let swipe = report.swipes[1]
    #expect(swipe.time == .milliseconds(1250))
    #expect(swipe.waitParts.map(\.stage) == ["preparing", "segment transfer"])
    #expect(swipe.waitParts.map(\.duration) == [.milliseconds(750), .milliseconds(250)])
    #expect(report.totals.abandonedSwipeCount == 1)
    #expect(report.totals.secondFrame.all?.p95 == .seconds(1))
    // A chunk of each item, the second one not quite there.
    #expect(report.fetchedByteCount == 50_000)
    #expect(report.unshownByteCount == 50_000)
  }

  @Test("A plan's order, bounds and rungs are kept")
  func plan() throws {
    let report = try walk(
      chunks(itemCount: 2, rungCount: 3), swipes: 1, link: "1Mbit/0ms", policy: NextFirst()
    ).run()
    let (first, second) = (report.swipes[0], report.swipes[1])
    #expect(first.timeToFirstFrame == .milliseconds(200))
    // The lowest rung begins, as bounded; then the highest follows under the player's limit, in 600 ms each. The first of
    // them is asked for at 701 ms, when less than half a second is left.
    #expect(first.rungs.map(\.rung) == ["1", "3"])
    #expect(first.rungs.map(\.duration) == [.seconds(1), .milliseconds(699)])
    #expect(first.stallCount == 1)
    #expect(first.stallDuration == .milliseconds(101))
    // The next item has got its first chunk meanwhile, and no other.
    #expect(second.loadedByteCount == 25_000)
    #expect(second.timeToSecondFrame == .zero)
  }

  @Test("An item without chunks fails, and the others do not")
  func failure() throws {
    var items = chunks(itemCount: 3).items
    items[1] = .failure(ReelError(.server, "404 Not Found", at: "http://origin/1.m3u8"))
    let report = try walk(FeedChunks(items), swipes: 2, link: "1Mbit/0ms").run()
    #expect(report.failedItems.map(\.index) == [1])
    #expect(report.swipes.map(\.itemIndex).contains(1))
    for swipe in report.swipes where swipe.itemIndex == 1 {
      #expect(swipe.error?.contains("404") == true)
      #expect(!swipe.isCounted)
    }
    #expect(report.swipes.filter { $0.itemIndex != 1 }.allSatisfy { $0.error == nil })
  }

  @Test(
    "The same walk gives the same report; its figures hold together",
    arguments: [
      "none", "adjacent", "ahead:4", "bytes:1", "budget:64MB", "media3", "media3:guide", "pdas", "dashlet",
      "adaptive",
    ], [false, true])
  func figures(name: String, adapts: Bool) throws {
    let policy = try PreloadPolicies.parse(name)
    let steps = (0..<20).map { number -> LinkRecording.Step in
      let rate: Int64 = number % 5 == 4 ? 0 : 300_000 * Int64(number % 3 + 1)
      return LinkRecording.Step(start: .seconds(number), bitsPerSecond: rate)
    }
    var walk = try walk(
      chunks(itemCount: 12, chunkCount: 10, rungCount: 3), swipes: 60, dwell: "exp:4s", link: "1Mbit/50ms",
      slots: 4, policy: policy, seed: 7)
    walk.link = LinkSpec(try LinkRecording(steps, period: .seconds(20)))
    walk.configuration.player.adaptsBitRate = adapts
    let report = walk.run()
    #expect(try report.json() == walk.run().json())
    #expect(report.swipes.count == 61)
    #expect(report.fetchedByteCount > 0)
    #expect(report.unshownByteCount >= 0 && report.unshownByteCount <= report.fetchedByteCount)
    for swipe in report.swipes {
      var (waited, shown) = (Duration.zero, Duration.zero)
      for part in swipe.waitParts { waited += part.duration }
      for rung in swipe.rungs { shown += rung.duration }
      let wait: Duration = swipe.timeToFirstFrame ?? (swipe.isPassing ? Duration.zero : swipe.watched)
      // Parts are in whole microseconds.
      #expect(abs(waited.milliseconds - wait.milliseconds) < 0.002)
      #expect(wait <= swipe.watched)
      let second: Duration = swipe.timeToSecondFrame ?? Duration.zero
      let sum: Duration = shown + swipe.stallDuration + second
      #expect(sum <= swipe.watched)
    }
    let text = try report.json()
    #expect(text.contains(#""chunk_level":true"#))
    #expect(!text.contains("decoded_frames"))
    let decoded = try JSONDecoder().decode(WalkReport.self, from: Data(text.utf8))
    #expect(decoded.settings.isChunkLevel)
  }
}
