import Foundation
import ReelTestSupport
import ReelTesting
import Testing

/// The schemas in `Docs/schemas` describe what the commands print.
@Suite("JSON schemas", .hangLimit)
struct SchemaTests {
  private static let hls = Fixtures.path("hls-fmp4/master.m3u8")
  private static let bad = Fixtures.path("bad/text.mp4")

  /// Commands, each with its schema.
  private static let runs: [(schema: String, arguments: [String])] = [
    ("probe", ["probe", hls, Fixtures.path("dash-periods/manifest.mpd"), goodSource, bad, "--json"]),
    ("frames", ["frames", hls, goodSource, bad, "-o", "out", "--json", "--md5", "--count", "2"]),
    ("poster", ["poster", Fixtures.path("stills/master.m3u8"), goodSource, bad, "-o", "out", "--json"]),
    (
      "storyboard",
      [
        "storyboard", Fixtures.path("stills/master.m3u8"), goodSource, bad, "-o", "out", "--every", "1",
        "--write", "vtt,hls", "--json",
      ]
    ),
    (
      "check",
      [
        "check", hls, goodSource, bad, "missing.mp4", "--json", "--link", "lte", "--link", "3g",
        "--expect", "errors=0", "--set", "black.run=5s",
      ]
    ),
    ("check", ["check", Fixtures.path("dash-periods/manifest.mpd"), "--sample", "start", "--json"]),
    ("check", ["check", Fixtures.path("hls-ts/master.m3u8"), "--player", "avplayer", "--json"]),
    ("manifest", ["manifest", hls]),
    ("manifest", ["manifest", "--shallow", Fixtures.path("dash-ondemand/manifest.mpd")]),
    ("manifest", ["manifest", bad]),
    ("play", ["play", hls, goodSource, bad, "--rate", "max", "--md5", "--json"]),
    ("memory", ["memory", hls, bad, "--players", "2", "--json"]),
    ("memory", ["memory", hls, "--stage", "playing", "--play", "500ms", "--json"]),
    (
      "feed",
      [
        "feed", "feed.txt", "--virtual", "--link", "3g", "--swipes", "4", "--json", "--compare", "1:none,3",
        "--assert", "first_frame.p95<1ms",
      ]
    ),
    (
      "feed",
      [
        "feed", "feed.txt", "--virtual", "--link", "lte", "--swipes", "4", "--json", "--details", "--device",
        "low",
        "--first-rung", "low", "--bursts", "30%",
      ]
    ),
    (
      "feed",
      [
        "feed", "feed.txt", "--virtual", "--link", "lte", "--swipes", "3", "--json", "--simulated-cache",
        "50MB",
        "--visits", "2", "--between", "1d",
      ]
    ),
    (
      "lab",
      [
        "lab", "--feed", "feed.txt", "--link", "lte", "--player", "media3", "--policies", "none,ahead:1",
        "--seeds", "2", "--swipes", "4", "--simulated-cache", "50MB", "--visits", "2", "--advise", "--json",
      ]
    ),
    (
      "lab",
      [
        "lab", "--feed", "feed.txt", "--link", "lte", "--link", "3g", "--policies", "adjacent,adaptive,none",
        "--seeds",
        "2", "--pools", "2,3", "--swipes", "4", "--json",
      ]
    ),
  ]

  @Test("What a command prints has the form of its schema", arguments: runs.indices)
  func output(index: Int) async throws {
    let run = Self.runs[index]
    let folder = try TemporaryFolder()
    try folder.write("\(Self.hls)\n\(goodSource)\n\(Self.bad)\n", to: "feed.txt")
    let result = try await Command.run(run.arguments, directory: folder.path)
    #expect(!result.outputLines.isEmpty, "\(result.errorText)")
    try JSONSchema.check(result.outputLines, "\(run.schema).json")
  }

  @Test(
    "Results of a list, and their report, have the form of their schemas",
    arguments: [
      ["frames", "-o", "out"], ["poster", "-o", "out"], ["storyboard", "-o", "out"],
      ["probe", "--results", "out/results.jsonl"], ["check", "--results", "out/results.jsonl"],
      ["manifest", "--results", "out/results.jsonl"],
      ["play", "--results", "out/results.jsonl", "--rate", "max"],
    ])
  func results(command: [String]) async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("out"), withIntermediateDirectories: true)
    try folder.write("\(Self.hls)\n{\"url\": \"\(Self.bad)\", \"id\": 7}\nmissing.mp4\n{}\n", to: "list.txt")
    try await Command.run(
      command + ["--input", "list.txt", "--quiet"], directory: folder.path, status: 1)
    let lines = try folder.text("out/results.jsonl").split(separator: "\n")
    #expect(lines.count == 4)
    try JSONSchema.check(lines, "results.json")
    let report = try await Command.run("report", folder.path("out/results.jsonl"), "--json")
    try JSONSchema.check(report.outputLines, "report.json")
  }

  @Test("A value of another form fails, and says where")
  func failures() throws {
    let folder = try TemporaryFolder()
    let text = #"""
      {
        "type": "object", "required": ["count", "parts"], "additionalProperties": false,
        "properties": {
          "count": { "type": "integer" }, "time": { "type": "number" },
          "parts": { "type": "array", "items": { "$ref": "#/$defs/part" } }
        },
        "$defs": { "part": { "type": "object" } }
      }
      """#
    try folder.write(text, to: "schema.json")
    let schema = try JSONSchema(contentsOf: folder.url.appending(path: "schema.json"))
    for (text, words) in [
      (#"{"count": 2, "parts": [], "more": 1}"#, "more"), (#"{"count": 2.5, "parts": []}"#, "$.count"),
      (#"{"count": 2, "time": true, "parts": []}"#, "$.time"), (#"{"count": 2}"#, "parts"),
      (#"{"count": 2, "parts": [1]}"#, "$.parts[0]"),
    ] {
      let value = try JSONSerialization.jsonObject(with: Data(text.utf8))
      let failure = #expect(throws: JSONSchema.Failure.self) { try schema.check(value) }
      #expect(failure?.description.contains(words) == true, "\(failure?.description ?? "")")
    }
  }
}
