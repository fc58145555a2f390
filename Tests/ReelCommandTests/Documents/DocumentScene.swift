import Foundation
import ReelTestSupport
import Testing

/// A folder with what the commands of the documents need, and the servers that they start.
final class DocumentScene {
  private let folder: TemporaryFolder
  /// By the URL in the document: the URL of the server, and its process.
  private var servers: [(documented: String, url: String, command: Command)] = []

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createSymbolicLink(
      atPath: folder.path + "/Fixtures", withDestinationPath: Fixtures.folder.path)
    for (name, target) in [
      ("video.mp4", "media/h264-faststart.mp4"), ("media", "media"),
      ("phone.jsonl", "recordings/chromium.jsonl"),
    ] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.path + "/" + name, withDestinationPath: Fixtures.path(target))
    }
    for (name, text) in try Document.files() {
      try text.write(toFile: folder.path + "/" + name, atomically: true, encoding: .utf8)
    }
  }

  /// Runs a line of shell, in which `reel` is the tool of this build.
  func run(_ line: String) async throws -> CommandResult {
    var line = line
    for server in servers { line = line.replacingOccurrences(of: server.documented, with: server.url) }
    return try await Command.run([], directory: folder.path, shell: "PATH=\"${1%/*}:$PATH\"\n" + line)
  }

  /// Starts a server on a free port in place of the documented one, and waits for its URL.
  func serve(_ line: String) async throws {
    let port = line.firstMatch(of: #/--port (\d+)/#).map { String($0.output.1) } ?? "8080"
    let documented = "http://127.0.0.1:\(port)/"
    // The document shows again how to start what runs already.
    guard !servers.contains(where: { $0.documented == documented }) else { return }
    var command = line.replacingOccurrences(of: "--port \(port)", with: "")
    for server in servers { command = command.replacingOccurrences(of: server.documented, with: server.url) }
    let file = folder.path + "/url-\(servers.count)"
    let process = try Command(
      [], directory: folder.path,
      shell: "PATH=\"${1%/*}:$PATH\"\nexec \(command) --port 0 >'\(file)'")
    func url() -> String? {
      let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
      return text.hasSuffix("\n") ? text.split(separator: "\n").first.map(String.init) : nil
    }
    try await until { url() != nil || !process.isRunning }
    let base = try #require(url().flatMap { URL(string: $0) }, "\(line)")
    servers.append((documented, "http://127.0.0.1:\(try #require(base.port))/", process))
  }

  /// Stops the servers.
  func stop() async throws {
    for server in servers {
      server.command.interrupt()
      let result = try await server.command.result()
      #expect(result.status == 130, "\(result.errorText)")
    }
    servers = []
  }

  /// The text with the URLs of the document in place of those of this run.
  func documented(_ text: String) -> String {
    servers.reduce(text) { $0.replacingOccurrences(of: $1.url, with: $1.documented) }
      .replacingOccurrences(of: folder.path + "/", with: "/home/me/")
  }

  /// The command with sources in place of the words in capitals, and of the URLs in help texts.
  static func filled(_ command: String) -> String {
    command.replacingOccurrences(of: "SOURCE", with: "Fixtures/hls-fmp4/master.m3u8")
      .replacingOccurrences(of: "FEED", with: "feed.m3u")
      .replacingOccurrences(of: "FOLDER", with: "Fixtures")
      .replacingOccurrences(of: "https://example.com/master.m3u8", with: "Fixtures/hls-fmp4/master.m3u8")
      .replacingOccurrences(of: "https://example.com/manifest.mpd", with: "Fixtures/dash-number/manifest.mpd")
  }

  /// False for commands that print measured times or memory, or the times of use and the sizes of a cache.
  static func isDeterministic(_ command: String) -> Bool {
    !["reel play ", "reel memory ", "reel cache ", "reel viewers "].contains { command.hasPrefix($0) }
  }

  /// The lines of a command as far as they are the same each time. Those of a list come in the order in which sources are
  /// done, and the hashes in its names are those of the sources' paths.
  static func comparable(_ lines: [String], of command: String) -> [String] {
    guard command.contains(" --input ") else { return comparable(lines) }
    return lines.map { $0.replacing(#/-[0-9a-f]{16}/#, with: "-HASH") }.sorted()
  }

  /// The lines without figures of memory, as frames differ by processor.
  static func comparable(_ lines: [String]) -> [String] {
    var lines = lines.filter { !$0.contains("memory  ") && !$0.contains(".memory") }
    // A table whose last column is memory: its other columns.
    var width: Int?
    for (index, line) in lines.enumerated() {
      if line.isEmpty { width = nil }
      if let memory = line.range(of: "memory", options: .backwards), line.hasPrefix("     ") {
        width = line[..<memory.lowerBound].trimmingSuffix.count
      }
      if let width { lines[index] = String(line.prefix(width)) }
    }
    return lines
  }
}

extension Substring {
  /// The text without spaces at its end.
  fileprivate var trimmingSuffix: Substring {
    self[..<(lastIndex { $0 != " " }.map(index(after:)) ?? startIndex)]
  }
}
