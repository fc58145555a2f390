import ReelTestSupport
import Testing

/// Arguments that make no sense end with 64 and a message, before anything is opened.
@Suite("Usage errors", .hangLimit)
struct UsageTests {
  private static let frames: [[String]] = [
    [], ["-", "-"], ["a.mp4", "--count", "-1"], ["a.mp4", "--count", "x"], ["a.mp4", "--at", "-1"],
    ["a.mp4", "--every", "0"], ["a.mp4", "--count", "1", "--at", "2"],
    ["a.mp4", "--size", "12", "--gravity", "fill"],
    ["a.mp4", "--size", "0x5"], ["a.mp4", "--size", "99999x5"], ["a.mp4", "--gravity", "up"],
    ["a.mp4", "--jobs", "0"], ["a.mp4", "--format", "gif"], ["a.mp4", "--format", "y4m", "--size", "4x4"],
    ["a.mp4", "--bandwidth", "fast"], ["a.mp4", "--max-height", "0"], ["a.mp4", "--header", "nothing"],
    ["a.mp4", "--timeout", "0"], ["a.mp4", "--retries", "-1"], ["a.mp4", "b.mp4", "-o", "-"],
    ["a.mp4", "--quiet", "--verbose"], ["a.mp4", "--frobnicate"],
  ]

  private static let play: [[String]] = [
    [], ["-", "-"], ["a.mp4", "--rate", "0"], ["a.mp4", "--rate", "9"], ["a.mp4", "--rate", "nan"],
    ["a.mp4", "--rate", "fast"], ["a.mp4", "--duration", "0"], ["a.mp4", "--start", "-1"],
    ["a.mp4", "--volume", "1"], ["a.mp4", "--linear"], ["a.mp4", "--mute", "--wav", "a.wav"],
    ["a.mp4", "--wav", "-"], ["a.mp4", "--wav", ""], ["a.mp4", "--y4m", ""],
    ["a.mp4", "--y4m", "-", "--json"], ["a.mp4", "--nut", ""], ["a.mp4", "--nut", "-", "--json"],
    ["a.mp4", "--nut", "a", "--y4m", "b"], ["a.mp4", "--nut", "a", "--wav", "b"],
    ["a.mp4", "b.mp4", "--nut", "a"],
    ["a.mp4", "--y4m", "a", "--wav", "a"], ["a.mp4", "b.mp4", "--y4m", "a.y4m"],
    ["a.mp4", "b.mp4", "--wav", "a.wav"], ["a.mp4", "b.mp4", "--loop"], ["a.mp4", "-o", "-"],
    ["a.mp4", "--format", "png"], ["a.mp4", "--size", "4x4"], ["a.mp4", "--gravity", "fit"],
    ["a.mp4", "-o", "d", "--format", "gif"], ["a.mp4", "--md5"], ["a.mp4", "--buffer", "0"],
    ["a.mp4", "--threads", "0"], ["a.mp4", "--audio-language", ""], ["a.mp4", "--bandwidth", "automatic"],
    ["a.mp4", "--timeout", "0"], ["a.mp4", "--quiet", "--verbose"], ["a.mp4", "-o", "x.png"],
  ]

  /// Of a poster of one source.
  private static let poster: [[String]] = [
    ["--size", "0"], ["--size", "0x10"], ["--size", "-5"], ["--size", "p"], ["--size", "320x"],
    ["--quality", "0"], ["--quality", "101"], ["--quality", "50", "--format", "png"],
    ["--max-bytes", "0"], ["--max-bytes", "1kB", "--format", "ppm"], ["--max-bytes", "much"],
    ["--candidates", "-1"], ["--first", "--at", "1"], ["--at", "-1"], ["--format", "gif"],
    ["--format", "y4m", "--size", "320"], ["--hdr", "keep"], ["--hdr", "maybe"], ["-o", ""],
  ]

  /// Of a storyboard of one source.
  private static let storyboard: [[String]] = [
    ["--every", "0"], ["--every", "-1"], ["--every", "0.01"], ["--every", "2", "--count", "3"],
    ["--count", "0"], ["--count", "1000000"], ["--grid", "0x3"], ["--grid", "3"], ["--grid", "1001x1"],
    ["--size", "0"], ["--quality", "0"], ["--quality", "50", "--format", "png"], ["--format", "y4m"],
    ["--write", "gif"], ["--write", ""], ["-o", "-"], ["-o", "x.vtt"], ["-o", ""], ["--jobs", "0"],
  ]

  /// Of the memory of players of one source.
  private static let memory: [[String]] = [
    ["--players", "0"], ["--stage", "none"], ["--budget", "much"], ["--budget", "64"], ["--hold", "-1"],
    ["--stage", "manifest", "--warm"], ["--buffer", "-1"], ["--stage", "playing", "--warm"],
    ["--stage", "playing", "--hold", "1s"], ["--play", "0"],
  ]

  private static let all =
    frames.map { ["frames"] + $0 } + play.map { ["play"] + $0 }
    + poster.map { ["poster", "a.mp4"] + $0 } + storyboard.map { ["storyboard", "a.mp4"] + $0 }
    + memory.map { ["memory", "a.mp4"] + $0 } + [["memory"], ["memory", "-"]]

  /// Of each command that writes images of the sources of a list, and what the message says.
  private static let list = [
    ("--input x a.mp4", "not both"), ("--resume", "at least one source"), ("--resume -", "standard input"),
    ("--input x -o -", "-o -"), ("--input x --name {tiem}", "did you mean {time}"),
    ("--input x --name ../{stem}", "leave the output folder"), ("--input x --shard 3/3", "out of range"),
    ("--input x --shard auto/3", "auto needs"), ("--input x --shard-by host", "was removed"),
    ("--input x --per-host 0", "--per-host"), ("--input x --rate-limit 5/d", "--rate-limit"),
    ("--input x --rate-limit 0/s", "--rate-limit"),
    ("--input /etc/hosts --results /etc/hosts", "same file"),
  ]

  private static let explained =
    list.map { ("frames \($0)", $1) } + list.map { ("poster \($0)", $1) } + [
      ("frames --input x --name {time} --format y4m", "{time}"),
      ("manifest a --strict", "reel check"), ("manifest a --follow", "reel check --watch"),
      ("manifest --input x --output hls", "one source"),
      ("manifest a --jobs 0", "--jobs"),
      ("play --input x --nut y", "one source"), ("play a b --jobs 2", "--quiet"),
      ("play --input x --name {stem}", "require -o"), ("play --input x -o y --name {time}", "{time}"),
      ("play - --resume", "standard input"), ("storyboard --input x --name {time}", "{time}"),
      ("probe", "at least one source"), ("probe a --overwrite", "results"), ("probe --resume", "or a list"),
      ("frames a --cache ,1GB", "--cache takes a folder"), ("probe a --cache x,2024", "too small"),
      ("check a --cache x", "--sample start"), ("feed a --cache x --link lte", "--simulated-cache"),
      ("feed a --cache x --virtual", "--simulated-cache"),
      ("feed a --cache x --player hls.js", "--simulated-cache"),
      ("feed --like a --cache x", "can't be combined with --like"), ("cache", "<folder>"),
      ("viewers --viewers 2", "at least one source"), ("viewers a", "--viewers"),
      ("viewers a --input b --viewers 2", "not both"), ("viewers - --viewers 2", "standard input"),
      ("viewers a --viewers 0", "--viewers"), ("viewers a --viewers 2 --duration 0", "--duration"),
      ("viewers a --viewers 2 --ramp 2 --duration 1", "--ramp"),
      ("viewers a --viewers 2 --stay weekly", "fixed:30s or exp:90s"),
      ("viewers a --viewers 2 --stay retention", "fixed:30s or exp:90s"),
      ("viewers a --viewers 2 --link fast", "not a link"),
      ("viewers a --viewers 2 --link wifi:60%,lte:30%", "100 %"),
      ("viewers a --viewers 2 --cmcd body", "'query' and 'header'"),
      ("viewers a --viewers 2 --player vlc", "not a player"),
      ("viewers a --viewers 2 --decode 200%", "--decode"),
      ("viewers a --viewers 2 --assert rebufering<1%", "did you mean rebuffering"),
      ("viewers a --viewers 2 --query x", "NAME=VALUE"),
      ("viewers a --viewers 2 --query x={token}", "--tokens"),
      ("viewers a --viewers 2 --tokens x", "{token}"),
      ("viewers a --viewers 2 --metrics 99999", "not a port"),
      ("viewers a --viewers 2 --junit x", "--assert"), ("viewers a --viewers 2 --overwrite", "--results"),
      ("viewers a --viewers 2 --shard 2/2", "out of range"), ("viewers a --viewers 2 --report -", "--report"),
      ("cache x --clear --older 1d", "can't be combined"), ("cache x --older soon", "not a time"),
    ]

  @Test("What makes no sense is refused", arguments: all)
  func refused(arguments: [String]) async throws {
    let result = try await Command.run(arguments, status: 64)
    #expect(!result.errorText.isEmpty && result.output.isEmpty)
  }

  @Test("The message says why", arguments: explained)
  func refused(line: String, words: String) async throws {
    let result = try await Command.run(line.split(separator: " ").map(String.init), status: 64)
    #expect(result.errorText.contains(words), "\(result.errorText)")
  }
}
