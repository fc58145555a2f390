import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Picture in picture", .hangLimit)
struct PictureInPictureTests {
  static let paths = ["hls-fmp4/master.m3u8", "hls-ts/low/index.m3u8", "media/h264-gops.mp4"]

  @Test("Passes through its states, plays on while others are swiped to, and ends once")
  func states() async throws {
    let stage = try PoolStage(Self.paths)
    try stage.show(0)
    try await stage.run { stage.surface.count >= 5 }
    let window = Screen(clock: stage.simulation)
    let pinned = try stage.pool.startPictureInPicture(to: window)
    #expect(pinned.state.value == .didStart)
    let mark = stage.surface.count
    try stage.show(1)
    await stage.run(for: .milliseconds(500))
    let clips = try StressClip.all()
    let own = window.all.compactMap { clips[1].index(of: $0) }
    #expect(own.count > 10 && own == Array(own[0]..<(own[0] + own.count)), "\(own)")
    let others = stage.shown[mark...].map { clips[0].index(of: $0) }
    #expect(others == Array(others.indices), "\(others)")
    // A swipe to it shows nothing on the surface, and does not disturb it.
    let count = stage.surface.count
    #expect(try !stage.show(0).isHit)
    await stage.run(for: .milliseconds(300))
    #expect(stage.surface.count == count)
    #expect(window.count > own.count)
    pinned.stop()
    pinned.stop()
    await stage.run(for: .milliseconds(300))
    #expect(stage.states == [.willStart, .didStart, .willStop, .didStop])
    #expect(window.isFinished && window.lateCount == 0)
    // Its item is loaded again, from its beginning.
    let again = stage.shown[count...].map { clips[1].index(of: $0) }
    #expect(again.count > 2 && again == Array(again.indices), "\(again)")
    try await stage.close()
  }

  enum Reason: CaseIterable {
    case pool
    case player
    case externalOutput
    case noCurrentItem
    case alreadyPinned
  }

  @Test("Is refused without a trace", arguments: Reason.allCases)
  func refused(_ reason: Reason) async throws {
    let stage = try PoolStage(Self.paths, configure: { $0.allowsPictureInPicture = reason != .pool })
    if reason != .noCurrentItem { try stage.show(0) }
    await stage.run(for: .milliseconds(200))
    let player = stage.pool.currentPlayer
    if reason == .player { player?.allowsPictureInPicture = false }
    if reason == .externalOutput { player?.allowsExternalPlayback = false }
    let first = reason == .alreadyPinned ? try stage.pool.startPictureInPicture(to: NullOutput()) : nil
    let window = Screen(clock: stage.simulation, isExternal: true)
    let error = #expect(throws: ReelError.self) { try stage.pool.startPictureInPicture(to: window) }
    #expect(error?.kind == .usage)
    #expect(window.count == 0 && !window.isFinished)
    let count = stage.surface.count
    await stage.run(for: .milliseconds(200))
    #expect(stage.states == (first == nil ? [] : [.willStart, .didStart]))
    #expect((stage.surface.count > count) == (first == nil && reason != .noCurrentItem))
    first?.stop()
    try await stage.close()
  }

  @Test("Begun between any two steps after a swipe, it ends the item's frames on the surface")
  func whileSwiping() async throws {
    let clips = try StressClip.all()
    var begin = 0
    var isOver = false
    while !isOver {
      let step = begin
      let stage = try PoolStage(Self.paths)
      try stage.show(0)
      try stage.show(1, phase: .dragEnded)
      try await stage.run { stage.simulation.stepCount >= step && stage.pool.currentPlayer != nil }
      isOver = stage.surface.count >= 1
      let window = Screen(clock: stage.simulation)
      let pinned = try stage.pool.startPictureInPicture(to: window)
      let mark = stage.surface.count
      try stage.show(2)
      pinned.player.play()
      try await stage.run { window.count >= 3 && stage.surface.count >= mark + 3 }
      let own = window.all.map { clips[0].index(of: $0) }
      #expect(own == Array(own.indices), "step \(step): \(own)")
      let others = stage.shown[mark...].map { clips[4].index(of: $0) }
      #expect(others == Array(others.indices), "step \(step): \(others)")
      try await stage.close()
      #expect(pinned.state.value == .didStop)
      begin += 5
    }
  }
}
