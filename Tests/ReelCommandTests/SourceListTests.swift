import ReelCore
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Lists of sources", .hangLimit)
struct SourceListTests {
  /// The entries of a text that is read in pieces of this many bytes.
  private func entries(
    _ bytes: [UInt8], piece: Int = 1 << 16
  ) throws(ReelError) -> [SourceListParser.Entry] {
    var parser = SourceListParser()
    var entries: [SourceListParser.Entry] = []
    for start in stride(from: 0, to: bytes.count, by: piece) {
      entries += try parser.entries(bytes[start..<min(start + piece, bytes.count)])
    }
    return entries + (try parser.entries([]))
  }

  /// `line text`, or `line ! reason`.
  private func described(_ entries: [SourceListParser.Entry]) -> [String] {
    entries.map { entry in
      switch entry.content {
      case .source(let text, let fields):
        (["\(entry.line) \(text)"]
          + fields.map { "\($0.key)=\(String(decoding: $0.value, as: UTF8.self))" }).joined(separator: " ")
      case .failure(let error):
        "\(entry.line) ! \(error.reason)" + (error.kind == .usage ? "" : " (\(error.kind))")
      }
    }
  }

  @Test("Line ends, a byte order mark, blank lines and comments, in pieces of any size")
  func lines() throws {
    let text = "\u{feff}a.mp4\r\n# comment\r\n\r\n  http://h/b.mp4\t\nc d.mp4\r\re.mp4"
    let wanted = ["1 a.mp4", "4 http://h/b.mp4", "5 c d.mp4", "7 e.mp4"]
    for piece in [1, 2, 3, 5, 1 << 16] {
      #expect(described(try entries(Array(text.utf8), piece: piece)) == wanted, "\(piece)")
    }
  }

  @Test("JSON Lines: the other fields keep their text")
  func json() throws {
    let text = """
      {"id": 12345678901234567890, "url": "http://h/\\u0061.mp4", "x": {"y": [1, "}"]}, "f": 0.10}
      {"url":"./{b}.mp4"}
      """
    #expect(
      described(try entries(Array(text.utf8))) == [
        #"1 http://h/a.mp4 id=12345678901234567890 x={"y": [1, "}"]} f=0.10"#, "2 ./{b}.mp4",
      ])
  }

  @Test(
    "A line that is no source is told of, and the others are read",
    arguments: [
      ("{\"id\":1}", "the object has no url"), ("{\"url\":7}", "the url is not a string"),
      ("{\"url\":\"a\",\"url\":\"b\"}", "the key \"url\" appears twice"),
      ("{\"url\":\"a\",\"x\":1,\"\\u0078\":2}", "the key \"x\" appears twice"),
      ("{\"url\":\"a\"", "can't be read as a JSON object"),
      ("{url}", "can't be read as a JSON object"),
      ("{\"url\":\"a\",\"x\":[1,}", "can't be read as a JSON object"),
      ("{\"url\":\"a\",\"x\":nul}", "can't be read as a JSON object"),
      // Valid JSON that Reel does not read.
      ("{\"url\":\"a\",\"x\":1e999}", "can't be read as a JSON object"),
    ])
  func badLines(line: String, reason: String) throws {
    #expect(described(try entries(Array("a\n\(line)\nb\n".utf8))) == ["1 a", "2 ! \(reason)", "3 b"])
  }

  @Test("A line of a megabyte, and one that is not UTF-8")
  func unreadableLines() throws {
    let long = [UInt8](repeating: 0x61, count: 1 << 20)
    let bytes = Array("a\n".utf8) + long + Array("\n".utf8) + [0x62, 0xff, 0x0a] + Array("c".utf8)
    let wanted = ["1 a", "2 ! longer than the limit of 262144 bytes", "3 ! not UTF-8", "4 c"]
    for piece in [1000, 1 << 16, 1 << 22] {
      #expect(described(try entries(bytes, piece: piece)) == wanted)
    }
  }

  @Test(
    "What is no list at all",
    arguments: [
      ("<html>\n", "XML"), ("#EXTM3U\n#EXT-X-VERSION:3\n", "HLS"), ("[\n{\"url\":\"a\"}]\n", "array"),
      ("[\"a\"]", "array"), ("a\0b\n", "binary"),
    ])
  func noLists(text: String, words: String) throws {
    let error = #expect(throws: ReelError.self) { try entries(Array(text.utf8)) }
    #expect(error?.kind == .badManifest)
    #expect(error?.reason.contains(words) == true, "\(String(describing: error))")
  }

  @Test("UTF-16 is refused by name; a path may begin with a bracket")
  func encodings() throws {
    #expect(throws: ReelError.self) { try entries([0xff, 0xfe, 0x61, 0, 0x0a, 0]) }
    #expect(described(try entries(Array("[movie].mp4\n".utf8))) == ["1 [movie].mp4"])
  }

  @Test("Of the lines, blank ones and comments are no entries")
  func counter() {
    var lines = LineSplitter(limit: 8)
    let text = Array("a\r\n# b\n\n \t\n  c\n\td\n longer than that".utf8)
    let count = (text.map { [$0] } + [[]]).reduce(0) { count, piece in
      count + lines.add(piece[...]).count(where: SourceListParser.isEntry)
    }
    #expect(count == 4)
  }

  // MARK: Hashes and shards

  @Test(
    "The shard of a URL is the same for ever",
    arguments: [
      ("https://a.example/1.mp4", "0971e1616dfe6611", 1, 2),
      ("https://b.example/x/master.m3u8", "8a093170788a9f72", 2, 2), ("movie.mp4", "bdc80faa2d15ce59", 1, 2),
    ])
  func golden(url: String, hash: String, ofEight: Int, ofThree: Int) throws {
    #expect(SourceHash(url).text == hash)
    for (count, index) in [(8, ofEight), (3, ofThree)] {
      for shard in 0..<count {
        let shard = try Shard(parsing: "\(shard)/\(count)", environment: [:])
        #expect(shard.contains(SourceHash(url)) == (shard.index == index))
      }
    }
  }

  @Test("Shards are of about the same size, and each source is in one", arguments: [2, 3, 8, 100])
  func distribution(count: Int) throws {
    let shards = try (0..<count).map { try Shard(parsing: "\($0)/\(count)", environment: [:]) }
    var sizes = [Int](repeating: 0, count: count)
    for number in 0..<20_000 {
      let hash = SourceHash("https://cdn.example/videos/\(number)/index.m3u8")
      let owners = shards.filter { $0.contains(hash) }
      #expect(owners.count == 1)
      if let owner = owners.first { sizes[owner.index] += 1 }
    }
    let mean = Double(20_000 / count)
    // Five standard deviations.
    #expect(sizes.allSatisfy { abs(Double($0) - mean) < 5 * mean.squareRoot() }, "\(sizes)")
  }

  @Test("auto takes the index from the variable that is set")
  func environment() throws {
    for name in Shard.variables {
      #expect(try Shard(parsing: "auto/4", environment: [name: "3"]).index == 3)
      #expect(throws: ReelError.self) { try Shard(parsing: "auto/3", environment: [name: "3"]) }
      #expect(throws: ReelError.self) { try Shard(parsing: "auto/3", environment: [name: "x"]) }
    }
    #expect(throws: ReelError.self) { try Shard(parsing: "auto/3", environment: [:]) }
    #expect(throws: ReelError.self) {
      try Shard(
        parsing: "auto/9", environment: ["SLURM_ARRAY_TASK_ID": "1", "JOB_COMPLETION_INDEX": "2"])
    }
  }

  @Test(
    "What is no shard", arguments: ["1", "3/3", "-1/3", "1/0", "a/3", "1/3/4", "/3", "1/", "auto", "+1/3"])
  func badShards(text: String) {
    #expect(throws: ReelError.self) { try Shard(parsing: text, environment: [:]) }
  }

  // MARK: JSON

  @Test("Members of an object keep their text")
  func members() throws {
    let text = #" { "a" : 1 , "b\"c":[{"x":"]"},2],"d":{} } "#
    let members = try #require(RawJSON.members(of: Array(text.utf8)[...]))
    #expect(members.map(\.key) == ["a", "b\"c", "d"])
    #expect(
      members.map { String(decoding: $0.value, as: UTF8.self) } == ["1", #"[{"x":"]"},2]"#, "{}"])
    #expect(RawJSON.members(of: Array("{}".utf8)[...])?.isEmpty == true)
    #expect(RawJSON.quoted("a\"\n") == #""a\"\n""#)
  }

  @Test("A cut object is none", arguments: 0..<40)
  func cut(length: Int) {
    let text = Array(#"{"url":"a\"b","x":[1,{"y":"}"}],"z":12}"#.utf8)
    #expect((RawJSON.members(of: text.prefix(length)) == nil) == (length < text.count))
  }
}
