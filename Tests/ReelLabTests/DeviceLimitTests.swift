import Foundation
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPool
import ReelSources

@Suite("Pools within the limits of a device", .hangLimit)
struct DeviceLimitTests {
  private static let paths = [
    "hls-fmp4/master.m3u8", "media/h264-bframes.mp4", "hls-ts/master.m3u8", "media/annexb.h264",
    "dash-timeline/manifest.mpd", "media/audio-aac.mp4", "media/vp9.webm", "media/h264-moov-last.mp4",
  ]

  private static func feed() throws -> Feed {
    var feed = Feed(name: "feed")
    for path in paths { feed.append(try MediaSource(argument: "http://fixtures.test/\(path)")) { _ in } }
    return feed
  }

  private static func device(
    decoders: Int? = nil, memory: Int? = nil, transfers: Int? = nil, cores: Int = 2
  ) -> DeviceModel {
    DeviceModel(
      name: "test", decoderLimit: decoders, coreCount: cores, memoryLimit: memory, transferLimit: transfers,
      decodeCost: DecodeCost(
        opening: .milliseconds(20), codecs: [.h264: DecodeCost.Frame(nanosecondsPerPixel: 100)],
        others: DecodeCost.Frame(constant: .milliseconds(2))))
  }

  private struct Outcome: Equatable {
    var frames: [String] = []
    var openDecoders = 0
    var highWater = 0
    var times: [Duration] = []
    var waiting: Set<SlotReadiness.Waiting> = []
    var memory: [Int] = []
    var loaded: [Int] = []
    var end = Duration.zero
  }

  /// Swipes at random, and waits after each few swipes until the current item shows a frame.
  private static func walk(
    _ device: DeviceModel, seed: Int, policy: any PreloadPolicy, slots: Int = 4, swipes: Int = 25
  ) async throws -> Outcome {
    let simulation = SimulatedRuntime()
    let fetcher = ThrottledFetcher(FixtureFetcher(), link: .lte, in: simulation)
    var configuration = PoolConfiguration()
    configuration.slotCount = slots
    configuration.policy = policy
    configuration.enter(simulation, device: device)
    let pool = PlayerPool(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    let feed = try feed()
    let outcome = Locked(Outcome())
    try await simulation.run {
      var random = SplitMix(seed: seed)
      var index = 0
      for _ in 0..<swipes {
        let step = random.next(below: 5) == 0 ? random.next(below: feed.items.count) : index + 1
        index = step % feed.items.count
        let began = simulation.now
        pool.show(index, of: FeedSnapshot(feed), phase: .dragEnded)
        if random.next(below: 3) > 0 {
          try await simulation.sleep(for: .milliseconds(random.next(below: 300)))
        }
        pool.show(index, of: FeedSnapshot(feed), phase: .settled)
        let readiness = pool.slotReadiness
        outcome.withLock { $0.waiting.formUnion(readiness.map(\.waiting)) }
        // Some are left before they have shown anything.
        guard random.next(below: 4) > 0 else { continue }
        while pool.currentPlayer?.currentFrame() == nil {
          try #require(simulation.now - began < .seconds(60), "no frame of item \(index)")
          try await simulation.sleep(for: .milliseconds(20))
        }
        let time = simulation.now - began
        outcome.withLock { $0.times.append(time) }
        try await simulation.sleep(for: .milliseconds(random.next(below: 2_500)))
        let (memory, slots) = (pool.memory, pool.slotReadiness)
        outcome.withLock { outcome in
          outcome.memory.append(memory.entries.reduce(0) { $1.item == nil ? $0 : $0 + $1.account.byteCount })
          outcome.loaded.append(slots.count { $0.stage > .notLoaded })
          outcome.waiting.formUnion(slots.map(\.waiting))
        }
      }
    }
    let permits = pool.core.resources.decoders
    pool.close()
    await simulation.runToRest()
    var result = outcome.withLock { $0 }
    result.openDecoders = permits?.openCount ?? 0
    result.highWater = permits?.highWaterCount ?? 0
    result.end = simulation.now
    return result
  }

  @Test(
    "However one swipes, a frame is shown with one decoder or two, and no more are open", arguments: [1, 2],
    0..<8)
  func decoders(limit: Int, seed: Int) async throws {
    let policy = AheadPreload(3, isNextDecoderWarm: seed % 2 == 0)
    let outcome = try await Self.walk(
      Self.device(decoders: limit, cores: 1 + seed % 2), seed: seed, policy: policy)
    #expect(!outcome.times.isEmpty)
    #expect(outcome.highWater == limit)
    #expect(outcome.openDecoders == 0)
    // With two decoders nobody waits for long.
    if limit == 1 { #expect(outcome.waiting.contains(.decoder)) }
  }

  @Test("With all limits the same swipes take the same course")
  func repeatable() async throws {
    let device = Self.device(decoders: 1, memory: 3_000_000, transfers: 1)
    let first = try await Self.walk(device, seed: 3, policy: AdjacentPreload(isNextDecoderWarm: true))
    let second = try await Self.walk(device, seed: 3, policy: AdjacentPreload(isNextDecoderWarm: true))
    #expect(first == second)
  }

  @Test("Preloads keep to the memory limit; the current item does not", arguments: 0..<6)
  func memory(seed: Int) async throws {
    let free = try await Self.walk(Self.device(), seed: seed, policy: AheadPreload(3))
    let most = try #require(free.memory.max())
    for limit in [most * 2, most / 2, most / 8, 1] {
      let outcome = try await Self.walk(Self.device(memory: limit), seed: seed, policy: AheadPreload(3))
      #expect(outcome.times.count == free.times.count)
      for (held, loaded) in zip(outcome.memory, outcome.loaded) {
        #expect(held <= limit || loaded == 1, "\(held) > \(limit) with \(loaded) items")
      }
      if limit < most / 4 { #expect(outcome.waiting.contains(.memory)) }
    }
  }

  @Test("With one transfer at a time all items still come", arguments: 0..<4)
  func transfers(seed: Int) async throws {
    let outcome = try await Self.walk(Self.device(transfers: 1), seed: seed, policy: AdjacentPreload())
    #expect(!outcome.times.isEmpty)
  }

  @Test("Opening a decoder takes a core for its time, and a frame by its codec and pixels")
  func costs() async throws {
    func first(_ cost: DecodeCost) async throws -> Duration {
      let simulation = SimulatedRuntime()
      var configuration = PoolConfiguration()
      configuration.policy = NoPreload()
      configuration.decodingPermits = 1
      configuration.enter(simulation, decodeCost: cost)
      let pool = PlayerPool(
        fetcher: ThrottledFetcher(FixtureFetcher(), link: .lte, in: simulation), configuration: configuration,
        logger: silentLogger)
      let feed = try Self.feed()
      let time = try await simulation.run {
        try await pool.show(0, of: FeedSnapshot(feed), phase: .settled).firstFrame().duration.value
      }
      pool.close()
      await simulation.runToRest()
      return time
    }
    let free = try await first(DecodeCost(frame: .zero))
    let none = DecodeCost.Frame()
    let opening = try await first(DecodeCost(opening: .milliseconds(30), codecs: [:], others: none))
    #expect(opening - free == .milliseconds(30))
    let frame = DecodeCost.Frame(constant: .milliseconds(7))
    let other = try await first(DecodeCost(opening: .zero, codecs: [.vp9: frame], others: none))
    #expect(other == free)
    let flat = try await first(DecodeCost(frame: .milliseconds(7)))
    let own = try await first(DecodeCost(opening: .zero, codecs: [.h264: frame], others: none))
    #expect(own == flat)
    #expect(own >= free + .milliseconds(7))
    let pixels = try await first(
      DecodeCost(opening: .zero, codecs: [.h264: DecodeCost.Frame(nanosecondsPerPixel: 1000)], others: none))
    #expect(pixels > free + .milliseconds(10))
  }
}
