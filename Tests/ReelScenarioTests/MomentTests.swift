import ReelCore
import ReelPlayback
import ReelTestSupport
import Testing

@Suite("At any moment", .hangLimit)
struct MomentTests {
  /// Where a seek goes, and the frame that is on show there.
  static let targets: [(seconds: Double, frame: Int)] = [
    (0, 0), (-1, 0), (0.31, 9), (1.5, 45), (2.98, 89), (1000, 89),
  ]

  @Test("A seek shows its frame, and then all that follow", arguments: Moment.allCases, targets)
  func seek(_ moment: Moment, target: (seconds: Double, frame: Int)) async throws {
    let frames = try Moment.frames()
    let stage = try await moment.stage()
    let seek = stage.seek(to: MediaTime(seconds: target.seconds))
    stage.network.heal()
    try await stage.run("the seek") { seek.isOver }
    #expect(try seek.result())
    #expect(stage.shown[seek.mark...] == [frames[target.frame]])
    // A player that plays ends there.
    if target.seconds == 1000 { return try await stage.close() }
    stage.player.actionAtItemEnd = .pause
    stage.player.play()
    try await stage.playsOut()
    #expect(stage.shown[seek.mark...] == frames[target.frame...])
    try await stage.close()
  }

  @Test("Of two seeks at once, the second one counts", arguments: Moment.allCases)
  func twoSeeks(_ moment: Moment) async throws {
    let frames = try Moment.frames()
    let stage = try await moment.stage()
    let seeks = [2.5, 0.5].map { stage.seek(to: MediaTime(seconds: $0)) }
    stage.network.heal()
    try await stage.run("both seeks") { seeks.allSatisfy(\.isOver) }
    #expect(try seeks.map { try $0.result() } == [false, true])
    #expect(stage.shown[seeks[1].mark...] == [frames[15]])
    try await stage.close()
  }

  @Test("A stop, or the release of the player, leaves nothing", arguments: Moment.allCases, [false, true])
  func stop(_ moment: Moment, isReleased: Bool) async throws {
    // A seek that is under way keeps its player.
    if isReleased, moment == .seeksBehindBuffer { return }
    let stage = try await moment.stage()
    let count = stage.screen.count
    if isReleased {
      try await stage.closeReleased()
    } else {
      stage.player.stop()
      #expect(stage.player.currentItem.value == nil)
      #expect(!stage.player.hasFrame)
      try await stage.closeStopped()
    }
    #expect(stage.shown.count == count)
  }

  @Test(
    "Another item, or the same one again, is shown whole and alone", arguments: Moment.allCases,
    [false, true])
  func replace(_ moment: Moment, isSame: Bool) async throws {
    let frames = try isSame ? Moment.frames() : StressClip.all()[0].expected
    let stage = try await moment.stage()
    let count = stage.screen.count
    stage.player.actionAtItemEnd = .pause
    if isSame {
      stage.player.replaceCurrentItem(with: stage.item)
    } else {
      try stage.load(StressClip.all()[0].path)
    }
    stage.network.heal()
    stage.player.play()
    try await stage.playsOut()
    #expect(Array(stage.shown[count...]) == frames)
    try await stage.close()
  }

  @Test("A pause of ten minutes changes nothing but the time", arguments: Moment.allCases)
  func pause(_ moment: Moment) async throws {
    let stage = try await moment.stage()
    stage.player.pause()
    stage.network.heal()
    await stage.run(for: .seconds(60))
    let count = stage.screen.count
    await stage.run(for: .seconds(540))
    #expect(stage.screen.count == count)
    stage.player.actionAtItemEnd = .pause
    stage.player.play()
    try await stage.playsOut()
    try Self.expectWhole(stage, moment)
    try await stage.close()
  }

  @Test("Muting and unmuting loses no frame and holds up no end", arguments: Moment.allCases)
  func mute(_ moment: Moment) async throws {
    let stage = try await moment.stage()
    stage.player.setMuted(true)
    await stage.run(for: .milliseconds(50))
    stage.player.setMuted(false)
    stage.network.heal()
    stage.player.actionAtItemEnd = .pause
    stage.player.play()
    try await stage.playsOut()
    try Self.expectWhole(stage, moment)
    try await stage.close()
  }

  @Test("Looping that is taken up, given up, and taken up again goes round", arguments: Moment.allCases)
  func loop(_ moment: Moment) async throws {
    let frames = try Moment.frames()
    let stage = try await moment.stage()
    for action: Player.ActionAtItemEnd in [.loop, .pause, .loop] {
      stage.player.actionAtItemEnd = action
      await stage.run(for: .milliseconds(50))
    }
    stage.network.heal()
    stage.player.play()
    let count = stage.screen.count
    try await stage.run(untilShown: count + 200)
    stage.player.actionAtItemEnd = .pause
    try await stage.playsOut()
    let shown = stage.shown
    for (left, right) in zip(shown, shown.dropFirst()) where right.time <= left.time {
      #expect(left == frames.last && right == frames.first)
    }
    #expect(shown.last == frames.last)
    try await stage.close()
  }

  @Test("A connection that is lost for a time loses nothing", arguments: Moment.allCases)
  func loss(_ moment: Moment) async throws {
    let stage = try await moment.stage()
    stage.network.lose()
    await stage.run(for: .seconds(1))
    stage.network.heal()
    stage.player.actionAtItemEnd = .pause
    stage.player.play()
    try await stage.playsOut()
    try Self.expectWhole(stage, moment)
    // Looping was given up before anything of the next iteration was read.
    if moment != .playsAgain { #expect(stage.item.remainingRetries.value == 3) }
    try await stage.close()
  }

  @Test(
    "A connection that stays lost ends the item after what is loaded, and a seek tries again",
    arguments: Moment.allCases)
  func lossForGood(_ moment: Moment) async throws {
    let frames = try Moment.frames()
    let stage = try await moment.stage()
    stage.network.lose()
    stage.player.actionAtItemEnd = .pause
    stage.player.play()
    let end = try await stage.end()
    if end.name == "failed" {
      #expect(stage.item.remainingRetries.value == 0)
      #expect(stage.player.timeControlStatus.value == .paused)
      let seek = stage.seek(to: MediaTime(seconds: 2.5))
      try await stage.run("a seek without a connection") { seek.isOver }
      #expect(throws: ReelError.self) { _ = try seek.result() }
    } else {
      #expect(stage.shown.last == frames.last)
    }
    stage.network.heal()
    try await stage.seek(to: MediaTime(seconds: 1.5), shows: frames[45])
    #expect(stage.item.remainingRetries.value == 3)
    try await stage.close()
  }

  /// All frames were shown once, in order; those of a second time through the item, or after a seek, as well.
  private static func expectWhole(_ stage: Stage, _ moment: Moment) throws {
    let frames = try Moment.frames()
    let expected =
      switch moment {
      case .hasEnded, .playsAgain: frames + frames
      case .seeksBehindBuffer: Array(frames.prefix(10)) + frames[75...]
      default: frames
      }
    #expect(stage.shown == expected, "\(stage.events)")
  }
}
