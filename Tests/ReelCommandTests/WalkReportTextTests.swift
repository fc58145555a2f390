import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Reports of walks, for people")
struct WalkReportTextTests {
  @Test("As text")
  func text() {
    let swipes = """
        swipe    at  kind      item  stage        first frame  second frame  stalled  fetched  cause
            0  0 ms  start        0  not loaded           9 s          10 s   300 ms      0 B
            1   2 s  next         1  buffered        0.012 ms         33 ms        -      0 B
            2   4 s  next         2  first frame      0.02 ms         50 ms        -      0 B
            3   6 s  next         3  buffered        0.016 ms         20 ms        -      0 B
            4   8 s  jump         4  manifest          355 ms        400 ms   900 ms   1.2 MB  manifest 142 ms, segment 201 ms, decode 12 ms
            5  10 s  previous     5  not loaded             -             -        -      0 B
            6  12 s  next         6  manifest               -             -        -      0 B  clip6.mp4: 404\\u{a}not found
            7  14 s  passing      7  not loaded             -             -        -      0 B

      """
    let head = """
      Reel's own pool, 3 slots: 7 swipes over 12 items in 16 s, 3 slots, adjacent, 12 Mbit/s, 70 ms, \
      waits from the end of the drag, exp:5s, seed 18446744073709551615, simulated time, 2.5 ms per frame

      """
    let figures = """
                              swipes       p50      p95      p99      max  > 100 ms  > 1 s
        first frame   all          5   0.02 ms      2 s      2 s      2 s      40 %   20 %
                      hits         3  0.016 ms  0.02 ms  0.02 ms  0.02 ms       0 %    0 %
                      misses       2    355 ms      2 s      2 s      2 s     100 %   50 %
        second frame  all          5     50 ms      2 s      2 s      2 s      40 %   20 %
                      hits         3     33 ms    50 ms    50 ms    50 ms       0 %    0 %
                      misses       2    400 ms      2 s      2 s      2 s     100 %   50 %
        slowest first frame: 2 s, swipe 5 to item 5, left
        slowest second frame: 2 s, the same swipe
        reached    manifest 80 %, initialization 60 %, first_frame 60 %, buffered 40 %
        stalls     3, 1.2 s in all, the longest 600 ms, 15.7 % of the time watched
        bytes      40 MB fetched, 9 MB never shown (22.5 %)
        frames     400 decoded, 3 never shown (0.8 %)
        rungs      625 kbit/s on average, 1 switch
        abandoned  1 left before their first frame
        memory     peak 16.5 MB, by slot at most 11 MB, 2.9 MB, 9 MB, packets and frames
        uncounted  2 of 7 swipes, to items that failed or were skipped in a burst
        failed     1 of 12 items
        failed: item 6, 404\\u{a}not found
      """
    #expect(WalkReport.sample().text() == head + figures)
    #expect(WalkReport.sample().text(includingSwipes: true) == head + swipes + figures)
  }

  @Test("Shares of swipes that are not the usual ones")
  func options() throws {
    var report = WalkReport.sample()
    report.settings.shares = .usual
    #expect(report.text() == WalkReport.sample().text())
    report.settings.shares = try SwipeShares(back: 0.2, bursts: 0)
    #expect(report.text().contains(", exp:5s, back=20%,bursts=0%, seed"))
  }

  @Test("Of many slots the most, the median and the least")
  func manySlots() {
    var report = WalkReport.sample()
    report.slotHighWaterByteCounts = (1...8).map { $0 * 1_000_000 }
    #expect(
      report.text().contains(
        "by slot at most 1 MB, 2 MB, 3 MB, 4 MB, 5 MB, 6 MB, 7 MB, 8 MB, packets and frames\n"))
    report.slotHighWaterByteCounts = [3, 9, 1, 10, 2, 5, 4, 8, 7, 6].map { $0 * 1_000_000 }
    #expect(
      report.text().contains(
        "peak 16.5 MB, by slot at most 10 MB (median 5 MB, least 1 MB), packets and frames\n"))
  }

  @Test("A walk without a swipe can be printed")
  func empty() {
    let text = WalkReport.empty.text(includingSwipes: true)
    #expect(text.contains("0 swipes"))
    #expect(text.contains("no swipe was counted"))
    #expect(!text.contains("nan"))
  }
}
