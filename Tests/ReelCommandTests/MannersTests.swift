import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import ReelLab
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Manners of the command line", .hangLimit)
struct MannersTests {
  private static let source = Fixtures.path("hls-fmp4/master.m3u8")
  private static let items = ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd"]

  // MARK: Help

  @Test("Entries of a help text's list keep their second column")
  func helpLists() {
    let list = HelpText.list([("a", "one two three four five six seven"), ("long name", "eight")])
    #expect(
      HelpText.fitted(list, to: 40) == """
          a          one two three four five six
                     seven
          long name  eight
        """)
    // Without room for a second column, meanings go below the names.
    #expect(
      HelpText.fitted(list, to: 24) == """
          a
              one two three four
              five six seven
          long name  eight
        """)
    #expect(
      HelpText.fitted("  --audio-language <lang> The preferred audio language, first", to: 50)
        == "  --audio-language <lang> The preferred audio\n                          language, first")
    #expect(HelpText.fitted("one two three", to: 9) == "one two\nthree")
    #expect(HelpText.fitted("USAGE: reel [<options>]", to: 16) == "USAGE: reel\n       [<options\n       >]")
  }

  @Test("A list's longest lines are as wide as the terminal, not 80 columns")
  func wideHelp() {
    let list = HelpText.list([("name", String(repeating: "word ", count: 40))])
    #expect(HelpText.fitted(list, to: 200).split(separator: "\n").map(\.count).max() ?? 0 > 180)
  }

  // MARK: Quiet

  /// With `--quiet`, text is left out.
  @Test(
    "--quiet prints no text",
    arguments: [
      ["probe", "SOURCE"], ["frames", "SOURCE", "-o", "FOLDER"], ["poster", "SOURCE", "-o", "FOLDER"],
      ["storyboard", "SOURCE", "-o", "FOLDER"], ["play", "SOURCE", "--rate", "max"],
      ["viewers", "SOURCE", "--viewers", "2", "--duration", "1"],
      ["memory", "SOURCE", "--players", "1", "--stage", "manifest"],
      ["feed", "FEED", "--virtual", "--link", "lte", "--swipes", "2", "--assert", "failed=0"],
      ["lab", "--feed", "FEED", "--link", "lte", "--dry-run"],
      ["lab", "--feed", "FEED", "--link", "lte", "--policies", "none", "--swipes", "1"],
      ["frames", "SOURCE", "-o", "FOLDER", "--resume"],
    ])
  func quiet(arguments: [String]) async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    func filled(_ arguments: [String]) -> [String] {
      arguments.map {
        $0.replacing("FOLDER", with: folder.path).replacing("FEED", with: feed)
          .replacing("SOURCE", with: Self.source)
      }
    }
    let quiet = try await Command.run(filled(arguments + ["--quiet"]), status: 0)
    #expect(quiet.outputText.isEmpty && quiet.errorText.isEmpty, "\(quiet.outputText)\(quiet.errorText)")
    guard !arguments.contains("--dry-run") else { return }
    // JSON is data.
    let json = try await Command.run(filled(arguments + ["--quiet", "--json"]))
    #expect(
      json.outputLines.first?.hasPrefix("{") == true || arguments.contains("--resume"), "\(json.errorText)")
  }

  @Test("--quiet prints data: a manifest, playlists, frames on standard output")
  func quietData() async throws {
    let manifest = try await Command.run("manifest", Self.source, "--quiet")
    #expect(manifest.outputText.hasPrefix("{"))
    let playlists = try await Command.run("manifest", Self.source, "--output", "hls", "--quiet")
    #expect(playlists.outputText.contains("#EXTM3U"))
    let frame = try await Command.run("frames", Self.source, "-o", "-", "--quiet")
    #expect(frame.output.starts(with: Array("P6\n".utf8)))
  }

  @Test("reel report --quiet prints no text, and JSON all the same")
  func quietReport() async throws {
    let folder = try TemporaryFolder()
    let results = try folder.write(
      #"{"url":"a","status":"written","host":""}"#, to: "results.jsonl")
    let quiet = try await Command.run("report", results, "--quiet")
    #expect(quiet.status == 0 && quiet.output.isEmpty && quiet.errorText.isEmpty)
    #expect(try await Command.run("report", results, "--quiet", "--json").outputText.hasPrefix("{"))
  }

  // MARK: Messages

  @Test("Warnings about links of a folder name the recording")
  func folderWarnings() async throws {
    let folder = try TemporaryFolder()
    let feed = try folder.writeFeed(Self.items)
    let links = folder.path("links")
    for (name, rate) in [("slow", 0.1), ("slower", 0.05)] {
      try folder.write("0 \(rate)\n10 \(rate)\n", to: "links/\(name)")
    }
    let arguments = ["feed", feed, "--virtual", "--link", links, "--swipes", "1", "--dwell", "fixed:20s"]
    let run = try await Command.run(arguments, status: 0)
    #expect(run.errorText.contains("warning: slow: "), "\(run.errorText)")
    #expect(run.errorText.contains("warning: slower: "), "\(run.errorText)")
  }

  // MARK: Colors

  @Test("Verdicts of assertions, warnings and failures have colors")
  func colors() async throws {
    let folder = try TemporaryFolder()
    let walk = [
      "feed", try folder.writeFeed(Self.items), "--virtual", "--link", "lte", "--swipes", "2", "--assert",
      "failed=0",
      "--assert", "failed=7",
    ]
    let colored = try await Command.run(walk + ["--color", "always"], status: 1)
    #expect(colored.outputText.contains("failed=0: \u{1b}[32mmet\u{1b}[0m, 0"), "\(colored.outputText)")
    #expect(colored.errorText.contains("failed=7: \u{1b}[31mnot met\u{1b}[0m, 0"), "\(colored.errorText)")
    let plain = try await Command.run(walk)
    #expect(plain.outputText.contains("failed=0: met, 0") && plain.errorText.contains("failed=7: not met, 0"))

    let results = try folder.write(
      #"{"url":"a","status":"failed","permanent":true,"error":{"kind":"noSuchFile","message":"no"}}"#,
      to: "results.jsonl")
    let report = try await Command.run("report", results, "--color", "always")
    #expect(report.outputText.contains("\u{1b}[31m1 failed\u{1b}[0m"), "\(report.outputText)")
    #expect(!(try await Command.run("report", results).outputText.contains("\u{1b}")))

    let master = try folder.write(
      """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS="avc1.64000c,mp4a.40.2"
      missing.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=400000,CODECS="avc1.64000c,mp4a.40.2"
      \(Fixtures.path("hls-fmp4/low/index.m3u8"))

      """, to: "master.m3u8")
    let probe = try await Command.run("probe", master, "--color", "always")
    #expect(
      probe.outputText.contains("\u{1b}[33mwarning\u{1b}[0m  "), "\(probe.outputText)\(probe.errorText)")
  }

  @Test("Text with colors is wrapped by its visible width")
  func coloredWidth() {
    let word = TextLayout(usesColor: true).styled("abc", .bad)
    #expect(TextLayout(width: 24).fitted("a \(word) 34567890123456789") == "a \(word) 34567890123456789")
    let wrapped = TextLayout(width: 24).fitted("a \(word) 3456789012345678901234")
    #expect(wrapped.split(separator: "\n").count == 2)
  }

  // MARK: Figures

  @Test("Memory that is not attributed to a player does not exceed the rest of the growth")
  func sharedMemory() {
    let before = MemoryReading(nil, sharedBytes: 0)
    var after = MemoryReading(nil, sharedBytes: 3_000_000)
    after.anonymousBytes = 1_000_000
    var account = MemoryLedger.Account()
    account[.packets] = 400_000
    let summary = MemorySummaryRecord(
      stage: "buffered", target: PreloadTarget(stage: .buffered), accounts: [account, account], failed: 0,
      before: before, after: after, rest: MemoryRest(), budget: 64_000_000)
    let text = MemoryText.text(of: MemoryJob.Outcome(summary: summary, sourceCount: 1))
    #expect(text.contains("not attributed  0.200 MB (connections, tasks), 0.100 MB per player\n"), "\(text)")
    #expect(text.contains("unexplained     none"), "\(text)")
  }

  // MARK: Pages

  @Test("A walk's page says that the start is no swipe, and tables can be scrolled with keys")
  func page() async throws {
    let folder = try TemporaryFolder()
    let page = folder.path + "/walk.html"
    try await Command.run(
      "feed", try folder.writeFeed(Self.items), "--virtual", "--link", "lte", "--swipes", "2", "--report",
      page, status: 0)
    let html = try String(contentsOfFile: page, encoding: .utf8)
    #expect(html.contains("The start of the first item is not a swipe"))
    #expect(html.contains("<div class=\"scroll\" tabindex=\"0\">"))
  }
}
