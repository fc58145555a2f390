import Foundation
import HTTPTypes
import ReelCore
import ReelLab
import ReelTestSupport
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@testable import ReelCommand
@testable import ReelTesting

@Suite("reel serve --record", .hangLimit)
struct ServeRecordingTests {
  @Test("The line of a request has no values of its query, no cookie and no credential")
  func redaction() throws {
    let request = RequestRecord(
      method: "GET", path: "/a/s1.ts", target: "/-/playback/p-1/a/s1.ts?token=secret&secret2&CMCD=br%3D7",
      headers: [
        .cookie: "secret", .authorization: "Basic secret", .referer: "http://a/?secret", .range: "bytes=0-9",
        .userAgent: "secret",
      ], connection: 3, client: "10.0.0.1", arrival: .milliseconds(1_500),
      firstByteSent: .milliseconds(1_550),
      status: 206, bodyBytesSent: 10)
    let line = try #require(RecordedServer.line(of: request, client: "hash"))
    #expect(line.path == "/a/s1.ts")
    #expect(line.query == ["token", "CMCD"])
    #expect(line.playback == "p-1")
    #expect(line.range == "bytes=0-9")
    #expect(line.client == "hash")
    #expect(line.receivedMs == 1_500 && line.firstByteMs == 1_550 && line.lastByteMs == nil)
    #expect(line.cmcd?.values == ["br": .number(7)])
    #expect(try !JSONLine.string(line).contains("secret"))
  }

  @Test("Requests of the page itself are not recorded")
  func pageRequests() {
    for path in ["/-/feed", "/-/report", "/-/script/0.js"] {
      let request = RequestRecord(
        method: "GET", path: path, target: path, headers: [:], connection: 1, arrival: .zero)
      #expect(RecordedServer.line(of: request, client: nil) == nil)
    }
  }

  @Test("The items of a folder: a playlist of each folder, media files elsewhere, numbers in order")
  func folder() throws {
    let folder = try TemporaryFolder()
    for name in [
      "a/master.m3u8", "a/low.m3u8", "a/seg.mp4", "b/x.m3u8", "b/y.m3u8", "c10.mp4", "c9.mp4", "d/e/f.MP4",
      "dash/manifest.mpd", "dash/init.mp4", ".hidden/g.mp4", "notes.txt",
    ] { try folder.write("", to: name) }
    for name in ["c/main720.m3u8", "c/x.m3u8"] { try folder.write("#EXTM3U\n", to: name) }
    try folder.write("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nx.m3u8\n", to: "c/all.m3u8")
    let feed = ServedFeed(folder: folder.url)
    #expect(
      feed.items.map(\.name) == [
        "a/master.m3u8", "b/x.m3u8", "b/y.m3u8", "c/all.m3u8", "c9.mp4", "c10.mp4", "d/e/f.MP4",
      ])
    #expect(feed.items.first?.path == "/a/master.m3u8")
  }

  @Test("The items of a feed file: local ones alone, and only the files that they need")
  func feed() throws {
    let folder = try TemporaryFolder()
    for name in ["v/a.mp4", "v/secret.mp4", "hls/index.m3u8", "hls/s0.ts", "hls/.key"] {
      try folder.write("", to: name)
    }
    let path = try folder.write(
      "v/a.mp4\nhttps://example.com/b.mp4\nhls/index.m3u8\nv/missing.mp4\n", to: "feed.txt")
    let feed = try #require(try ServedFeed(feedAt: path))
    #expect(feed.items.map(\.path) == ["/1/a.mp4", "/3/index.m3u8"])
    #expect(feed.items.map(\.name) == ["v/a.mp4", "hls/index.m3u8"])
    #expect(feed.omissions.count == 2)
    for path in ["/1/a.mp4", "/3/index.m3u8", "/3/s0.ts"] { #expect(feed.file(at: path) != nil, "\(path)") }
    for path in ["/1/secret.mp4", "/3/.key", "/2/b.mp4", "/a.mp4", "/", "/3", "/4/missing.mp4"] {
      #expect(feed.file(at: path) == nil, "\(path)")
    }
    #expect(try ServedFeed(feedAt: Fixtures.path("hls-ts/master.m3u8")) == nil)
    #expect(try ServedFeed(feedAt: Fixtures.path("dash-number/manifest.mpd")) == nil)
    let remote = try folder.write("https://example.com/b.mp4\n", to: "remote.txt")
    let error = #expect(throws: ReelError.self) { try ServedFeed(feedAt: remote) }
    #expect(error?.reason.contains("not a local file") == true)
  }

  @Test("A server records requests and reports until it is interrupted")
  func command() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("run.jsonl")
    let script = try folder.write("window.x = 1", to: "hls.js")
    let command = try Command(
      ["serve", Fixtures.folder.path, "--port", "0", "--record", path, "--link", "lte", "--script", script],
      shell: "exec \"$@\" >'\(folder.path)/output'")
    defer { command.interrupt() }
    try await until {
      ((try? folder.text("output")) ?? "").hasSuffix("\n") || !command.isRunning
    }
    let url = try #require(URL(string: try folder.text("output").trimmingCharacters(in: .newlines)))
    let page = try await answer(url.appending(path: "-/feed"))
    #expect(page.status == 200)
    #expect(page.text.contains("hls-ts/master.m3u8") && page.text.contains("src=\"/-/script/0.js\""))
    #expect(try await answer(url.appending(path: "-/script/0.js")).text == "window.x = 1")
    #expect(try await post(#"{"kind":"start","playback":"p","sent_ms":0}"#, to: url).status == 204)
    let item = try await answer(url.appending(path: "-/playback/p/hls-ts/master.m3u8"), cookie: "id=secret")
    #expect(item.status == 200 && item.text.hasPrefix("#EXTM3U"))
    let swipe =
      #"{"kind":"swipe","playback":"p","sent_ms":9,"item":"hls-ts/master.m3u8","swipe_ms":1,"first_frame_ms":5}"#
    #expect(try await post(swipe, to: url).status == 204)
    let refused = try await post(#"{"kind":"end","playback":"q","sent_ms":1}"#, to: url)
    #expect(refused.status == 404 && refused.text == "unknown playback q: report its start first\n")
    command.interrupt()
    #expect(try await command.result().status == 130)

    let text = try folder.text("run.jsonl")
    #expect(text.hasSuffix("}\n") && !text.contains("secret") && !text.contains("127.0.0.1"))
    let recording = try PlayerRecording(path: path)
    #expect(recording.run.link?.text == "lte")
    var kinds: [String] = []
    while let line = try recording.next() {
      switch line {
      case .request(let request):
        kinds.append("request")
        #expect(request.path == "/hls-ts/master.m3u8" && request.playback == "p" && request.status == 200)
        let (received, last) = (request.receivedMs, try #require(request.lastByteMs))
        #expect(last - received >= 70)
      case .report(let report, _): kinds.append(report.kind.rawValue)
      }
    }
    #expect(kinds == ["start", "request", "swipe"])
    try JSONSchema.check(text.split(separator: "\n"), "recording.json")
  }

  @Test("A recording from Chromium has the form of the schema")
  func fixture() throws {
    let path = Fixtures.path("recordings/chromium.jsonl")
    let text = try String(contentsOfFile: path, encoding: .utf8)
    try JSONSchema.check(text.split(separator: "\n"), "recording.json")
    let recording = try PlayerRecording(path: path)
    var waits: [Double] = []
    while let line = try recording.next(isWithoutRequests: true) {
      if case .report(let report, _?) = line, let wait = report.firstFrameMs { waits.append(wait) }
    }
    #expect(waits.count > 3)
    #expect(recording.notes.isEmpty)
  }

  @Test(
    "Usage and failures",
    arguments: [
      (
        [Fixtures.path("dash-number/manifest.mpd"), "--record", "x.jsonl"], Int32(64),
        "require a folder or a feed"
      ),
      ([Fixtures.folder.path, "--record", ""], 64, "takes a file"),
      ([Fixtures.folder.path, "--port", "0", "--record", "/nowhere/x.jsonl"], 73, "can't be created"),
      ([Fixtures.folder.path, "--port", "0", "--script", "/nowhere/hls.js"], 66, "no such file"),
    ] as [([String], Int32, String)])
  func failures(arguments: [String], status: Int32, words: String) async throws {
    let result = try await Command.run(["serve"] + arguments, status: status)
    #expect(result.errorText.contains(words), "\(result.errorText)")
  }

  @Test("A server that can't listen leaves no recording")
  func noServer() async throws {
    let folder = try TemporaryFolder()
    try await Origin.use(.init()) { origin in
      let result = try await Command.run(
        "serve", folder.path, "--port", "\(origin.port)", "--record", folder.path("run.jsonl"), status: 69)
      #expect(result.errorText.contains("can't listen"), "\(result.errorText)")
    }
    #expect(folder.names().isEmpty)
  }

  // MARK: - Private

  private func answer(_ url: URL, cookie: String? = nil, body: String? = nil) async throws -> (
    status: Int, text: String
  ) {
    var request = URLRequest(url: url)
    if let cookie { request.setValue(cookie, forHTTPHeaderField: "Cookie") }
    if let body {
      request.httpMethod = "POST"
      request.httpBody = Data(body.utf8)
    }
    let (data, response) = try await URLSession.shared.data(for: request)
    return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
  }

  private func post(_ body: String, to url: URL) async throws -> (status: Int, text: String) {
    try await answer(url.appending(path: "-/report"), body: body)
  }
}
