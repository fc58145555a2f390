import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import ReelReplay
import ReelTestSupport
import Testing

@Suite("Reports of walks")
struct WalkReportTests {
  @Test("Which waits count")
  func totals() throws {
    let totals = WalkReport.sample().totals
    #expect(totals.swipeCount == 7)
    #expect(totals.countedSwipeCount == 5)
    #expect(totals.abandonedSwipeCount == 1)
    let first = totals.firstFrame
    #expect(first.hits?.count == 3)
    #expect(first.hits?.max == .microseconds(20))
    #expect(first.misses?.count == 2)
    #expect(first.misses?.p50 == .milliseconds(355))
    // The swipe that was left early counts with how long it was looked at, and is the slowest.
    #expect(first.all?.max == .seconds(2))
    #expect(first.slowest?.swipe == 5)
    #expect(totals.secondFrame.all?.p50 == .milliseconds(50))
    #expect(totals.hitRatio() == 0.6)
    #expect(totals.hitRatio(.manifest) == 0.8)
    #expect(totals.hitRatio(.buffered) == 0.4)
    #expect(totals.stallCount == 3)
    #expect(totals.stallDuration == .milliseconds(1_200))
    #expect(totals.longestStall == .milliseconds(600))
    #expect(totals.slotHighWaterByteCount == 11_000_000)
    #expect(totals.unshownByteShare == 0.225)
    #expect(totals.failedItemCount == 1)
  }

  @Test("Waits over 100 ms and 1 s, rebuffering, and the rungs that were shown")
  func figures() throws {
    let report = WalkReport.sample()
    let totals = report.totals
    // 12, 16 and 20 us, 355 ms, and 2 s that were given up.
    let first = try #require(totals.firstFrame.all)
    #expect(first.over100msCount == 2)
    #expect(first.shareOver100ms == 0.4)
    #expect(first.over1sCount == 1)
    #expect(totals.firstFrame.hits?.over100msCount == 0)
    // 33, 50, 20 and 400 ms, and 2 s.
    #expect(totals.secondFrame.all?.shareOver100ms == 0.4)
    #expect(totals.secondFrame.all?.shareOver1s == 0.2)
    // From first frames on: four items, less 12, 20 and 16 us and 355 ms. The start waited longer than it was watched.
    #expect(totals.watchedDuration == .microseconds(8_000_000 - 12 - 20 - 16 - 355_000))
    let ratio = try #require(totals.rebufferingRatio)
    #expect(abs(ratio - 1.2 / 7.644_952) < 1e-12)
    #expect(totals.meanBitRate == 625_000)
    #expect(totals.rungSwitchCount == 1)
    #expect(WalkReport.empty.totals.meanBitRate == nil)
    #expect(WalkReport.empty.totals.rebufferingRatio == nil)
  }

  @Test("An item of one frame does not wait for a second, one that failed between them neither")
  func still() {
    var report = WalkReport.sample()
    report.swipes = [.sample(1, .buffered, firstFrame: .zero), .sample(2, .buffered, firstFrame: .zero)]
    #expect(report.totals.secondFrame.all?.count == 2)
    #expect(report.totals.secondFrame.all?.max == .seconds(2))
    report.swipes[0].isStill = true
    report.swipes[1].error = "damaged"
    #expect(report.totals.secondFrame.all == nil)
    #expect(report.totals.firstFrame.all?.count == 2)
  }

  @Test("The cause of a slow first frame")
  func cause() {
    #expect(WalkReport.sample().swipes[4].cause == "manifest 142 ms, segment 201 ms, decode 12 ms")
    #expect(SwipeRecord.cause(of: [StageTime(stage: "decode", duration: .microseconds(499))]) == nil)
  }

  @Test("JSON and back again")
  func coding() throws {
    let report = WalkReport.sample()
    let json = try report.json()
    #expect(try JSONDecoder().decode(WalkReport.self, from: Data(json.utf8)) == report)
    #expect(try report.json() == json)
    #expect(!json.contains("\n"))
    #expect(!json.contains("swipe_shares"))
    #expect(!json.contains("first_rung"))
    var other = report
    other.settings.firstRung = .low
    other.settings.shares = try SwipeShares(flicks: 0.125)
    let settings = try other.json()
    #expect(settings.contains(#""first_rung":"low""#))
    #expect(settings.contains(#""swipe_shares":{"back":0.15,"bursts":0.05,"flicks":0.125}"#))
    #expect(try JSONDecoder().decode(WalkReport.self, from: Data(settings.utf8)) == other)
    #expect(throws: DecodingError.self) {
      let damaged = settings.replacing(#""flicks":0.125"#, with: #""flicks":1.5"#)
      return try JSONDecoder().decode(WalkReport.self, from: Data(damaged.utf8))
    }
    let empty = try WalkReport.empty.json()
    #expect(try JSONDecoder().decode(WalkReport.self, from: Data(empty.utf8)) == .empty)
  }

  @Test("Keys are in snake_case, with their units")
  func keys() throws {
    let json = try WalkReport.sample().json()
    let value = try JSONSerialization.jsonObject(with: Data(json.utf8))
    let root = try #require(value as? [String: Any])
    var keys: Set<String> = []
    func collect(_ value: Any) {
      if let object = value as? [String: Any] {
        keys.formUnion(object.keys)
        object.values.forEach(collect)
      }
      if let array = value as? [Any] { array.forEach(collect) }
    }
    collect(root)
    #expect(keys.allSatisfy { $0.wholeMatch(of: /[a-z][a-z0-9_]*/) != nil })
    #expect(
      keys.isSuperset(of: ["ttff_ms", "second_frame_ms", "fetched_bytes", "p95_ms", "slot_peak_bytes"]))
    let totals = try #require(root["totals"] as? [String: Any])
    let all = try #require((totals["ttff"] as? [String: Any])?["hits"] as? [String: Any])
    #expect(all["max_ms"] as? Double == 0.02)
    #expect((totals["hit_ratio_by_stage"] as? [String: Double])?["first_frame"] == 0.6)
    let settings = try #require(root["settings"] as? [String: Any])
    #expect(settings["decode_cost_ms"] as? Double == 2.5)
  }

  @Test("What is no report is refused")
  func damaged() throws {
    let json = try WalkReport.sample().json()
    for (part, other) in [
      (#""stage":"manifest""#, #""stage":"never""#), (#""kind":"jump""#, #""kind":"hop""#),
      (#""duration_ms":16000"#, #""duration_ms":1e300"#), (#""label":"3 slots","#, ""),
    ] {
      #expect(json.contains(part))
      let damaged = json.replacing(part, with: other)
      #expect(throws: DecodingError.self) {
        try JSONDecoder().decode(WalkReport.self, from: Data(damaged.utf8))
      }
    }
  }
}
