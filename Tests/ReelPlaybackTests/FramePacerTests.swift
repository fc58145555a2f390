import ReelCore
import Testing

@testable import ReelPlayback

@Suite("Pacing frames")
struct FramePacerTests {
  private let pacer = FramePacer()

  private func milliseconds(_ count: Int64) -> MediaTime { MediaTime(value: count, timescale: 1000) }

  private func decide(
    next: Int64, following: Int64?, now: Int64, lastShown: Int64?, rate: Double = 1
  ) -> FramePacer.Decision {
    pacer.decision(
      next: milliseconds(next), following: following.map(milliseconds), timebase: Timebase(rate: rate),
      now: .milliseconds(now), lastShownAt: lastShown.map { .milliseconds($0) })
  }

  @Test("A frame waits for its time")
  func early() {
    #expect(decide(next: 40, following: 80, now: 39, lastShown: 0) == .wait(until: .milliseconds(40)))
    #expect(decide(next: 40, following: nil, now: 0, lastShown: 0) == .wait(until: .milliseconds(40)))
    #expect(decide(next: 40, following: 80, now: 2, lastShown: 0, rate: 8) == .wait(until: .milliseconds(5)))
  }

  @Test("A frame is shown when it is due")
  func due() {
    #expect(decide(next: 40, following: 80, now: 40, lastShown: 0) == .show)
    #expect(decide(next: 40, following: 80, now: 79, lastShown: 0) == .show)
    #expect(decide(next: 40, following: nil, now: 9999, lastShown: 0) == .show)
  }

  @Test("A frame whose successor is due as well is dropped, unless nothing was shown for too long")
  func late() {
    #expect(decide(next: 40, following: 80, now: 80, lastShown: 0) == .drop)
    #expect(decide(next: 40, following: 80, now: 249, lastShown: 0) == .drop)
    #expect(decide(next: 40, following: 80, now: 250, lastShown: 0) == .show)
    #expect(decide(next: 40, following: 80, now: 250, lastShown: 1) == .drop)
  }

  @Test("The first frame is shown at once, late or early, at any rate", arguments: [0, 1, 8.0])
  func first(rate: Double) {
    for (next, now) in [(500, 0), (0, 0), (0, 500)] as [(Int64, Int64)] {
      #expect(decide(next: next, following: next + 40, now: now, lastShown: nil, rate: rate) == .show)
    }
  }

  @Test("While time stands still, what lies ahead waits for ever, and what is due is shown")
  func still() {
    #expect(
      decide(next: 40, following: 80, now: 100, lastShown: 0, rate: 0) == .wait(until: FramePacer.never))
    #expect(decide(next: 0, following: 80, now: 100, lastShown: 0, rate: 0) == .show)
    #expect(decide(next: 0, following: 0, now: 100, lastShown: 0, rate: 0) == .drop)
  }

  /// What became of the frames of a film.
  private struct Run {
    var shown: [(index: Int, at: Duration)] = []
    var dropped = 0
    var waits = 0
    var longestFreeze: Duration = .zero
  }

  /// Plays `count` frames of 60 a second. Frame n is there from `decoding` times n on; with `ticks` the frames
  /// are looked at only at the ticks of a display, else when the pacer says so.
  private func play(_ count: Int, rate: Double, decoding: Duration = .zero, ticks: Duration? = nil) -> Run {
    let timebase = Timebase(rate: rate)
    func time(_ index: Int) -> MediaTime { MediaTime(value: Int64(index), timescale: 60) }
    var span = Run()
    var now = Duration.zero
    var index = 0
    while index < count {
      now = max(now, decoding * index)
      let hasFollowing = index + 1 < count && decoding * (index + 1) <= now
      let decision = pacer.decision(
        next: time(index), following: hasFollowing ? time(index + 1) : nil, timebase: timebase, now: now,
        lastShownAt: span.shown.last?.at)
      switch decision {
      case .show:
        if let last = span.shown.last { span.longestFreeze = max(span.longestFreeze, now - last.at) }
        span.shown.append((index, now))
        index += 1
        if let ticks { now += ticks }
      case .drop:
        span.dropped += 1
        index += 1
      case .wait(let deadline):
        span.waits += 1
        while now < deadline { now = ticks.map { now + $0 } ?? deadline }
      }
    }
    return span
  }

  @Test(
    "A film whose frames come in time is shown whole, each frame at its time", arguments: [0.25, 1, 2, 8])
  func inTime(rate: Double) throws {
    let span = play(3000, rate: rate)
    #expect(span.dropped == 0)
    #expect(span.shown.count == 3000)
    #expect(span.waits == 2999)
    let timebase = Timebase(rate: rate)
    for (index, at) in span.shown {
      #expect(at == (try #require(timebase.clockTime(of: MediaTime(value: Int64(index), timescale: 60)))))
    }
  }

  @Test("At eight times the speed a display of 60 frames a second shows one at each tick")
  func fastOnDisplay() {
    let span = play(4800, rate: 8, ticks: .microseconds(16_667))
    #expect(span.shown.count + span.dropped == 4800)
    #expect((590...610).contains(span.shown.count))
    #expect(span.longestFreeze <= .milliseconds(34))
  }

  @Test("A decoder that can't keep up gives a slow film, and no still")
  func slowDecoder() {
    // 480 frames a second are asked for, 300 are decoded: every one is late when it comes.
    let span = play(6000, rate: 8, decoding: .microseconds(3333), ticks: nil)
    #expect(span.shown.count + span.dropped == 6000)
    #expect(span.shown.count > 70)
    #expect(span.longestFreeze < .milliseconds(260))
  }
}
