import Testing

@testable import ReelPlayback

@Suite("How the time of an item is spent")
struct PlaybackTimesTests {
  /// The times after these events, in milliseconds.
  private func times(
    start: Int = 0, _ events: [(Int, PlaybackTimes.Event)], until end: Int
  ) -> PlaybackTimes {
    var times = PlaybackTimes(start: .milliseconds(start))
    for (time, event) in events { times.record(event, at: .milliseconds(time)) }
    return times.closed(at: .milliseconds(end))
  }

  private func expect(
    _ times: PlaybackTimes, _ wanted: [PlaybackTimes.Phase: Int],
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for phase in PlaybackTimes.Phase.allCases {
      #expect(
        times[phase] == .milliseconds(wanted[phase] ?? 0), "\(phase)", sourceLocation: sourceLocation)
    }
  }

  @Test("On a starved link, the time between the first two frames is buffering")
  func starved() throws {
    let times = times(
      start: 1000,
      [
        (1001, .status(.waitingToPlayAtSpecifiedRate(.evaluatingBufferingRate))), (1037, .firstFrame),
        (1037, .frame),
        (4050, .status(.playing)), (4083, .frame), (4116, .frame),
        (5100, .status(.waitingToPlayAtSpecifiedRate(.toMinimizeStalls))), (13_600, .status(.playing)),
        (13_633, .frame), (13_700, .status(.paused)),
      ], until: 13_710)
    expect(times, [.startup: 37, .buffering: 3013, .playing: 1150, .stalled: 8500, .paused: 10])
    #expect(times.total == .milliseconds(12_710))
    #expect(times.timeToSecondFrame == .milliseconds(3083))
    #expect(abs(try #require(times.rebufferingRatio) - 8500.0 / 9650) < 1e-9)
  }

  @Test("Without a first frame, all time is start-up")
  func noFrame() {
    let times = times(
      [(0, .status(.waitingToPlayAtSpecifiedRate(.evaluatingBufferingRate))), (900, .status(.paused))],
      until: 1000)
    expect(times, [.startup: 1000])
    #expect(times.timeToSecondFrame == nil)
    #expect(times.rebufferingRatio == nil)
  }

  @Test("A wait after playback has begun counts as seeking; a second frame while paused is not motion")
  func seek() throws {
    let times = times(
      [
        (10, .firstFrame), (10, .frame), (20, .frame), (100, .status(.playing)), (130, .frame),
        (200, .status(.waitingToPlayAtSpecifiedRate(.evaluatingBufferingRate))), (250, .frame),
        (300, .status(.playing)),
        (330, .frame),
      ], until: 400)
    expect(times, [.startup: 10, .paused: 90, .playing: 200, .seeking: 100])
    #expect(times.timeToSecondFrame == .milliseconds(130))
    #expect(abs(try #require(times.rebufferingRatio) - 100.0 / 300) < 1e-9)
  }

  @Test("A stall that is reported late counts from its beginning, and no moment counts twice")
  func late() {
    let times = times(
      [
        (0, .firstFrame), (0, .status(.playing)), (1250, .status(.playing)),
        (1000, .status(.waitingToPlayAtSpecifiedRate(.toMinimizeStalls))), (2000, .status(.playing)),
        (1900, .status(.waitingToPlayAtSpecifiedRate(.toMinimizeStalls))), (2500, .status(.playing)),
      ], until: 3000)
    // `playing` was reported after the stall had begun. The second stall can't begin before the first has ended.
    expect(times, [.playing: 1500, .stalled: 1500])
    #expect(times.total == .seconds(3))
  }
}
