import ReelCore
import ReelPlayback
import ReelSimulation
import Testing

@Suite("Buffered playback") struct BufferedPlaybackTests {
  /// Starts at 0.5 s, resumes at 1.5 s, and loads 3 s ahead.
  private func playback(tracks: Int = 1) -> BufferedPlayback {
    BufferedPlayback(trackCount: tracks, rules: LinkPlayback.Rules(), at: .zero)
  }

  private func isJustAfter(_ time: Duration, _ next: Duration?) -> Bool {
    next.map { $0 > time && $0 < time + .milliseconds(1) } ?? false
  }

  @Test("It begins with enough media, stalls when that runs out, and resumes with more")
  func course() {
    var playback = playback()
    playback.tracks[0].end = 0.4
    #expect(playback.play(mayBegin: true) == nil)
    playback.tracks[0].end = 0.5
    #expect(playback.play(mayBegin: false) == nil)
    #expect(playback.play(mayBegin: true) == .began)
    #expect(isJustAfter(.milliseconds(500), playback.nextTime))
    playback.go(to: .milliseconds(500))
    #expect(playback.position == 0.5)
    #expect(playback.play(mayBegin: true) == .stalled)
    #expect(playback.stalledSince == .milliseconds(500))
    playback.tracks[0].end = 1.9
    playback.go(to: .seconds(1))
    #expect(playback.play(mayBegin: true) == nil)
    playback.tracks[0].end = 2
    guard case .resumed(let stall) = playback.play(mayBegin: true) else {
      Issue.record("it does not resume")
      return
    }
    #expect(stall.duration == .milliseconds(500))
    #expect(stall.position == 0.5)
    playback.go(to: .seconds(2))
    #expect(playback.position == 1.5)
  }

  @Test("Loading pauses at the target, and continues below a share of it")
  func filling() {
    var playback = playback()
    playback.tracks[0].end = 3
    playback.updateFilling(0)
    #expect(!playback.tracks[0].isFilling)
    #expect(playback.play(mayBegin: true) == .began)
    playback.go(to: .milliseconds(750))
    playback.updateFilling(0)
    #expect(!playback.tracks[0].isFilling)
    playback.go(to: .milliseconds(751))
    playback.updateFilling(0)
    #expect(playback.tracks[0].isFilling)
  }

  @Test("Separate audio may be late by a tenth of a second")
  func audio() {
    var playback = playback(tracks: 2)
    playback.tracks[0].end = 3
    #expect(playback.play(mayBegin: true) == nil)
    playback.tracks[1].end = 1
    #expect(playback.play(mayBegin: true) == .began)
    playback.go(to: .milliseconds(1050))
    #expect(playback.play(mayBegin: true) == nil)
    playback.go(to: .milliseconds(1100))
    #expect(playback.play(mayBegin: true) == .stalled)
  }

  @Test("At another rate and after a hole, the position goes on from where it is")
  func rate() {
    var playback = playback()
    playback.tracks[0].end = 10
    #expect(playback.play(mayBegin: true) == .began)
    playback.setRate(1.25, at: .seconds(2))
    playback.go(to: .seconds(4))
    #expect(playback.position == 4.5)
    #expect(isJustAfter(.seconds(6), playback.time(of: 7)))
    playback.skip(to: 6)
    playback.go(to: .seconds(6))
    #expect(playback.position == 8.5)
    playback.tracks[0].isComplete = true
    #expect(playback.end == 10)
    #expect(playback.nextTime == nil)
  }
}
