import Foundation
import HTTPTypes
import ReelCore
import ReelTesting
import ReelSimulation
import ReelTransport
import ReelTestSupport
import Testing

@Suite("The origin", .hangLimit)
struct OriginTests {
  @Test("Files with their types, below the directory only")
  func files() async throws {
    try await withTree { root in
      try await Origin.use(.init(directory: root.appending(path: "www"))) { origin in
        let fetcher = quickFetcher()
        let types = [
          "a.m3u8": "application/vnd.apple.mpegurl", "a.mpd": "application/dash+xml", "a.ts": "video/mp2t",
          "sub/a b%20ü.m4s": "video/iso.segment",
        ]
        for (path, type) in types {
          let response = try await fetcher.fetch(FetchRequest(url: origin.url(path), purpose: .segment))
          #expect(response.contentType == type)
          let body = try await response.body.collect(upTo: 100)
          #expect(body == path.bytes)
        }
        let outside = [
          "/../secret.txt", "/sub/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/link.txt",
          "/linked/secret.txt", "/sub", "/sub/", "/", "/none.txt", "//etc/passwd", "/a.ts%00",
        ]
        for path in outside {
          let answer = try await RawClient.exchange(
            "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", port: origin.port)
          #expect(answer.hasPrefix("HTTP/1.1 404 Not Found\r\n"), "\(path)")
          #expect(!answer.contains("hidden"), "\(path)")
        }
      }
    }
  }

  @Test("A large file is sent whole")
  func largeFile() async throws {
    try await withTree { root in
      let bytes = pattern(5_000_000)
      try Data(bytes).write(to: root.appending(path: "www/large.mp4"))
      try await Origin.use(.init(directory: root.appending(path: "www"))) { origin in
        let body = try await quickFetcher().bytes(origin.url("large.mp4"))
        #expect(body == bytes)
        let part = Array(bytes[4_000_000..<4_500_000])
        let range = ByteRange(offset: 4_000_000, length: 500_000)
        let received = try await quickFetcher().bytes(origin.url("large.mp4"), range: range)
        #expect(received == part)
      }
    }
  }

  @Test("HEAD sends the head alone")
  func head() async throws {
    try await Origin.use(.init(routes: ["/a.vtt": .init("WEBVTT")])) { origin in
      let answer = try await RawClient.exchange(
        "HEAD /a.vtt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", port: origin.port)
      #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
      #expect(answer.contains("Content-Length: 6\r\n"))
      #expect(answer.contains("Content-Type: text/vtt"))
      #expect(answer.contains("Accept-Ranges: bytes\r\n"))
      #expect(answer.contains("Access-Control-Allow-Origin: *\r\n"))
      #expect(answer.hasSuffix("\r\n\r\n"))
    }
  }

  /// The status, the values of the fields, and the body of the answer to a GET request with these fields.
  private func answer(
    of origin: Origin, to path: String, _ fields: String...
  ) async throws -> (status: Int?, fields: [String: String], body: String) {
    let lines = fields.map { "\($0)\r\n" }.joined()
    let answer = try await RawClient.exchange(
      "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\(lines)\r\n", port: origin.port)
    let end = try #require(answer.firstRange(of: "\r\n\r\n"))
    let head = answer[..<end.lowerBound].split(separator: "\r\n").map(String.init)
    let pairs = head.dropFirst().compactMap { line in
      line.firstRange(of: ": ").map { (String(line[..<$0.lowerBound]), String(line[$0.upperBound...])) }
    }
    return (
      head.first.flatMap { Int($0.split(separator: " ")[1]) }, Dictionary(pairs) { "\($0), \($1)" },
      String(answer[end.upperBound...])
    )
  }

  @Test("A version that the client has is not sent again, and a range of another one is not sent")
  func conditionalRequests() async throws {
    let folder = try TemporaryFolder()
    try folder.write("0123456789", to: "a.ts")
    try await Origin.use(.init(directory: folder.url)) { origin in
      let first = try await answer(of: origin, to: "/a.ts")
      let tag = try #require(first.fields["ETag"])
      let time = try #require(first.fields["Last-Modified"])
      let past = "Sun, 06 Nov 1994 08:49:37 GMT"

      for condition in [
        "If-None-Match: \(tag)", "If-None-Match: \"x\", W/\(tag)", "If-None-Match: *",
        "If-Modified-Since: \(time)",
      ] {
        let second = try await answer(of: origin, to: "/a.ts", condition, "Range: bytes=2-4")
        #expect(second.status == 304 && second.body.isEmpty, "\(condition)")
        #expect(second.fields["ETag"] == tag && second.fields["Last-Modified"] == time, "\(condition)")
        #expect(
          second.fields["Content-Length"] == nil && second.fields["Content-Type"] == nil, "\(condition)")
      }
      for condition in ["If-None-Match: \"x\"", "If-Modified-Since: \(past)", "If-Modified-Since: yesterday"]
      {
        let second = try await answer(of: origin, to: "/a.ts", condition)
        #expect(second.status == 200 && second.body == "0123456789", "\(condition)")
      }
      // A tag that does not match settles it: the date is not asked.
      let both = try await answer(
        of: origin, to: "/a.ts", "If-None-Match: \"x\"", "If-Modified-Since: \(time)")
      #expect(both.status == 200)

      for (version, status) in [(tag, 206), (time, 206), ("W/\(tag)", 200), ("\"x\"", 200), (past, 200)] {
        let part = try await answer(of: origin, to: "/a.ts", "If-Range: \(version)", "Range: bytes=2-4")
        #expect(part.status == status && part.body == (status == 206 ? "234" : "0123456789"), "\(version)")
      }
    }
  }

  @Test("A response or a fault sets the fields for caches, and removes the validator")
  func cachingFields() async throws {
    let configuration = Origin.Configuration(
      routes: [
        "/a": .init("a", headers: [.eTag: "W/\"1\"", .cacheControl: "max-age=60", .vary: "Accept"]),
        "/b": .init("b"), "/c": .init("c", headers: [.cacheControl: "no-cache"]),
      ],
      faults: try FaultRule.parse(
        "b=fields:ETag:;Cache-Control: private;Cache-Control: no-store, c=fields:ETag: \"2\";Cache-Control: x1"
      ))
    try await Origin.use(configuration) { origin in
      let a = try await answer(of: origin, to: "/a", "If-None-Match: \"1\"")
      #expect(a.status == 304 && a.fields["ETag"] == "W/\"1\"")
      #expect(a.fields["Cache-Control"] == "max-age=60" && a.fields["Vary"] == "Accept")
      let b = try await answer(of: origin, to: "/b", "If-None-Match: \"1-0\"")
      #expect(b.status == 200 && b.body == "b" && b.fields["ETag"] == nil)
      #expect(b.fields["Cache-Control"] == "private, no-store")
      let c = try await answer(of: origin, to: "/c", "If-None-Match: \"2\"")
      #expect(c.status == 304 && c.fields["Cache-Control"] == nil)
      let after = try await answer(of: origin, to: "/c", "If-None-Match: \"2\"")
      #expect(after.status == 200 && after.fields["Cache-Control"] == "no-cache")
    }
  }

  @Test("Other methods are refused, and what a browser asks first is allowed")
  func methods() async throws {
    try await Origin.use(.init(routes: ["/a": .init("a")])) { origin in
      let post = try await RawClient.exchange(
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx", port: origin.port)
      #expect(post.hasPrefix("HTTP/1.1 405 "))
      let options = try await RawClient.exchange(
        "OPTIONS /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", port: origin.port)
      #expect(options.hasPrefix("HTTP/1.1 204 "))
      #expect(options.contains("Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\n"))
    }
  }

  @Test("Requests sent at once are answered in order")
  func pipelining() async throws {
    let routes: [String: Origin.Response] = ["/1": .init("first"), "/2": .init("second")]
    let link = try LinkSpec(parsing: "10Mbit/20ms")
    try await Origin.use(.init(routes: routes, link: link)) { origin in
      let answer = try await RawClient.exchange(
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        port: origin.port)
      let first = try #require(answer.range(of: "first"))
      let second = try #require(answer.range(of: "second"))
      #expect(first.upperBound < second.lowerBound)
      #expect(origin.snapshot.acceptedConnectionCount == 1)
    }
  }

  @Test("What is no HTTP ends the connection")
  func garbage() async throws {
    try await Origin.use(.init()) { origin in
      _ = try await RawClient.exchange("\u{1}\u{2}\u{3} nonsense\r\n\r\n", port: origin.port)
      await origin.wait { $0.openConnectionCount == 0 }
      #expect(origin.requestLog.isEmpty)
    }
  }

  @Test("A connection without a whole request ends, one with a slow answer does not")
  func requestLimit() async throws {
    var configuration = Origin.Configuration(
      routes: ["/slow.ts": .init("slow")], faults: try FaultRule.parse("slow.ts=delay:11s"))
    configuration.requestLimit = .seconds(10)
    try await Origin.use(configuration) { origin in
      let port = origin.port
      try await withThrowingTaskGroup(of: String.self) { group in
        for part in [
          "", "G", "GET /slow.ts HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nab",
          "GET /slow.ts HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
          group.addTask { try await RawClient.exchange(part, port: port) }
        }
        var answers: [String] = []
        for try await answer in group where !answer.isEmpty { answers.append(answer) }
        #expect(answers.count == 1 && answers.first?.hasSuffix("\r\n\r\nslow") == true, "\(answers)")
      }
      await origin.wait { $0.openConnectionCount == 0 }
    }
  }

  @Test("A port that is taken is an error")
  func portTaken() async throws {
    try await Origin.use(.init()) { origin in
      let error = await reelError { _ = try await Origin.start(.init(port: origin.port)) }
      #expect(error?.kind == .network)
      #expect(error?.reason == "can't listen: address already in use")
    }
  }

  @Test("A directory that is none is an error")
  func missingDirectory() async throws {
    let error = await reelError {
      _ = try await Origin.start(.init(directory: URL(filePath: "/nonexistent/reel")))
    }
    #expect(error?.kind == .noSuchFile)
  }

  @Test("The log tells what was asked and sent")
  func log() async throws {
    try await Origin.use(.init(routes: ["/a b": .init("0123456789")])) { origin in
      let url = try #require(URL(string: "\(origin.baseURL)a%20b?x=1"))
      _ = try await quickFetcher().bytes(url, range: ByteRange(offset: 2, length: 3))
      let record = try #require(origin.requestLog.first)
      #expect(record.method == "GET")
      #expect(record.path == "/a b")
      #expect(record.target == "/a%20b?x=1")
      #expect(record.range == "bytes=2-4")
      #expect(record.status == 206)
      #expect(record.connection == 1)
      #expect(record.bodyBytesSent == 3)
      #expect(record.bytesSent > 100)
      #expect(record.isComplete)
    }
  }

  @Test("Damage is always the same, and where it shall be")
  func corruption() async throws {
    let bytes = pattern(100_000)
    let faults = [FaultRule("a", .corrupt(offset: 1_000, length: 50)), FaultRule("b", .corruptShare(0.01))]
    try await Origin.use(.init(routes: ["/a": .init(bytes), "/b": .init(bytes)], faults: faults)) { origin in
      let a = try await quickFetcher().bytes(origin.url("a"))
      #expect(zip(a, bytes).enumerated().filter { $1.0 != $1.1 }.map(\.offset) == Array(1_000..<1_050))
      let b = try await quickFetcher().bytes(origin.url("b"))
      let damaged = zip(b, bytes).enumerated().filter { $1.0 != $1.1 }.map(\.offset)
      #expect((800...1_200).contains(damaged.count))
      let part = try await quickFetcher().bytes(
        origin.url("b"), range: ByteRange(offset: 5_000, length: 5_000))
      let expected = Array(b[5_000..<10_000])
      #expect(part == expected)
    }
  }

  @Test("A resource that is cut short says so itself")
  func truncation() async throws {
    let bytes = pattern(100_000)
    let faults = [FaultRule("a", .truncate(to: 60_000))]
    try await Origin.use(.init(routes: ["/a": .init(bytes)], faults: faults)) { origin in
      let response = try await quickFetcher().fetch(FetchRequest(url: origin.url("a"), purpose: .segment))
      #expect(response.resourceByteCount == 60_000)
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body.count == 60_000)
      let range = ByteRange(offset: 59_990, length: 100)
      let part = try await quickFetcher().bytes(origin.url("a"), range: range)
      #expect(part.count == 10)
      let beyond = ByteRange(offset: 60_000, length: 100)
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a"), range: beyond) }
      #expect(error?.reason.hasPrefix("416 ") == true)
    }
  }

  @Test("Waiting ends when the task is cancelled")
  func cancelledWait() async throws {
    try await Origin.use(.init()) { origin in
      let task = Task { await origin.wait { _ in false } }
      task.cancel()
      let snapshot = await task.value
      #expect(snapshot.requests.isEmpty)
    }
  }

  /// A folder with `www` in it, and beside that a secret that links lead to.
  private func withTree(_ body: (URL) async throws -> Void) async throws {
    let manager = FileManager.default
    let root = manager.temporaryDirectory.appending(path: "reel-\(UUID().uuidString)")
    let www = root.appending(path: "www")
    try manager.createDirectory(at: www.appending(path: "sub"), withIntermediateDirectories: true)
    defer { try? manager.removeItem(at: root) }
    for path in ["a.m3u8", "a.mpd", "a.ts", "sub/a b%20ü.m4s"] {
      try Data(path.utf8).write(to: www.appending(path: path))
    }
    let secret = root.appending(path: "secret.txt")
    try Data("hidden".utf8).write(to: secret)
    try manager.createSymbolicLink(at: www.appending(path: "link.txt"), withDestinationURL: secret)
    try manager.createSymbolicLink(at: www.appending(path: "linked"), withDestinationURL: root)
    try await body(root)
  }
}
