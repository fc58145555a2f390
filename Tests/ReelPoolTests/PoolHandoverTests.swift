import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelPool
import ReelReading

/// What a preload gives when it becomes the current item.
@Suite("A swipe to a preload", .hangLimit) struct PoolHandoverTests {
  static let paths = [
    "hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-timeline/manifest.mpd", "hls-aes128/index.m3u8",
    "media/h264-bframes.mp4", "media/h264-moov-last.mp4", "media/h264-fragmented.mp4", "media/h264.mkv",
    "media/hevc-gops.mp4", "media/h264-open-gop.ts", "media/h264-one-frame.mp4",
  ]
  static let other = "media/portrait-90x160.mp4"

  @Test(
    "Shows every frame once, fetches no byte twice, and decodes little again", arguments: paths,
    PoolScene.Runtime.allCases)
  func becomesCurrent(_ path: String, on runtime: PoolScene.Runtime) async throws {
    for isNext in [true, false] { try await becomesCurrent(path, on: runtime, isNext: isNext) }
  }

  private func becomesCurrent(_ path: String, on runtime: PoolScene.Runtime, isNext: Bool) async throws {
    let expected = try await plainFrames(path)
    // The one that is next keeps its decoder open, the one before does not.
    let scene = try PoolScene(isNext ? [Self.other, path] : [path, Self.other], runtime: runtime)
    let index = isNext ? 1 : 0
    try await scene.rest(at: 1 - index)
    let preload = try #require(scene.item(index))
    let decoded = scene.pool.core.state.withLock { $0.slots[index] }.player.player.statistics
    #expect(decoded.shownFrameCount == 1)
    scene.pool.setPlaying(false)
    try await scene.until { scene.pool.core.isSteady }
    scene.forgetLines()

    let found = try scene.show(index)
    #expect(found.stage == .buffered)
    #expect(found.hasFrame)
    // Within the call.
    #expect(scene.lines == [.detached(1 - index), .attached(index), .frame(expected[0])])
    #expect(scene.item(index) === preload)
    try await scene.until { scene.pool.core.isSteady }
    try await scene.playOut()
    #expect(scene.shown == expected)
    #expect(Set(scene.fetcher.keys).count == scene.fetcher.keys.count)
    let statistics = try #require(scene.pool.currentPlayer?.statistics)
    #expect(statistics.droppedFrameCount == 0)
    // Cold: the key frame, and what was decoded to get to its frame.
    #expect(statistics.repeatedFrameCount <= (isNext ? 0 : 1))
    #expect(statistics.decodedFrameCount == expected.count + statistics.repeatedFrameCount)
    try await scene.close()
  }

  static let firstFramePaths =
    Fixtures.names(in: "transport").map { "transport/\($0)" }
    + Fixtures.names(in: "media").filter { !$0.hasPrefix("audio-") }.map { "media/\($0)" } + paths

  @Test("Shows the same first frame after a preload to any stage", arguments: Set(firstFramePaths).sorted())
  func firstFrame(_ path: String) async throws {
    let expected = try #require(try await plainFrames(path).first)
    for stage in [.notLoaded] + PreloadStage.ofPlayers {
      let scene = try PoolScene([Self.other, path], policy: StagePreload(stage: stage))
      try scene.show(0)
      try await scene.until {
        scene.pool.core.isSteady
          && (stage == .notLoaded || scene.readiness(1).map { $0.stage >= stage } == true)
      }
      try scene.show(1)
      let shown = { @Sendable in
        scene.lines.drop { $0 != .attached(1) }.compactMap { line in
          if case .frame(let shown) = line { shown } else { nil }
        }
      }
      try await scene.until { !shown().isEmpty }
      #expect(shown().first == expected, "after \(stage)")
      try await scene.close()
    }
  }

  /// Loads the neighbours up to a stage.
  private struct StagePreload: PreloadPolicy {
    let stage: PreloadStage
    var description: String { "\(stage)" }

    func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { PreloadTarget(stage: stage) }
  }

  @Test("An item that is left and gone back to goes on where it was", arguments: paths.prefix(5))
  func back(_ path: String) async throws {
    let expected = try await plainFrames(path)
    let scene = try PoolScene([path, Self.other])
    // However late its player is told: the fifth frame is the last one that it shows.
    scene.setOnFrame { scene in if scene.shown.count == 5 { try scene.show(1) } }
    try scene.show(0)
    try await scene.until { scene.shown.count >= 6 }
    scene.setOnFrame(nil)
    try await scene.rest()
    let last = try #require(scene.shown.dropFirst(4).first.flatMap(expected.firstIndex))
    let time = scene.pool.core.state.withLock { $0.slots[0] }.player.player.currentFrame()?.time
    #expect(time == expected[last].time)
    scene.pool.setPlaying(false)
    scene.forgetLines()
    try scene.show(0)
    // A frame of the other item may have come before the swipe.
    let lines = { Array(scene.lines.drop { $0 != .detached(1) }) }
    #expect(lines() == [.detached(1), .attached(0), .frame(expected[last])])
    try await scene.until { scene.pool.core.isSteady }
    try await scene.playOut()
    #expect(lines().dropFirst(2) == expected[last...].map { .frame($0) }[...])
    #expect(Set(scene.fetcher.keys).count == scene.fetcher.keys.count)
    try await scene.close()
  }

  @Test("A drag that ends shows the frame, and the item plays when the swipe has settled")
  func headStart() async throws {
    let scene = try PoolScene([Self.other, "hls-ts/master.m3u8"])
    try await scene.rest(at: 0)
    #expect(try scene.show(1, phase: .dragEnded).hasFrame)
    // The item before has played until then.
    let shown = { @Sendable in scene.shown(since: .attached(1)) }
    #expect(shown().count == 1)
    try await scene.rest()
    try #require(shown().count == 1)
    #expect(scene.readiness(1)?.target == .current)
    #expect(scene.readiness(1)?.timeControlStatus == .paused)
    #expect(scene.readiness(0)?.timeControlStatus == .paused)
    #expect(scene.pool.surfaceItem == scene.id(1))
    try scene.show(1)
    try await scene.until { shown().count >= 3 }
    let expected = try await plainFrames("hls-ts/master.m3u8")
    #expect(shown()[0] == expected[0])
    #expect(shown().map(\.time) == shown().map(\.time).sorted())
    #expect(Set(shown()).count == shown().count)
    try await scene.close()
  }

  @Test("A drag that comes back to the item that plays does not stop it")
  func dragBack() async throws {
    let scene = try PoolScene(["hls-ts/master.m3u8", Self.other])
    try scene.show(0)
    try await scene.until { scene.shown.count >= 2 }
    try scene.show(0, phase: .dragEnded)
    let count = scene.shown.count
    try await scene.until { scene.shown.count >= count + 3 }
    #expect(scene.readiness(0)?.target == nil)
    #expect(scene.lines.filter { $0 == .attached(0) }.count == 1)
    try await scene.close()
  }

  @Test("A miss: the surface leaves, and comes back with the first frame")
  func miss() async throws {
    let scene = try PoolScene([Self.other, Self.other, "hls-ts/master.m3u8"], policy: NoPreload())
    try await scene.rest(at: 0)
    scene.pool.setPlaying(false)
    try await scene.until { scene.pool.core.isSteady }
    scene.forgetLines()
    let found = try scene.show(2)
    #expect(found.stage == .notLoaded)
    #expect(!found.hasFrame)
    // It may come back already. What comes in all, and in which order, is looked at below.
    #expect(scene.lines.first == .detached(0))
    try await scene.until { !scene.shown.isEmpty }
    let expected = try await plainFrames("hls-ts/master.m3u8")
    #expect(scene.lines == [.detached(0), .attached(2), .frame(expected[0])])
    try await scene.close()
  }

  @Test("Pausing the pool pauses the current item, and the next one too")
  func pause() async throws {
    let scene = try PoolScene(["hls-ts/master.m3u8", "hls-fmp4/master.m3u8"])
    try scene.show(0)
    try await scene.until { scene.shown.count >= 2 }
    scene.pool.setPlaying(false)
    try await scene.until { scene.readiness(0)?.timeControlStatus == .paused && scene.pool.core.isSteady }
    try await scene.rest(at: 1)
    #expect(scene.readiness(1)?.timeControlStatus == .paused)
    scene.pool.setPlaying(true)
    try await scene.until { scene.readiness(1)?.timeControlStatus == .playing }
    #expect(scene.readiness(0)?.timeControlStatus == .paused)
    try await scene.close()
  }
}
