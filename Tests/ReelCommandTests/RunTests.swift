import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelCommand

/// List mode of the commands that `ListCommandTests` does not cover.
@Suite("Runs over lists by other commands", .hangLimit)
struct RunTests {
  private static let commands = [["probe"], ["manifest"], ["play", "--rate", "max"], ["storyboard"]]
  private static let hls = Fixtures.path("hls-fmp4/master.m3u8")
  private static let dash = Fixtures.path("dash-number/manifest.mpd")

  @Test(
    "Results are what --json prints; reel report reads them; --resume does nothing twice", arguments: commands
  )
  func list(command: [String]) async throws {
    let folder = try TemporaryFolder()
    let bad = Fixtures.path("bad/text.mp4")
    try folder.write(
      "\(Self.hls)\n\(bad)\nftp://h/x\n\(Self.hls)\n{\"url\":\"\(Self.dash)\",\"id\":7}\n", to: "list.txt")
    let list = command + ["--input", "list.txt"]
    let run = try await Command.run(list, directory: folder.path, status: 1)
    #expect(run.errorText.contains("2 written, 2 failed, 1 skipped\n"), "\(run.errorText)")
    let text = run.outputText
    #expect(text.contains(Self.hls) != (command == ["manifest"]), "\(text)")
    let records = try folder.objects("results.jsonl")
    #expect(records.count == 4)
    let failed = records.filter { $0["status"] as? String == "failed" }
    #expect(failed.allSatisfy { $0["permanent"] as? Bool == true && $0["error"] is [String: Any] })
    let record = try #require(records.first { $0["url"] as? String == Self.dash })
    #expect(record["id"] as? Int == 7 && record["source"] == nil)
    let single = try await Command.run(
      command + [Self.dash, "--json", "--overwrite"].dropLast(command == ["storyboard"] ? 0 : 1),
      directory: folder.path)
    let object = try single.object
    #expect(Set(object.keys).subtracting(record.keys) == ["source"], "\(single.errorText)")

    let report = try await Command.run("report", "results.jsonl", directory: folder.path)
    #expect(report.outputText.hasPrefix("4 sources: 2 written, 2 failed"), "\(report.outputText)")
    let again = try await Command.run(list, directory: folder.path)
    #expect(again.status == 73 && again.errorText.contains("--resume"), "\(again.errorText)")
    let rest = try await Command.run(list + ["--resume", "--quiet"], directory: folder.path)
    #expect(rest.status == 1 && rest.output.isEmpty && rest.errorText.isEmpty, "\(rest.errorText)")
    #expect(try folder.objects("results.jsonl").count == 4)
    let over = try await Command.run(list + ["--overwrite", "--quiet"], directory: folder.path)
    #expect(over.status == 1 && over.outputText.isEmpty, "\(over.errorText)")
  }

  @Test("Temporary failures are retried by --resume; shards divide a list", arguments: commands)
  func retries(command: [String]) async throws {
    let folder = try TemporaryFolder()
    try await withOrigin("hls-ts/master.m3u8=silencex1") { origin in
      let urls = ["hls-ts", "hls-fmp4"].map { origin.url("\($0)/master.m3u8").absoluteString }
      try folder.write(urls.joined(separator: "\n"), to: "list.txt")
      let list = command + ["--input", "list.txt", "--retries", "0", "--quiet"]
      try await Command.run(list + ["--timeout", "2s"], directory: folder.path, status: 75)
      try await Command.run(list + ["--resume"], directory: folder.path, status: 0)
      let states = try folder.objects("results.jsonl").compactMap { $0["status"] as? String }
      #expect(states == ["written", "written"])
      var found: [String] = []
      for index in 0..<2 {
        try await Command.run(
          list + ["--shard", "\(index)/2", "--overwrite"], directory: folder.path, status: 0)
        found += try folder.objects("results-\(index)-of-2.jsonl").compactMap { $0["url"] as? String }
      }
      #expect(found.sorted() == urls.sorted())
    }
  }

  @Test(
    "Fields of the list with the names of results go into input",
    arguments: commands + [["frames"], ["poster"]])
  func collidingFields(command: [String]) async throws {
    let folder = try TemporaryFolder()
    try folder.write(Self.dash, to: "list.txt")
    let list = command + ["--input", "list.txt", "--quiet", "--overwrite"]
    #expect(try await Command.run(list, directory: folder.path).status == 0)
    // Also those that the report reads of other commands' results.
    let own = try #require(try folder.objects("results.jsonl").first).keys.filter { $0 != "url" }
    let keys = Set(own + ["error", "input", "startup", "file"])
    let fields = keys.map { "\"\($0)\":\"mine\"" }.joined(separator: ",")
    try folder.write("{\"url\":\"\(Self.dash)\",\(fields),\"own\":1}", to: "list.txt")
    #expect(try await Command.run(list, directory: folder.path).status == 0)
    let members = try #require(RawJSON.members(of: try folder.bytes("results.jsonl").dropLast()[...]))
    #expect(Set(members.map(\.key)).count == members.count)
    let record = try #require(try folder.objects("results.jsonl").first)
    #expect(record["url"] as? String == Self.dash && record["own"] as? Int == 1)
    let input = try #require(record["input"] as? [String: String])
    #expect(Set(input.keys) == keys && input.values.allSatisfy { $0 == "mine" })
  }

  @Test("Storyboards and played frames have the names of the list")
  func names() async throws {
    let folder = try TemporaryFolder()
    try folder.write("\(goodSource)\n", to: "list.txt")
    try await Command.run(
      "storyboard", "--input", "list.txt", "-o", "out", "--name", "{host}/{index}", directory: folder.path,
      status: 0)
    #expect(folder.names("out/local") == ["000001-001.jpg", "000001.vtt"])
    try await Command.run(
      "play", "--input", "list.txt", "--rate", "max", "--duration", "0.02", "-o", "played",
      directory: folder.path, status: 0)
    let hash = SourceHash(goodSource).text
    #expect(folder.names("played").contains("h264-faststart-\(hash)-000001.ppm"))
    #expect(folder.names("played").contains("results.jsonl"))
  }

  @Test("A list that is played has one page and one JUnit file; an assertion that is not met fails the run")
  func played() async throws {
    let folder = try TemporaryFolder()
    try folder.write("\(goodSource)\n\(Self.hls)\n", to: "list.txt")
    let run = try await Command.run(
      "play", "--input", "list.txt", "--rate", "max", "--json", "--assert", "played<2s", "--report", "r.html",
      "--junit", "j.xml", directory: folder.path, status: 1)
    #expect(run.outputLines.count { $0.contains("\"event\":\"summary\"") } == 2)
    #expect(!run.outputText.contains("\"status\":\"written\""))
    for name in ["r.html", "j.xml"] {
      let text = try folder.text(name)
      #expect(text.contains("h264-faststart.mp4") && text.contains("hls-fmp4/master.m3u8"), "\(name)")
    }
  }

  @Test("Several manifests are printed in order; of a list, results have no segments")
  func manifests() async throws {
    let folder = try TemporaryFolder()
    let bad = Fixtures.path("bad/no-period.mpd")
    let named = try await Command.run("manifest", Self.hls, bad, Self.dash, status: 1)
    #expect(
      try named.objects.map { $0["source"] as? String } == [Self.hls, bad, Self.dash])
    let list = try await Command.run(
      "manifest", Self.hls, "--resume", "--json", directory: folder.path, status: 0)
    #expect(list.output == (try folder.bytes("results.jsonl")))
    #expect(list.outputText.contains("\"segment_count\":3") && !list.outputText.contains("\"segments\""))
    #expect(list.outputText.contains("\"manifest_url\":"))
  }
}
