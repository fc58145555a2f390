import Foundation
import ReelLab
import ReelTesting
import ReelTestSupport
import Testing

@Suite("reel feed", .hangLimit)
struct FeedCommandTests {
  private static let items = [
    "hls-fmp4/master.m3u8", "dash-gpac/multirate.mpd", "media/audio-aac.mp4", "hls-ts/master.m3u8",
  ]

  @Test("By a modelled clock the same arguments give the same report and trace, byte for byte")
  func repeatable() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    var outputs: [[UInt8]] = []
    var traces: [[UInt8]] = []
    for number in 0..<2 {
      let result = try await Command.run(
        "feed", feed, "--virtual", "--link", "lte", "--swipes", "12", "--dwell", "exp:1s", "--seed", "5",
        "--json", "--trace", folder.path + "/\(number).jsonl", status: 0)
      outputs.append(result.output)
      traces.append(try folder.bytes("\(number).jsonl"))
    }
    try #require(outputs.count > 1)
    #expect(outputs[0] == outputs[1])
    try #require(traces.count > 1)
    #expect(traces[0] == traces[1])

    // What the trace says of each swipe is what the report says.
    let report = try jsonObject(String(decoding: outputs[0], as: UTF8.self))
    let swipes = try #require(report["swipes"] as? [[String: Any]])
    #expect(swipes.count == 13)
    let events = try String(decoding: traces[0], as: UTF8.self).split(separator: "\n").map {
      try jsonObject($0)
    }
    let times = events.compactMap { $0["time_ms"] as? Double }
    #expect(times.count == events.count)
    #expect(times == times.sorted())
    let kinds = Set(events.compactMap { $0["event"] as? String })
    #expect(
      kinds.isSuperset(of: [
        "swipe", "settled", "assigned", "reached", "evicted", "attached", "detached", "shown", "decoded",
        "request", "response", "received", "departed",
      ]))
    let settled = events.filter { $0["event"] as? String == "settled" }
    let looked = swipes.filter { !($0["passing"] as? Bool ?? false) }
    #expect(settled.count == looked.count)
    let fetched = events.filter { $0["event"] as? String == "departed" }.compactMap { $0["count"] as? Int }
    let totals = try #require(report["totals"] as? [String: Any])
    #expect((totals["bytes"] as? [String: Double])?["fetched_bytes"] == Double(fetched.reduce(0, +)))
  }

  @Test("Neighbours that are preloaded are there, and without a pool they are not")
  func comparison() async throws {
    let folder = try TemporaryFolder()
    let reports = try await Command.run(
      "feed", try folder.writeFeed(Self.items), "--virtual", "--link", "1Mbit/200ms", "--swipes", "6",
      "--dwell", "fixed:3s",
      "--compare", "1:none,3:adjacent,3", "--json", status: 0
    ).objects
    #expect(reports.compactMap { $0["label"] as? String } == ["1 none", "3 adjacent", "3 adaptive"])
    let ratios = reports.map { report in
      ((report["totals"] as? [String: Any])?["hit"] as? [String: Double])?["ratio"] ?? -1
    }
    try #require(ratios.count > 2)
    #expect(ratios[1] > ratios[0] && ratios[2] >= ratios[1], "\(ratios)")
  }

  @Test("Every pool of a comparison gets the same viewer")
  func paired() async throws {
    let folder = try TemporaryFolder()
    let reports = try await Command.run(
      "feed", try folder.writeFeed(Self.items), "--virtual", "--link", "3g", "--swipes", "10", "--dwell",
      "exp:1s", "--back", "20%", "--bursts", "10%", "--compare", "1:none,3,2:ahead:1", "--json",
      status: 0
    ).objects
    let walks = try reports.map { report in
      try #require(report["swipes"] as? [[String: Any]]).map { swipe in
        ["time_ms", "watched_ms", "item_index", "kind"].map { "\(swipe[$0] ?? "-")" }
      }
    }
    #expect(walks.count == 3)
    #expect(Set(walks).count == 1)
    for report in reports {
      let settings = try #require(report["settings"] as? [String: Any])
      #expect(settings["swipe_shares"] as? [String: Double] == ["back": 0.2, "bursts": 0.1])
      #expect(settings["dwell"] as? String == "exp:1s")
      #expect(settings["settle_ms"] as? Double == 0)
      #expect(settings["link_models"] as? [String] == ["tcp", "tls", "dns"])
    }
  }

  @Test("The first line says whose players they are, what the link models, and from when waits count")
  func firstLine() async throws {
    let folder = try TemporaryFolder()
    let walk = [
      "feed", try folder.writeFeed(["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"]), "--swipes", "1",
    ]
    let pool = try await Command.run(walk + ["--virtual", "--link", "lte"], status: 0).outputLines[0]
    #expect(pool.hasPrefix("Reel's own pool, adaptive with 3 players: 1 swipe over 2 items in "), "\(pool)")
    #expect(
      pool.contains(", lte (12 Mbit/s, 70 ms; slow start, TLS, DNS), waits from the end of the drag, "),
      "\(pool)")
    let stated = ["--virtual", "--link", "lte,ideal,tcp,scale=2", "--settle", "250ms", "--player", "reel"]
    let settled = try await Command.run(walk + stated, status: 0).outputLines[0]
    #expect(
      settled.contains(
        ", lte,ideal,tcp,scale=2 (24 Mbit/s, 70 ms; slow start), waits from the settle, 250 ms after the drag, "
      ), "\(settled)")
    let model = try await Command.run(walk + ["--player", "hls.js", "--link", "3g,ideal"], status: 0)
      .outputLines[0]
    #expect(model.hasPrefix("hls.js") && !model.contains("Reel"), "\(model)")
    #expect(
      model.contains(", 3g,ideal (1.6 Mbit/s, 300 ms; ideal), waits from the end of the drag, "), "\(model)")
  }

  @Test("Dwell times are drawn from the retention that the feed states")
  func retention() async throws {
    let folder = try TemporaryFolder()
    let items = Self.items.map {
      "{\"url\": \"\(Fixtures.path($0))\", \"duration\": 3, \"retention\": [1, 0.5]}"
    }
    let path = try folder.write("[\(items.joined(separator: ",\n"))]", to: "feed.json")
    let arguments = ["feed", path, "--virtual", "--link", "lte", "--swipes", "8", "--dwell", "retention"]
    let result = try await Command.run(arguments + ["--json"], status: 0)
    let swipes = try #require(try result.object["swipes"] as? [[String: Any]])
    let watched = swipes.filter { $0["passing"] as? Bool == false }.compactMap { $0["watched_ms"] as? Double }
    #expect(watched.count > 1)
    #expect(watched.allSatisfy { $0 <= 1000 || $0 == 3000 })

    try folder.write("[\(items.joined(separator: ",\n")),\n\"more.mp4\"]", to: "feed.json")
    let lacking = try await Command.run(arguments, status: 65)
    #expect(lacking.errorText.contains("more.mp4"), "\(lacking.errorText)")
    #expect(lacking.errorText.contains("item 4 has no \"retention\""), "\(lacking.errorText)")
  }

  @Test("The rungs that were shown")
  func rungs() async throws {
    let folder = try TemporaryFolder()
    let report = try await Command.run(
      "feed", try folder.writeFeed(["hls-fmp4/master.m3u8", "media/audio-aac.mp4"]), "--virtual", "--link",
      "1Mbit/100ms", "--bandwidth", "auto", "--swipes", "3", "--dwell", "fixed:2s", "--json", status: 0
    ).object
    let swipes = try #require(report["swipes"] as? [[String: Any]])
    var (bits, seconds, switches) = (0.0, 0.0, 0)
    for swipe in swipes {
      let rungs = try #require(swipe["rungs"] as? [[String: Any]])
      let watched = try #require(swipe["watched_ms"] as? Double)
      let shown = rungs.compactMap { $0["shown_ms"] as? Double }
      #expect(shown.count == rungs.count)
      // With the frame on show while the swipe settles.
      #expect(shown.reduce(0, +) <= watched + 100)
      let isFile = (swipe["item_id"] as? String)?.hasSuffix(".mp4") == true
      #expect(rungs.allSatisfy { ($0["bit_rate"] == nil) == isFile && ($0["rung"] == nil) == isFile })
      switches += max(0, rungs.count - 1)
      for rung in rungs {
        guard let rate = rung["bit_rate"] as? Double, let time = rung["shown_ms"] as? Double else { continue }
        bits += rate * time / 1000
        seconds += time / 1000
      }
    }
    let totals = try #require(report["totals"] as? [String: Any])
    let rung = try #require(totals["rung"] as? [String: Double])
    let mean = try #require(rung["mean"])
    #expect(seconds > 0)
    #expect(abs(mean - bits / seconds) < 1)
    #expect(rung["switches"] == Double(switches))
  }

  @Test("Pools that are compared walk as each does alone, in the order given")
  func comparedAlone() async throws {
    let folder = try TemporaryFolder()
    let arguments = [
      "feed", try folder.writeFeed(Self.items), "--virtual", "--link", "2Mbit/80ms", "--swipes", "6",
      "--dwell", "exp:1s",
      "--json",
    ]
    let pools = ["3:ahead:2", "1:none", "4:adjacent", "2:media3"]
    let together = try await Command.run(arguments + ["--compare", pools.joined(separator: ",")], status: 0)
    var alone = ""
    for pool in pools { alone += try await Command.run(arguments + ["--compare", pool]).outputText }
    #expect(together.outputText == alone)
  }

  @Test("An assertion that does not hold ends with 1, and says what was found")
  func assertions() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    let arguments = [
      "feed", feed, "--virtual", "--link", "3g", "--swipes", "3", "--pool", "1", "--preload", "none",
    ]
    let failing = try await Command.run(
      arguments + ["--assert", "first_frame.p95<1ms", "--assert", "failed<=0"], status: 1)
    #expect(failing.errorText.contains("first_frame.p95<1ms"))
    #expect(!failing.errorText.contains("failed<=0"))
    try await Command.run(arguments + ["--assert", "first_frame.p95<60s"], status: 0)
  }

  @Test("So it is where real servers break connections, state wrong lengths, and answer with errors")
  func repeatableOverHTTP() async throws {
    let faults = [
      "hls-fmp4/*segment-1.m4s=close:3000", "hls-ts/*segment-0.ts=length:+300", "*.mp4=close:20000",
      "multirate.mpd=status:503x1",
    ]
    let folder = try TemporaryFolder()
    var walks: [String] = []
    // How many bytes came before a connection was reset is not repeatable, so a walk with a reset is done again.
    while walks.count == Set(walks).count, walks.count < 8 {
      // Anew each time: one fault ends.
      let walk = try await withOrigin(faults.joined(separator: ",")) { origin in
        let feed = try folder.writeFeed(Self.items.map { origin.url($0).absoluteString })
        let result = try await Command.run(
          "feed", feed, "--virtual", "--link", "lte", "--swipes", "12", "--dwell", "exp:1s", "--seed", "5",
          "--json", "--trace", folder.path + "/trace.jsonl", status: 0)
        let trace = try folder.text("trace.jsonl")
        let host = origin.url("").absoluteString
        return (result.outputText + trace).replacingOccurrences(of: host, with: "/")
      }
      walks.append(walk)
    }
    #expect(Set(walks).count < walks.count, "\(walks)")
    #expect(walks.allSatisfy { $0.contains("connection closed by the server after") })
  }

  @Test("A feed comes from standard input; its paths are relative to the current folder")
  func standardInput() async throws {
    let walk = ["--virtual", "--link", "lte", "--swipes", "2", "--dwell", "fixed:1s", "--quiet", "--json"]
    let list = "hls-fmp4/master.m3u8\nhls-ts/master.m3u8\n"
    let result = try await Command.run(
      ["feed", "-"] + walk, input: Array(list.utf8), directory: Fixtures.folder.path, status: 0)
    let settings = try #require(try result.object["settings"] as? [String: Any])
    #expect(settings["feed"] as? String == "-" && settings["items"] as? Int == 2)
    try await Command.run(["feed", "-"] + walk, input: [], status: 65)
  }

  @Test("Over recorded links, each of a folder, the same arguments give the same reports")
  func recordedLinks() async throws {
    let folder = try TemporaryFolder()
    let links = folder.path("links")
    for name in ["hsdpa-bus.txt", "puffer-1.txt", "README.md"] {
      try folder.write(Fixtures.bytes("links/" + name), to: "links/" + name)
    }
    // 12 Mbit/s by delivery opportunities.
    try folder.write((1...50).map { "\($0)" }.joined(separator: "\n"), to: "links/a")
    let options = ",scale=2,start=seed,jitter=10ms,rtt=80ms,tcp,tls,dns"
    let arguments = [
      "feed", try folder.writeFeed(Self.items), "--virtual", "--swipes", "4", "--dwell", "fixed:1s", "--seed",
      "3", "--link",
    ]
    let results = [
      try await Command.run(arguments + [links + options, "--json"]),
      try await Command.run(arguments + [links + options, "--json"]),
    ]
    #expect(results[0].status == 0, "\(results[0].errorText)")
    #expect(results[0].output == results[1].output)
    let reports = try results[0].objects
    #expect(reports.count == 3)
    let settings = reports.compactMap { $0["settings"] as? [String: Any] }
    #expect(
      settings.compactMap { $0["link"] as? String }
        == ["a", "hsdpa-bus.txt", "puffer-1.txt"].map { links + "/" + $0 + options })
    #expect(reports.first?["label"] as? String == "a 3 adaptive")
    // Alone, a recording gives the same figures.
    let alone = try await Command.run(arguments + [links + "/puffer-1.txt" + options, "--json"])
    let totals = try [alone.object, reports[2]].map {
      try JSONSerialization.data(withJSONObject: try #require($0["totals"]), options: .sortedKeys)
    }
    #expect(totals[0] == totals[1])
    let table = try await Command.run(arguments + [links, "--compare", "1:none,3"], status: 0)
    // The sentence, the head and the rows.
    #expect(table.outputLines.count == 2 + 3 * 2)
    #expect(
      table.outputLines.last?.hasPrefix("puffer-1.txt adaptive with 3 players") == true, "\(table.outputText)"
    )
  }

  @Test("Broken recordings are told of in one line, before the walk")
  func brokenLinks() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    try FileManager.default.createDirectory(atPath: folder.path + "/empty", withIntermediateDirectories: true)
    let files: [(name: String, text: String, line: String)] = [
      ("order", "0 1\n5 1\n4 1\n", "line 3: "), ("text", "hello\n", "line 1: "),
      ("zero", "0 0\n9 0\n", "all rates are 0"),
      ("nan", "0 nan\n", "line 1: "), ("none", "", "no lines"), ("all/one", "0 1\n1 -1\n", "line 2: "),
    ]
    for file in files {
      let path = try folder.write(file.text, to: file.name)
      let result = try await Command.run("feed", feed, "--virtual", "--link", path + ",scale=2", status: 65)
      #expect(result.output.isEmpty)
      expectErrorLine(result, names: path, words: file.line)
    }
    let all = try await Command.run("feed", feed, "--virtual", "--link", folder.path + "/all")
    expectErrorLine(all, names: folder.path + "/all/one", words: "line 2: ")
    let empty = try await Command.run("feed", feed, "--virtual", "--link", folder.path + "/empty", status: 66)
    expectErrorLine(empty, names: folder.path + "/empty", words: "no recordings")
  }

  @Test("A broken item fails alone")
  func broken() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed([
      Self.items[0], "bad/html.m3u8", folder.path + "/missing.mp4", Self.items[3], Self.items[2],
    ])
    let report = try await Command.run(
      "feed", feed, "--virtual", "--link", "lte", "--swipes", "4", "--dwell", "fixed:1s", "--json", status: 0
    ).object
    let failed = try #require(report["failed_items"] as? [[String: Any]])
    #expect(failed.compactMap { $0["item_index"] as? Int ?? $0["index"] as? Int }.sorted() == [1, 2])
    let swipes = try #require(report["swipes"] as? [[String: Any]])
    for swipe in swipes where [0, 3, 4].contains(swipe["item_index"] as? Int ?? -1) {
      #expect(swipe["first_frame_ms"] is NSNumber, "\(swipe)")
    }
  }

  @Test("All metrics are listed, without a feed")
  func metrics() async throws {
    let result = try await Command.run("feed", "--list-metrics", status: 0)
    let names = result.outputLines.compactMap { $0.split(separator: " ").first.map(String.init) }
    #expect(WalkFigures.all.allSatisfy { names.contains($0.name) })
    let usage = try await Command.run("feed", status: 64)
    #expect(usage.errorText.contains("name a feed"))
  }

  @Test("The files beside the report are the same for the same arguments, and explain each wait")
  func files() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items + [folder.path + "/missing.mp4"])
    var outputs: [[UInt8]] = []
    let names = ["page.html", "trace.jsonl", "swipes.csv", "junit.xml"]
    for number in 0..<2 {
      let place = "\(folder.path)/\(number)-"
      let result = try await Command.run(
        "feed", feed, "--virtual", "--link", "1Mbit/100ms", "--swipes", "8", "--dwell", "exp:2s", "--json",
        "--assert", "first_frame.p95<60s", "--assert", "failed<=0", "--header", "X-Key: s3cr3t",
        "--report", place + names[0], "--trace", place + names[1], "--csv", place + names[2],
        "--junit", place + names[3], status: 1)
      outputs.append(result.output)
    }
    try #require(outputs.count > 1)
    #expect(outputs[0] == outputs[1])
    for name in names {
      #expect(try folder.bytes("0-\(name)") == folder.bytes("1-\(name)"), "\(name)")
    }
    let page = try folder.text("0-page.html")
    #expect(page.contains("data:image/png;base64,"))
    #expect(!page.contains("s3cr3t"))
    #expect(page.contains("no such file"))

    let report = try jsonObject(String(decoding: outputs[0], as: UTF8.self))
    let met = try #require(report["assertions"] as? [[String: Any]]).compactMap { $0["met"] as? Bool }
    #expect(met == [true, false])
    let swipes = try #require(report["swipes"] as? [[String: Any]])
    var waits = 0
    for swipe in swipes {
      guard let wait = swipe["first_frame_ms"] as? Double, wait > 0 else { continue }
      let parts = try #require(swipe["wait"] as? [[String: Any]]).compactMap { $0["time_ms"] as? Double }
      #expect(abs(parts.reduce(0, +) - wait) < 1e-6, "\(swipe)")
      waits += 1
    }
    #expect(waits > 0)
    #expect(swipes.allSatisfy { $0["loaded_bytes"] is Int })
  }

  @Test("Ctrl-C prints the report of the walk so far, and leaves its files")
  func interrupted() async throws {
    try await withOrigin { origin in
      let folder = try TemporaryFolder()
      let feed = try folder.writeFeed(Self.items.map { origin.url($0).absoluteString })
      let command = try Command([
        "feed", feed, "--swipes", "5", "--dwell", "fixed:60s", "--json", "--report", folder.path("a.html"),
        "--csv", folder.path("a.csv"), "--trace", folder.path("a.jsonl"),
      ])
      await origin.wait { snapshot in snapshot.requests.contains { $0.bodyBytesSent > 0 } }
      command.interrupt()
      let result = try await command.result()
      #expect(result.status == 130)
      let report = try result.object
      #expect(report["interrupted"] as? Bool == true)
      #expect((report["swipes"] as? [Any])?.count == 1)
      #expect(folder.names() == ["a.csv", "a.html", "a.jsonl", "feed.txt"])
      #expect(try folder.text("a.html").contains("</html>"))
    }
  }

  @Test("A comparison as a page")
  func comparisonPage() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "feed", try folder.writeFeed(Self.items), "--virtual", "--link", "lte", "--swipes", "4", "--dwell",
      "fixed:1s",
      "--compare", "1:none,3", "--report", folder.path + "/page.html", "--assert", "failed=0", status: 0)
    #expect(result.outputText.contains("adaptive with 3 players: failed=0: met, 0"))
    let page = try folder.text("page.html")
    let answer = try #require(result.outputLines.first)
    #expect(answer.contains("at p95") && page.contains(answer.prefix { $0 != "'" }), "\(answer)")
  }

  @Test("In real time, with a page")
  func realTime() async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "feed", try folder.writeFeed(Self.items), "--link", "10Mbit/20ms", "--swipes", "3", "--dwell",
      "fixed:0.5s", "--json",
      "--report", folder.path + "/page.html", status: 0)
    #expect(try folder.text("page.html").contains("data:image/png"))
    #expect(folder.names().sorted() == ["feed.txt", "page.html"])
    let report = try result.object
    #expect((report["swipes"] as? [Any])?.count == 4)
  }

  @Test(
    "What makes no sense is refused, and says why",
    arguments: [
      (["--dwell", "often"], ""), (["--dwell", "weibull:0.8,6s"], "was removed; use exp:5s"),
      (["--preload", "all"], ""), (["--preload", "psychic"], "media3"),
      (["--preload", "pdas"], "use adaptive"),
      (["--link", "fast"], ""), (["--link", "lte,fast"], ""), (["--link", "./missing,tcp"], ""),
      (["--link", "missing"], "folder of recordings"), (["--link", "lte,rtt=x"], ""),
      (["--link", "lte,tcp,tcp"], ""), (["--link", Fixtures.path("links"), "--trace", "x"], ""),
      (["--assert", "x<1"], ""), (["--assert", "first_frame.p95!150ms"], "<, <=, >, >= or =,"),
      (["--compare", "a"], ""), (["--compare", "3:"], "\"3:\" is not a pool"),
      (["--compare", "3,3:adaptive"], "\"3 adaptive\" appears twice"), (["--pool", "0"], ""),
      (["--feed", "none"], ""), (["--junit", "a.xml"], ""),
      (["--flicks", "20%"], "--flicks was removed: --dwell trace:FILE"), (["--back", "101%"], ""),
      (["--bursts", "x"], ""), (["--settle", "250"], "--settle: \"250\" is not a time from 0 to 10 s"),
      (["--settle", "10.1s"], "write 250ms"), (["--settle=-1ms"], "--settle: \"-1ms\" is not a time"),
      (["--link", "lte,ideal,ideal"], "ideal is given twice"),
      (["--visits", "2"], "--visits requires simulated time"),
      (["--virtual", "--visits", "0"], "--visits must be from 1 to 100"),
      (["--virtual", "--simulated-cache", "much"], "--simulated-cache: \"much\" is not a size"),
      (["--virtual", "--between", "1d"], "--between requires --visits of 2 or more"),
      (["--virtual", "--visits", "2", "--between", "1"], "write 30min, 12h or 1d"),
      (["--player", "mpv", "--simulated-cache", "1MB"], "mpv keeps nothing on disk"),
      // A trace determines the swipes.
      (["--dwell", "trace:looks", "--back", "15%"], "trace"),
      (["--decode-cost", "4ms"], ""), (["--virtual", "--decode-cost", "4"], "not a time"),
      (["--virtual", "--decode-cost", "1000s"], "above the limit of 10 s"),
      (["--virtual", "--device", "low", "--decode-cost", "4ms"], "--device"),
      (["--virtual", "--device", "low", "--cores", "2"], "--device"),
      (["--virtual", "--device", "medium"], "medium"),
      (["--virtual", "--device", "medium"], "write one of low, mid, high"),
      // Standard output is the report's, and a file has a name.
      (["--trace", "-"], "--trace takes a file"), (["--trace", ""], "--trace takes a file"),
      (["--trace", "trace.json"], "trace.jsonl"),
      (["--report", "-"], "--report takes a file"), (["--report", ""], "--report takes a file"),
    ] as [([String], String)])
  func usage(arguments: [String], words: String) async throws {
    let folder = try TemporaryFolder()
    try folder.write("1\n", to: "looks")
    let feed = try folder.writeFeed(Self.items)
    let result = try await Command.run(["feed", feed] + arguments, directory: folder.path, status: 64)
    #expect(!result.errorText.isEmpty && result.output.isEmpty)
    #expect(words.isEmpty || result.errorText.contains(words), "\(result.errorText)")
    #expect(folder.names() == ["feed.txt", "looks"])
  }

  @Test("A feed that can't be read names the line")
  func unreadable() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.write("{ \"items\": [\n { \"url\": 3 } ] }", to: "feed.json")
    let result = try await Command.run("feed", feed, status: 65)
    #expect(result.errorText.contains("items[0].url"), "\(result.errorText)")
    #expect(try await Command.run("feed", folder.path + "/missing.txt").status == 66)
    #expect(try await Command.run("feed", folder.write("# nothing\n", to: "empty.txt")).status != 0)
  }
}
