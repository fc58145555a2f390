import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("The state of a player") struct PlayerStateTests {
  /// A player whose buffer keeps up. A frame of 40 ms is on show since 10 s of the clock, at `position` of the item.
  private func makeParked(at position: MediaTime = MediaTime(value: 1, timescale: 1), rate: Double = 1)
    -> PlayerCore
  {
    let core = makeHandTurnedSession().core
    core.change { state, out in
      state.wantedRate = rate
      state.item.onShow.shownAt = .seconds(10)
      state.item.onShow.time = MediaTime(value: 1000, timescale: 1000)
      state.item.onShow.end = MediaTime(value: 1040, timescale: 1000)
      state.item.clock.setTime(position, at: .seconds(10))
      state.item.playback = .running
    }
    return core
  }

  /// When `time` is due, after `play()` was asked for and done at times of the clock.
  private func due(_ time: MediaTime, in core: PlayerCore, asked: Duration?, done: Duration) -> Duration? {
    core.change { state, out in
      state.play(asked: asked, at: done, &out)
      return state.item.clock.clockTime(of: time)
    }
  }

  private let next = MediaTime(value: 1040, timescale: 1000)

  @Test(
    "The frame on show has had its time since playing was asked for",
    arguments: [
      // Asked for, done, when the next frame is due; milliseconds after 10 s.
      (500, 510, 540), (500, 500, 540), (500, 540, 540),
      // Not before it is done: no frame is late.
      (500, 700, 700),
      // Not before the frame was on show.
      (-100, 20, 40),
      // Nothing begins later than it is done.
      (900, 500, 540),
    ])
  func start(asked: Int, done: Int, due: Int) {
    let time = self.due(
      next, in: makeParked(), asked: .milliseconds(10_000 + asked), done: .milliseconds(10_000 + done))
    #expect(time == .milliseconds(10_000 + due))
  }

  @Test("A clock that stood still within the frame has the rest of its time left")
  func rest() {
    let core = makeParked(at: MediaTime(value: 1030, timescale: 1000))
    #expect(
      due(next, in: core, asked: .milliseconds(10_100), done: .milliseconds(10_700)) == .milliseconds(10_700))
  }

  @Test("At another rate its time is another one")
  func rate() {
    let core = makeParked(rate: 2)
    #expect(
      due(next, in: core, asked: .milliseconds(10_100), done: .milliseconds(10_700)) == .milliseconds(10_700))
  }

  @Test("Without a frame, or without a time, the clock begins when it is told to")
  func noFrame() {
    let core = makeHandTurnedSession().core
    core.change { state, _ in state.item.playback = .running }
    #expect(due(.zero, in: core, asked: .seconds(1), done: .seconds(3)) == .seconds(3))
    #expect(
      due(MediaTime(value: 1, timescale: 1), in: makeParked(), asked: nil, done: .seconds(30)) == .seconds(30)
    )
  }
}
