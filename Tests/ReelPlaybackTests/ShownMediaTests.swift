import ReelCore
import Testing

@testable import ReelPlayback
@testable import ReelSources

@Suite("Media time that was shown")
struct ShownMediaTests {
  private func time(_ frames: Int64) -> MediaTime { MediaTime(value: frames, timescale: 25) }

  private func loss(_ reason: MediaLoss.Reason, _ range: Range<Int64>) -> MediaLoss {
    MediaLoss(kind: .video, reason: reason, range: time(range.lowerBound)..<time(range.upperBound))
  }

  @Test("547 frames at 25 fps are 21.88 s, however far playback jumped between them")
  func jumps() {
    var shown = ShownMedia()
    for index in Int64(0)..<547 {
      let jump: Int64 = index >= 300 ? 203 : 0
      shown.show(
        time(index + jump), length: time(1), leftOut: index == 300 ? time(203) : .zero,
        loss: index == 300 ? loss(.jumped, 300..<503) : nil)
    }
    #expect(shown.played == time(547))
    #expect(shown.skipped == [.jumped: time(203)])
    #expect(shown.played + shown.allSkipped == time(750))
    #expect(shown.end == time(750))
    #expect(shown.losses == [loss(.jumped, 300..<503)])
  }

  @Test(
    "Lost media is not played, although the frame before it stays visible; a long frame counts until the next"
  )
  func gaps() {
    var shown = ShownMedia()
    for index in [Int64(0), 1, 4, 504] {
      shown.show(
        time(index), length: time(1), leftOut: .zero, loss: index == 4 ? loss(.dropped, 2..<4) : nil)
    }
    #expect(shown.played == time(503))
    #expect(shown.skipped == [.dropped: time(2)])
    #expect(shown.passed(before: time(505), leftOut: .zero) == time(505))
  }

  @Test("Of each reason, as many losses are kept, and all are counted")
  func limit() {
    var shown = ShownMedia()
    shown.show(time(0), length: time(1), leftOut: .zero, loss: nil)
    for index in Int64(1)...150 {
      shown.show(
        time(index * 2), length: time(1), leftOut: .zero, loss: loss(.dropped, index * 2 - 1..<index * 2))
    }
    shown.show(time(302), length: time(1), leftOut: .zero, loss: loss(.missing, 301..<302))
    #expect(shown.losses.count == ShownMedia.lossLimit + 1 && shown.omittedLossCount == 50)
    #expect(shown.skipped == [.dropped: time(150), .missing: time(1)])
    #expect(shown.played + shown.allSkipped == time(303))
  }

  @Test("An item that loops")
  func loop() {
    var shown = ShownMedia()
    for index in [Int64(0), 1, 2, 0, 1] {
      shown.show(time(index), length: time(1), leftOut: .zero, loss: nil)
    }
    #expect(shown.played == time(5))
    #expect(shown.passed(before: time(2), leftOut: .zero) == time(5))
  }

  @Test("The last frame counts only as long as it was shown")
  func end() {
    var shown = ShownMedia()
    shown.show(time(0), length: time(250), leftOut: .zero, loss: nil)
    shown.end(at: time(25))
    #expect(shown.played == time(25))
    shown.end(at: time(1000))
    #expect(shown.played == time(25))
  }

  @Test("At a limit, a frame that stands still counts up to it, unless media is lost after it")
  func limited() {
    var shown = ShownMedia()
    shown.show(time(0), length: time(1), leftOut: .zero, loss: nil)
    shown.end(whenPassed: time(10), isLost: false)
    #expect(shown.played == time(10))
    shown.end(whenPassed: time(10), isLost: true)
    #expect(shown.played == time(1))
  }
}
