import Foundation
import ReelCore
import ReelPool
import ReelLab
import ReelPlayback
import ReelTestSupport
import Testing

@Suite("Reports of walks")
struct WalkReportTests {
  @Test("Which waits count")
  func totals() throws {
    let totals = WalkReport.sample().totals
    #expect(totals.swipeCount == 7)
    #expect(totals.counted.count == 5)
    #expect(WalkFigures["abandoned"].value(in: totals) == .count(1))
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
    #expect(WalkFigures["stalls.count"].value(in: totals) == .count(3))
    #expect(WalkFigures["stalls.total"].value(in: totals) == .time(.milliseconds(1_200)))
    #expect(WalkFigures["stalls.max"].value(in: totals) == .time(.milliseconds(600)))
    #expect(WalkFigures["memory.slot"].value(in: totals) == .size(11_000_000))
    #expect(WalkFigures["bytes.wasted"].value(in: totals) == .share(0.225))
    #expect(WalkFigures["failed"].value(in: totals) == .count(1))
  }

  @Test("Waits over 100 ms and 1 s, rebuffering, and the rungs that were shown")
  func figures() throws {
    let report = WalkReport.sample()
    let totals = report.totals
    // 12, 16 and 20 us, 355 ms, and 2 s that were given up.
    let first = try #require(totals.firstFrame.all)
    #expect(first.over100msCount == 2)
    #expect(first.over1sCount == 1)
    #expect(totals.firstFrame.hits?.over100msCount == 0)
    // 33, 50, 20 and 400 ms, and 2 s.
    #expect(WalkFigures["second_frame.over_100ms"].value(in: totals) == .share(0.4))
    #expect(WalkFigures["second_frame.over_1s"].value(in: totals) == .share(0.2))
    // From first frames on: four items, less 12, 20 and 16 us and 355 ms. The start waited longer than it was watched.
    #expect(
      WalkFigures["watched"].value(in: totals) == .time(.microseconds(8_000_000 - 12 - 20 - 16 - 355_000)))
    let ratio = try #require(WalkFigures["rebuffering"].value(in: totals))
    #expect(abs(ratio.scalar - 1.2 / 7.644_952) < 1e-12)
    #expect(WalkFigures["rung.mean"].value(in: totals) == .bitRate(625_000))
    #expect(WalkFigures["rung.switches"].value(in: totals) == .count(1))
    #expect(WalkFigures["rung.mean"].value(in: WalkReport.empty.totals) == nil)
    #expect(WalkFigures["rebuffering"].value(in: WalkReport.empty.totals) == nil)
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

  @Test("Equal reports give equal JSON, without what is usual")
  func coding() throws {
    let report = WalkReport.sample()
    let json = try report.json()
    #expect(try report.json() == json)
    #expect(!json.contains("\n"))
    #expect(!json.contains("swipe_shares"))
    #expect(!json.contains("first_rung"))
    #expect(!json.contains("interrupted") && !json.contains("assertions"))
    var other = report
    other.settings.firstRung = .low
    other.settings.shares = try SwipeShares(back: 0.125)
    let settings = try other.json()
    #expect(settings.contains(#""first_rung":"low""#))
    #expect(settings.contains(#""swipe_shares":{"back":0.125,"bursts":0.05}"#))
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
      keys.isSuperset(of: ["first_frame_ms", "second_frame_ms", "fetched_bytes", "p95_ms", "slot_peak_bytes"])
    )
    let totals = try #require(root["totals"] as? [String: Any])
    let hits = try #require((totals["first_frame"] as? [String: Any])?["hit"] as? [String: Any])
    #expect(hits["max_ms"] as? Double == 0.02)
    #expect((totals["reached"] as? [String: Double])?["first_frame"] == 0.6)
    let settings = try #require(root["settings"] as? [String: Any])
    #expect(settings["decode_cost_ms"] as? Double == 2.5)
  }

  @Test("The name of a figure is its path in the totals, with the suffix of its unit")
  func paths() throws {
    let totals = WalkReport.sample().totals
    let text = try JSONLine.string(totals)
    let root = try JSONSerialization.jsonObject(with: Data(text.utf8))
    for figure in WalkFigures.all {
      for kind in figure.kinds {
        let suffix =
          switch kind {
          case .time: "_ms"
          case .size: "_bytes"
          case .count: kind == figure.kinds[0] ? "" : "_count"
          case .share, .bitRate: ""
          }
        let found = (figure.name + suffix).split(separator: ".").reduce(root as Any?) { object, key in
          (object as? [String: Any])?[String(key)]
        }
        let value = try #require(figure.value(in: totals, as: kind)?.scalar)
        #expect(abs((found as? Double ?? .nan) - value) <= 1e-9 * value.magnitude, "\(figure.name)")
      }
    }
  }
}
