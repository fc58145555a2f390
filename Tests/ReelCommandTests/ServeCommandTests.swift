import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

#if os(Linux)
  import Glibc
#endif

@Suite("reel serve", .hangLimit)
struct ServeCommandTests {
  /// Runs `body` with the URL that `reel serve` prints, then interrupts it.
  ///
  /// - Parameter openFiles: The limit of open files of the process; nil for that of the test.
  private func withServer(
    _ arguments: [String], openFiles: Int? = nil, _ body: (URL, Command) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    let limit = openFiles.map { "ulimit -n \($0); " } ?? ""
    let command = try Command(
      ["serve", "--port", "0"] + arguments, shell: "\(limit)exec \"$@\" >'\(folder.path)/output'")
    defer { command.interrupt() }
    var text = ""
    try await until {
      text = (try? String(contentsOfFile: "\(folder.path)/output", encoding: .utf8)) ?? ""
      return text.hasSuffix("\n") || !command.isRunning
    }
    if arguments.contains("--json") {
      text = try #require(try jsonObject(text)["url"] as? String)
    }
    try await body(try #require(URL(string: text.trimmingCharacters(in: .newlines))), command)
    command.interrupt()
    #expect(try await command.result().status == 130)
  }

  @Test("A presentation is served as HLS, redirected and relayed", arguments: [[], ["--proxy"]])
  func presentation(options: [String]) async throws {
    let origin = try await Origin.start(.init(directory: Fixtures.folder))
    let source = origin.baseURL.appending(path: "dash-number/manifest.mpd").absoluteString
    try await withServer([source] + options) { url, _ in
      let record = try await Command.run(
        "frames", url.absoluteString, "--count", "0", "--json", "--md5", "-o", try TemporaryFolder().path,
        status: 0
      ).object
      let frames = try #require(record["frames"] as? [[String: Any]])
      #expect(frames.compactMap { $0["md5"] as? String } == (try Fixtures.golden("dash-number-1")))
    }
    await origin.stop()
  }

  @Test("Playlists name the origin if told to, and leave out video above a limit")
  func directly() async throws {
    let origin = try await Origin.start(.init(directory: Fixtures.folder))
    let source = origin.baseURL.appending(path: "dash-number/manifest.mpd").absoluteString
    try await withServer([source, "--direct", "--max-height", "90", "--json"]) { url, _ in
      let result = try await Command.run("manifest", url.absoluteString, status: 0)
      #expect(result.outputText.contains(origin.baseURL.appending(path: "dash-number/0/").absoluteString))
      #expect(!result.outputText.contains(origin.baseURL.appending(path: "dash-number/1/").absoluteString))
    }
    await origin.stop()
  }

  @Test("A presentation on this machine is relayed")
  func localPresentation() async throws {
    try await withServer([Fixtures.path("dash-ondemand/manifest.mpd")]) { url, _ in
      let result = try await Command.run(
        "frames", url.absoluteString, "--json", "--md5", "-o", try TemporaryFolder().path, status: 0)
      #expect(result.outputText.contains(try Fixtures.golden("dash-number-1")[0]))
    }
  }

  private static let key = "31323334353637383930313233343536:32333435363738393031323334353637"

  @Test("With its key, encrypted media is served in the clear")
  func decrypted() async throws {
    let source = Fixtures.path("encrypted/cbcs/manifest.mpd")
    try await withServer([source, "--key", Self.key]) { url, _ in
      let record = try await Command.run(
        "frames", url.absoluteString, "--count", "0", "--json", "--md5", "-o", try TemporaryFolder().path,
        status: 0
      ).object
      let frames = try #require(record["frames"] as? [[String: Any]])
      #expect(frames.compactMap { $0["md5"] as? String } == (try Fixtures.golden("encrypted-clear")))
    }
  }

  @Test("A warning comes first if others could play decrypted media")
  func decryptedForOthers() async throws {
    // No machine has this address (RFC 5737).
    let arguments = ["--host", "192.0.2.1", "--port", "0"]
    let source = Fixtures.path("encrypted/cbcs/manifest.mpd")
    let result = try await Command.run(["serve", source, "--key", Self.key] + arguments)
    let lines = result.errorText.split(separator: "\n")
    #expect(lines.first?.contains("media is decrypted, and everyone who reaches 192.0.2.1") == true)
    #expect(!result.errorText.contains("32333435363738393031323334353637"))
    let clear = try await Command.run(["serve", Fixtures.path("dash-number/manifest.mpd")] + arguments)
    #expect(!clear.errorText.contains("decrypted"))
  }

  @Test("A folder is served as it is")
  func folder() async throws {
    try await withServer([Fixtures.folder.path]) { url, _ in
      let result = try await Command.run(
        "frames", url.appending(path: "hls-ts/master.m3u8").absoluteString, "--json", "--md5", "-o",
        try TemporaryFolder().path)
      #expect(result.outputText.contains(try Fixtures.golden("hls-ts-high")[0]))
    }
  }

  @Test("A folder on a recorded link")
  func recordedLink() async throws {
    let link = Fixtures.path("links/oboe-3.txt") + ",scale=8,rtt=20ms,start=30s"
    try await withServer([Fixtures.folder.path, "--link", link]) { url, _ in
      let result = try await Command.run(
        "frames", url.appending(path: "hls-ts/master.m3u8").absoluteString, "--json", "--md5", "-o",
        try TemporaryFolder().path)
      #expect(result.outputText.contains(try Fixtures.golden("hls-ts-high")[0]))
    }
  }

  #if os(Linux)
    @Test(
      "At the limit of open files, the server waits without work, and goes on when connections close",
      arguments: ["", "hls-ts/master.m3u8"])
    func openFiles(path: String) async throws {
      try await withServer([Fixtures.path(path)], openFiles: 40) { url, command in
        let port = try #require(url.port)
        let connections = try (0..<60).map { _ in try OpenConnection(port: port) }
        try await until { try command.openFileCount >= 40 }
        // Connections that are still being accepted are work.
        var (began, before) = (ContinuousClock.now, try command.processorTime)
        try await until {
          let (now, used) = (ContinuousClock.now, try command.processorTime)
          guard now - began >= .seconds(1) else { return false }
          defer { (began, before) = (now, used) }
          return (used - before) / (now - began) < 0.3
        }
        for connection in connections { connection.close() }
        let answer = path.isEmpty ? url.appending(path: "hls-ts/master.m3u8") : url
        try await Command.run("manifest", answer.absoluteString, "--shallow", status: 0)
      }
    }
  #endif

  @Test(
    "Usage and failures",
    arguments: [
      ([Fixtures.folder.path, "--proxy"], Int32(64)), ([Fixtures.folder.path, "--direct"], 64),
      ([Fixtures.path("dash-number/manifest.mpd"), "--proxy", "--direct"], 64),
      ([Fixtures.path("dash-number/manifest.mpd"), "--link", "3g"], 64),
      (["--port", "70000", Fixtures.folder.path], 64), (["/nowhere/a.mpd"], 66),
      ([Fixtures.path("media/h264.ts")], 65), ([Fixtures.path("bad/encrypted.mpd"), "--port", "0"], 65),
      ([Fixtures.folder.path, "--link", "fast", "--port", "0"], 64),
      ([Fixtures.folder.path, "--link", "lte,tcp", "--port", "0"], 64),
      ([Fixtures.folder.path, "--link", "lte,start=seed", "--port", "0"], 64),
      ([Fixtures.folder.path, "--link", Fixtures.path("links"), "--port", "0"], 64),
      ([Fixtures.folder.path, "--link", Fixtures.path("bad/html.m3u8"), "--port", "0"], 65),
    ] as [([String], Int32)])
  func failures(arguments: [String], status: Int32) async throws {
    let result = try await Command.run(["serve"] + arguments, status: status)
    #expect(!result.errorText.isEmpty)
  }

  @Test(
    "Errors name the path or the host, and say what to do",
    arguments: [
      (["/nowhere/a.mpd"], Int32(66), "reel: /nowhere/a.mpd: no such file"),
      ([Fixtures.path("media/h264.ts")], 65, "serve media files as they are with reel serve FOLDER"),
      ([Fixtures.path("hls-ts"), "--host", "300.1.1.1"], 64, "300.1.1.1 is not a host to listen on"),
      (
        [Fixtures.path("dash-number/manifest.mpd"), "--host", "300.1.1.1"], 64,
        "300.1.1.1 is not a host to listen on"
      ),
    ] as [([String], Int32, String)])
  func errors(arguments: [String], status: Int32, words: String) async throws {
    let result = try await Command.run(["serve", "--port", "0"] + arguments, status: status)
    #expect(result.errorText.contains(words), "\(result.errorText)")
  }
}

#if os(Linux)
  extension Command {
    fileprivate var openFileCount: Int {
      get throws {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(processIdentifier)/fd").count
      }
    }

    /// The processor time so far, in steps of 10 ms (proc(5)).
    fileprivate var processorTime: Duration {
      get throws {
        let text = try String(contentsOfFile: "/proc/\(processIdentifier)/stat", encoding: .utf8)
        let fields = try #require(text.split(separator: ")").last).split(separator: " ")
        let ticks = try #require(Int(fields[11])) + #require(Int(fields[12]))
        return .milliseconds(10 * ticks)
      }
    }
  }

  /// A connection to a server of this machine that sends nothing.
  private struct OpenConnection {
    private let descriptor: Int32

    init(port: Int) throws {
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(port).bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      let isOpen = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
      try #require(isOpen)
    }

    func close() { _ = Glibc.close(descriptor) }
  }
#endif
