import Foundation
import ReelTestSupport
import ReelTesting
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// `reel` with standard output and standard error on a pseudoterminal.
private struct TerminalRun {
  let text: String
  let status: Int32

  var lines: [String] {
    text.replacing("\r\n", with: "\n").split(separator: "\n").map(String.init)
  }

  /// The controlling end of a new pseudoterminal, and the path of the other one.
  private static func pseudoterminal() throws -> (control: Int32, name: String) {
    let control = open("/dev/ptmx", O_RDWR | O_NOCTTY)
    try #require(control >= 0)
    #if canImport(Glibc)
      // Glibc's functions for this are not in its module: TIOCSPTLCK and TIOCGPTN of ioctl_tty(2).
      var (lock, number) = (Int32(0), Int32(0))
      let isReady = ioctl(control, 0x4004_5431, &lock) == 0 && ioctl(control, 0x8004_5430, &number) == 0
      try #require(isReady)
      return (control, "/dev/pts/\(number)")
    #else
      let isReady = grantpt(control) == 0 && unlockpt(control) == 0
      try #require(isReady)
      return (control, String(cString: try #require(ptsname(control))))
    #endif
  }

  /// - Parameters:
  ///   - environment: Variables beside those of the tests. `TERM` is `xterm` and `NO_COLOR` is not set, unless they are here.
  init(_ arguments: [String], columns: UInt16 = 80, environment: [String: String] = [:]) async throws {
    let (control, name) = try Self.pseudoterminal()
    let terminal = open(name, O_RDWR | O_NOCTTY)
    try #require(terminal >= 0)
    var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    let isSized = ioctl(terminal, UInt(TIOCSWINSZ), &size) == 0
    try #require(isSized)

    let process = Process()
    process.executableURL = try Command.executable()
    process.arguments = arguments
    var variables = ProcessInfo.processInfo.environment
    variables["NO_COLOR"] = nil
    variables["TERM"] = "xterm"
    process.environment = variables.merging(environment) { $1 }
    let handle = FileHandle(fileDescriptor: terminal, closeOnDealloc: false)
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = handle
    process.standardError = handle
    let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    close(terminal)
    // The end is an error on Linux: nobody has the terminal open any more.
    let reading = Task<[UInt8], Never> {
      await withCheckedContinuation { continuation in
        Thread {
          var bytes: [UInt8] = []
          var buffer = [UInt8](repeating: 0, count: 4096)
          while true {
            let count = read(control, &buffer, buffer.count)
            if count <= 0 { break }
            bytes += buffer[..<count]
          }
          close(control)
          continuation.resume(returning: bytes)
        }.start()
      }
    }
    for await _ in ended {}
    text = String(decoding: await reading.value, as: UTF8.self)
    status = process.terminationStatus
  }
}

@Suite("Output on a terminal", .hangLimit)
struct TerminalTests {
  private static let source = Fixtures.folder.path + "/hls-fmp4/master.m3u8"

  private static func feed(in folder: borrowing TemporaryFolder) throws -> String {
    let items = ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"]
    let lines = items.map { "#EXTINF:3,A title\n\(Fixtures.folder.path)/\($0)\n" }.joined()
    return try folder.write(lines, to: "a-feed-with-a-name-of-some-length.m3u")
  }

  private static func hasColor(_ text: String) -> Bool { text.contains("\u{1b}[3") }

  /// A line as it stands in the end, without colours: what a line of progress has written is erased.
  private static func plain(_ line: String) -> String {
    let rest = line.components(separatedBy: "\r\u{1b}[K").last ?? ""
    return rest.replacing(#/\u{1b}\[[0-9;]*m/#, with: "")
  }

  @Test(
    "The text of each command fits 80 columns",
    arguments: [
      ["probe"], ["memory", "--players", "3", "--play", "0.1s"], ["play", "--rate", "max"],
    ])
  func commands(arguments: [String]) async throws {
    let folder = try TemporaryFolder()
    let filled = arguments.map { $0.replacing("FOLDER", with: folder.path) }
    let run = try await TerminalRun(filled + [Self.source])
    #expect(run.status == 0, "\(run.text)")
    let lines = run.lines.map(Self.plain)
    #expect(lines.count > 2)
    for line in lines { #expect(line.count <= 80, "\(line)") }
  }

  @Test(
    "Reports of walks fit 80 columns, and mark hits and misses",
    arguments: [
      [], ["--details"], ["--compare", "1:none,2:adjacent,3:adaptive,4:ahead:3"],
    ])
  func walks(options: [String]) async throws {
    let folder = try TemporaryFolder()
    let run = try await TerminalRun(
      ["feed", try Self.feed(in: folder), "--virtual", "--link", "lte", "--swipes", "6"] + options)
    #expect(run.status == 0, "\(run.text)")
    for line in run.lines.map(Self.plain) { #expect(line.count <= 80, "\(line)") }
    #expect(Self.hasColor(run.text) == !options.contains("--compare"))
  }

  @Test("Help fits the terminal", arguments: [40, 60, 80, 120, 200] as [UInt16])
  func help(columns: UInt16) async throws {
    for command in ["feed", "lab", "serve", "frames"] {
      let run = try await TerminalRun([command, "--help"], columns: columns)
      #expect(run.status == 0)
      #expect(run.lines.count > 20)
      for line in run.lines { #expect(line.count <= Int(columns), "\(line)") }
    }
    let missing = try await TerminalRun(["feed"], columns: columns)
    #expect(missing.status == 64)
    for line in missing.lines.map(Self.plain) { #expect(line.count <= Int(columns), "\(line)") }
  }

  @Test("Errors have colour on a terminal, unless the user wants none")
  func errors() async throws {
    let arguments = ["probe", "missing.mp4"]
    let usual = try await TerminalRun(arguments)
    #expect(usual.status == 66)
    #expect(usual.text.contains("\u{1b}[31mreel:\u{1b}[0m "))
    for environment in [["NO_COLOR": "1"], ["TERM": "dumb"]] {
      let run = try await TerminalRun(arguments, environment: environment)
      #expect(!Self.hasColor(run.text) && run.text.contains("reel: "))
    }
    #expect(!Self.hasColor(try await TerminalRun(arguments + ["--color", "never"]).text))
    #expect(Self.hasColor(try await TerminalRun(["frames", "--bogus"]).text))
    #expect(!Self.hasColor(try await TerminalRun(["frames", "--bogus", "--color", "never"]).text))
  }

  @Test("A warning that is too wide continues at words, which stay whole", arguments: [40, 80] as [UInt16])
  func warnings(columns: UInt16) async throws {
    let folder = try TemporaryFolder()
    let segments = [0, 2].map { Fixtures.path("hls-ts/low/segment-\($0).ts") }
    let path = try folder.write(
      """
      #EXTM3U
      #EXT-X-TARGETDURATION:1
      #EXTINF:1,
      \(segments[0])
      #EXTINF:1,
      missing.ts
      #EXTINF:1,
      \(segments[1])
      #EXT-X-ENDLIST
      """, to: "a.m3u8")
    let arguments = [
      "frames", path, "--count", "0", "-o", folder.path("out"), "--overwrite", "--color", "never",
    ]
    let piped = try await Command.run(arguments)
    let whole = try #require(piped.errorLines.first)
    #expect(whole.hasSuffix(": 1 segment was missed"), "\(piped.errorText)")
    let run = try await TerminalRun(arguments, columns: columns)
    let lines = run.lines.map(Self.plain)
    let first = try #require(lines.firstIndex { $0.hasPrefix("reel: warning:") }, "\(run.text)")
    let warning = [lines[first]] + lines[(first + 1)...].prefix { $0.hasPrefix("  ") }
    let words = warning.flatMap { $0.split(separator: " ") }
    #expect(words == whole.split(separator: " "))
    for line in warning {
      #expect(line.count <= Int(columns) || line.split(separator: " ").count == 1, "\(line)")
    }
  }

  @Test("Pipes get whole lines without colour, unless the user wants it; JSON has none")
  func pipes() async throws {
    let folder = try TemporaryFolder()
    let walk = ["feed", try Self.feed(in: folder), "--virtual", "--link", "lte", "--swipes", "6"]
    let usual = try await Command.run(walk)
    #expect(!Self.hasColor(usual.outputText))
    #expect(usual.outputLines[0].count > 80)
    #expect(Self.hasColor(try await Command.run(walk + ["--color", "always"]).outputText))
    #expect(!Self.hasColor(try await Command.run(walk + ["--json", "--color", "always"]).outputText))
    #expect(!Self.hasColor(try await TerminalRun(walk + ["--json"]).text))
  }

  /// Commands that wait for a server which does not answer in time.
  @Test(
    "What takes more than two seconds shows progress on a terminal, and not with --quiet",
    arguments: [
      ["probe"], ["manifest"], ["frames", "-o", "FOLDER"], ["poster", "-o", "FOLDER"],
      ["storyboard", "-o", "FOLDER"], ["serve", "--port", "0"], ["memory", "--players", "1"], ["feed"],
    ])
  func progress(arguments: [String]) async throws {
    let folder = try TemporaryFolder()
    let origin = try await Origin.start(
      Origin.Configuration(
        directory: Fixtures.folder, faults: try FaultRule.parse("*.m3u8=stall:0")))
    let filled =
      arguments.map { $0.replacing("FOLDER", with: folder.path) }
      + [origin.url("hls-fmp4/master.m3u8").absoluteString, "--timeout", "8s", "--retries", "0"]
    let run = try await TerminalRun(filled)
    #expect(run.status != 0)
    #expect(run.text.contains("\r\u{1b}[K"), "\(run.text)")
    // Reading a feed has no count of seconds.
    if arguments != ["feed"] { #expect(run.text.contains(#/, [2-9] s/#), "\(run.text)") }
    let quiet = try await TerminalRun(filled + ["--quiet", "--timeout", "2s"])
    #expect(!quiet.text.contains("\u{1b}[K"), "\(quiet.text)")
    await origin.stop()
  }
}
