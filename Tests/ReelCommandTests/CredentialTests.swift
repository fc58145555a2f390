import Foundation
import HTTPTypes
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelCommand

@Suite("Credentials", .hangLimit)
struct CredentialTests {
  private static let secrets = ["HEADERSECRET", "MARKED", "PASSWORD", "UEFTU1dPUkQ"]
  private static let credentials = [
    "--header", "Authorization: Bearer HEADERSECRET", "--header", "X-Api-Key: HEADERSECRET",
    "--secret-header", "X-Ticket: MARKED", "--header", "X-Plain: 1",
  ]
  private static let names = ["Authorization", "X-Api-Key", "X-Ticket"]

  /// Runs `body` with an origin whose playlists name segments, keys and redirects of another one.
  private func withServers(_ body: (_ home: Origin, _ other: Origin) async throws -> Void) async throws {
    try await Origin.use { other in
      let base = other.baseURL.absoluteString
      let relative = base.replacing("http:", with: "")
      let routes: [String: Origin.Response] = [
        "/ts.m3u8": .init(Self.playlist(["\(base)media/h264.ts"])),
        "/relative.m3u8": .init(Self.playlist(["\(relative)media/h264.ts"])),
        "/login.m3u8": .init(
          Self.playlist([base.replacing("://", with: "://viewer:PASSWORD@") + "media/h264.ts"])),
        "/key.m3u8": .init(
          Self.playlist(["\(base)hls-aes128/segment-0.ts"], key: "\(base)hls-aes128/key.bin")),
        "/m.mpd": .init(
          String(decoding: try Fixtures.bytes("dash-number/manifest.mpd"), as: UTF8.self)
            .replacing("<Period", with: "<BaseURL>\(base)dash-number/</BaseURL><Period", maxReplacements: 1)),
        "/h264.mp4": .init(""),
      ]
      let faults = [FaultRule("h264.mp4", .redirect(to: "\(base)media/h264-faststart.mp4"))]
      try await Origin.use(.init(routes: routes, faults: faults)) { try await body($0, other) }
    }
  }

  private static func playlist(_ segments: [String], key: String? = nil) -> String {
    let key = key.map { "#EXT-X-KEY:METHOD=AES-128,URI=\"\($0)\"\n" } ?? ""
    return "#EXTM3U\n#EXT-X-TARGETDURATION:9\n" + key + segments.map { "#EXTINF:2,\n\($0)\n" }.joined()
      + "#EXT-X-ENDLIST\n"
  }

  @Test(
    "Another server gets none, whatever leads to it, and no output shows a password",
    arguments: ["ts.m3u8", "relative.m3u8", "login.m3u8", "key.m3u8", "m.mpd", "h264.mp4"],
    ["frames", "probe", "play", "check", "poster", "memory"])
  func otherServer(path: String, command: String) async throws {
    try await withServers { home, other in
      let url = home.url(path).absoluteString.replacing("://", with: "://viewer:PASSWORD@")
      let folder = try TemporaryFolder()
      var arguments = [command, url, "--verbose"] + Self.credentials
      if ["frames", "poster"].contains(command) { arguments += ["-o", folder.path("out")] }
      if command == "play" { arguments += ["--rate", "max", "--duration", "1"] }
      if command == "memory" { arguments += ["--players", "1"] }
      let result = try await Command.run(arguments)
      let text = result.outputText + result.errorText
      for secret in Self.secrets { #expect(!text.contains(secret), "\(secret) in \(text.prefix(4000))") }
      try #require(!other.requestLog.isEmpty, "\(text.prefix(4000))")
      for request in other.requestLog {
        #expect(Self.names.allSatisfy { request.header($0) == nil }, "\(request.path)")
        #expect(request.header("X-Plain") == "1", "\(request.path)")
      }
      #expect(home.requestLog.allSatisfy { $0.header("Authorization") == "Bearer HEADERSECRET" })
      #expect(home.requestLog.allSatisfy { $0.header("X-Ticket") == "MARKED" })
    }
  }

  @Test("The log of requests has no queries, which may be signatures")
  func queries() async throws {
    try await Origin.use { origin in
      let target = origin.url("media/h264-faststart.mp4").absoluteString + "?signature=SIGNATURE"
      let faults = [FaultRule("a.mp4", .redirect(to: target))]
      try await Origin.use(.init(routes: ["/a.mp4": .init("")], faults: faults)) { home in
        let folder = try TemporaryFolder()
        let result = try await Command.run(
          "frames", home.url("a.mp4").absoluteString, "--verbose", "-o", folder.path, status: 0)
        #expect(result.errorText.contains("media/h264-faststart.mp4?"))
        #expect(!result.errorText.contains("SIGNATURE"), "\(result.errorText)")
      }
    }
  }

  @Test("A named host gets them, and the user name and password of the source too")
  func namedHost() async throws {
    try await withServers { home, other in
      let port = try #require(other.baseURL.port)
      let folder = try TemporaryFolder()
      let url = home.url("ts.m3u8").absoluteString.replacing("://", with: "://viewer:PASSWORD@")
      try await Command.run(
        "frames", url, "-o", folder.path, "--header-host", "127.0.0.1:\(port)", "--secret-header",
        "X-Ticket: 1",
        status: 0)
      #expect(other.requestLog.allSatisfy { $0.header("X-Ticket") == "1" })
      #expect(other.requestLog.first?.header("Authorization") == "Basic dmlld2VyOlBBU1NXT1JE")
    }
  }

  @Test("A feed's own fields go to the items' servers, those of the command to that of the feed")
  func feeds() async throws {
    try await Origin.use { items in
      let base = items.baseURL.absoluteString
      let feed = """
        {"items": [{"url": "\(base)media/h264-faststart.mp4", "headers": {"Cookie": "item=1"},
        "secret_headers": {"X-Ticket": "MARKED"}, "poster": "\(base)poster.jpg"}, "\(base)media/h264.ts"]}
        """
      try await Origin.use(.init(routes: ["/feed.json": .init(feed)])) { home in
        let url = home.url("feed.json").absoluteString
        let folder = try TemporaryFolder()
        try folder.write(
          #"{"feeds": ["\#(url)"], "links": ["wifi"], "dwells": ["fixed:100ms"], "policies": ["adjacent"], "seeds": 1, "swipes": 1}"#,
          to: "lab.json")
        let credentials = Self.credentials.prefix(4)
        try await Command.run(
          ["feed", url, "--swipes", "1", "--dwell", "fixed:100ms"] + credentials, status: 0)
        try await Command.run(
          ["lab", folder.path("lab.json")] + credentials, directory: folder.path, status: 0)
        #expect(home.requestLog.first?.header("Authorization") == "Bearer HEADERSECRET")
        try #require(!items.requestLog.isEmpty)
        #expect(items.requestLog.allSatisfy { $0.header("Authorization") == nil })
        let media = items.requestLog.filter { $0.path.hasSuffix("mp4") }
        #expect(media.allSatisfy { $0.header("Cookie") == "item=1" && $0.header("X-Ticket") == "MARKED" })
        #expect(items.requestLog.allSatisfy { $0.path.hasSuffix("mp4") || $0.header("Cookie") == nil })
      }
    }
  }

  @Test("Results, reports and the text of lists have no passwords, and --resume finds its sources")
  func results() async throws {
    try await withOrigin { origin in
      let folder = try TemporaryFolder()
      let clean = origin.url("media/h264.ts").absoluteString
      let url = clean.replacing("://", with: "://viewer:PASSWORD@")
      let lost = url.replacing("h264.ts", with: "lost.ts")
      try folder.write(
        "\(url)\n{\"url\": \"\(lost)\", \"page\": \"http:\\/\\/viewer:PASSWORD@h\\/\"}\n", to: "list.txt")
      let outputs = ["--report", "a.html", "--junit", "a.xml"]
      func run(_ more: [String]) async throws -> CommandResult {
        try await Command.run(
          ["check", "--input", "list.txt", "--results", "r.jsonl", "--json"] + more, directory: folder.path)
      }
      let first = try await run(outputs)
      let again = try await run(["--resume"])
      #expect(again.errorText.contains("2 skipped"), "\(again.errorText)")
      let lines = try folder.objects("r.jsonl")
      #expect(
        Set(lines.compactMap { $0["url"] as? String }) == [
          clean, clean.replacing("h264.ts", with: "lost.ts"),
        ])
      var texts = [first.outputText, first.errorText]
      for name in ["r.jsonl", "a.html", "a.xml"] {
        texts.append(try String(contentsOfFile: folder.path(name), encoding: .utf8))
      }
      for text in texts { #expect(!text.contains("PASSWORD"), "\(text.prefix(2000))") }
    }
  }

  @Test("The gateway relays with the credentials of the source, and redirects without")
  func gateway() async throws {
    try await withServers { home, other in
      for options in [[], ["--proxy"]] {
        let url = home.url("m.mpd").absoluteString.replacing("://", with: "://viewer:PASSWORD@")
        let folder = try TemporaryFolder()
        let command = try Command(
          ["serve", url, "--port", "0"] + options, shell: "exec \"$@\" >'\(folder.path)/output'")
        defer { command.interrupt() }
        var text = ""
        try await until {
          text = (try? String(contentsOfFile: "\(folder.path)/output", encoding: .utf8)) ?? ""
          return text.hasSuffix("\n") || !command.isRunning
        }
        let result = try await Command.run(
          "frames", text.trimmingCharacters(in: .newlines), "--json", "--header", "Authorization: VIEWER",
          "-o",
          folder.path("out"), status: 0)
        #expect(!result.outputText.contains("PASSWORD"))
        command.interrupt()
        _ = try await command.result()
      }
      try #require(!other.requestLog.isEmpty)
      #expect(other.requestLog.allSatisfy { $0.header("Authorization") == nil })
      #expect(home.requestLog.allSatisfy { $0.header("Authorization") == "Basic dmlld2VyOlBBU1NXT1JE" })
    }
  }

  @Test(
    "Options that are no field or host, without their text",
    arguments: [
      ["--secret-header", "PASSWORD"], ["--header", "PASSWORD"], ["--header-host", "http://h/"],
      ["--header-host", "h:port"],
    ])
  func usage(options: [String]) async throws {
    let result = try await Command.run(["probe", "a.mp4"] + options, status: 64)
    #expect(result.errorText.contains(options[0]) && !result.errorText.contains("PASSWORD"))
  }
}

@Suite("Hostile text", .hangLimit)
struct HostileTextTests {
  private static let hostile = "avc1.\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{61c}\u{2028}&#10;forged"

  @Test(
    "Text of a manifest can't control a terminal, forge a line or reorder text",
    arguments: ["check", "probe", "manifest", "play"], [[], ["--json"], ["--color", "always"]])
  func manifest(command: String, options: [String]) async throws {
    let text = Self.hostile.replacing("&#10;", with: "")
    let playlist = """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="\(text)",RESOLUTION=1x1
      \(text).m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=2,CODECS="xxxx.\(text)"
      b.m3u8
      """
    let mpd = String(decoding: try Fixtures.bytes("dash-number/manifest.mpd"), as: UTF8.self)
      .replacing(
        #/codecs="[^"]*"/#, with: "codecs=\"\(Self.hostile.filter { !"\u{1b}\u{7}".contains($0) })\"")
    let folder = try TemporaryFolder()
    try folder.write(playlist, to: "a.m3u8")
    try folder.write(mpd, to: "a.mpd")
    for name in ["a.m3u8", "a.mpd"] where command != "manifest" || options != ["--json"] {
      let result = try await Command.run([command, name, "--verbose"] + options, directory: folder.path)
      for text in [result.outputText, result.errorText] {
        let plain = text.replacing(#/\u{1b}\[(0|31|32|33)m/#, with: "")
        let controls = plain.unicodeScalars.filter { $0.isControl && $0 != "\n" && $0 != "\t" }
        #expect(controls.isEmpty, "\(controls.map(\.value)) \(plain.prefix(2000))")
        #expect(!plain.split(separator: "\n").contains { $0.hasPrefix("forged") }, "\(plain.prefix(2000))")
      }
      if options == ["--json"] { _ = try result.objects }
    }
  }

  @Test("Files of results have no control characters either")
  func files() async throws {
    let mpd = String(decoding: try Fixtures.bytes("dash-number/manifest.mpd"), as: UTF8.self)
      .replacing(#/( id=")[^"]*"/#) { "\($0.1)\u{9b}2J\u{202e}&#10;forged\"" }
    let folder = try TemporaryFolder()
    try folder.write(mpd, to: "a.mpd")
    try await Command.run(
      "check", "a.mpd", "--report", "a.html", "--junit", "a.xml", directory: folder.path)
    for name in ["a.html", "a.xml"] {
      let text = try String(contentsOfFile: folder.path(name), encoding: .utf8)
      let controls = text.unicodeScalars.filter { $0.isControl && $0 != "\n" && $0 != "\t" }
      #expect(controls.isEmpty, "\(name): \(controls.map(\.value))")
    }
  }
}
