import Foundation
import ReelCore
import ReelModels
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelLab

@Suite("Walks of recordings")
struct RecordedWalkTests {
  private let names = ["a.m3u8", "b.m3u8", "c.m3u8"]

  private struct Swipe {
    var item: String
    var time: Double
    var wait: Double? = 700
    var isReady: Bool?
  }

  private func read(
    _ swipes: [Swipe], player: String = "hls.js 0.14.3", agent: String = "", preload: Int = 0
  ) throws -> RecordedWalk {
    let folder = try TemporaryFolder()
    let path = folder.path("run.jsonl")
    let writer = try RecordingWriter(
      path: path,
      run: RecordedRun(
        startedAt: "2026-11-29T04:00:00Z", items: names.map { .init(name: $0, path: "/" + $0) }, link: nil))
    func add(_ fields: [String: Any]) throws {
      var report = fields
      (report["playback"], report["sent_ms"]) = ("p", 100_000)
      try writer.add(
        reportOf: Array(try JSONSerialization.data(withJSONObject: report)), from: nil, at: .seconds(100))
    }
    try add(["kind": "start", "player": player, "agent": agent, "preload": preload])
    for swipe in swipes {
      var fields: [String: Any] = ["kind": "swipe", "item": swipe.item, "swipe_ms": swipe.time]
      fields["first_frame_ms"] = swipe.wait
      fields["second_frame_ms"] = swipe.wait.map { $0 + 60 }
      fields["ready"] = swipe.isReady
      try add(fields)
    }
    try writer.finish()
    return try #require(
      try RecordedWalks(try PlayerRecording(path: path), estimatesLink: false).walks.first)
  }

  /// Items of HLS with segments of 2 s and 500 kB.
  private func facts() throws -> [ItemFacts?] {
    try names.map { name in
      let base = try #require(URL(string: "http://10.0.0.1/\(name)"))
      var rung = ItemFacts.Rung(
        (0..<4).map { index in
          LinkPlayback.Segment(
            base.appending(path: "\(index)"), [LinkPlayback.Piece(byteCount: 500_000, duration: 2)])
        })
      rung.bitsPerSecond = 2_000_000
      return ItemFacts(
        .hls, manifest: LinkPlayback.Request(base, byteCount: 1_000, purpose: .source), video: [rung])
    }
  }

  private func predict(_ walk: RecordedWalk, _ model: PlayerModel) throws -> [PredictedSwipe] {
    walk.predictions(by: model, items: try facts(), link: try LinkSpec(parsing: "8Mbit/100ms"))
  }

  @Test("A feed repeats its items; swipes go to the nearest one, and in the order of their times")
  func places() throws {
    let walk = try read(
      [
        Swipe(item: "a.m3u8", time: 1_000), Swipe(item: "c.m3u8", time: 7_000),
        Swipe(item: "b.m3u8", time: 4_000), Swipe(item: "b.m3u8", time: 4_000),
        Swipe(item: "a.m3u8", time: 10_000), Swipe(item: "c.m3u8", time: 13_000),
        Swipe(item: "c.m3u8", time: 16_000),
      ])
    #expect(walk.swipes.map(\.item) == [0, 1, 2, 0, 2, 2])
    #expect(walk.swipes.map(\.time) == [0, 3, 6, 9, 12, 15].map { .seconds($0) })
    let swipes = try predict(walk, try PlayerModel(argument: "hls.js"))
    #expect(swipes.map(\.visit.swipe.item) == [0, 1, 2, 3, 2, 5])
    #expect(swipes.map(\.isUsable) == [false, true, true, true, true, true])
    let back = try read([
      Swipe(item: "a.m3u8", time: 0), Swipe(item: "c.m3u8", time: 9), Swipe(item: "b.m3u8", time: 99),
    ])
    #expect(
      try predict(back, try PlayerModel(argument: "hls.js")).map(\.visit.swipe.item) == [2, 1, 0])
  }

  @Test("As many items are loaded ahead as the player had")
  func preloaded() throws {
    let swipes = names.enumerated().map { Swipe(item: $1, time: Double($0) * 5_000) }
    for preload in 0...2 {
      let walk = try read(swipes, preload: preload)
      let predicted = try predict(walk, try PlayerModel(argument: "hls.js"))
      #expect(predicted.map(\.isReplaced) == [true, preload == 0, preload == 0])
      #expect(predicted.map(\.isPreloaded) == [false, preload > 0, preload > 0])
    }
  }

  @Test(
    "The model that stands for a player",
    arguments: [
      ("hls.js 1.5.0", "", "hls.js"), ("Video.js 7.5.5", "", "video.js"), ("media3/1.11", "", "media3"),
      ("native", "Mozilla/5.0 AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36", "chromium"),
      ("native", "Mozilla/5.0 (iPhone) AppleWebKit/605.1.15 Version/18.0 Safari/604.1", "avplayer"),
      ("native", "Mozilla/5.0 Gecko Firefox/140", nil), ("my app", "", nil), ("", "", nil),
    ] as [(String, String, String?)])
  func models(player: String, agent: String, name: String?) throws {
    #expect(try read([], player: player, agent: agent).modelName == name)
  }

  @Test("Costs are never negative: what one lacks is taken from the next")
  func small() throws {
    let swipes = (0..<9).map { Swipe(item: names[$0 % 3], time: Double($0) * 5_000, wait: 100) }
    let walk = try read(swipes)
    let model = try PlayerModel(argument: "hls.js")
    let fit = try ModelFit(model, source: .init(recording: "run.jsonl")) {
      (try? predict(walk, $0)) ?? []
    }
    let costs = fit.model.costs
    #expect(
      [costs.createMs, costs.appendMs, costs.openDecoderMs, costs.parseMs, costs.presentMs] == [
        0, 0, 0, 0, 0,
      ])
    #expect(costs.swapMs == model.costs.swapMs && fit.usedCount == 4 && fit.after.count == 4)
    #expect(fit.model.source(of: "costs.create_ms")?.recording == "run.jsonl")
    #expect(fit.model.source(of: "costs.swap_ms") == model.source(of: "costs.swap_ms"))
    #expect(try PlayerModel(json: Array(try fit.model.json().utf8), path: "") == fit.model)
  }
}
