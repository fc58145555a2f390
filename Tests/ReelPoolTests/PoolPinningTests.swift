import Foundation
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelPool
@testable import ReelReading
@testable import ReelSources

@Suite("A pinned player", .hangLimit) struct PoolPinningTests {
  static let paths = [
    "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "media/h264-bframes.mp4", "media/h264.ts",
  ]

  private static func states(_ scene: PoolScene) -> [PictureInPictureState] {
    scene.events.compactMap { if case .pinned(_, let state) = $0 { state } else { nil } }
  }

  @Test("Plays on beyond the window while the feed goes on, and gives its memory back when it stops")
  func pin() async throws {
    let scene = try PoolScene(Self.paths)
    try scene.show(0)
    try await scene.until { scene.shown.count >= 2 }
    let output = EndingOutput()
    let item = scene.item(0)
    let player = try #require(scene.pool.currentPlayer)
    let pinned = try scene.pool.startPictureInPicture(to: output)
    #expect(Self.states(scene) == [.willStart, .didStart])
    #expect(pinned.state.value == .didStart)
    #expect(pinned.item == scene.feed.items[0])
    #expect(pinned.player === player)
    // The frame on show.
    #expect(output.count >= 1)
    #expect(scene.pool.surfaceItem == nil)
    try scene.show(1)
    try scene.show(2)
    try await scene.until { scene.slots == [3, 1, 2] }
    let count = output.count
    try await scene.until { output.count > count + 2 }
    #expect(pinned.player.currentItem.value === item)
    let pinnedEntries = scene.pool.memory.entries.filter { $0.slot == nil }
    #expect(pinnedEntries.count == 1)
    let entry = try #require(pinnedEntries.first)
    #expect(entry.item == scene.id(0))
    #expect(entry.account[.packets] > 0)
    // Back at its place, it is not loaded a second time.
    try scene.show(1)
    try await scene.until { scene.pool.core.isSteady }
    #expect(scene.slots == [nil, 1, 2])
    let states = pinned.state.values
    pinned.stop()
    pinned.stop()
    #expect(output.ends == 1)
    var seen: [PictureInPictureState] = []
    for await state in states { seen.append(state) }
    #expect(seen.last == .didStop)
    #expect(Self.states(scene) == [.willStart, .didStart, .willStop, .didStop])
    #expect(scene.pool.memory.entries.allSatisfy { $0.slot != nil })
    #expect(pinned.player.currentItem.value == nil)
    try await scene.until { pinned.player.statistics.bufferByteCount == 0 }
    // Its item is a neighbour: it is loaded again.
    try await scene.rest()
    #expect(scene.slots == [0, 1, 2])
    #expect(scene.item(0) !== item)
    try await scene.close()
  }

  @Test("The current item that is pinned is loaded again when it stops, and comes back to the surface")
  func unpinCurrent() async throws {
    let scene = try PoolScene(Self.paths)
    try scene.show(0)
    try await scene.until { scene.shown.count >= 2 }
    var pinned: PictureInPicturePlayer? = try scene.pool.startPictureInPicture(to: EndingOutput())
    try await scene.until { scene.pool.core.isSteady }
    #expect(scene.slots == [nil, 1, nil])
    #expect(scene.pool.currentPlayer == nil)
    #expect(throws: ReelError.self) { try scene.pool.startPictureInPicture(to: EndingOutput()) }
    #expect(pinned?.state.value == .didStart)
    scene.forgetLines()
    // To let it go stops it.
    pinned = nil
    #expect(Self.states(scene).last == .didStop)
    try await scene.until { !scene.shown.isEmpty }
    #expect(scene.lines.first == .attached(0))
    try await scene.close()
  }

  @Test("Is refused by the pool, by the player, and where nothing is current", arguments: 0..<4)
  func refusal(_ reason: Int) async throws {
    let scene = try PoolScene(Self.paths, configure: { $0.allowsPictureInPicture = reason != 0 })
    if reason == 2 { try await scene.until { scene.pool.core.isSteady } } else { try await scene.rest(at: 0) }
    if reason == 1 { scene.pool.currentPlayer?.allowsPictureInPicture = false }
    if reason == 3 { scene.pool.currentPlayer?.allowsExternalPlayback = false }
    let output = EndingOutput(isExternal: true)
    let lines = scene.lines.filter { if case .frame = $0 { false } else { true } }
    let error = #expect(throws: ReelError.self) { try scene.pool.startPictureInPicture(to: output) }
    #expect(error?.kind == .usage)
    #expect(Self.states(scene).isEmpty)
    #expect(output.count == 0)
    #expect(output.ends == 0)
    // Nothing has changed.
    #expect(scene.lines.filter { if case .frame = $0 { false } else { true } } == lines)
    let isSteady = scene.pool.core.isSteady
    #expect(isSteady)
    #expect(scene.evicted.isEmpty)
    try await scene.close()
  }

  @Test("An output of its own that takes long holds no swipe up, and its end is waited for")
  func slowOutput() async throws {
    // On a busy machine, items may have ended before they are pinned or left.
    let scene = try PoolScene(
      Self.paths, runtime: .system, configure: { $0.actionAtItemEnd = .loop })
    try scene.show(0)
    try await scene.until { scene.shown.count >= 2 }
    let output = HeldOutput()
    let pinned = try scene.pool.startPictureInPicture(to: output)
    try await scene.until { output.isHeld }
    for index in [1, 2, 3, 2] {
      scene.forgetLines()
      try scene.show(index)
      try await scene.until { scene.shown.count >= 2 }
    }
    #expect(output.isHeld)
    Thread.detachNewThread { pinned.stop() }
    try await scene.until { pinned.state.value == .willStop }
    #expect(!output.hasEnded)
    output.letGo()
    try await scene.until { pinned.state.value == .didStop }
    #expect(output.hasEnded)
    try await scene.close()
  }

  @Test("Ends with its pool")
  func close() async throws {
    let scene = try PoolScene(Self.paths)
    try await scene.rest(at: 0)
    let output = EndingOutput()
    let pinned = try scene.pool.startPictureInPicture(to: output)
    scene.pool.close()
    #expect(pinned.state.value == .didStop)
    #expect(output.ends == 1)
    try await scene.close()
    pinned.stop()
    #expect(Self.states(scene) == [.willStart, .didStart, .willStop, .didStop])
  }

  @Test("Outlives its pool, and stops then too")
  func poolGone() async throws {
    let fetcher = FixtureFetcher()
    let feed = Feed(name: "a", sources: [try MediaSource(argument: "http://o/media/h264-bframes.mp4")])
    let simulation = SimulatedRuntime()
    let output = EndingOutput()
    weak var gone: PlayerPool?
    let pinned: PictureInPicturePlayer
    do {
      var configuration = PoolConfiguration()
      configuration.enter(simulation)
      let pool = PlayerPool(fetcher: fetcher, configuration: configuration, logger: silentLogger)
      gone = pool
      pool.show(0, of: FeedSnapshot(feed))
      try #require(await simulation.run { pool.currentPlayer?.hasFrame == true })
      pinned = try pool.startPictureInPicture(to: output)
    }
    // The call that looked for the frame may be let go a moment later, on another thread.
    try await until { gone == nil }
    pinned.stop()
    await simulation.runToRest()
    #expect(simulation.bodyCount == 0)
    #expect(output.ends == 1)
    #expect(pinned.player.currentItem.value == nil)
  }
}

/// Holds up who shows it a second frame until it is let go.
private final class HeldOutput: FrameOutput {
  private struct State {
    var shownCount = 0
    var isHeld = false
    var isOpen = false
    var hasEnded = false
  }

  private let state = Monitor(State())

  let isExternal = false

  var isHeld: Bool { state.withLock { $0.isHeld } }
  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  func letGo() {
    state.withLock { $0.isOpen = true }
    state.signal()
  }

  func show(_ frame: VideoFrame) throws {
    state.withLock { $0.shownCount += 1 }
    state.wait { state in
      state.isHeld = state.shownCount > 1 && !state.isOpen
      return state.isHeld ? .wait(until: nil) : .end(())
    }
  }

  func finish() throws { state.withLock { $0.hasEnded = true } }
}
