import ReelCore
import Testing

@testable import ReelPlayback

@Suite("The state of a player") struct PlayerStateTests {
  /// A frame of 40 ms is on show since 10 s of the clock, at 1 s of the item.
  private static var parked: PlayerCore.State {
    var state = PlayerCore.State()
    state.timebase.setTime(MediaTime(value: 1, timescale: 1), at: .seconds(10))
    state.lastShownAt = .seconds(10)
    state.lastTime = MediaTime(value: 1000, timescale: 1000)
    state.lastEnd = MediaTime(value: 1040, timescale: 1000)
    return state
  }

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
    var state = Self.parked
    state.follow(
      [.startClock], now: .milliseconds(10_000 + done), began: .milliseconds(10_000 + asked))
    let next = MediaTime(value: 1040, timescale: 1000)
    #expect(state.timebase.clockTime(of: next) == .milliseconds(10_000 + due))
  }

  @Test("A clock that stood still within the frame has the rest of its time left")
  func rest() {
    var state = Self.parked
    state.timebase.setTime(MediaTime(value: 1030, timescale: 1000), at: .seconds(10))
    state.follow([.startClock], now: .milliseconds(10_700), began: .milliseconds(10_100))
    let next = MediaTime(value: 1040, timescale: 1000)
    #expect(state.timebase.clockTime(of: next) == .milliseconds(10_700))
  }

  @Test("At another rate its time is another one")
  func rate() {
    var state = Self.parked
    state.wantedRate = 2
    state.follow([.startClock], now: .milliseconds(10_700), began: .milliseconds(10_100))
    #expect(state.timebase.clockTime(of: MediaTime(value: 1040, timescale: 1000)) == .milliseconds(10_700))
  }

  @Test("Without a frame, or without a time, the clock begins when it is told to")
  func noFrame() {
    var state = PlayerCore.State()
    state.follow([.startClock], now: .seconds(3), began: .seconds(1))
    #expect(state.timebase.clockTime(of: .zero) == .seconds(3))
    var other = Self.parked
    other.follow([.startClock], now: .seconds(30))
    #expect(other.timebase.clockTime(of: MediaTime(value: 1, timescale: 1)) == .seconds(30))
  }
}
