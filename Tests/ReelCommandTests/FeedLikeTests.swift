import Foundation
import ReelLab
import ReelModels
import ReelTestSupport
import Testing

@Suite("reel feed --like", .hangLimit)
struct FeedLikeTests {
  private static let items = ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"]

  /// A playback that swipes every 4 s.
  private struct Playback {
    var name = "p"
    var player: String? = "hls.js 0.14.3"
    var preload = 0
    /// For each swipe, the first and second frame in ms; empty for an item without a frame.
    var waits: [[Double]]
    var clock = (rate: 1.0, zero: 7_000.0)
  }

  /// Writes a recording with the lines of its playbacks in the order of their times.
  private func record(
    _ playbacks: [Playback], link: String? = "10Mbit/50ms", items: [String] = Self.items,
    to folder: TemporaryFolder, name: String = "run.jsonl"
  ) throws -> String {
    let path = folder.path(name)
    let run = RecordedRun(
      startedAt: "2026-11-29T04:00:00Z", source: folder.path("feed.txt"),
      items: items.map { .init(name: $0, path: "/" + $0) },
      link: link.map { .init(text: $0, bitsPerSecond: 10_000_000, roundTripMs: 50) })
    let writer = try RecordingWriter(path: path, run: run)
    for playback in playbacks {
      func add(_ kind: String, at time: Double, _ fields: [String: Any]) throws {
        var report = fields
        (report["kind"], report["playback"]) = (kind, playback.name)
        report["sent_ms"] = playback.clock.zero + time * playback.clock.rate
        let json = try JSONSerialization.data(withJSONObject: report)
        try writer.add(reportOf: Array(json), from: "10.0.0.1", at: .milliseconds(time))
      }
      try add("start", at: 0, ["preload": playback.preload, "player": playback.player ?? NSNull()])
      for (number, waits) in playback.waits.enumerated() {
        let time = Double(number) * 4_000
        var fields: [String: Any] = [
          "number": number, "item": items[number % items.count], "left_ms": 3_900.0 * playback.clock.rate,
          "swipe_ms": playback.clock.zero + time * playback.clock.rate,
        ]
        if waits.count == 2 { (fields["first_frame_ms"], fields["second_frame_ms"]) = (waits[0], waits[1]) }
        try add("swipe", at: time + 3_950, fields)
      }
    }
    try writer.finish()
    _ = try? folder.writeFeed(Self.items)
    return path
  }

  /// The waits that a model predicts for a walk of so many swipes.
  private func waits(_ model: String, preload: Int, count: Int, _ folder: TemporaryFolder) async throws
    -> [[Double]]
  {
    let asked = Playback(preload: preload, waits: [[Double]](repeating: [], count: count))
    let path = try record([asked], to: folder, name: "asked\(preload).jsonl")
    let feed = try folder.writeFeed(Self.items)
    let object = try await Command.run(
      "feed", feed, "--like", path, "--player", model, "--json", status: 0
    ).object
    let swipes = try #require(object["swipes"] as? [[String: Any]])
    return try swipes.map { swipe in
      let predicted = try #require(swipe["predicted"] as? [String: Any])
      return [
        try #require(predicted["first_frame_ms"] as? Double),
        try #require(predicted["second_frame_ms"] as? Double),
      ]
    }
  }

  private func model(_ name: String, _ change: (inout PlayerModel) -> Void, _ folder: TemporaryFolder) throws
    -> String
  {
    var model = try PlayerModel(argument: name)
    change(&model)
    return try folder.write(try model.json(), to: "true.json")
  }

  @Test(
    "Costs that are known are found, and predict the swipes that were left out", arguments: [-30.0, 55.0])
  func fit(shift: Double) async throws {
    let folder = try TemporaryFolder()
    let usual = try PlayerModel(argument: "hls.js").costs
    let truth = try model(
      "hls.js",
      { model in
        model.costs.createMs = max(0, usual.createMs + shift)
        model.costs.presentMs += shift - (model.costs.createMs - usual.createMs)
        model.costs.playMs += 35
        model.costs.swapMs = 40
      }, folder)
    let playbacks = [
      Playback(name: "replaced", waits: try await waits(truth, preload: 0, count: 11, folder)),
      Playback(name: "preloaded", preload: 1, waits: try await waits(truth, preload: 1, count: 11, folder)),
    ]
    let path = try record(playbacks, to: folder)
    let feed = try folder.writeFeed(Self.items)
    let output = folder.path("mine.json")
    let objects = try await Command.run(
      "feed", feed, "--like", path, "--fit", output, "--json", status: 0
    ).objects
    try #require(objects.count == 3)
    let fitted = try PlayerModel(argument: output)
    func start(_ costs: PlayerModel.Costs) -> Double {
      costs.createMs + costs.appendMs + costs.openDecoderMs + costs.parseMs + costs.decodeMs + costs.presentMs
    }
    #expect(abs(start(fitted.costs) - start(usual) - shift) < 1)
    #expect(abs(fitted.costs.playMs - usual.playMs - 35) < 1)
    #expect(abs(fitted.costs.swapMs - 40) < 1)
    let source = try #require(fitted.source(of: "costs.swap_ms"))
    #expect(
      source.recording == "run.jsonl" && source.version == "hls.js 0.14.3" && source.date == "2026-11-29")
    let errors = try ["before", "after"].map { name in
      let waits = try #require((objects[2][name] as? [String: Any])?["first_frame"] as? [String: Any])
      return try #require(waits["mean_error_ms"] as? Double)
    }
    #expect(errors[0] > 20 && errors[1] < 1)
    #expect(objects[2]["used"] as? Int == 10 && objects[2]["left_out"] as? Int == 10)
    let schema = try JSONSchema(contentsOf: Document.root.appending(path: "Docs/schemas/like.json"))
    for object in objects { try schema.check(object) }
  }

  @Test("A recording of hls.js in Chromium is predicted; its feed is a folder that has other items too")
  func chromium() async throws {
    let folder = try TemporaryFolder()
    let recording = Fixtures.path("recordings/chromium.jsonl")
    let objects = try await Command.run(
      "feed", Fixtures.folder.path, "--like", recording, "--fit", folder.path("mine.json"),
      "--json", status: 0
    ).objects
    try #require(objects.count == 3)
    #expect(objects.prefix(2).map { $0["player"] as? String } == ["hls.js", "hls.js"])
    #expect(objects.prefix(2).map { $0["preload"] as? Int } == [0, 1])
    for object in objects.prefix(2) {
      let waits = try #require(object["first_frame"] as? [String: Any])
      #expect(try #require(waits["mean_error_ms"] as? Double) < 100)
    }
    let waits = try #require((objects[2]["after"] as? [String: Any])?["first_frame"] as? [String: Any])
    #expect(try #require(waits["mean_error_ms"] as? Double) < 100)
  }

  @Test("A model from documentation becomes a measured one; what has no swipes is not fitted")
  func measured() async throws {
    let folder = try TemporaryFolder()
    let path = try record(
      [.init(player: "media3 1.11", waits: [[Double]](repeating: [700, 760], count: 7))], to: folder)
    let result = try await Command.run(
      "feed", "--like", path, "--fit", folder.path("mine.json"), status: 0)
    #expect(result.outputText.contains("media3 (from documentation, not measured) for media3 1.11"))
    #expect(result.outputText.contains("10Mbit/50ms (ideal), the link of the recording"))
    #expect(result.outputText.contains("not fitted: swap_ms: no swipe went to a preloaded item"))
    let fitted = try PlayerModel(argument: folder.path("mine.json"))
    #expect(fitted.isMeasured && fitted.title == "media3")
    #expect(try PlayerModel(argument: "media3").costs.swapMs == fitted.costs.swapMs)
  }

  @Test("Without a link, it is that of the option, or an estimate from the requests")
  func links() async throws {
    let folder = try TemporaryFolder()
    let path = try record([.init(waits: [[700, 760], [700, 760]])], link: nil, to: folder)
    let none = try await Command.run("feed", "--like", path, status: 64)
    #expect(none.errorText.contains("name it with --link"), "\(none.errorText)")
    let option = try await Command.run("feed", "--like", path, "--link", "3g", "--json", status: 0).object
    #expect(option["link_origin"] as? String == "option" && option["link"] as? String == "3g")
    var lines = try folder.text("run.jsonl")
    var time = 0.0
    for number in 0..<20 {
      let bytes = number % 2 == 0 ? 900 : 250_000
      lines +=
        #"{"kind":"request","received_ms":\#(time),"last_byte_ms":\#(time + 1),"bytes":\#(bytes),"method":"GET","path":"/a","connection":3}"#
        + "\n"
      // 10 Mbit/s and 50 ms.
      time += 50 + Double(bytes) * 8 / 10_000
    }
    let other = try folder.write(lines, to: "other.jsonl")
    let estimate = try await Command.run("feed", "--like", other, "--json", status: 0).object
    #expect(estimate["link_origin"] as? String == "estimate")
    #expect(abs((estimate["bits_per_second"] as? Double ?? 0) - 1e7) < 5e5)
    #expect(abs((estimate["round_trip_ms"] as? Double ?? 0) - 50) <= 2)
  }

  @Test("Swipes without a first frame are counted, and not compared")
  func failed() async throws {
    let folder = try TemporaryFolder()
    let path = try record([.init(waits: [[700, 760], [], [700, 760], [], [700, 760]])], to: folder)
    let result = try await Command.run("feed", "--like", path, status: 0)
    #expect(result.outputText.contains("without a first frame: 2 swipes"))
    let fit = try await Command.run("feed", "--like", path, "--fit", folder.path("x.json"), status: 64)
    #expect(fit.errorText.contains("can't be fitted to 2 swipes"), "\(fit.errorText)")
    #expect(!folder.names().contains("x.json"))
  }

  @Test("Several players: each is walked, one can be chosen, and a fit takes one")
  func several() async throws {
    let folder = try TemporaryFolder()
    let waits = [[Double]](repeating: [700, 760], count: 6)
    let path = try record(
      [.init(waits: waits), .init(name: "phone", player: "Video.js 7.5.5", waits: waits)], to: folder)
    let both = try await Command.run("feed", "--like", path, "--json", status: 0)
    #expect(try both.objects.compactMap { $0["player"] as? String } == ["hls.js", "video.js"])
    #expect(both.errorText.contains("at the same time"))
    let one = try await Command.run("feed", "--like", path, "--playback", "phone", "--json", status: 0)
    #expect(try one.objects.compactMap { $0["playback"] as? String } == ["phone"])
    let fit = try await Command.run("feed", "--like", path, "--fit", folder.path("x.json"), status: 64)
    #expect(fit.errorText.contains("--playback: p (hls.js 0.14.3), phone (Video.js 7.5.5)"))
  }

  @Test("What is wrong with a recording is said in a line, and what could be read is used")
  func notes() async throws {
    let folder = try TemporaryFolder()
    let waits = [[Double]](repeating: [700, 760], count: 12)
    let path = try record([.init(waits: waits, clock: (0.97, 0))], to: folder)
    let stranger =
      #"{"kind":"swipe","playback":"q","sent_ms":9,"item":"hls-ts/master.m3u8","swipe_ms":1,"clock_offset_ms":0}"#
    let text = try folder.text("run.jsonl") + stranger + "\n" + #"{"bytes":12,"conn"#
    let damaged = try folder.write(text, to: "damaged.jsonl")
    let result = try await Command.run("feed", "--like", damaged, "--json", status: 0)
    #expect((try result.object["swipes"] as? [Any])?.count == 12)
    for words in ["was cut off", "1 report of unknown playbacks, such as q", "runs apart"] {
      #expect(result.errorText.contains(words), "\(result.errorText)")
    }
    // By the clock of the server.
    let swipes = try #require(try result.object["swipes"] as? [[String: Any]])
    let last = try #require(swipes.last?["time_ms"] as? Double)
    #expect(abs(last - 44_000) < 400)
    #expect(try await Command.run("feed", "--like", path, status: 0).errorText.contains("runs apart"))
  }

  @Test("Recordings and options that can't be used")
  func refused() async throws {
    let folder = try TemporaryFolder()
    let waits = [[Double]](repeating: [700, 760], count: 6)
    let good = try record([.init(waits: waits)], to: folder)
    let unnamed = try record([.init(player: "my app 2", waits: waits)], to: folder, name: "app.jsonl")
    let empty = try record([.init(waits: [[700, 760]])], to: folder, name: "empty.jsonl")
    let other = try record([.init(waits: waits)], items: ["a.mp4", "b.mp4"], to: folder, name: "other.jsonl")
    let feed = try folder.writeFeed(Self.items)
    for (arguments, words) in [
      ([feed, "--like", other], "a recording of another feed: this one has no item a.mp4"),
      (["--like", empty], "a recording without swipes"),
      (["--like", unnamed], "which reports \"my app 2\""),
      (["--like", good, "--playback", "x"], "no playback x"), (["--like", feed], "not a recording"),
      (["--like", good, "--fit", good], "would replace the recording"),
      (["--like", good, "--player", "reel"], "reel is no model"),
      (["--like", good, "--swipes", "3"], "--swipes can't be combined with --like"),
      (["--like", good, "--settle", "0ms"], "--settle can't be combined with --like"),
      ([feed, "--fit", "x.json"], "require --like"),
    ] {
      let result = try await Command.run(["feed"] + arguments, directory: folder.path)
      #expect(result.status != 0 && result.errorText.contains(words), "\(arguments): \(result.errorText)")
    }
  }
}
