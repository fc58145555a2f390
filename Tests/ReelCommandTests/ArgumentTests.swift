import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Arguments")
struct ArgumentTests {
  @Test(
    "Times",
    arguments: [
      ("2", 2), ("2.5s", 2.5), ("500ms", 0.5), ("250us", 0.00025), ("1.5min", 90), ("1h", 3600),
      ("7d", 604_800),
      ("1:30", 90),
      ("00:00:02", 2), ("1:02:03.5", 3723.5), ("90:00", 5400), ("2s", 2),
    ] as [(String, Double)])
  func times(text: String, seconds: Double) throws {
    #expect(abs(try TimeArgument.seconds(text) - seconds) < 1e-9)
  }

  @Test(
    "What is no time",
    arguments: [
      "", "s", "abc", "1:60", "1:2:3:4", ":30", "1:", "1:-5", "inf", "nan", "0x10", "1e3", "2 3", "1 ms s",
    ])
  func noTime(text: String) {
    #expect(throws: (any Error).self) { try TimeArgument.seconds(text) }
  }

  @Test("Lines", arguments: [("720", 720), ("720p", 720)])
  func lines(text: String, lines: Int) throws {
    #expect(try ImageOptions.lines(text) == lines)
    #expect(throws: (any Error).self) { try ImageOptions.lines("0p") }
    #expect(throws: (any Error).self) { try ImageOptions.lines("p") }
  }

  @Test("A mistyped command gets a suggestion only if one is similar")
  func commands() {
    let commands = ["frames", "play", "feed", "memory"]
    #expect(
      Typos.unknownCommand(in: ["frame", "x"], commands: commands)?.contains("did you mean frames?") == true)
    #expect(Typos.unknownCommand(in: ["paly"], commands: commands)?.contains("did you mean play?") == true)
    #expect(Typos.unknownCommand(in: ["a.mp4"], commands: commands)?.contains("reel frames a.mp4") == true)
    #expect(
      Typos.unknownCommand(in: ["xyz"], commands: commands)?.contains("the commands are frames") == true)
    #expect(
      Typos.unknownCommand(in: ["help", "paly"], commands: commands)?.contains("did you mean play?") == true)
    #expect(
      Typos.unknownCommand(in: ["help", "a.mp4"], commands: commands)?.contains("the commands are") == true)
    for known in [["frames"], ["help"], ["help", "play"], ["help", "--help"], ["--version"], []] {
      #expect(Typos.unknownCommand(in: known, commands: commands) == nil)
    }
  }

  @Test("Help on a command that does not exist is an error")
  func unknownHelp() async throws {
    let result = try await Command.run("help", "frame")
    #expect(result.status == 64 && result.output.isEmpty)
    #expect(result.errorText == "reel: 'frame' is not a command; did you mean frames?\n")
  }

  @Test("No empty line follows the error of a source")
  func emptyLines() async throws {
    let result = try await Command.run("poster", "http://", status: 64)
    #expect(result.errorText == "reel: http://: not a valid URL\n")
  }

  @Test("An option gets no suggestion that is not similar")
  func options() {
    let far = "Error: Unknown option '--html'. Did you mean '--pool'?\nUsage: reel"
    #expect(Typos.withoutFarSuggestion(far) == "Error: Unknown option '--html'\nUsage: reel")
    let near = "Error: Unknown option '--strt'. Did you mean '--start'?\nUsage: reel"
    #expect(Typos.withoutFarSuggestion(near) == near)
    #expect(Typos.withoutFarSuggestion("Error: other") == "Error: other")
  }
}
