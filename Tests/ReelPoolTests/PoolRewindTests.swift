import Foundation
import ReelCore
import ReelLab
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelPool
import ReelReading

@Suite("Items that have ended and are left", .hangLimit) struct PoolRewindTests {
  static let kinds = [
    "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "dash-timeline/manifest.mpd",
    "dash-ondemand/manifest.mpd", "media/h264-gops.mp4", "media/h264.ts", "media/h264-moov-last.mp4",
  ]
  private static let other = "media/rate-25.mp4"

  /// Wants less than a first frame of its neighbours once the first item was left.
  private struct GivingPolicy: PreloadPolicy {
    let stage: PreloadStage
    var description: String { "giving" }

    func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
      abs(distance) > 1 ? .notLoaded : PreloadTarget(stage: context.currentIndex == 0 ? .buffered : stage)
    }
  }

  /// How often the first item has ended.
  private static func endCount(_ scene: PoolScene) -> Int {
    scene.events.count { if case .player(scene.id(0), .playedToEnd) = $0 { true } else { false } }
  }

  private static func time(_ scene: PoolScene, _ index: Int) -> MediaTime? {
    scene.pool.core.state.withLock { $0.slot(of: scene.id(index)) }?.player.player.currentFrame()?.time
  }

  @Test("Swiping back to one is a hit, and it plays from its start", arguments: kinds)
  func back(path: String) async throws {
    let frames = try await plainFrames(path)
    let scene = try PoolScene([path, Self.other])
    try await scene.rest(at: 0)
    try await scene.playOut()
    // While it is the current item, it stays at its last frame.
    try await scene.rest()
    #expect(Self.time(scene, 0) == frames.last?.time)
    let item = try #require(scene.item(0))
    try scene.show(1, phase: .dragEnded)
    try await scene.until { Self.time(scene, 0) == frames.first?.time }
    try await scene.rest(at: 1)
    let readiness = try #require(scene.readiness(0))
    #expect(readiness.stage == .buffered)
    #expect(readiness.waiting == .atTarget)
    #expect(readiness.bufferedDuration > .milliseconds(500))
    #expect(scene.item(0) === item)
    // Neither manifest nor initialization is asked for again.
    let keys = scene.fetcher.requests.filter { $0.purpose == .manifest }.map(\.url)
    #expect(Set(keys).count == keys.count)
    scene.forgetLines()
    #expect(try scene.show(0) == (.buffered, true))
    #expect(scene.shown == [frames[0]])
    try await scene.until { scene.shown.count > 3 }
    // What was loaded plays at once.
    #expect(scene.shown.starts(with: frames.prefix(3)))
    try await scene.playOut()
    #expect(scene.shown.last == frames.last)
    #expect(Self.endCount(scene) == 2)
    #expect(scene.evicted.isEmpty)
    #expect(scene.readiness(0)?.stage == .buffered)
    try await scene.close()
  }

  @Test("One whose start is still in the buffer fetches nothing")
  func kept() async throws {
    // Its only key frame is the first.
    let scene = try PoolScene([Self.other, "hls-ts/master.m3u8"])
    try await scene.rest(at: 0)
    try await scene.playOut()
    try await scene.rest(at: 1)
    let requests = scene.fetcher.requests.filter { $0.url == scene.url(0) }.count
    try await scene.until { Self.time(scene, 0) == .zero }
    #expect(scene.fetcher.requests.filter { $0.url == scene.url(0) }.count == requests)
    try await scene.close()
  }

  @Test("Only the first frame, if the policy wants no more")
  func firstFrame() async throws {
    let scene = try PoolScene(["hls-fmp4/master.m3u8", Self.other], policy: GivingPolicy(stage: .firstFrame))
    let frames = try await plainFrames("hls-fmp4/master.m3u8")
    try await scene.rest(at: 0)
    try await scene.playOut()
    try await scene.rest(at: 1)
    try await scene.until { Self.time(scene, 0) == frames[0].time }
    try await scene.rest()
    #expect(scene.readiness(0)?.stage == .firstFrame)
    #expect(scene.readiness(0)?.bufferedDuration ?? .zero < .seconds(1.5))
    scene.forgetLines()
    #expect(try scene.show(0) == (.firstFrame, true))
    try await scene.playOut()
    #expect(scene.shown == frames)
    try await scene.close()
  }

  @Test("A policy that wants less gets the memory back, and one that wants nothing the slot")
  func less() async throws {
    for stage in [PreloadStage.notLoaded, .manifest] {
      let scene = try PoolScene(["hls-fmp4/master.m3u8", Self.other], policy: GivingPolicy(stage: stage))
      try await scene.rest(at: 0)
      try await scene.playOut()
      let media = scene.fetcher.requests.count { $0.purpose == .segment }
      try await scene.rest(at: 1)
      #expect(scene.evicted == [scene.id(0)])
      #expect(scene.readiness(0)?.stage == (stage == .notLoaded ? nil : .manifest))
      #expect(scene.fetcher.requests.count { $0.purpose == .segment } == media)
      try await scene.close()
    }
  }

  @Test("Swiping back before its start is loaded: its last frame stays until the first one is there")
  func early() async throws {
    let frames = try await plainFrames("hls-ts/master.m3u8")
    let scene = try PoolScene(["hls-ts/master.m3u8", Self.other])
    try await scene.rest(at: 0)
    try await scene.playOut()
    scene.fetcher.setFault { request, _ in request.url.path.contains("hls-ts") ? .hold : .none }
    try scene.show(1)
    try await scene.until { scene.readiness(0)?.stage == .initialization }
    #expect(scene.readiness(0)?.waiting != .atTarget)
    scene.forgetLines()
    #expect(try scene.show(0, phase: .dragEnded).hasFrame)
    #expect(scene.shown == frames.suffix(1))
    scene.fetcher.setFault { _, _ in .none }
    scene.fetcher.release()
    try await scene.rest(at: 0)
    try await scene.until { scene.shown.contains(frames[0]) }
    try await scene.playOut()
    try await scene.close()
  }

  @Test("In a paused pool, and after a swipe back in the middle of a drag, it waits at its first frame")
  func paused() async throws {
    let frames = try await plainFrames("hls-fmp4/master.m3u8")
    let scene = try PoolScene(["hls-fmp4/master.m3u8", Self.other])
    try await scene.rest(at: 0)
    try await scene.playOut()
    scene.pool.setPlaying(false)
    try await scene.rest()
    #expect(Self.time(scene, 0) == frames.last?.time)
    try await scene.rest(at: 1, phase: .dragEnded)
    try await scene.until { Self.time(scene, 0) == frames[0].time }
    try await scene.rest(at: 0)
    #expect(Self.time(scene, 0) == frames[0].time)
    #expect(scene.pool.currentPlayer?.timeControlStatus.value == .paused)
    scene.pool.setPlaying(true)
    try await scene.playOut()
    #expect(Self.endCount(scene) == 2)
    try await scene.close()
  }

  @Test("One that was left before its end goes on where it was, and a looping one too")
  func middle() async throws {
    for action in [Player.ActionAtItemEnd.pause, .loop, .none] {
      let scene = try PoolScene(
        ["hls-fmp4/master.m3u8", Self.other], configure: { $0.actionAtItemEnd = action })
      try await scene.rest(at: 0)
      if action == .none {
        try await scene.playOut()
      } else {
        try await scene.until { scene.shown.count > 20 }
      }
      try await scene.rest(at: 1)
      let time = try #require(Self.time(scene, 0))
      #expect(time > .zero)
      try await scene.rest(at: 0, phase: .dragEnded)
      #expect(Self.time(scene, 0) == time)
      #expect(Self.endCount(scene) == (action == .none ? 1 : 0))
      try await scene.close()
    }
  }

  @Test("With one decoder, or with little memory, others go first", arguments: [1, 2])
  func limits(decoders: Int) async throws {
    let scene = try PoolScene(
      ["hls-fmp4/master.m3u8", Self.other], configure: { $0.maximumOpenDecoders = decoders })
    let frames = try await plainFrames("hls-fmp4/master.m3u8")
    try await scene.rest(at: 0)
    try await scene.playOut()
    try await scene.rest(at: 1)
    try await scene.playOut()
    try await scene.until { Self.time(scene, 0) == frames[0].time }
    try await scene.close()

    let tight = try PoolScene(
      ["hls-fmp4/master.m3u8", Self.other], configure: { $0.memoryLimit = 1 })
    try await tight.rest(at: 0)
    try await tight.playOut()
    let evictedBefore = tight.evicted.count
    try tight.show(1)
    try await tight.until {
      tight.pool.core.isSteady && tight.evicted.dropFirst(evictedBefore) == [tight.id(0)]
    }
    #expect(Self.time(tight, 0) == nil)
    try await tight.close()
  }

  @Test("The policy sees it as begun, and what it costs is a preload's")
  func situation() async throws {
    let seen = Locked<[PoolSituation]>([])
    struct Watching: PreloadPlanning {
      let seen: Locked<[PoolSituation]>
      var description: String { "watching" }
      func plan(in situation: PoolSituation) -> PreloadPlan {
        seen.withLock { $0.append(situation) }
        return AdjacentPreload().plan(in: situation)
      }
    }
    let scene = try PoolScene(["hls-ts/master.m3u8", Self.other], policy: Watching(seen: seen))
    let rewound = Locked<[Int64]>([])
    scene.pool.setAccountant(
      PoolAccountant(decoded: { _, _ in }, departed: { _, _ in }) { _, departure in
        rewound.withLock { $0.append(departure.fetchedByteCount) }
      })
    try await scene.rest(at: 0)
    try await scene.playOut()
    let fetched = scene.pool.fetchedByteCount(of: scene.id(0))
    seen.withLock { $0 = [] }
    try await scene.rest(at: 1)
    let first = try #require(seen.withLock { $0.first }?[distance: -1])
    #expect(first.stage == .initialization)
    #expect(first.position == .zero && first.bufferedDuration == .zero && first.fetchedByteCount == 0)
    #expect(!first.isLoadedToEnd)
    #expect(rewound.withLock { $0 } == [fetched])
    let state = scene.pool.core.state.withLock { $0 }
    let now = try #require(scene.pool.core.situation(state, index: 1)[distance: -1])
    #expect(now.stage == .buffered)
    #expect(now.bufferedDuration > .seconds(2))
    #expect(now.fetchedByteCount == scene.pool.fetchedByteCount(of: scene.id(0)) - fetched)
    #expect(now.fetchedByteCount > 10_000)
    try await scene.close()
  }
}
