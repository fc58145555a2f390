import Foundation
import ReelCore
import ReelTesting
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("reel feed, what goes wrong beside the walk", .hangLimit)
struct FeedFaultTests {
  private static let walk = ["--virtual", "--swipes", "1", "--dwell", "fixed:0.5s"]

  @Test(
    "A file that can't be made is told of before the walk",
    arguments: ["--trace", "--report"],
    [("/missing/x", "no such file"), ("", "is a directory"), ("/x/", "is a directory")])
  func outputs(option: String, path: (name: String, reason: String)) async throws {
    let folder = try TemporaryFolder()
    // No feed is there: nobody has looked for one yet.
    let result = try await Command.run(
      ["feed", folder.path + "/feed.txt", option, folder.path + path.name] + Self.walk, status: 73)
    #expect(result.output.isEmpty)
    expectErrorLine(result, names: folder.path + path.name, words: path.reason)
    #expect(folder.names().isEmpty)
  }

  #if os(Linux)
    @Test("A file that fails at the end leaves the report")
    func lateFailure() async throws {
      let folder = try TemporaryFolder()
      let feed = try folder.writeFeed([Fixtures.path("bad/text.mp4"), Fixtures.path("bad/empty.mp4")])
      let result = try await Command.run(
        ["feed", feed, "--trace", "/dev/full", "--report", folder.path + "/page.html"] + Self.walk, status: 74
      )
      #expect(result.outputText.contains("2 of 2 items"), "\(result.outputText)")
      expectErrorLine(result, names: "/dev/full", words: "no space")
      #expect(folder.names() == ["feed.txt", "page.html"])
    }
  #endif

  @Test("A feed that never ends is given up when its time is up")
  func endless() async throws {
    // 10 s of bytes that never pause.
    let text = String(repeating: "# a comment of a feed\n", count: 5_000)
    try await withOrigin(
      routes: ["/feed.txt": Origin.Response(text)], link: LinkSpec(parsing: "80kbit/1ms")
    ) { origin in
      let url = origin.url("feed.txt").absoluteString
      let result = try await Command.run(["feed", url, "--timeout", "1"] + Self.walk, status: 69)
      expectErrorLine(result, names: url, words: "not finished within 1 s")
    }
  }
}
