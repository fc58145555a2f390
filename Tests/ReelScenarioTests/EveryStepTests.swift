import ReelCore
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

/// A simulation runs a player in steps: a task up to its next wait, a blocking body up to its next wait, a timer. So what
/// comes between two steps comes at every wait of the engine.
@Suite("Between any two steps up to the second frame", .hangLimit)
struct EveryStepTests {
  enum Act: CaseIterable {
    case seek
    case seekFar
    case replace
    case mute
    case stop
    case release
  }

  /// Every fourth step of a presentation gets one act. Over the presentations, each step gets each act.
  @Test("A player does what it is told", arguments: Array(PresentationCase.all.enumerated()))
  func player(_ index: Int, _ presentation: PresentationCase) async throws {
    let frames = try presentation.expected()
    var step = index % 4
    var isOver = false
    while !isOver {
      let stage = try Stage(presentation.path, configure: presentation.configure)
      stage.player.play()
      await stage.run(untilStep: step)
      isOver = stage.screen.count >= 2
      try await perform(Act.allCases[(step / 4 + index) % Act.allCases.count], on: stage, frames)
      step += 4
    }
    #expect(step > 20)
  }

  private func perform(_ act: Act, on stage: Stage, _ frames: [Shown]) async throws {
    let mark = stage.screen.count
    switch act {
    case .seek: try await stage.seek(to: frames[20].time, shows: frames[20])
    case .seekFar:
      let last = frames.count - 1
      try await stage.seek(to: frames[last].time, shows: frames[last])
    case .replace:
      try stage.load("media/h264-one-frame.mp4")
      try await stage.playsOut()
      #expect(stage.shown.count == mark + 1)
    case .mute:
      stage.player.setMuted(true)
      try await stage.run(untilShown: 3)
      #expect(stage.shown == Array(frames.prefix(3)))
    case .stop:
      stage.player.stop()
      try await stage.closeStopped()
      return #expect(stage.shown.count == mark)
    case .release:
      try await stage.closeReleased()
      return #expect(stage.shown.count == mark)
    }
    #expect(stage.shown.prefix(mark) == frames.prefix(mark))
    try await stage.close()
  }
}
