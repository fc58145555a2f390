import Foundation
import ReelCore
import ReelPool
import ReelSources
import Testing

@Suite("Feed files")
struct FeedFileTests {
  private static func read(
    _ text: String, at location: String = "/feeds/my feed.txt", limits: FeedLimits = FeedLimits()
  ) throws -> FeedFile {
    try FeedFile(bytes: Array(text.utf8), at: try MediaSource(argument: location), limits: limits)
  }

  private static func names(_ file: FeedFile) -> [String] { file.feeds.flatMap(\.items).map(\.source.name) }

  private static func failure(
    _ text: String, at location: String = "/feeds/my feed.txt", limits: FeedLimits = FeedLimits()
  ) -> ReelError? {
    #expect(throws: ReelError.self) { try read(text, at: location, limits: limits) }
  }

  // MARK: - Lists

  @Test("A list: comments, blank lines, white space, paths and URLs")
  func list() throws {
    let file = try Self.read(
      """
      # my feed
      a.mp4
        # indented comment

      \tsub/b c#1?.mp4\t
      /abs/d.m3u8
      ../e%20f.mpd
      https://example.org/x/y.m3u8?q=1#t
      file:///g.mp4
      """)
    #expect(
      Self.names(file) == [
        "/feeds/a.mp4", "/feeds/sub/b c#1?.mp4", "/abs/d.m3u8", "/feeds/../e%20f.mpd",
        "https://example.org/x/y.m3u8?q=1#t", "/g.mp4",
      ])
    #expect(file.feeds.map(\.name) == ["default"])
    #expect(file["default"] == file.feeds.first)
    #expect(file["other"] == nil)
  }

  @Test("Line ends and a byte order mark make no difference", arguments: ["\n", "\r\n", "\r"])
  func lineEnds(end: String) throws {
    let lines = ["# c", "", "a.mp4", "b.mp4", ""]
    #expect(Self.names(try Self.read(lines.joined(separator: end))) == ["/feeds/a.mp4", "/feeds/b.mp4"])
    #expect(
      Self.names(try Self.read("\u{feff}" + lines.dropFirst(2).joined(separator: end))) == [
        "/feeds/a.mp4", "/feeds/b.mp4",
      ])
    #expect(Self.failure(["a", "b", "", "ftp://x/y"].joined(separator: end))?.place == .line(4))
    #expect(Self.failure(["[\"a\",", "", "7]"].joined(separator: end))?.place == .line(3))
  }

  @Test("A path with the user's home, as a shell has it")
  func home() throws {
    let home = ProcessInfo.processInfo.environment["HOME"] ?? NSHomeDirectory()
    #expect(Self.names(try Self.read("~/a.mp4\n~b.mp4")) == ["\(home)/a.mp4", "/feeds/~b.mp4"])
  }

  @Test("A feed from standard input is relative to the current folder")
  func standardInput() throws {
    let folder = FileManager.default.currentDirectoryPath
    #expect(Self.names(try Self.read("a.mp4", at: "-")) == ["\(folder)/a.mp4"])
  }

  @Test("A remote feed: references as a browser resolves them")
  func remote() throws {
    let file = try Self.read(
      "a.mp4\n../b%20c.mp4\n/d.m3u8\n//cdn.example.org/e.mpd\n?q=2\nhttp://other.example/f.mp4",
      at: "https://example.org/one/two/feed.txt")
    #expect(
      Self.names(file) == [
        "https://example.org/one/two/a.mp4", "https://example.org/one/b%20c.mp4",
        "https://example.org/d.m3u8",
        "https://cdn.example.org/e.mpd", "https://example.org/one/two/feed.txt?q=2",
        "http://other.example/f.mp4",
      ])
    for text in ["file:///etc/passwd", "FILE:/etc/passwd"] {
      let error = Self.failure("ok.mp4\n\(text)", at: "https://example.org/feed.txt")
      #expect(error?.place == .line(2))
      #expect(error?.reason.contains("local file") == true)
    }
  }

  @Test("An .m3u list: titles behind the comma")
  func m3u() throws {
    let file = try Self.read(
      """
      #EXTM3U
      #EXTINF:12.5,First, with a comma
      a.mp4
      #EXTINF:-1 tvg-name="a, b" group="c",Second
      #EXTVLCOPT:network-caching=1000
      b.mp4
      c.mp4
      #EXTINF:3,
      d.mp4
      #EXTINF:3
      e.mp4
      #EXTINF:3 broken="quote,Last
      f.mp4
      """, at: "/feeds/list.m3u")
    #expect(
      file.feeds.first?.items.map(\.title) == ["First, with a comma", "Second", nil, nil, nil, "Last"])
  }

  @Test("An HLS snapshot is no feed, and is told so")
  func hls() {
    let media = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\ns1.ts\n"
    let error = Self.failure(media)
    #expect(error?.place == .line(2))
    #expect(error?.reason.contains("HLS") == true)
    #expect(error?.location == "/feeds/my feed.txt")
    #expect(
      Self.failure("#EXTM3U\n\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8")?.reason.contains("HLS") == true)
  }

  @Test(
    "Entries that can't be read: the line and what is wrong",
    arguments: [
      ("a.mp4\nftp://x/y", 2, ReelError.Kind.unsupported), ("http://", 1, .badManifest),
      ("a\nb\n-", 3, .badManifest),
      ("http://h:99999/x", 1, .badManifest), ("data:text/plain,x", 1, .unsupported),
      ("file://other.example/x", 1, .unsupported), ("a\u{1b}[1m.mp4", 1, .badManifest),
    ])
  func badEntries(text: String, line: Int, kind: ReelError.Kind) {
    let error = Self.failure(text)
    #expect(error?.place == .line(line))
    #expect(error?.kind == kind)
    #expect(error?.location == "/feeds/my feed.txt")
    #expect(error?.description.contains("line \(line)") == true)
  }

  // MARK: - What is no feed

  @Test(
    "What is no feed at all",
    arguments: [
      ("", "no items"), ("# nothing\n\n", "no items"), ("\u{feff}", "no items"), ("<html></html>", "HTML"),
      (" <?xml version='1.0'?><MPD/>", "XML"), ("a\u{0}b", "binary"), ("{}", "neither"), ("[]", "no items"),
    ])
  func noFeed(text: String, reason: String) {
    let error = Self.failure(text)
    #expect(error?.kind == .badManifest)
    #expect(error?.reason.contains(reason) == true)
  }

  @Test("Other encodings")
  func encodings() throws {
    let place = try MediaSource(argument: "/f.txt")
    let latin = #expect(throws: ReelError.self) {
      try FeedFile(bytes: Array("a.mp4\n".utf8) + [0x63, 0xe9, 0x0a], at: place)
    }
    #expect(latin?.place == .line(2))
    let wide = #expect(throws: ReelError.self) { try FeedFile(bytes: [0xff, 0xfe, 0x61, 0x00], at: place) }
    #expect(wide?.reason.contains("UTF-16") == true)
    #expect(Self.names(try Self.read("é/ü.mp4")) == ["/feeds/é/ü.mp4"])
  }

  @Test("Limits of bytes, items and lengths")
  func limits() throws {
    let items = FeedLimits(itemCount: 2)
    #expect(Self.failure("a\nb\nc", limits: items)?.place == .line(3))
    #expect(Self.failure("[\"a\",\n\"b\",\n\"c\"]", limits: items)?.place == .line(3))
    // Of all feeds together.
    #expect(Self.failure(#"{"items": ["a"], "feeds": {"x": ["b", "c"]}}"#, limits: items) != nil)
    #expect(try Self.read("a\nb", limits: items).feeds.first?.items.count == 2)
    #expect(Self.failure("abcd", limits: FeedLimits(byteCount: 3))?.reason.contains("3 bytes") == true)
    #expect(Self.failure("a\nabcd", limits: FeedLimits(referenceByteCount: 3))?.place == .line(2))
    let deep = String(repeating: "[", count: 100_000)
    #expect(Self.failure("[{\"url\": \(deep)")?.reason.contains("nested") == true)
  }

  // MARK: - Files

  @Test("A file of this machine")
  func file() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("feed-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appendingPathComponent("list.txt").path
    try Data("a.mp4".utf8).write(to: URL(fileURLWithPath: path))
    #expect(Self.names(try FeedFile(path: path)) == ["\(folder.path)/a.mp4"])
    for bad in [folder.path, path + ".none", ""] {
      let error = #expect(throws: ReelError.self) { try FeedFile(path: bad) }
      #expect(error?.kind == .noSuchFile)
    }
    let large = #expect(throws: ReelError.self) {
      try FeedFile(path: path, limits: FeedLimits(byteCount: 4))
    }
    #expect(large?.location == path)
    #if os(Linux)
      // It can be opened, and has nothing where it begins.
      let unreadable = #expect(throws: ReelError.self) { try FeedFile(path: "/proc/self/mem") }
      #expect(unreadable?.kind == .noSuchFile)
      #expect(unreadable?.reason == "can't be read: Input/output error")
    #endif
  }
}
