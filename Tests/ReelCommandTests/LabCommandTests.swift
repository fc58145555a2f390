import Foundation
import ReelCore
import ReelTestSupport
import Testing

@Suite("reel lab", .hangLimit)
struct LabCommandTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    let items = ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "media/audio-aac.mp4"].map(Fixtures.path)
    try folder.write(items.joined(separator: "\n"), to: "feed.txt")
    try folder.write("0 8\n1 4\n2 6\n", to: "links/fast")
    try folder.write("0 1\n1 0.5\n", to: "links/slow")
  }

  private func configuration(_ name: String = "lab.json", seeds: Int = 2) throws -> String {
    try folder.write(
      """
      {"feeds": ["feed.txt"], "links": ["links"], "dwells": ["exp:1s"], "policies": ["adjacent", "none"],
       "seeds": \(seeds), "swipes": 6}
      """, to: name)
  }

  private func results(_ name: String = "lab.results.jsonl") throws -> [String] {
    try folder.text(name).split(separator: "\n").map(String.init)
  }

  @Test("A lab with a modelled player goes on with the results that it has")
  func modelledResults() async throws {
    var runs: [(status: Int32, bytes: [UInt8])] = []
    for _ in 1...2 {
      let result = try await Command.run(
        "lab", "--feed", folder.path("feed.txt"), "--player", "hls.js", "--link", "lte", "--policies", "none",
        "--swipes", "2", "--results", folder.path("modelled.jsonl"))
      #expect(!result.errorText.contains("another configuration"), "\(result.errorText)")
      runs.append((result.status, Array(try folder.bytes("modelled.jsonl"))))
    }
    #expect(runs[0] == runs[1])
  }

  @Test("The same lab gives the same bytes: on one core or several, and continued after a cut")
  func repeatable() async throws {
    let lab = try configuration()
    let first = try await Command.run("lab", lab, "--jobs", "3", "--csv", folder.path("1.csv"), status: 0)
    #expect(first.errorText.isEmpty, "\(first.errorText)")
    let bytes = try folder.bytes("lab.results.jsonl")
    let lines = try results()
    #expect(lines.count == 9)
    let result = try jsonObject(lines[1])
    let run = try #require(result["run"] as? [String: Any])
    #expect(run["link"] as? String == "fast")
    #expect(run["link_group"] as? String == "links")
    #expect(run["policy"] as? String == "adjacent")
    let figures = try #require(result["figures"] as? [String: Double])
    #expect(figures["second_frame.p95"] != nil)
    #expect(figures["bytes.fetched"] ?? 0 > 0)
    #expect(figures["memory.pool"] ?? 0 > 0)
    let csv = try folder.text("1.csv").components(separatedBy: "\r\n")
    #expect(csv.count == 10)
    #expect(
      Set(csv.dropLast().map { $0.split(separator: ",", omittingEmptySubsequences: false).count }).count == 1)

    // All is done.
    let again = try await Command.run("lab", lab, "--csv", folder.path("2.csv"), status: 0)
    #expect(again.output == first.output)
    #expect(again.errorText == "reel: continuing: 8 of 8 walks are done\n")
    #expect(try folder.bytes("lab.results.jsonl") == bytes)
    #expect(try folder.bytes("2.csv") == folder.bytes("1.csv"))

    // What a kill leaves: results out of order, the last one cut.
    let cut = [lines[0], lines[5], lines[2], String(lines[7].dropLast(9))].joined(separator: "\n")
    try folder.write(cut, to: "lab.results.jsonl")
    let continued = try await Command.run("lab", lab, "--jobs", "1", status: 0)
    #expect(continued.errorText == "reel: continuing: 2 of 8 walks are done\n")
    #expect(continued.output == first.output)
    #expect(try folder.bytes("lab.results.jsonl") == bytes)

    let anew = try await Command.run("lab", lab, "--restart", "--quiet", status: 0)
    #expect(anew.output.isEmpty && anew.errorText.isEmpty)
    #expect(try folder.bytes("lab.results.jsonl") == bytes)
  }

  @Test("Interrupted, a lab keeps what is done and continues there")
  func interruption() async throws {
    let lab = try configuration(seeds: 400)
    let command = try Command([
      "lab", lab, "--csv", folder.path("part.csv"), "--report", folder.path("part.html"),
    ])
    try await until { (try? results().count) ?? 0 > 4 }
    command.interrupt()
    let result = try await command.result()
    #expect(result.status == 130, "\(result.errorText)")
    #expect(!result.wasSignalled)
    #expect(result.outputText.contains("adjacent"), "\(result.outputText)")
    let count = try results().count
    #expect(count > 4 && count < 1600)
    #expect(
      result.outputText.hasPrefix("So far, \(count - 1) of 1600 walks: with Reel's own pool of 3 players on ")
    )
    #expect(result.outputText.contains("\n\(count - 1) of 1600 walks, interrupted: "), "\(result.outputText)")
    #expect(try folder.text("part.html").contains("\(count - 1) of 1600 walks, interrupted"))
    let lines = try folder.text("part.csv").components(separatedBy: "\r\n").dropLast()
    #expect(lines.count == 1601 && lines.count { $0.hasSuffix(",interrupted") } == 1601 - count)
    #expect(result.errorText.contains("interrupted: \(count - 1) of 1600 walks done;"), "\(result.errorText)")
    let dry = try await Command.run("lab", lab, "--dry-run", status: 0)
    #expect(dry.outputText.hasPrefix("1600 walks: 1 feed × 2 links"), "\(dry.outputText)")
    #expect(dry.outputText.contains("by the time that 6 walks took"), "\(dry.outputText)")

    // As many as are done already.
    let next = try Command(["lab", lab])
    try await until { (try? results().count) ?? 0 > count }
    next.interrupt()
    let more = try await next.result()
    #expect(more.status == 130)
    #expect(
      more.errorText.hasPrefix("reel: continuing: \(count - 1) of 1600 walks are done"), "\(more.errorText)")
  }

  @Test("On the command line, options state the same as a configuration")
  func shortForm() async throws {
    let arguments = [
      "lab", "--feed", folder.path("feed.txt"), "--link", folder.path("links"), "--dwell", "exp:1s",
      "--policies",
      "adjacent,none", "--seeds", "2", "--swipes", "6",
    ]
    let short = try await Command.run(arguments, status: 0)
    let long = try await Command.run("lab", try configuration())
    #expect(short.output == long.output)
    #expect(folder.names().filter { $0.hasSuffix(".jsonl") } == ["lab.results.jsonl"])
    try await Command.run(arguments + ["--results", folder.path("short.jsonl"), "--quiet"], status: 0)
    #expect(try folder.bytes("short.jsonl") == folder.bytes("lab.results.jsonl"))
  }

  @Test(
    "Options that say too much or too little",
    arguments: [
      ([], "name a configuration, or a feed with --feed"),
      (["LAB", "--link", "lte", "--pools", "3"], "--link, --pools can't be combined"),
      (["-"], "name a file"),
      (["LAB", "--settle", "0ms"], "--settle can't be combined"),
      (["LAB", "--visits", "2"], "--visits can't be combined"),
      (["--feed", "FEED", "--visits", "101"], "--visits must be from 1 to 100, not 101"),
      (
        ["--feed", "FEED", "--player", "mpv", "--simulated-cache", "1MB"],
        "--simulated-cache: mpv keeps nothing on disk"
      ),
      (["--feed", "FEED", "--settle", "11s"], "--settle: \"11s\" is not a time from 0 to 10 s with a unit"),
      (["--feed", "FEED", "--pools", "0"], "--pools: must be a whole number from 1 to 1000, not 0"),
      (["--feed", "FEED", "--pools", "many"], "--pools: \"many\" is not a whole number"),
      (["--feed", "FEED", "--policies", "most"], "\"most\" is not a preload policy"),
      (["--feed", "FEED", "--link", "4"], "--link: "),
      (["--feed", "FEED", "--dwell", "exp"], "--dwell: \"exp\" is not a dwell time"),
      (["--feed", "FEED", "--device", "huge"], "--device: \"huge\" is not a device"),
      (["--feed", "FEED", "--seeds", "1000000"], "the lab has 12000000 walks, and the limit is 1000000"),
      (["LAB", "--baseline", "media3"], "--baseline: the lab has no policy media3; it has adjacent, none"),
      (["--feed", "FEED", "--flicks", "5%"], "--flicks was removed: --dwell trace:FILE"),
      (["--feed", "FEED", "--viewer", "exp:5s"], "--viewer was removed: use --dwell, with the same values"),
      (["--feed", "FEED", "--advise"], "--advise needs a modelled player"),
      (["LAB", "--csv", "-"], "--csv takes a file"),
      (["LAB", "--csv", "LAB"], "--csv names a file that the lab already uses"),
    ])
  func usage(arguments: [String], words: String) async throws {
    let lab = try configuration()
    let arguments = arguments.map { $0 == "LAB" ? lab : $0 == "FEED" ? folder.path("feed.txt") : $0 }
    let result = try await Command.run(["lab"] + arguments, status: 64)
    #expect(result.output.isEmpty)
    #expect(result.errorText.contains(words), "\(result.errorText)")
    #expect(!folder.names().contains { $0.hasSuffix(".jsonl") })
  }

  @Test("What is wrong in files is told before the first walk")
  func faults() async throws {
    try folder.write("0 1\n1 2\nx y\n", to: "bad")
    try folder.write("{\"feeds\": [\"feed.txt\"], \"links\": [\"links\",\n \"bad\"]}", to: "lab.json")
    let result = try await Command.run("lab", folder.path("lab.json"), status: 65)
    expectErrorLine(
      result, names: folder.path("lab.json"),
      words: "links[1]: \(folder.path("bad")): line 3: the time \"x\" is not a number")
    let none = try await Command.run("lab", folder.path("none.json"), status: 66)
    expectErrorLine(none, names: folder.path("none.json"), words: "no such file")
    let endless = try await Command.run("lab", "/dev/zero", status: 65)
    expectErrorLine(endless, names: "/dev/zero", words: "larger than the limit of 1048576 bytes")
  }

  @Test("Results of another configuration, and those of a lab that still runs")
  func otherResults() async throws {
    let lab = try configuration()
    #expect(try await Command.run("lab", lab, "--quiet").status == 0)
    let bytes = try folder.bytes("lab.results.jsonl")
    _ = try configuration(seeds: 3)
    let other = try await Command.run("lab", lab, status: 73)
    expectErrorLine(
      other, names: folder.path("lab.results.jsonl"), words: "another configuration; use --restart")
    #expect(try folder.bytes("lab.results.jsonl") == bytes)

    let long = try configuration("long.json", seeds: 400)
    let running = try Command(["lab", long])
    try await until { (try? results("long.results.jsonl").count) ?? 0 > 1 }
    let second = try await Command.run("lab", long, status: 73)
    expectErrorLine(second, names: folder.path("long.results.jsonl"), words: "another reel lab is using it")
    running.interrupt()
    #expect(try await running.result().status == 130)
  }

  @Test("Advice answers how many items to preload, in text, JSON and page")
  func advice() async throws {
    try folder.write(
      ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "none.m3u8"].map(Fixtures.path).joined(separator: "\n"),
      to: "feed.txt")
    let arguments = [
      "lab", "--feed", folder.path("feed.txt"), "--player", "hls.js", "--link", "lte", "--swipes", "6",
      "--advise",
    ]
    let text = try await Command.run(arguments + ["--report", folder.path("a.html")], status: 0).outputText
    #expect(text.hasPrefix("With hls.js on lte, "), "\(text)")
    #expect(
      text.contains(
        " for each choice, with 95 % intervals. Simulated (links: slow start, TLS, DNS): waits from the end of the drag to "
      ))
    #expect(text.contains("failed: item 2, "))
    #expect(text.contains("\nconst instances = "))
    #expect(try folder.text("a.html").contains("const instances = "))
    let json = try jsonObject(try await Command.run(arguments + ["--json"], status: 0).outputText)
    let advice = try #require(json["advice"] as? [String: Any])
    #expect(advice["player"] as? String == "hls.js")
    #expect((advice["settings"] as? [[String: Any]])?.count == 4)
    #expect((json["failed_items"] as? [[String: Any]])?.first?["item_index"] as? Int == 2)
    #expect((json["policies"] as? [String])?.contains("ahead:2,3s") == true)
  }

  @Test("Policies with a time are one policy each")
  func policiesWithTimes() async throws {
    let text = try await Command.run(
      "lab", "--feed", folder.path("feed.txt"), "--player", "hls.js", "--link", "lte", "--swipes", "4",
      "--policies", "none,ahead:1,1s,ahead:3,3s", status: 0
    ).outputText
    #expect(text.contains("4 slots, 3 policies") && text.contains("preloading "), "\(text)")
  }

  @Test("A disk that is full")
  func fullDisk() async throws {
    let result = try await Command.run(
      ["lab", try configuration()], shell: "trap '' XFSZ; ulimit -f 1; exec \"$@\"", status: 74)
    expectErrorLine(
      result, names: folder.path("lab.results.jsonl"), words: "can't be written: File too large")
    // What was written stands.
    try await Command.run("lab", folder.path("lab.json"), status: 0)
    #expect(try results().count == 9)
  }
}
