import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool
import ReelReading
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("Swipes", .hangLimit)
struct SwipeTests {
  static let paths = [
    "hls-fmp4/master.m3u8", "hls-ts/low/index.m3u8", "media/h264-gops.mp4", "dash-gpac/multirate.mpd",
  ]

  private static func clips() throws -> [StressClip] {
    let all = try StressClip.all()
    return try paths.map { path in try #require(all.first { $0.path == path }) }
  }

  @Test(
    "Between any two steps, the item that is left shows nothing more, and the next one begins at its beginning"
  )
  func everyStep() async throws {
    let clips = try Self.clips()
    var step = 0
    var isOver = false
    while !isOver {
      let stage = try PoolStage(Self.paths)
      try stage.show(0)
      await stage.run(untilStep: step)
      isOver = stage.surface.count >= 2
      let mark = stage.surface.count
      let isHit = try stage.show(1).isHit
      #expect(stage.surface.count == mark + (isHit ? 1 : 0))
      try await stage.run { stage.surface.count >= mark + 3 }
      #expect(Array(stage.shown[mark...].prefix(3)) == Array(clips[1].expected.prefix(3)), "step \(step)")
      try await stage.close()
      step += 3
    }
  }

  /// What the network does not answer while the swipe comes.
  static let held = [
    "master.m3u8", "high/index.m3u8", "high/segment-0.m4s", "audio/index.m3u8", "segment-1.m4s", "",
  ]

  @Test(
    "In each stage of the item, a swipe there and back shows each item from where it was left",
    arguments: held,
    SwipePhase.allCasesForTests)
  func stages(_ held: String, phase: SwipePhase) async throws {
    let clips = try Self.clips()
    let stage = try PoolStage(Self.paths) { !held.isEmpty && $0.hasSuffix(held) }
    try stage.show(0)
    await stage.run(for: .milliseconds(1500))
    let left = stage.shown.last
    let mark = stage.surface.count
    try stage.show(1, phase: phase)
    await stage.run(for: .milliseconds(500))
    let others = stage.shown[mark...].compactMap { clips[1].index(of: $0) }
    #expect(others == Array(others.indices), "\(others)")
    #expect(others.count == stage.surface.count - mark)
    #expect(phase == .settled ? others.count > 10 : others.count == 1, "\(others)")
    let markBack = stage.surface.count
    stage.network.heal()
    let isHit = try stage.show(0).isHit
    if left != nil { #expect(isHit && stage.shown[markBack] == left) }
    try await stage.run { stage.surface.count > markBack + 10 }
    let rest = stage.shown[markBack...].compactMap { clips[0].index(of: $0) }
    #expect(rest == Array((rest[0])..<(rest[0] + rest.count)), "\(rest)")
    try await stage.close()
  }

  @Test(
    "With few decoders or little memory, every swipe ends in the item's frames", arguments: [1, 2],
    [nil, 1, 400_000])
  func limits(decoders: Int, memory: Int?) async throws {
    let clips = try Self.clips()
    let stage = try PoolStage(
      Self.paths,
      configure: {
        $0.maximumOpenDecoders = decoders
        $0.memoryLimit = memory
      })
    var random = SplitMix(seed: 7)
    var index = 0
    for _ in 0..<40 {
      index = (index + 1 + random.next(below: clips.count - 1)) % clips.count
      let mark = stage.surface.count
      try stage.show(index)
      try await stage.run { stage.surface.count > mark }
      await stage.run(for: .milliseconds(random.next(below: 600)))
      let indices = stage.shown[mark...].map { [index] in clips[index].index(of: $0) }
      try #require(indices.allSatisfy { $0 != nil }, "a frame of another item")
      let ledger = stage.pool.memory
      #expect(ledger.byteCount == ledger.entries.reduce(0) { $0 + $1.account.byteCount })
    }
    try await stage.close()
  }

  @Test("A poster comes before the first frame, and none after it")
  func poster() async throws {
    let posters = Locked<[Bool]>([])
    let stage = try PoolStage(
      Self.paths, held: { $0.contains("hls-ts") },
      describe: { $1.poster = URL(string: "http://fixtures.test/posters/poster.jpg") })
    try stage.pool.setSurface(
      CallbackOutput { frame in
        let isPoster = frame.stream.videoCodec == nil
        posters.withLock { $0.append(isPoster) }
      })
    stage.pool.pause()
    try stage.show(1)
    try await stage.run { !posters.withLock { $0.isEmpty } }
    stage.network.heal()
    await stage.run(for: .seconds(5))
    #expect(posters.withLock { $0 } == [true, false])
    stage.pool.close()
    await stage.simulation.runToRest()
  }

  @Test("Each of three feeds goes on at its own place")
  func feeds() async throws {
    let clips = try Self.clips()
    let stage = try PoolStage(Self.paths)
    let feeds = try ["a", "b", "c"].map { name in
      Feed(
        name: name, sources: try Self.paths.map { try MediaSource(argument: "http://fixtures.test/\($0)") })
    }
    let service = PlayerService(pool: stage.pool, feeds: feeds)
    for (name, index) in [("a", 1), ("b", 2), ("c", 3)] {
      service.select(feed: name)
      service.go(to: index)
      await stage.run(for: .milliseconds(300))
    }
    for (name, index) in [("a", 1), ("b", 2), ("c", 3), ("b", 2)] {
      let mark = stage.surface.count
      service.select(feed: name)
      #expect(service.position(in: name) == index)
      try await stage.run { stage.surface.count > mark + 2 }
      let isOfItem = stage.shown[mark...].allSatisfy { clips[index].index(of: $0) != nil }
      #expect(isOfItem, "feed \(name)")
    }
    try await stage.close()
  }
}

extension SwipePhase {
  static let allCasesForTests: [SwipePhase] = [.dragEnded, .settled]
}
