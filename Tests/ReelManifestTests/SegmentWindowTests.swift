import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite("The window of a live rung") struct SegmentWindowTests {
  /// A media playlist's list: starts count from its own beginning.
  private func list(
    _ numbers: Range<Int64>, discontinuity: @escaping @Sendable (Int64) -> Int = { _ in 0 },
    date: WallTime? = nil
  ) throws -> SegmentList {
    let url = try #require(URL(string: "http://example.com/a.ts"))
    return SegmentList(
      numbers.map { number in
        let start = MediaTime(value: number - numbers.lowerBound, timescale: 1) * 2
        return SegmentReference(
          number: number, url: url, start: start, duration: MediaTime(value: 2, timescale: 1),
          discontinuity: discontinuity(number), programDateTime: date.map { $0 + start })
      })
  }

  /// A list of a DASH period: starts stand on the presentation's timeline.
  private func timed(_ range: Range<Int64>, period: Int = 0) throws -> SegmentList {
    let url = try #require(URL(string: "http://example.com/a.m4s"))
    return SegmentList(
      range.map { index in
        SegmentReference(
          number: index % 7, url: url, start: MediaTime(value: index * 2, timescale: 1),
          duration: MediaTime(value: 2, timescale: 1), discontinuity: period)
      })
  }

  private func seconds(_ value: Int64) -> MediaTime { MediaTime(value: value, timescale: 1) }

  @Test func indexesAndStartsStayWhileTheWindowSlides() throws {
    var window = SegmentWindow(try list(10..<14), identity: .number)
    #expect(window.update(try list(12..<16)) == .grew(by: 2))
    #expect(window.startIndex == 2)
    #expect(window.endIndex == 6)
    #expect(window[1] == nil)
    #expect(window[2]?.number == 12)
    #expect(window[2]?.start == seconds(4))
    #expect(window[5]?.start == seconds(10))
    #expect(window.end == seconds(12))
    #expect(window.index(at: seconds(9)) == 4)
    #expect(!window.hasEnded)
    #expect(window.update(try list(12..<17), hasEnded: true) == .grew(by: 1))
    #expect(window.hasEnded)
  }

  @Test func aListThatStallsOrSlidesOnlyBringsNothing() throws {
    var window = SegmentWindow(try list(0..<3), identity: .number)
    #expect(window.update(try list(0..<3)) == .unchanged)
    #expect(window.update(try list(2..<3)) == .unchanged)
    #expect(window.startIndex == 2)
    #expect(window[2]?.start == seconds(4))
  }

  @Test func anOldCopyIsNotTaken() throws {
    var window = SegmentWindow(try list(4..<8), identity: .number)
    #expect(window.update(try list(3..<7)) == .steppedBack)
    #expect(window.endIndex == 4)
    #expect(window.update(try list(5..<9)) == .grew(by: 1))
    #expect(window[4]?.number == 8)
  }

  @Test func aStreamThatKeepsSteppingBackHasBegunAnew() throws {
    var window = SegmentWindow(try list(100..<104), identity: .number)
    #expect(window.update(try list(0..<2)) == .steppedBack)
    #expect(window.update(try list(0..<3)) == .steppedBack)
    #expect(window.update(try list(0..<4)) == .restarted)
    #expect(window.startIndex == 4)
    #expect(window[4]?.number == 0)
    #expect(window[4]?.start == seconds(8))
    #expect(window[4]?.discontinuity == 1)
    #expect(window.update(try list(1..<5)) == .grew(by: 1))
    #expect(window[8]?.start == seconds(16))
    #expect(window[8]?.discontinuity == 1)
  }

  @Test func missedSegmentsLeaveAGapOfTheirLength() throws {
    var window = SegmentWindow(try list(0..<3), identity: .number)
    #expect(window.update(try list(5..<8)) == .jumped(missed: 2))
    #expect(window.startIndex == 3)
    #expect(window[3]?.number == 5)
    #expect(window[3]?.start == seconds(10))
    #expect(window[3]?.discontinuity == 1)
  }

  @Test func datesTellHowLongAGapIs() throws {
    let date = try #require(WallTime(iso8601: "2026-01-01T00:00:00Z"))
    var window = SegmentWindow(try list(0..<3, date: date), identity: .number)
    #expect(window.update(try list(5..<8, date: date + seconds(60))) == .jumped(missed: 2))
    #expect(window[3]?.start == seconds(60))
  }

  @Test func runsKeepTheirNumbersWithoutADiscontinuitySequence() throws {
    // Segments from 3 on are another run; the playlist counts from 0 each time.
    var window = SegmentWindow(try list(0..<5) { $0 < 3 ? 0 : 1 }, identity: .number)
    #expect(window.update(try list(3..<7) { _ in 0 }) == .grew(by: 2))
    #expect((3..<7).map { window[$0]?.discontinuity } == [1, 1, 1, 1])
  }

  @Test func aTimelineIsJoinedByTimeWhateverTheNumbers() throws {
    var window = SegmentWindow(try timed(0..<5), identity: .start)
    #expect(
      window.update(SegmentList(joining: [try timed(3..<6), try timed(6..<8, period: 1)])) == .grew(by: 3))
    #expect(window.startIndex == 3)
    #expect(window[7]?.start == seconds(14))
    #expect(window[7]?.discontinuity == 1)
    // The first period has gone: the second is now the first in the manifest.
    #expect(window.update(try timed(6..<9)) == .grew(by: 1))
    #expect(window[8]?.discontinuity == 1)
    #expect(window.update(try timed(5..<7)) == .steppedBack)
    #expect(window.update(try timed(20..<22)) == .jumped(missed: 0))
    #expect(window[9]?.start == seconds(40))
    #expect(window[9]?.discontinuity == 2)
  }

  @Test func anEmptyWindowWaits() throws {
    var window = SegmentWindow(SegmentList([]), identity: .number)
    #expect(window.index(at: .zero) == nil)
    #expect(window.update(SegmentList([])) == .unchanged)
    #expect(window.update(try list(7..<9)) == .grew(by: 2))
    #expect(window[0]?.number == 7)
    #expect(window.update(SegmentList([])) == .unchanged)
    #expect(window.endIndex == 2)
  }

  @Test(arguments: [
    (LiveTiming.Reload.never, true, nil), (.targetDuration(MediaTime(value: 6, timescale: 1)), true, 6.0),
    (.targetDuration(MediaTime(value: 6, timescale: 1)), false, 3.0),
    (.targetDuration(.zero), true, 0.5), (.targetDuration(MediaTime(value: 9999, timescale: 1)), true, 120),
    (.after(MediaTime(value: 2, timescale: 1)), false, 2), (.after(.zero), true, 1),
    (.after(MediaTime(value: 1, timescale: 100)), true, 0.5),
  ])
  func aManifestIsDueByItsRule(reload: LiveTiming.Reload, hasChanged: Bool, delay: Double?) {
    let live = LiveTiming(reload: reload, delay: .zero)
    #expect(live.reloadDelay(hasChanged: hasChanged, segmentDuration: seconds(2))?.seconds == delay)
  }
}

@Suite("Lists joined") struct SegmentListJoiningTests {
  @Test func elementsFollowEachOther() throws {
    let url = try #require(URL(string: "http://example.com/"))
    let lists = [3, 0, 1, 4].map { count in
      SegmentList(
        (0..<count).map { index in
          SegmentReference(
            number: Int64(count * 10 + index), url: url, start: .zero,
            duration: MediaTime(value: 1, timescale: 1))
        })
    }
    let joined = SegmentList(joining: lists)
    #expect(joined.map(\.number) == [30, 31, 32, 10, 40, 41, 42, 43])
    #expect(SegmentList(joining: []).isEmpty)
  }
}
