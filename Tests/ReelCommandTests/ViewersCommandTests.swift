import Foundation
import HTTPTypes
import ReelCore
import ReelLab
import ReelTestSupport
import ReelTesting
import ReelTransport
import Testing

@testable import ReelCommand

@Suite("reel viewers", .hangLimit)
struct ViewersCommandTests {
  private static let path = "hls-fmp4/master.m3u8"

  /// Runs `reel viewers` on the source of an origin.
  @discardableResult
  private func run(
    _ origin: Origin, viewers: Int = 3, _ options: [String] = [],
    directory: String? = nil, status: Int32? = 0
  ) async throws -> CommandResult {
    try await Command.run(
      [
        "viewers", origin.url(Self.path).absoluteString, "--viewers", "\(viewers)", "--duration", "2",
        "--json",
      ]
        + options, directory: directory, status: status)
  }

  private func number(_ name: String, of object: [String: Any]) throws -> Int {
    try #require(object[name] as? Int, "\(name) of \(object)")
  }

  private func requests(of object: [String: Any]) throws -> [String: Int] {
    try #require(object["requests"] as? [String: Int])
  }

  // MARK: Figures

  @Test("The counts are those of the server, and each second's add up to the sum")
  func counts() async throws {
    try await withOrigin { origin in
      let objects = try await run(origin, viewers: 5, ["--ramp", "500ms", "--assert", "start.max<1h"]).objects
      let summary = try #require(objects.last)
      let seconds = objects.dropLast()
      #expect(summary["event"] as? String == "summary")
      #expect(seconds.count >= 2 && seconds.allSatisfy { $0["event"] as? String == "second" })
      let log = origin.requestLog
      #expect(try requests(of: summary).values.reduce(0, +) == log.count, "\(summary)")
      let statuses = Dictionary(grouping: log) { $0.status.map(String.init) ?? "none" }.mapValues(\.count)
      #expect(try requests(of: summary) == statuses)
      #expect(try Int64(number("bytes", of: summary)) == log.reduce(0) { $0 + $1.bodyBytesSent })
      for name in ["views", "starts", "stalls", "failed", "bytes"] {
        let sum = try seconds.reduce(0) { try $0 + number(name, of: $1) }
        #expect(try sum == number(name, of: summary), "\(name)")
      }
      #expect(try number("viewers", of: summary) == 5 && number("most_viewers", of: summary) == 5)
      #expect(try number("views", of: summary) == 5 && number("starts", of: summary) == 5)
      #expect((summary["start"] as? [String: Any])?["count"] as? Int == 5)
      #expect((summary["assertions"] as? [[String: Any]])?.first?["met"] as? Bool == true)
      // Nobody shares a connection.
      #expect(origin.snapshot.acceptedConnectionCount >= 5)
    }
  }

  @Test("Output, page and files of a run")
  func outputs() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      let options = [
        "--results", "r.jsonl", "--report", "page.html", "--metrics", "viewers.prom", "--junit", "junit.xml",
        "--assert", "failed=0", "--assert", "starts<1", "--stay", "fixed:500ms",
      ]
      let result = try await run(origin, options, directory: folder.path, status: 1)
      try JSONSchema.check(result.outputLines, "viewers.json")
      let lines = try folder.text("r.jsonl").split(separator: "\n").map(String.init)
      try JSONSchema.check(lines, "results.json")
      #expect(try lines.count == number("views", of: try result.object) && lines.count > 3)
      let objects = try folder.objects("r.jsonl")
      #expect(objects.allSatisfy { $0["status"] as? String == "watched" })
      let viewers = objects.compactMap { ($0["view"] as? [String: Any])?["viewer"] as? Int }
      #expect(Set(viewers) == [1, 2, 3])
      #expect(try folder.text("page.html").contains("<h2>Over time</h2>"))
      #expect(try folder.text("viewers.prom").hasSuffix("# EOF\n"))
      let junit = try folder.text("junit.xml")
      #expect(junit.contains("tests=\"2\" failures=\"1\"") && junit.contains("starts&lt;1: not met"))
      // Results are not replaced without being asked for.
      let again = try await run(origin, options, directory: folder.path, status: 73)
      #expect(!again.errorText.contains("--resume"), "\(again.errorText)")
      try await run(origin, options + ["--overwrite"], directory: folder.path, status: 1)
    }
  }

  @Test("Shards divide the viewers, and reel report joins them")
  func shards() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      for (shard, count) in [("0/2", 3), ("1/2", 2)] {
        let summary = try await run(origin, viewers: 5, ["--shard", shard], directory: folder.path).object
        #expect(try number("viewers", of: summary) == count)
      }
      let names = ["results-0-of-2.jsonl", "results-1-of-2.jsonl"].map { folder.path($0) }
      let result = try await Command.run(["report"] + names + ["--json"], status: 0)
      try JSONSchema.check(result.outputLines, "report.json")
      let report = try result.object
      let views = try #require(report["views"] as? [String: Any])
      #expect(views["viewers"] as? Int == 5 && views["count"] as? Int == 5)
      #expect((report["startup"] as? [String: Any])?["count"] as? Int == 5)
      let text = try await Command.run(["report"] + names, status: 0).outputText
      #expect(text.hasPrefix("5 views of 5 viewers: 5 watched, 0 failed\n"), "\(text)")
    }
  }

  @Test("Text has what JSON has")
  func text() async throws {
    try await withSource(Self.path) { source in
      let result = try await Command.run(
        "viewers", source, "--viewers", "2", "--duration", "2", "--assert", "failed=0", status: 0)
      #expect(result.outputText.hasPrefix("2 viewers of 1 source, "), "\(result.outputText)")
      for words in ["2 views, 0 failed", "start ", "rebuffering ", "rungs ", "200: ", "failed=0: met, 0"] {
        #expect(result.outputText.contains(words), "\(words) in \(result.outputText)")
      }
      let quiet = try await Command.run(
        "viewers", source, "--viewers", "1", "--duration", "2", "--quiet", "--assert", "starts>=1",
        "--assert", "starts<1",
        status: 1)
      #expect(quiet.output.isEmpty)
      #expect(quiet.errorText == "reel: starts<1: not met, 1\n", "\(quiet.errorText)")
    }
  }

  @Test("Requests have CMCD", arguments: ["query", "header"])
  func cmcd(transmission: String) async throws {
    try await withOrigin { origin in
      try await run(origin, viewers: 4, ["--decode", "50%", "--cmcd", transmission])
      let log = origin.requestLog
      let values = try log.map { record in
        let query = record.target.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        let fields = record.headers.map { ($0.name.rawName, $0.value) }
        return try #require(CMCD(headers: fields, query: query)).values
      }
      #expect(Set(values.map { $0["sid"] }).count == 4)
      #expect(Set(values.map { $0["cid"] }).count == 1)
      #expect(values.first?["ot"] == .text("m") && values.first?["su"] == .flag(true))
      for (record, values) in zip(log, values) where record.path.hasSuffix(".m4s") {
        let isAudio = record.path.contains("/audio/")
        #expect(values["ot"] == .text(isAudio ? "a" : "v") && values["sf"] == .text("h"))
        #expect(values["d"] != nil && (isAudio || values["br"] != nil))
      }
    }
  }

  @Test("Viewers swipe through a feed, and decode")
  func feed() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      let items = ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"].map { origin.url($0).absoluteString }
      let feed = try folder.write(items.joined(separator: "\n"), to: "feed.m3u")
      let results = folder.path("r.jsonl")
      try await Command.run(
        "viewers", "--input", feed, "--dwell", "fixed:500ms", "--viewers", "2", "--duration", "2",
        "--decode", "50%", "--results", results, status: 0)
      let views = try folder.objects("r.jsonl").compactMap { $0["view"] as? [String: Any] }
      #expect(views.contains { $0["number"] as? Int == 2 })
      let decoding = Set(views.filter { $0["decoded"] as? Bool == true }.compactMap { $0["viewer"] as? Int })
      #expect(decoding.count == 1)
    }
  }

  // MARK: Failures

  @Test("A server's errors are counted by cause and host")
  func errors() async throws {
    try await withOrigin("hls-fmp4/*/index.m3u8=status:404") { origin in
      let result = try await run(origin, status: 69)
      let summary = try result.object
      #expect(try number("failed", of: summary) == 3 && number("starts", of: summary) == 0)
      let failure = try #require((summary["failures"] as? [[String: Any]])?.first)
      #expect(failure["cause"] as? String == "server 404" && failure["host"] as? String == "127.0.0.1")
      #expect(try requests(of: summary)["404"] ?? 0 >= 3)
      expectErrorLine(result, names: "index.m3u8", words: "404")
    }
  }

  @Test("A server that does not answer is no success, although no view has failed yet")
  func silence() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin("*=silence") { origin in
      let result = try await run(
        origin, ["--assert", "failed=0", "--junit", "junit.xml"], directory: folder.path, status: 69)
      #expect(try number("failed", of: try result.object) == 0)
      #expect(result.errorText.contains("no viewer had a first frame"), "\(result.errorText)")
      let junit = try folder.text("junit.xml")
      #expect(junit.contains("tests=\"2\" failures=\"1\"") && junit.contains("no viewer had a first frame"))
    }
  }

  @Test(
    "What can't be meant is refused",
    arguments: [["--stay", "fixed:0s"], ["--i-may-load", "http://cdn.example/"], ["--i-may-load", ""]])
  func refusals(options: [String]) async throws {
    let arguments = ["viewers", "http://127.0.0.1:9/a.m3u8", "--viewers", "1", "--duration", "1s"]
    let result = try await Command.run(arguments + options, status: 64)
    #expect(result.errorText.contains(options[0]), "\(result.errorText)")
  }

  @Test("Retries count, and what passes fails nobody")
  func retries() async throws {
    try await withOrigin("master.m3u8=status:503x2") { origin in
      let summary = try await run(origin, viewers: 2).object
      #expect(try number("failed", of: summary) == 0 && number("starts", of: summary) == 2)
      #expect(try requests(of: summary)["503"] == 2)
      let error = try #require((summary["errors"] as? [[String: Any]])?.first)
      #expect(error["cause"] as? String == "server 503" && error["count"] as? Int == 2)
      #expect(try requests(of: summary).values.reduce(0, +) == origin.requestLog.count)
    }
  }

  @Test("Of a list with dead sources, the others play")
  func deadSources() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin { origin in
      let list = try folder.write(
        "\(origin.url(Self.path).absoluteString)\n\(origin.url("gone.m3u8").absoluteString)\n", to: "list.txt"
      )
      let summary = try await Command.run(
        "viewers", "--input", list, "--viewers", "4", "--duration", "2", "--json", status: 0
      ).object
      #expect(try number("sources", of: summary) == 2)
      #expect(try number("starts", of: summary) == 2 && number("failed", of: summary) == 2)
    }
  }

  @Test("Ctrl-C ends the transfers, and the run is reported")
  func interrupted() async throws {
    let result = try await ReelCommandTests.interrupted(at: "segment-0.ts=stall:1000") {
      ["viewers", $0, "--viewers", "20", "--duration", "1h", "--json"]
    }
    #expect(result.status == 130, "\(result.errorText)")
    let summary = try result.object
    #expect(summary["event"] as? String == "summary" && summary["interrupted"] as? Bool == true)
    #expect(try number("views", of: summary) > 0)
  }

  // MARK: Tokens

  @Test("Each viewer has its token and its number, and no output has a token")
  func tokens() async throws {
    let folder = try TemporaryFolder()
    try folder.write("FIRSTSECRET\nOTHERSECRET\n", to: "tokens.txt")
    try await withOrigin("hls-fmp4/*/index.m3u8=status:403") { origin in
      let result = try await run(
        origin, viewers: 2,
        [
          "--tokens", "tokens.txt", "--header", "Authorization: Bearer {token}", "--query", "t={token}",
          "--query", "n={viewer}", "--results", "r.jsonl", "--report", "page.html",
        ], directory: folder.path, status: 69)
      for (token, number) in [("FIRSTSECRET", "1"), ("OTHERSECRET", "2")] {
        let own = origin.requestLog.filter { $0.target.contains("t=\(token)") }
        #expect(own.count >= 2)
        #expect(own.allSatisfy { $0.target.hasSuffix("&n=\(number)") })
        #expect(own.allSatisfy { $0.header("Authorization") == "Bearer \(token)" })
      }
      let texts = try [result.outputText, result.errorText, folder.text("r.jsonl"), folder.text("page.html")]
      for text in texts { #expect(!text.isEmpty && !text.contains("SECRET"), "\(text)") }
    }
  }

  @Test("A file of tokens that is too short is refused, before anything is requested")
  func fewTokens() async throws {
    let folder = try TemporaryFolder()
    try folder.write("one\n", to: "tokens.txt")
    try await withOrigin { origin in
      let options = ["--tokens", "tokens.txt", "--query", "t={token}"]
      let result = try await run(origin, viewers: 2, options, directory: folder.path, status: 64)
      #expect(result.errorText.contains("1 token for 2 viewers"), "\(result.errorText)")
      #expect(origin.requestLog.isEmpty)
    }
  }

  // MARK: Limits

  @Test("Without room for the connections of all viewers, the number that fits is named")
  func openFiles() async throws {
    let result = try await Command.run(
      "viewers", "http://127.0.0.1:9/a.m3u8", "--viewers", "1000", shell: "ulimit -n 200; exec \"$@\"",
      status: 64)
    #expect(result.errorText.contains("50 viewers fit"), "\(result.errorText)")
  }

  @Test("Metrics are served while viewers watch")
  func metricsPage() async throws {
    let folder = try TemporaryFolder()
    try await withSource(Self.path) { source in
      let command = try Command(
        ["viewers", source, "--viewers", "2", "--duration", "1h", "--metrics", "0"],
        shell: "exec \"$@\" 2>'\(folder.path)/errors'")
      defer { command.interrupt() }
      var url: URL?
      try await until {
        let text = (try? folder.text("errors")) ?? ""
        url = text.firstMatch(of: #/metrics at (\S+)\n/#).flatMap { URL(string: String($0.output.1)) }
        return url != nil || !command.isRunning
      }
      let request = FetchRequest(url: try #require(url), purpose: .resource)
      let fetcher = TransportFetcher()
      var text = ""
      // Nothing was published in the first second.
      while !text.contains("reel_views_total") {
        let answer = try await fetcher.fetch(request)
        text = String(decoding: try await answer.body.collect(upTo: 1 << 20), as: UTF8.self)
      }
      #expect(text.hasSuffix("# EOF\n"))
      command.interrupt()
      #expect(try await command.result().status == 130)
    }
  }
}
