import ReelTestSupport
import Testing

/// Arguments that make no sense end with 64 and a message, before anything is opened.
@Suite("Usage errors", .hangLimit)
struct UsageTests {
  private static let frames: [[String]] = [
    [], ["-", "-"], ["a.mp4", "--count", "-1"], ["a.mp4", "--count", "x"], ["a.mp4", "--at", "-1"],
    ["a.mp4", "--every", "0"], ["a.mp4", "--count", "1", "--at", "2"], ["a.mp4", "--size", "12"],
    ["a.mp4", "--size", "0x5"], ["a.mp4", "--size", "99999x5"], ["a.mp4", "--gravity", "up"],
    ["a.mp4", "--jobs", "0"], ["a.mp4", "--format", "gif"], ["a.mp4", "--format", "y4m", "--size", "4x4"],
    ["a.mp4", "--bandwidth", "fast"], ["a.mp4", "--max-height", "0"], ["a.mp4", "--header", "nothing"],
    ["a.mp4", "--timeout", "0"], ["a.mp4", "--retries", "-1"], ["a.mp4", "b.mp4", "-o", "-"],
    ["a.mp4", "--quiet", "--verbose"], ["a.mp4", "--frobnicate"],
  ]

  private static let play: [[String]] = [
    [], ["-", "-"], ["a.mp4", "--rate", "0"], ["a.mp4", "--rate", "9"], ["a.mp4", "--rate", "nan"],
    ["a.mp4", "--rate", "fast"], ["a.mp4", "--duration", "0"], ["a.mp4", "--start", "-1"],
    ["a.mp4", "--volume", "-1"], ["a.mp4", "--volume", "nan"], ["a.mp4", "--mute", "--wav", "a.wav"],
    ["a.mp4", "--wav", "-"], ["a.mp4", "--wav", ""], ["a.mp4", "--y4m", ""],
    ["a.mp4", "--y4m", "-", "--json"], ["a.mp4", "--nut", ""], ["a.mp4", "--nut", "-", "--json"],
    ["a.mp4", "--nut", "a", "--y4m", "b"], ["a.mp4", "--nut", "a", "--wav", "b"],
    ["a.mp4", "b.mp4", "--nut", "a"],
    ["a.mp4", "--y4m", "a", "--wav", "a"], ["a.mp4", "b.mp4", "--y4m", "a.y4m"],
    ["a.mp4", "b.mp4", "--wav", "a.wav"], ["a.mp4", "b.mp4", "--loop"], ["a.mp4", "-o", "-"],
    ["a.mp4", "--format", "png"], ["a.mp4", "--size", "4x4"], ["a.mp4", "--gravity", "fit"],
    ["a.mp4", "-o", "d", "--format", "gif"], ["a.mp4", "--md5"], ["a.mp4", "--buffer", "0"],
    ["a.mp4", "--threads", "0"], ["a.mp4", "--audio-language", ""], ["a.mp4", "--bandwidth", "automatic"],
    ["a.mp4", "--timeout", "0"], ["a.mp4", "--quiet", "--verbose"],
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
    ["--write", "gif"], ["--write", ""], ["-o", "-"], ["-o", ""], ["--jobs", "0"],
  ]

  /// Of the memory of players of one source.
  private static let memory: [[String]] = [
    ["--players", "0"], ["--stage", "none"], ["--budget", "much"], ["--hold", "-1"],
    ["--stage", "manifest", "--warm"], ["--buffer", "-1"], ["--stage", "playing", "--warm"],
    ["--stage", "playing", "--hold", "1s"], ["--play", "0"],
  ]

  private static let all =
    frames.map { ["frames"] + $0 } + play.map { ["play"] + $0 }
    + poster.map { ["poster", "a.mp4"] + $0 } + storyboard.map { ["storyboard", "a.mp4"] + $0 }
    + memory.map { ["memory", "a.mp4"] + $0 } + [["memory"], ["memory", "-"]]

  @Test("What makes no sense is refused", arguments: all)
  func refused(arguments: [String]) async throws {
    let result = try await Command.run(arguments, status: 64)
    #expect(!result.errorText.isEmpty && result.output.isEmpty)
  }
}
