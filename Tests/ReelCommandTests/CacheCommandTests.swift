import Foundation
import ReelPool
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelCommand

@Suite("--cache and reel cache", .hangLimit)
struct CacheCommandTests {
  /// Servers allow that everything is kept for an hour.
  private static let keptForAnHour = "*=fields:Cache-Control: max-age=3600"

  /// A run of `frames` over all frames of a source, which reads it to its end.
  private struct Run {
    let md5s: [String]
    /// The requests that the origin got.
    let requests: [RequestRecord]
    /// The number of requests up to the first frame, as the run counts them.
    let startRequestCount: Int
  }

  private func run(
    _ path: String = "hls-fmp4/master.m3u8", from origin: Origin, to folder: TemporaryFolder, _ name: String,
    _ options: [String] = []
  ) async throws -> Run {
    let before = origin.requestLog.count
    let result = try await Command.run(
      ["frames", origin.url(path).absoluteString, "-o", folder.path(name), "--count", "0", "--md5", "--json"]
        + options, status: 0)
    let record = try result.object
    let frames = try #require(record["frames"] as? [[String: Any]])
    let startup = try #require(record["startup"] as? [String: Any])
    return Run(
      md5s: frames.compactMap { $0["md5"] as? String }, requests: Array(origin.requestLog.dropFirst(before)),
      startRequestCount: startup.values.compactMap { ($0 as? [String: Any])?["requests"] as? Int }
        .reduce(0, +))
  }

  @Test(
    "What is fresh is read from disk, and gives the same frames",
    arguments: ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "media/h264-bframes.ts"])
  func fresh(path: String) async throws {
    let folder = try TemporaryFolder()
    let option = folder.path("kept") + ",20MB"
    try await withOrigin(Self.keptForAnHour) { origin in
      let plain = try await run(path, from: origin, to: folder, "0")
      let first = try await run(path, from: origin, to: folder, "1", ["--cache", option])
      let second = try await run(path, from: origin, to: folder, "2", ["--cache", option])
      #expect(!plain.md5s.isEmpty && first.md5s == plain.md5s && second.md5s == plain.md5s)
      #expect(!first.requests.isEmpty && first.startRequestCount > 0)
      #expect(second.requests.isEmpty, "\(second.requests.map(\.path))")
      #expect(second.startRequestCount == 0)
    }
  }

  @Test("What may have changed is asked for again, and is not sent again")
  func revalidated() async throws {
    let folder = try TemporaryFolder()
    let option = folder.path("kept")
    try await withOrigin("*=fields:Cache-Control: no-cache") { origin in
      let first = try await run(from: origin, to: folder, "1", ["--cache", option])
      let second = try await run(from: origin, to: folder, "2", ["--cache", option])
      #expect(first.md5s == second.md5s)
      #expect(!second.requests.isEmpty)
      #expect(second.requests.allSatisfy { $0.status == 304 }, "\(second.requests.map(\.status))")
    }
  }

  @Test(
    "What must not be kept is fetched each time",
    arguments: [
      ("*=fields:Cache-Control: no-store", []), (keptForAnHour, ["--header", "Authorization: Bearer x"]),
    ] as [(String, [String])])
  func unkept(fields: String, options: [String]) async throws {
    let folder = try TemporaryFolder()
    let kept = folder.path("kept")
    try await withOrigin(fields) { origin in
      let first = try await run(from: origin, to: folder, "1", ["--cache", kept] + options)
      let second = try await run(from: origin, to: folder, "2", ["--cache", kept] + options)
      #expect(first.requests.count == second.requests.count)
      #expect(second.requests.allSatisfy { $0.status == 200 || $0.status == 206 })
      let contents = try await Command.run("cache", kept, "--json", status: 0).object
      #expect(contents["entries"] as? Int == 0)
    }
  }

  @Test("One cache serves all sources of a list, and later runs of other commands")
  func list() async throws {
    let folder = try TemporaryFolder()
    let cache = ["--cache", folder.path("kept")]
    try await withOrigin(Self.keptForAnHour) { origin in
      let urls = ["hls-fmp4/master.m3u8", "media/h264-bframes.ts"].map { origin.url($0).absoluteString }
      let list = try folder.write(urls.joined(separator: "\n"), to: "list.txt")
      try await Command.run(
        ["frames", "--input", list, "-o", folder.path("a"), "--count", "0", "--quiet"] + cache, status: 0)
      let count = origin.requestLog.count
      try await Command.run(
        ["frames", "--input", list, "-o", folder.path("b"), "--count", "0", "--quiet"] + cache, status: 0)
      #expect(origin.requestLog.count == count)
      let names = folder.names("a").filter { $0.hasSuffix(".ppm") }
      #expect(!names.isEmpty)
      for name in names {
        #expect(try folder.bytes("a/\(name)") == folder.bytes("b/\(name)"), "\(name)")
      }
      let record = try await Command.run(["play", urls[1], "--rate", "max", "--json"] + cache, status: 0)
        .object
      // From disk, as if the file were a local one.
      #expect(try #require(record["bytes"] as? Int) > 0)
      #expect(record["local_bytes"] as? Int == record["bytes"] as? Int)
      #expect(origin.requestLog.count == count)
    }
  }

  @Test("A check of a start that is on disk has the same result with fewer requests")
  func check() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin(Self.keptForAnHour) { origin in
      let source = origin.url("hls-fmp4/master.m3u8").absoluteString
      var runs: [(status: Int32, requestCount: Int)] = []
      for _ in 0..<2 {
        let before = origin.requestLog.count
        let result = try await Command.run(
          "check", source, "--sample", "start", "--cache", folder.path("kept"), "--json")
        #expect(try result.object["judged"] as? Bool == true, "\(result.outputText)")
        runs.append((result.status, origin.requestLog.count - before))
      }
      #expect(runs[0].status == runs[1].status)
      #expect(runs[0].requestCount > runs[1].requestCount)
    }
  }

  @Test("A second walk through a feed opens its items from disk")
  func feed() async throws {
    let folder = try TemporaryFolder()
    try await withOrigin(Self.keptForAnHour) { origin in
      let items = ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"]
      let feed = try folder.writeFeed(items.map { origin.url($0).absoluteString })
      for isFirst in [true, false] {
        let before = origin.requestLog.count
        try await Command.run(
          "feed", feed, "--swipes", "1", "--dwell", "fixed:300ms", "--cache", folder.path("kept"), "--json",
          status: 0)
        let opened = origin.requestLog.dropFirst(before).count { $0.path.hasSuffix("master.m3u8") }
        #expect((opened > 0) == isFirst, "\(opened)")
      }
    }
  }

  @Test("A folder that can't be used is a warning, and the network serves all")
  func unusable() async throws {
    let folder = try TemporaryFolder()
    try folder.write("a file", to: "kept")
    try await withOrigin(Self.keptForAnHour) { origin in
      let source = origin.url("hls-fmp4/master.m3u8").absoluteString
      for name in ["1", "2"] {
        let result = try await Command.run(
          "frames", source, "-o", folder.path(name), "--cache", folder.path("kept"), status: 0)
        expectErrorLine(result, names: "kept", words: "warning")
      }
      #expect(try folder.bytes("1/hls-fmp4-000001.ppm") == folder.bytes("2/hls-fmp4-000001.ppm"))
      #expect(try folder.text("kept") == "a file")
    }
  }

  @Test("The folder has no query of a URL, and only its owner may read it")
  func secrets() async throws {
    let folder = try TemporaryFolder()
    let kept = folder.path("kept")
    try await withOrigin(Self.keptForAnHour) { origin in
      let source = origin.url("media/h264-bframes.ts").absoluteString + "?signature=TOPSECRET"
      try await Command.run(
        "frames", source, "-o", folder.path("out"), "--count", "0", "--quiet", "--cache", kept, status: 0)
    }
    let names = try FileManager.default.subpathsOfDirectory(atPath: kept)
    #expect(names.contains { $0.hasSuffix("/record") })
    for path in [kept] + names.map({ "\(kept)/\($0)" }) {
      var status = stat()
      #expect(lstat(path, &status) == 0, "\(path)")
      let isFolder = status.st_mode & S_IFMT == S_IFDIR
      #expect(status.st_mode & 0o777 == (isFolder ? 0o700 : 0o600), "\(path)")
      guard !isFolder else { continue }
      let bytes = try Data(contentsOf: URL(filePath: path))
      #expect(bytes.range(of: Data("TOPSECRET".utf8)) == nil, "\(path)")
    }
  }

  // MARK: reel cache

  @Test("It says what is in a folder, and removes it")
  func contents() async throws {
    let folder = try TemporaryFolder()
    let kept = folder.path("kept")
    try await withOrigin(Self.keptForAnHour) { origin in
      _ = try await self.run(from: origin, to: folder, "1", ["--cache", kept + ",20MB"])
    }
    func cache(_ options: String...) async throws -> [String: Any] {
      let result = try await Command.run(["cache", kept, "--json"] + options, status: 0)
      try JSONSchema.check(result.outputLines, "cache.json")
      return try result.object
    }
    let contents = try await cache()
    let (entries, bytes) = (contents["entries"] as? Int ?? 0, contents["bytes"] as? Int ?? 0)
    // The two playlists of the video, and the media that its first frame takes.
    #expect(entries >= 3 && bytes > 0 && bytes <= 20_000_000)
    // No process has it open.
    #expect(contents["limit_bytes"] == nil && contents["removed"] == nil)
    let (oldest, newest) = (contents["oldest_use"] as? String ?? "", contents["newest_use"] as? String ?? "")
    #expect(!oldest.isEmpty && oldest <= newest)
    let text = try await Command.run("cache", kept, status: 0)
    #expect(text.outputLines.first?.hasPrefix("contents  \(entries) entries, ") == true, "\(text.outputText)")
    #expect(try await Command.run("cache", kept, "--quiet", status: 0).output.isEmpty)

    let kept7 = try await cache("--older", "7d")
    #expect(kept7["entries"] as? Int == entries)
    #expect((kept7["removed"] as? [String: Any])?["entries"] as? Int == 0)
    let cleared = try await cache("--clear")
    #expect(cleared["entries"] as? Int == 0)
    #expect((cleared["removed"] as? [String: Any])?["entries"] as? Int == entries)
    #expect(try await cache()["entries"] as? Int == 0)
  }

  @Test(
    "A folder that is not there, or is no cache, is an error, and nothing is removed",
    arguments: [[], ["--clear"], ["--older", "0s"]])
  func foreign(options: [String]) async throws {
    let folder = try TemporaryFolder()
    try folder.write("mine", to: "other/file.txt")
    let missing = try await Command.run(["cache", folder.path("missing")] + options, status: 66)
    expectErrorLine(missing, names: "missing", words: "")
    let other = try await Command.run(["cache", folder.path("other")] + options, status: 64)
    expectErrorLine(other, names: "other", words: "cache")
    let file = try await Command.run(["cache", folder.path("other/file.txt")] + options)
    #expect([64, 66].contains(file.status) && file.output.isEmpty, "\(file.errorText)")
    #expect(try folder.text("other/file.txt") == "mine" && folder.names() == ["other"])
  }

  @Test("An empty folder is a cache with nothing in it, and stays")
  func empty() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("kept"), withIntermediateDirectories: true)
    for options in [[], ["--clear"], ["--older", "7d"]] {
      let result = try await Command.run(["cache", folder.path("kept"), "--json"] + options, status: 0)
      #expect(try result.object["entries"] as? Int == 0)
    }
    #expect(folder.names() == ["kept"])
  }

  @Test(
    "The size follows the last comma, if it is one",
    arguments: [
      ("kept", "kept", 1_000_000_000), ("kept,200MB", "kept", 200_000_000), ("a,b", "a,b", 1_000_000_000),
      ("a,b,1.5GiB", "a,b", 1_610_612_736), ("kept,", "kept,", 1_000_000_000),
      ("kept, 5M", "kept", 5_000_000), ("~/kept,1000000", "~/kept", 1_000_000),
    ])
  func place(text: String, folder: String, limit: Int) throws {
    let place = try CachePlace(parsing: text)
    #expect(place.folder == folder && place.limit.byteCount == limit)
  }
}
