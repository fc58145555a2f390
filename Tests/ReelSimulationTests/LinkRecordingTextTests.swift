import Foundation
import ReelCore
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("The text of recorded links")
struct LinkRecordingTextTests {
  private typealias Step = LinkRecording.Step

  private func parse(_ text: String) throws -> LinkRecording {
    try LinkRecording(text: Array(text.utf8), name: "x.txt")
  }

  @Test("Samples: time counts from the first one, and the last one is as long as the one before")
  func samples() throws {
    let recording = try parse("\u{feff}# seconds, Mbit/s\r\n\r\n100.5 2.5\r\n101\t0\r\n 103  1e-3 \r\n")
    #expect(
      recording.steps == [
        Step(start: .zero, bitsPerSecond: 2_500_000), Step(start: .milliseconds(500), bitsPerSecond: 0),
        Step(start: .milliseconds(2500), bitsPerSecond: 1000),
      ])
    #expect(recording.period == .milliseconds(4500))
    let single = try parse("7 3")
    #expect(single.period == .seconds(1))
    #expect(single.meanBitsPerSecond == 3_000_000)
  }

  @Test("Delivery opportunities: 1500 bytes by the end of each millisecond")
  func opportunities() throws {
    let recording = try parse("1\n1\n2\n5\n5\n")
    #expect(
      recording.steps == [
        Step(start: .zero, bitsPerSecond: 24_000_000),
        Step(start: .milliseconds(1), bitsPerSecond: 12_000_000),
        Step(start: .milliseconds(2), bitsPerSecond: 0),
        Step(start: .milliseconds(4), bitsPerSecond: 24_000_000),
      ])
    #expect(recording.period == .milliseconds(5))
    var link = LinkBottleneck(LinkSpec(recording))
    let times = (0..<7).map { _ in link.put(1500, at: .zero) / .milliseconds(1) }
    #expect(times == [0.5, 1, 2, 4.5, 5, 5.5, 6])
    // What is at 0 belongs to the end of a period.
    let zero = try parse("0\n2\n")
    #expect(
      zero.steps == [
        Step(start: .zero, bitsPerSecond: 0), Step(start: .milliseconds(1), bitsPerSecond: 24_000_000),
      ])
  }

  @Test(
    "What can't be read, with its line",
    arguments: [
      ("", nil, "no lines"), ("# nothing\n\n", nil, "no lines"), ("0 0\n1 0\n", nil, "all rates are 0"),
      ("0 1\n\n-1 2\n", 3, "negative"), ("0 1\n1 -2\n", 2, "negative"), ("-5\n", 1, "negative"),
      ("0 1\n2 1\n1 1\n", 3, "not after"), ("0 1\n0 2\n", 2, "not after"), ("5\n4\n", 2, "before"),
      ("0 nan\n", 1, "not a number"), ("0 1\ninf 2\n", 2, "not a number"), ("0 0x10\n", 1, "not a number"),
      ("0 1e999\n", 1, "not a number"), ("<html>\n", 1, "not a number"), ("\u{0}\u{1}\n", 1, "not a number"),
      ("0 1 2\n", 1, "not a sample"), ("0 1\n5\n", 2, "not a sample"),
      ("5\n6 1\n", 2, "not a delivery opportunity"),
      ("1.5\n", 1, "whole milliseconds"), ("0\n0\n", nil, "ends at 0"), ("0 99999999\n", 1, "limit"),
      ("0 1\n1e7 1\n", 2, "limit"), ("0 1\n1e300 1\n", 2, "too large"), ("99999999999\n", 1, "limit"),
    ] as [(String, Int?, String)])
  func malformed(text: String, line: Int?, words: String) throws {
    let error = try #require(throws: ReelError.self) { try parse(text) }
    #expect(error.kind == .badManifest)
    #expect(error.location == "x.txt")
    #expect(error.place == line.map { .line($0) })
    #expect(error.reason.contains(words), "\(error)")
    #expect(!error.description.contains("\n"))
  }

  @Test("A file has a limit, and has to be readable")
  func files() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/large"
    try Data(repeating: 0x0a, count: LinkRecording.byteLimit + 1).write(to: URL(filePath: path))
    #expect(try #require(throws: ReelError.self) { try LinkRecording(path: path) }.reason.contains("limit"))
    let missing = try #require(throws: ReelError.self) { try LinkRecording(path: folder.path + "/missing") }
    #expect(missing.kind == .noSuchFile)
  }

  @Test("A long recording is read within its limits")
  func long() throws {
    let lines = (0..<300_000).map { "\($0) \($0 % 7)" }.joined(separator: "\n")
    let recording = try parse(lines)
    #expect(recording.period == .seconds(300_000))
    let many = (0..<1_000_001).map { "\($0 / 2).\($0 % 2 * 5) \($0 % 3)" }.joined(separator: "\n")
    #expect(try #require(throws: ReelError.self) { try parse(many) }.reason.contains("1000000"))
  }
}

@Suite("Arguments that name links")
struct LinkArgumentTests {
  private func write(_ text: String, _ folder: TemporaryFolder, _ name: String) throws {
    let url = URL(filePath: folder.path + "/" + name)
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try text.write(to: url, atomically: true, encoding: .utf8)
  }

  @Test("Rates, profiles and files, with options")
  func forms() throws {
    let folder = try TemporaryFolder()
    try write("0 1\n10 3\n", folder, "a,b")
    for (text, name) in [
      ("10Mbit/50ms,tcp", "10Mbit/50ms"), ("LTE,tcp", "LTE"), (folder.path + "/a,b,tcp", "a,b"),
    ] {
      let argument = try LinkArgument(parsing: text)
      #expect(!argument.isFolder)
      let links = try argument.links(seed: 1)
      #expect(links.map(\.name) == [name])
      #expect(links.map(\.text) == [text])
      #expect(links.allSatisfy { $0.spec.features == .tcp })
    }
    let scaled = try LinkArgument(parsing: folder.path + "/a,b,scale=4,rtt=80ms").links(seed: 1)
    #expect(scaled.first?.spec.bitsPerSecond == 8_000_000)
    #expect(scaled.first?.spec.roundTripTime == .milliseconds(80))
    for text in ["", ",tcp", "fast", folder.path + "/missing", folder.path + "/a,b,fast", "5g,tcp"] {
      #expect(throws: ReelError.self) { try LinkArgument(parsing: text) }
    }
  }

  @Test("A start that is drawn depends on the seed and on the recording")
  func drawnStart() throws {
    let folder = try TemporaryFolder()
    try write("0 1\n1000 3\n", folder, "a")
    try write("0 1\n1000 4\n", folder, "b")
    let argument = try LinkArgument(parsing: folder.path + ",start=seed")
    let starts = try (0..<20).map { seed in try argument.links(seed: seed).map(\.spec.start) }
    #expect(Set(starts.joined()).count == 40)
    #expect(starts.joined().allSatisfy { (.zero..<Duration.seconds(2000)).contains($0) })
    #expect(try argument.links(seed: 7).map(\.spec.start) == starts[7])
    #expect(
      try LinkArgument(parsing: folder.path + "/b,start=seed").links(seed: 7).map(\.spec.start) == [
        starts[7][1]
      ])
  }

  @Test("A folder stands for its recordings, sorted")
  func folders() throws {
    let folder = try TemporaryFolder()
    for name in ["b", "a10", "a2", "c/d/e.log", "c/README.txt"] { try write("0 1\n1 2\n", folder, name) }
    for name in ["README.md", "LICENSE", ".hidden", ".git/x", "notes.md"] {
      try write("Not a link", folder, name)
    }
    let argument = try LinkArgument(parsing: folder.path + ",scale=2")
    #expect(argument.isFolder)
    let links = try argument.links(seed: 1)
    #expect(links.map(\.name) == ["a10", "a2", "b", "c/d/e.log"])
    #expect(links.map(\.text).last == folder.path + "/c/d/e.log,scale=2")
    #expect(links.allSatisfy { $0.spec.recording?.bitsPerSecond(at: .zero) == 2_000_000 })

    try write("0 1\nx 2\n", folder, "c/broken")
    let error = try #require(throws: ReelError.self) { try argument.links(seed: 1) }
    #expect(error.location == folder.path + "/c/broken")
    #expect(error.place == .line(2))
    let empty = try TemporaryFolder()
    try write("text", empty, "README.md")
    let none = try #require(throws: ReelError.self) { try LinkArgument(parsing: empty.path).links(seed: 1) }
    #expect(none.reason.contains("no recordings"))
  }

  @Test("The recordings that come along")
  func fixtures() throws {
    let links = try LinkArgument(parsing: Fixtures.path("links")).links(seed: 1)
    #expect(links.count == 12)
    for source in ["fcc", "hsdpa", "oboe", "puffer"] {
      #expect(links.count { $0.name.hasPrefix(source) } == 3)
    }
    let bus = try #require(links.first { $0.name == "hsdpa-bus.txt" })
    #expect(bus.spec.description.hasPrefix("3.01"))
  }
}
