import Foundation
import HTTPTypes
import ReelCore
import ReelPool
import ReelSources
import Testing

@Suite("Feeds as JSON")
struct FeedJSONTests {
  private static func read(_ text: String) throws -> FeedFile {
    try FeedFile(bytes: Array(text.utf8), at: try MediaSource(argument: "/feeds/f.json"))
  }

  @Test("All that an item may have")
  func item() throws {
    let file = try Self.read(
      #"""
      {
        "version": {"unknown": [1.5e3, true, false, null, -0]},
        "items": [
          {"url": "v/a.m3u8", "title": "A \"title\" \u00e9\ud83d\ude00\n", "author": "ann", "likes": 12, "comments": 3e2,
           "poster": "p/a b.jpg", "headers": {"Authorization": "Bearer x", "X-A": " 1 "}, "other": {}},
          {"url": "https://example.org/b.mpd", "title": null, "poster": "http://example.org/b.png",
           "headers": ["X-B: 1:2", "X-C:"]},
          "c.mp4"
        ]
      }
      """#)
    let items = try #require(file["default"]?.items)
    #expect(items.map(\.source.name) == ["/feeds/v/a.m3u8", "https://example.org/b.mpd", "/feeds/c.mp4"])
    let first = try #require(items.first)
    #expect(first.title == "A \"title\" é😀\n")
    #expect(first.author == "ann")
    #expect(first.likes == 12)
    #expect(first.comments == 300)
    #expect(first.poster == URL(fileURLWithPath: "/feeds/p/a b.jpg"))
    #expect(
      first.headers == [.authorization: "Bearer x", .init("X-A")!: "1"])
    #expect(items[1].title == nil)
    #expect(items[1].likes == nil)
    #expect(items[1].poster?.absoluteString == "http://example.org/b.png")
    #expect(
      items[1].headers == [.init("X-B")!: "1:2", .init("X-C")!: ""])
    #expect(items[2].headers.isEmpty)
    #expect(items.map(\.name) == ["A \"title\" é😀\n", "b", "c"])
  }

  @Test("Durations and retention")
  func retention() throws {
    let items = try #require(
      try Self.read(
        #"[{"url": "a", "duration": 12.5, "retention": [1, 0.75, 7.5e-1, 0.25, -0]}, {"url": "b", "retention": null}]"#
      )["default"]?.items)
    #expect(items[0].duration == .milliseconds(12_500))
    let curve = try #require(items[0].retention)
    #expect(curve.shares == [1, 0.75, 0.75, 0.25, 0])
    #expect(curve.duration == .seconds(4))
    #expect(
      [-1, 0, 0.5, 1, 2.5, 4, 9].map { curve.share(at: .seconds($0)) } == [1, 1, 0.875, 0.75, 0.5, 0, 0])
    #expect(items[1].duration == nil)
    #expect(items[1].retention == nil)
  }

  @Test("A curve has a day of shares at most")
  func longRetention() throws {
    func shares(_ count: Int) -> String { Array(repeating: "1", count: count).joined(separator: ",") }
    let limit = RetentionCurve.entryLimit
    let read = try Self.read("[{\"url\": \"a\", \"retention\": [\(shares(limit))]}]")
    #expect(read.feeds[0].items[0].retention?.shares.count == limit)
    let error = #expect(throws: ReelError.self) {
      try Self.read("[{\"url\": \"a\", \"retention\": [\(shares(limit + 1))]}]")
    }
    #expect(error?.reason == "[0].retention: has more than the limit of 86400 shares")
    #expect(throws: ReelError.self) { try RetentionCurve([]) }
    #expect(throws: ReelError.self) { try RetentionCurve([.nan]) }
    #expect(throws: ReelError.self) { try RetentionCurve([0.5, 0.6]) }
  }

  @Test("Named feeds, in the order of the file, the nameless one first")
  func feeds() throws {
    let file = try Self.read(
      #"{"feeds": {"recommended": ["a", "b"], "following": {"items": ["a"]}, "later": []}, "items": ["z"]}"#)
    #expect(file.feeds.map(\.name) == ["default", "recommended", "following", "later"])
    #expect(file.feeds.map(\.items.count) == [1, 2, 1, 0])
    let array = try Self.read(
      #"{"feeds": [{"name": "x", "items": ["a"]}, {"name": "y", "items": ["b", "c"]}]}"#)
    #expect(array.feeds.map(\.name) == ["x", "y"])
    #expect(try Self.read(#" ["a", {"url": "b"}] "#).feeds.map(\.items.count) == [2])
    // One source in two feeds is two items.
    let ids = file.feeds.flatMap(\.items).map(\.id)
    #expect(Set(ids).count == ids.count)
  }

  @Test(
    "Values that can't be read: the line and the path",
    arguments: [
      ("{\"items\": [\n{\"title\": \"x\"}]}", 2, "items[0]: the item has no \"url\""),
      ("{\"items\": [\"a\",\n{\"url\": 7}]}", 2, "items[1].url: must be a string, not a number"),
      ("[\"a\",\n\n true]", 3, "[1]: an item must be a string or an object, not true or false"),
      (
        "{\"feeds\": {\"x\": [\n{\"url\": \"a\", \"likes\": -1}]}}", 2,
        "feeds.x[0].likes: must be a whole number"
      ),
      ("[{\"url\": \"a\", \"likes\": 1.5}]", 1, "[0].likes"),
      ("[{\"url\": \"a\", \"comments\": \"3\"}]", 1, "[0].comments"),
      ("[{\"url\": \"a\",\n\"poster\": \"ftp://x\"}]", 2, "[0].poster: ftp://x: the scheme ftp"),
      ("[{\"url\":\n\"\"}]", 2, "[0].url: the URL is empty"),
      (
        "[{\"url\": \"a\", \"headers\": {\"a b\": \"c\"}}]", 1,
        "[0].headers.a b: \"a b\" is not a header field"
      ),
      ("[{\"url\": \"a\", \"headers\": [\"x\"]}]", 1, "[0].headers[0]"),
      ("[{\"url\": \"a\", \"headers\": {\"X\": \"a\\r\\nb\"}}]", 1, "[0].headers.X"),
      ("[{\"url\": \"a\", \"headers\": {\"X\": 1}}]", 1, "[0].headers.X: must be a string"),
      ("[{\"url\": \"a\", \"headers\": 1}]", 1, "[0].headers: must be an object or an array"),
      ("[{\"url\": \"a\", \"duration\":\n\"3\"}]", 2, "[0].duration: must be a number, not a string"),
      (
        "[{\"url\": \"a\", \"duration\": -1}]", 1,
        "[0].duration: must be seconds above 0 and at most 86400"
      ),
      ("[{\"url\": \"a\", \"duration\": 0}]", 1, "[0].duration: must be seconds above 0"),
      ("[{\"url\": \"a\", \"duration\": 86400.1}]", 1, "[0].duration: must be seconds above 0"),
      ("[{\"url\": \"a\", \"duration\": 1e999}]", 1, "[0].duration: must be seconds above 0"),
      (
        "[{\"url\": \"a\",\n\"retention\": 1}]", 2,
        "[0].retention: must be an array of numbers, not a number"
      ),
      ("[{\"url\": \"a\", \"retention\": []}]", 1, "[0].retention: should have at least one share"),
      (
        "{\"items\": [\"z\", {\"url\": \"a\", \"retention\": [1,\n0.5,\nnull]}]}", 3,
        "items[1].retention[2]: must be a number, not null"
      ),
      ("[{\"url\": \"a\", \"retention\": [\n1.01]}]", 2, "[0].retention[0]: must be from 0 to 1"),
      ("[{\"url\": \"a\", \"retention\": [1, -0.1]}]", 1, "[0].retention[1]: must be from 0 to 1"),
      (
        "[{\"url\": \"a\", \"retention\": [1, 0.4,\n0.5]}]", 2,
        "[0].retention[2]: is larger than the share before"
      ),
      ("[[\"a\"]]", 1, "[0]: an item must be a string or an object, not an array"),
      ("\n\"x\"", 2, "a feed must be an object or an array, not a string"),
      ("{\"items\": \"a\"}", 1, "items: must be an array of items, not a string"),
      ("{\"feeds\": 1}", 1, "feeds: must be an object or an array"),
      ("{\"feeds\": [\n[\"a\"]]}", 2, "feeds[0]: the feed has no \"name\""),
      ("{\"feeds\": {\"x\":\n{}}}", 2, "feeds.x: the feed has no \"items\""),
      ("{\"feeds\": {\"\": [\"a\"]}}", 1, "an empty name"),
      ("{\"items\": [\"a\"], \"feeds\": {\n\"default\": [\"a\"]}}", 2, "twice"),
      ("{\"feeds\": [{\"name\": \"x\", \"items\": []},\n{\"name\": \"x\", \"items\": [\"a\"]}]}", 2, "twice"),
    ])
  func badValues(text: String, line: Int, reason: String) {
    let error = #expect(throws: ReelError.self) { try Self.read(text) }
    #expect(error?.place == .line(line))
    #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    #expect(error?.location == "/feeds/f.json")
  }

  @Test(
    "What is no JSON: line and column",
    arguments: [
      ("[\"a\",]", 1, 6), ("[\"a\" \"b\"]", 1, 6), ("{\"items\" [\"a\"]}", 1, 10), ("[\"a\"", 1, 5),
      ("[\"a\"]\n x", 2, 2), ("[\"a\n\"]", 1, 4), ("[\"\\x\"]", 1, 4), ("[\"\\ud800\"]", 1, 9),
      ("[\"\\ud800\\u0041\"]", 1, 15), ("[\"\\u12g4\"]", 1, 7), ("[{\"url\": 01}]", 1, 11),
      ("[{\"url\": 1.}]", 1, 12),
      ("[{\"url\": 1e}]", 1, 12), ("[{\"url\": -}]", 1, 10), ("[\"a\", nul]", 1, 7),
      ("{\"items\": [], items: 1}", 1, 15),
      ("[", 1, 2), ("{", 1, 2), ("\"open", 1, 6), (" \n[a\n", 2, 2), ("{a: 1}", 1, 2), ("[null", 1, 6),
      (String(repeating: "[", count: 100_000), 1, 65), ("[\"open", 1, 7), ("[\"a\\", 1, 5),
      ("{\"a\": 1,\n\"a\": 2}", 2, 1),
    ])
  func malformed(text: String, line: Int, column: Int) {
    let error = #expect(throws: ReelError.self) { try Self.read(text) }
    #expect(error?.kind == .badManifest)
    #expect(error?.place == .line(line, column: column), "\(error.map(\.description) ?? "")")
  }

  @Test("A path that begins as JSON does is told how to be written in a list")
  func paths() throws {
    for text in ["[a] b.mp4", "{a}.mp4"] {
      let error = #expect(throws: ReelError.self) { try Self.read(text) }
      #expect(error?.place == .line(1, column: 2))
      #expect(error?.advice?.contains("./ before a path that begins with \(text.prefix(1))") == true)
      #expect(try Self.read("./\(text)").feeds.first?.items.first?.source.stem == String(text.dropLast(4)))
    }
  }

  @Test("Every beginning of a sound text, and every byte of it changed, is read or refused, never more")
  func damaged() throws {
    let text = Array(
      #"{"items":[{"url":"a\u00e9","likes":1.0e2,"headers":{"A":"b"}},"c"],"feeds":{"x":["d"]}}"#.utf8)
    let place = try MediaSource(argument: "/f.json")
    var refused = 0
    for end in 0..<text.count {
      if (try? FeedFile(bytes: Array(text[..<end]), at: place)) == nil { refused += 1 }
    }
    #expect(refused == text.count)
    for index in text.indices {
      for byte: UInt8 in [0x00, 0x22, 0x2c, 0x30, 0x5b, 0x5d, 0x7b, 0x7d, 0x80, 0xff] {
        var damaged = text
        damaged[index] = byte
        if let file = try? FeedFile(bytes: damaged, at: place) { #expect(!file.feeds.isEmpty) }
      }
    }
  }
}
