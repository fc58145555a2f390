import Foundation
import ReelTesting
import ReelTestSupport
import Testing

@Suite("reel feed, items that can't be opened", .hangLimit)
struct FailedItemTests {
  private static let viewer = ["--bursts", "0%", "--back", "0%"]
  private static let walk = ["--dwell", "fixed:0.5s", "--settle", "250ms", "--timeout", "3"] + viewer
  private static let gate = ["--assert", "failed=0"]
  /// The index of the item in question.
  private static let place = 3

  /// A feed with an item among sound ones.
  private func list(_ folder: TemporaryFolder, with item: String) throws -> String {
    let sound = ["hls-fmp4/master.m3u8", "dash-gpac/multirate.mpd", "hls-ts/master.m3u8"]
    return try folder.writeFeed(sound + [item] + sound)
  }

  /// Walks past the item in simulated time, and next to it, and expects it to have failed.
  private func expectFailure(_ item: String, words: String) async throws {
    let folder = try TemporaryFolder()
    let feed = try list(folder, with: item)
    // The last of three swipes goes to the item, the last of two to the item before, which preloads it.
    for (swipes, visits) in [("5", 1), ("3", 1), ("2", 0)] {
      let result = try await Command.run(
        ["feed", feed, "--virtual", "--link", "lte,ideal", "--swipes", swipes, "--json"] + Self.walk
          + Self.gate)
      #expect(result.status == 1, "\(item) \(swipes): \(result.errorText)")
      #expect(result.errorText.contains("failed=0: not met, 1"), "\(item) \(swipes): \(result.errorText)")
      let report = try result.object
      let failed = try #require(report["failed_items"] as? [[String: Any]])
      #expect(failed.compactMap { $0["item_index"] as? Int } == [Self.place], "\(item) \(swipes)")
      #expect((failed.first?["error"] as? String)?.contains(words) == true, "\(failed)")
      #expect((report["totals"] as? [String: Any])?["abandoned"] as? Int == 0, "\(item) \(swipes)")
      let all = try #require(report["swipes"] as? [[String: Any]])
      let toItem = all.filter { $0["item_index"] as? Int == Self.place }
      #expect(toItem.count == visits)
      for swipe in toItem {
        #expect(swipe["error"] as? String == failed.first?["error"] as? String)
        #expect(swipe["cause"] as? String == failed.first?["error"] as? String)
      }
    }
  }

  @Test(
    "A server that fails, does not answer or stops has failed its item, also where the viewer left before or only preloaded",
    arguments: [
      ("hls-ts/master.m3u8", "master.m3u8=status:503", "503"),
      ("hls-ts/master.m3u8", "segment-*=status:500", "500"),
      ("hls-ts/master.m3u8", "master.m3u8=status:404", "404"),
      ("hls-ts/master.m3u8", "master.m3u8=silence", "within 3 s"),
      ("hls-ts/master.m3u8", "segment-*=silence", "within 3 s"),
      ("media/h264-faststart.mp4", "h264-faststart.mp4=stall:0", "within 3 s"),
      ("media/h264-faststart.mp4", "h264-faststart.mp4=close:0", "h264-faststart.mp4"),
    ])
  func servers(path: String, fault: String, words: String) async throws {
    try await withSource(path, faults: fault) { try await expectFailure($0, words: words) }
  }

  @Test(
    "So has an address that does not exist or refuses connections",
    arguments: [
      ("http://127.0.0.1:1/a.m3u8", "refused"),
      ("http://\(String(repeating: "a", count: 70)).invalid/a.m3u8", "no address"),
    ])
  func addresses(item: String, words: String) async throws { try await expectFailure(item, words: words) }

  @Test("So has a server whose certificate has expired")
  func certificate() async throws {
    guard let server = try await TLSServer.start(.expired) else { return }
    try await expectFailure(server.source, words: "expired")
  }

  @Test("A sound item that is slow is abandoned, not failed")
  func slow() async throws {
    let folder = try TemporaryFolder()
    let feed = try list(folder, with: Fixtures.path("media/h264-gops.mp4"))
    let report = try await Command.run(
      ["feed", feed, "--virtual", "--link", "64kbit/800ms,ideal", "--swipes", "6", "--json"] + Self.walk
        + Self.gate, status: 0
    ).object
    #expect((report["failed_items"] as? [Any])?.isEmpty == true)
    #expect((report["totals"] as? [String: Any])?["abandoned"] as? Int == 6)
    let causes = try #require(report["swipes"] as? [[String: Any]]).compactMap { $0["cause"] as? String }
    #expect(causes.count == 7)
    #expect(causes.allSatisfy { $0.contains(" answer ") || $0.contains("preparing ") }, "\(causes)")
  }

  @Test(
    "In real time, a failed item and a slow one differ in the same way",
    arguments: [
      ("master.m3u8=status:503", "503"), ("master.m3u8=silence", "no response within"),
      ("segment-*=silence", "no response within"), ("segment-*=stall:0", "no more data within"),
      ("*=delay:3s", ""),
    ])
  func realTime(fault: String, words: String) async throws {
    let folder = try TemporaryFolder()
    try await withSource("hls-ts/master.m3u8", faults: fault) { source in
      let path = try folder.writeFeed([goodSource, source, goodSource])
      let result = try await Command.run(
        ["feed", path, "--swipes", "2", "--preload", "none", "--dwell", "fixed:1s", "--timeout", "10"]
          + Self.viewer + Self.gate)
      #expect(result.status == (words.isEmpty ? 0 : 1), "\(result.outputText)")
      let text = result.outputText
      #expect(text.contains(words.isEmpty ? /failed +none/ : /failed +1 of 3 items/), "\(text)")
      #expect(text.contains(/abandoned +1 left/) == words.isEmpty, "\(text)")
      #expect(words.isEmpty || text.contains(words), "\(text)")
    }
  }

  @Test("The error is in every file, and in comparisons")
  func files() async throws {
    let folder = try TemporaryFolder()
    try await withSource("hls-ts/master.m3u8", faults: "master.m3u8=status:503") { source in
      let walk = [
        "feed", try list(folder, with: source), "--virtual", "--link", "lte,ideal", "--swipes", "5",
      ]
      let place = folder.path + "/"
      let files = [
        "--junit", place + "junit.xml", "--report", place + "page.html", "--csv", place + "swipes.csv",
        "--trace", place + "trace.jsonl",
      ]
      var outputs: [[UInt8]] = []
      for _ in 0..<2 {
        outputs.append(try await Command.run(walk + Self.walk + Self.gate + files).output)
        outputs.append(try folder.bytes("trace.jsonl"))
      }
      try #require(outputs.count == 4)
      #expect(outputs[0] == outputs[2])
      #expect(outputs[1] == outputs[3])
      let text = String(decoding: outputs[0], as: UTF8.self)
      #expect(text.contains("failed: item 3, \(source): 503"), "\(text)")
      let junit = try folder.text("junit.xml")
      #expect(junit.contains("<failure message=\"failed=0: not met, 1\" type=\"assertion\">"), "\(junit)")
      #expect(junit.contains("<system-err>failed: item 3, \(source): 503"), "\(junit)")
      for name in ["page.html", "swipes.csv"] {
        let file = try folder.text(name)
        #expect(file.contains("503 Service Unavailable"), "\(name)")
      }

      let compared = try await Command.run(
        walk + Self.walk + ["--compare", "1:none,3", "--report", place + "comparison.html"], status: 0)
      #expect(compared.outputText.contains("failed: item 3, \(source): 503"), "\(compared.outputText)")
      let page = try folder.text("comparison.html")
      #expect(page.contains("503 Service Unavailable"))
    }
  }
}
