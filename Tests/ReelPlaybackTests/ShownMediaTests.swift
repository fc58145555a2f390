import ReelCore
import Testing

@testable import ReelPlayback

@Suite("Media time that was shown")
struct ShownMediaTests {
  private func time(_ frames: Int64) -> MediaTime { MediaTime(value: frames, timescale: 25) }

  @Test("547 frames at 25 fps are 21.88 s, however far playback jumped between them")
  func jumps() {
    var shown = ShownMedia()
    for index in Int64(0)..<547 {
      let jump: Int64 = index >= 300 ? 203 : 0
      shown.show(
        time(index + jump), length: time(1), skipped: index == 300 ? time(203) : .zero)
    }
    #expect(shown.played == time(547))
    #expect(shown.skipped == time(203))
    #expect(shown.played + shown.skipped == time(750))
  }

  @Test("A dropped frame leaves the previous one visible; a long frame counts for its duration")
  func gaps() {
    var shown = ShownMedia()
    for index in [Int64(0), 1, 4, 504] { shown.show(time(index), length: time(1), skipped: .zero) }
    #expect(shown.played == time(505))
    #expect(shown.skipped == .zero)
  }

  @Test("An item that loops")
  func loop() {
    var shown = ShownMedia()
    for index in [Int64(0), 1, 2, 0, 1] { shown.show(time(index), length: time(1), skipped: .zero) }
    #expect(shown.played == time(5))
    #expect(shown.played(before: time(2), skipped: .zero) == time(5))
  }

  @Test("The last frame counts only as long as it was shown")
  func end() {
    var shown = ShownMedia()
    shown.show(time(0), length: time(250), skipped: .zero)
    shown.end(at: time(25))
    #expect(shown.played == time(25))
    shown.end(at: time(1000))
    #expect(shown.played == time(25))
  }
}
