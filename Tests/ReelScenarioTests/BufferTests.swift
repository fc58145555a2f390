import ReelCore
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Little or much in the buffer", .hangLimit)
struct BufferTests {
  @Test(
    "However little is to be loaded ahead, the item plays to its end", arguments: [0, 1, 20, 100],
    try StressClip.all())
  func small(milliseconds: Int, clip: StressClip) async throws {
    let stage = try Stage(clip.path)
    stage.item.preferredForwardBufferDuration = .milliseconds(milliseconds)
    stage.player.setRate(8)
    try await stage.playsOut()
    let statistics = stage.player.statistics
    #expect(statistics.shownFrameCount + statistics.droppedFrameCount == clip.expected.count)
    try await stage.close()
  }

  @Test(
    "Sound that is muted, or wanted again, when all is loaded holds up no end",
    arguments: [Moment.path, "hls-ts/low/index.m3u8"], [false, true])
  func muting(path: String, isWantedAgain: Bool) async throws {
    for rate in [8, .infinity] {
      let stage = try Stage(path)
      stage.item.preferredForwardBufferDuration = .seconds(60)
      try await stage.run("all of it") {
        stage.item.isPlaybackBufferFull.value && stage.item.status.value == .readyToPlay
      }
      stage.player.setMuted(true)
      if isWantedAgain { stage.player.setMuted(false) }
      stage.player.setRate(rate)
      try await stage.playsOut()
      // Sound of its own stream is loaded again.
      let heard = stage.speaker.all.reduce(0) { $0 + ($1.upperBound - $1.lowerBound).seconds }
      #expect((heard > 0.5) == (isWantedAgain && path == Moment.path), "\(heard) s")
      try await stage.close()
    }
  }

  @Test("An item that is asked to play while it ends is played again, or pauses")
  func playsAtTheEnd() async throws {
    var (step, isOver) = (0, false)
    while !isOver {
      let stage = try Stage("media/h264-one-frame.mp4")
      stage.player.setRate(.infinity)
      await stage.run(untilStep: step)
      isOver = stage.simulation.stepCount < step
      let count = stage.status == .paused ? stage.screen.count : 0
      stage.player.play()
      await stage.run(for: .seconds(1))
      #expect(stage.status == .paused)
      #expect(stage.screen.count > count, "step \(step): \(stage.events)")
      try await stage.close()
      step += 1
    }
    #expect(step > 5)
  }
}
