package import ReelPlayback
package import ReelLab

extension WalkSettings {
  package static let sample = WalkSettings(
    feed: "feed.txt", itemCount: 12, slotCount: 3, policy: "adjacent", link: "12 Mbit/s, 70 ms",
    dwell: "exp:5s",
    seed: .max, isVirtual: true, decodeCost: .microseconds(2_500))
}

extension SwipeRecord {
  /// A swipe that was looked at for 2 s.
  package static func sample(
    _ number: Int, _ stage: PreloadStage, firstFrame: Duration?, secondFrame: Duration? = nil,
    kind: SwipeKind = .next
  ) -> SwipeRecord {
    var record = SwipeRecord(
      number: number, time: .seconds(2 * number), kind: kind, itemIndex: number, itemID: "clip\(number).mp4",
      stage: stage)
    record.watched = .seconds(2)
    record.timeToFirstFrame = firstFrame
    record.timeToSecondFrame = secondFrame
    return record
  }
}

extension WalkReport {
  /// A start, three hits, a miss, one that was left early, one that failed, one that was passed by.
  package static func sample(label: String = "3 slots") -> WalkReport {
    var report = WalkReport(label: label, settings: .sample)
    var start = SwipeRecord.sample(
      0, .notLoaded, firstFrame: .seconds(9), secondFrame: .seconds(10), kind: .start)
    start.stallCount = 1
    start.stallDuration = .milliseconds(300)
    start.longestStall = .milliseconds(300)
    report.swipes = [
      start,
      .sample(1, .buffered, firstFrame: .microseconds(12), secondFrame: .milliseconds(33)),
      .sample(2, .firstFrame, firstFrame: .microseconds(20), secondFrame: .milliseconds(50)),
      .sample(3, .buffered, firstFrame: .microseconds(16), secondFrame: .milliseconds(20)),
      .sample(4, .manifest, firstFrame: .milliseconds(355), secondFrame: .milliseconds(400), kind: .jump),
      .sample(5, .notLoaded, firstFrame: nil, kind: .previous), .sample(6, .manifest, firstFrame: nil),
      .sample(7, .notLoaded, firstFrame: nil, kind: .burst),
    ]
    let parts = [
      StageTime(stage: "manifest", duration: .milliseconds(142)), StageTime(stage: "init", duration: .zero),
      StageTime(stage: "segment", duration: .milliseconds(201)),
      StageTime(stage: "decode", duration: .milliseconds(12)),
    ]
    report.swipes[4].stageTimes = parts
    report.swipes[4].cause = SwipeRecord.cause(of: parts)
    report.swipes[4].byteCount = 1_234_567
    report.swipes[4].stallCount = 2
    report.swipes[4].stallDuration = .milliseconds(900)
    report.swipes[4].longestStall = .milliseconds(600)
    report.swipes[6].error = "clip6.mp4: 404\nnot found"
    report.swipes[7].isPassing = true
    report.swipes[1].rungs = [
      ShownRung(rung: "low", bitRate: 400_000, duration: .milliseconds(500)),
      ShownRung(rung: "high", bitRate: 1_000_000, duration: .milliseconds(1_500)),
    ]
    report.swipes[2].rungs = [ShownRung(rung: nil, bitRate: nil, duration: .seconds(2))]
    report.swipes[3].rungs = [ShownRung(rung: "low", bitRate: 400_000, duration: .seconds(2))]
    report.duration = .seconds(16)
    report.fetchedByteCount = 40_000_000
    report.unshownByteCount = 9_000_000
    report.decodedFrameCount = 400
    report.unshownFrameCount = 3
    report.slotHighWaterByteCounts = [11_000_000, 2_900_000, 9_000_000]
    report.poolHighWaterByteCount = 16_500_000
    report.failedItems = [.init(index: 6, id: "clip6.mp4", error: "404\nnot found")]
    return report
  }

  /// A report of a walk without a swipe.
  package static let empty = WalkReport(label: "empty", settings: .sample)
}
