import ReelPlayback
import ReelReplay
import ReelTestSupport
import Testing

@Suite("Rankings by chunks and with decoding")
struct RankingDifferenceTests {
  private func result(
    _ policy: String, _ level: LabRun.Level, link: String = "a", seed: UInt64 = 1, slots: Int = 3,
    _ figures: [LabResult.Figure: Double]
  ) -> LabResult {
    LabResult(
      run: LabRun(
        feed: "feed", link: link, linkGroup: "hsdpa", viewer: "exp:5s", device: "mid", slotCount: slots,
        policy: policy, seed: seed, level: level), figures: figures)
  }

  @Test("A reversal is found and explained by the waits that chunks leave out")
  func reversal() throws {
    let results = [
      result("media3", .chunk, [.secondFrameP95: 420, .waitAnswer: 60]),
      result("pdas", .chunk, [.secondFrameP95: 300, .waitAnswer: 60]),
      result("none", .chunk, [.secondFrameP95: 900, .waitAnswer: 80]),
      result(
        "media3", .decoded, [.secondFrameP95: 510, .waitManifest: 40, .waitAnswer: 70, .waitDecode: 10]),
      result(
        "pdas", .decoded, [.secondFrameP95: 640, .waitManifest: 252, .waitAnswer: 70.5, .waitDecode: 40]),
      result("none", .decoded, [.secondFrameP95: 1900, .waitManifest: 600]),
    ]
    let differences = RankingDifference.all(in: results)
    let difference = try #require(differences.first)
    #expect(differences.count == 1)
    #expect(difference.figure == .secondFrameP95)
    #expect(difference.chunk.map(\.policy) == ["pdas", "media3", "none"])
    #expect(difference.decoded.map(\.policy) == ["media3", "pdas", "none"])
    #expect(difference.reversals.map(\.policy.policy) == ["pdas"])
    let causes = difference.reversals[0].causes
    #expect(causes.map(\.figure) == [.waitManifest, .waitDecode])
    #expect(causes.map(\.excess) == [212, 30])
    #expect(
      difference.lines == [
        "second frame, p95: pdas before media3 by chunks (300 ms, 420 ms); with decoding media3 is ahead "
          + "(510 ms, 640 ms): pdas waits 212 ms longer per swipe for manifests, "
          + "pdas waits 30 ms longer per swipe for decoding"
      ])
    #expect(difference.group.description == "feed, hsdpa, exp:5s, mid, 3 slots")
  }

  @Test("Rebuffering and wasted bytes are ranked too, each group by itself")
  func others() throws {
    var results: [LabResult] = []
    for slots in [3, 5] {
      results += [
        result("a", .chunk, slots: slots, [.wastedByteCount: 1e6, .fetchedByteCount: 5e6]),
        result("b", .chunk, slots: slots, [.wastedByteCount: 2e6, .fetchedByteCount: 5e6]),
        result(
          "a", .decoded, slots: slots,
          [.wastedByteCount: [3: 4e6][slots, default: 1e6], .fetchedByteCount: 9e6]),
        result("b", .decoded, slots: slots, [.wastedByteCount: 2e6, .fetchedByteCount: 6e6]),
      ]
    }
    let differences = RankingDifference.all(in: results)
    #expect(differences.map(\.group.slotCount) == [3])
    #expect(
      differences[0].lines == [
        "wasted bytes: a before b by chunks (1 MB, 2 MB); with decoding b is ahead (2 MB, 4 MB): "
          + "a fetches 3 MB more"
      ])
  }

  @Test("Means are over the runs that all policies have at both levels; equal means are no reversal")
  func pairing() throws {
    let results = [
      result("a", .chunk, [.rebufferingRatio: 0.1]), result("b", .chunk, [.rebufferingRatio: 0.2]),
      result("a", .decoded, [.rebufferingRatio: 0.1]), result("b", .decoded, [.rebufferingRatio: 0.1]),
      // Only one policy has this run.
      result("a", .chunk, link: "z", [.rebufferingRatio: 0.0]),
      result("a", .decoded, link: "z", [.rebufferingRatio: 0.9]),
      // Only at one level.
      result("c", .chunk, [.rebufferingRatio: 0.0]),
    ]
    #expect(RankingDifference.all(in: results).isEmpty)
    #expect(RankingDifference.all(in: []).isEmpty)
  }

  @Test("What decoding spares a policy is a cause too")
  func saving() throws {
    let results = [
      result("a", .chunk, [.secondFrameP95: 300, .waitTransfer: 100, .meanBitRate: 1e6]),
      result("b", .chunk, [.secondFrameP95: 500, .waitTransfer: 400, .meanBitRate: 1e6]),
      result("a", .decoded, [.secondFrameP95: 300, .waitTransfer: 90, .meanBitRate: 1.5e6]),
      result("b", .decoded, [.secondFrameP95: 200, .waitTransfer: 60, .meanBitRate: 1e6]),
      result("a", .chunk, slots: 4, [.rebufferingRatio: 0.01, .stallCount: 1]),
      result("b", .chunk, slots: 4, [.rebufferingRatio: 0.04, .stallCount: 30]),
      result("a", .decoded, slots: 4, [.rebufferingRatio: 0.01, .stallCount: 1]),
      result("b", .decoded, slots: 4, [.rebufferingRatio: 0, .stallCount: 0]),
    ]
    #expect(
      RankingDifference.all(in: results).flatMap(\.lines) == [
        "second frame, p95: a before b by chunks (300 ms, 500 ms); with decoding b is ahead (200 ms, 300 ms): "
          + "with decoding, the mean bit rate of a rises by 500 kbit/s more, "
          + "b is spared 330 ms per swipe because frames are shown before their segment is complete",
        "rebuffering: a before b by chunks (1 %, 4 %); with decoding b is ahead (0 %, 1 %): "
          + "b is spared 30 stalls because segments play while they arrive",
      ])
  }

  @Test("A reversal without a cause says so")
  func unexplained() throws {
    let results = [
      result("a", .chunk, [.rebufferingRatio: 0.01]), result("b", .chunk, [.rebufferingRatio: 0.02]),
      result("a", .decoded, [.rebufferingRatio: 0.04]), result("b", .decoded, [.rebufferingRatio: 0.03]),
    ]
    #expect(
      RankingDifference.all(in: results).flatMap(\.lines) == [
        "rebuffering: a before b by chunks (1 %, 2 %); with decoding b is ahead (3 %, 4 %): "
          + "no measured part explains it"
      ])
  }

  @Test("The parts of waits add up to the mean second-frame delay")
  func waits() throws {
    var report = WalkReport(
      label: "", settings: WalkSettings(feed: "", itemCount: 3, slotCount: 3, policy: "a", dwell: "", seed: 1)
    )
    func swipe(_ kind: SwipeKind, _ parts: [(String, Int)], first: Int?, second: Int?) -> SwipeRecord {
      var swipe = SwipeRecord(
        number: 0, time: .zero, kind: kind, itemIndex: 0, itemID: "", stage: PreloadStage.none)
      swipe.watched = .milliseconds(500)
      swipe.timeToFirstFrame = first.map { .milliseconds($0) }
      swipe.timeToSecondFrame = second.map { .milliseconds($0) }
      swipe.waitParts = parts.map { StageTime(stage: $0.0, duration: .milliseconds($0.1)) }
      return swipe
    }
    report.swipes = [
      swipe(.start, [("decode", 1000)], first: 1000, second: 1000),
      swipe(
        .next,
        [
          ("source answer", 10), ("manifest transfer", 20), ("initialization answer", 30),
          ("segment answer", 40), ("segment transfer", 50), ("preparing", 6), ("decode", 3), ("show", 1),
        ], first: 160, second: 200),
      swipe(.next, [("segment transfer", 500)], first: nil, second: nil),
    ]
    let figures = report.waitFigures
    #expect(
      figures == [
        .waitManifest: 15, .waitInitialization: 15, .waitAnswer: 20, .waitTransfer: 275, .waitPreparing: 3,
        .waitDecode: 2, .waitSecondFrame: 20,
      ])
    #expect(figures.values.reduce(0, +) == 350)
    report.swipes = []
    #expect(report.waitFigures.isEmpty)
  }
}
