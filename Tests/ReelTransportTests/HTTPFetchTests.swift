import Foundation
import HTTPTypes
import ReelCore
import ReelTesting
import ReelSimulation
import ReelTransport
import ReelTestSupport
import Testing

@Suite("HTTP fetching", .hangLimit)
struct HTTPFetchTests {
  let bytes = pattern(300_000)

  @Test("A body arrives whole, with what its head says")
  func wholeBody() async throws {
    try await Origin.use(.init(routes: ["/a.mp4": .init(bytes)])) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a.mp4")))
      #expect(response.url == origin.url("a.mp4"))
      #expect(response.contentType == "video/mp4")
      #expect(response.bodyOffset == 0)
      #expect(response.bodyByteCount == 300_000)
      #expect(response.resourceByteCount == 300_000)
      #expect(response.supportsRanges)
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == bytes)
    }
  }

  @Test(
    "A part is asked for, and its place in the resource told",
    arguments: [
      (ByteRange(offset: 0, length: 100), 0..<100),
      (ByteRange(offset: 1_000, length: 20_000), 1_000..<21_000),
      (ByteRange(offset: 299_990, length: nil), 299_990..<300_000),
      (ByteRange(offset: 299_990, length: 500), 299_990..<300_000),
    ])
  func part(range: ByteRange, expected: Range<Int>) async throws {
    try await Origin.use(.init(routes: ["/a": .init(bytes)])) { origin in
      let response = try await quickFetcher().fetch(
        FetchRequest(url: origin.url("a"), range: range, purpose: .segment))
      #expect(response.bodyOffset == Int64(expected.lowerBound))
      #expect(response.bodyByteCount == Int64(expected.count))
      #expect(response.resourceByteCount == 300_000)
      #expect(response.supportsRanges)
      let part = Array(bytes[expected])
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == part)
      #expect(origin.requestLog.map(\.range) == [range.httpHeaderValue])
    }
  }

  @Test("A server without ranges sends the whole, and the answer says so")
  func wholeInsteadOfPart() async throws {
    try await Origin.use(.init(routes: ["/a": .init(bytes)], supportsRanges: false)) { origin in
      let response = try await quickFetcher().fetch(
        FetchRequest(url: origin.url("a"), range: ByteRange(offset: 10, length: 5), purpose: .segment))
      #expect(response.bodyOffset == 0)
      #expect(response.bodyByteCount == 300_000)
      #expect(!response.supportsRanges)
      let whole = try await quickFetcher().fetch(FetchRequest(url: origin.url("a"), purpose: .segment))
      #expect(!whole.supportsRanges)
    }
  }

  @Test("A part beyond the end is refused with the size")
  func unsatisfiableRange() async throws {
    try await Origin.use(.init(routes: ["/a": .init(bytes)])) { origin in
      let error = await reelError {
        _ = try await quickFetcher().bytes(origin.url("a"), range: ByteRange(offset: 300_000, length: 1))
      }
      #expect(error?.kind == .server)
      #expect(error?.reason == "416 Range Not Satisfiable (it has 300000 bytes)")
      #expect(error?.location == origin.url("a").absoluteString)
    }
  }

  @Test(
    "Answers that do not fit the part that was asked for are refused",
    arguments: [
      [], ["Content-Range: bytes 0-4/10"], ["Content-Range: bytes 6-10/30"], ["Content-Range: nonsense"],
      ["Content-Range: bytes */10"], ["Content-Range: bytes 5-9/10", "Content-Length: 9223372036854775807"],
      ["Content-Range: bytes 5-9/10", "Content-Length: 4"],
    ])
  func unsoundPart(fields: [String]) async throws {
    let answer = (["HTTP/1.1 206 Partial Content"] + fields + ["", "01234"]).joined(separator: "\r\n")
    let error = try await ScriptedServer.use(answer) { url in
      await reelError { _ = try await quickFetcher().bytes(url, range: ByteRange(offset: 5, length: 5)) }
    }
    #expect(error?.kind == .server)
    #expect(error?.reason.hasPrefix("the server s") == true)
    #expect(error?.isTemporary == false)
  }

  @Test(
    "Answers that are no HTTP end in an error",
    arguments: ["", "hello\r\n\r\n", "HTTP/1.1 200\r\nContent-Length: x\r\n\r\n", "\u{0}\u{1}\u{2}\u{3}"])
  func noHTTP(answer: String) async throws {
    let error = try await ScriptedServer.use(answer) { url in
      await reelError { _ = try await quickFetcher().bytes(url) }
    }
    #expect(error?.kind == .server || error?.kind == .network)
  }

  /// The answers of servers to the wrong protocol.
  private static let protocols: [(answer: String, isTLS: Bool, reason: String)] =
    [
      ("", true, "the server ended the TLS handshake; it may not speak TLS on this port"),
      (
        "HTTP/1.1 400 Bad Request\r\n\r\n", true,
        "no TLS connection: the server does not speak TLS on this port"
      ),
    ]
    + [
      "\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\u{46}",
      "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nThe plain HTTP request was sent to HTTPS port",
      "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
    ].map { ($0, false, "the server speaks TLS on this port, and not plain HTTP") }

  @Test("A server that does not speak TLS, and one that expects it", arguments: protocols)
  func wrongProtocol(answer: String, isTLS: Bool, reason: String) async throws {
    let error = try await ScriptedServer.use(answer) { plain in
      let url = isTLS ? plain.absoluteString.replacing("http:", with: "https:") : plain.absoluteString
      return await reelError { _ = try await quickFetcher().bytes(try #require(URL(string: url))) }
    }
    #expect(error?.kind == .network)
    #expect(error?.reason == reason)
    #expect(error?.advice == (isTLS ? "try http://" : "try https://"))
    #expect(error?.isTemporary == false)
  }

  @Test("A server with TLS that closes other connections")
  func closesWithoutTLS() async throws {
    try await ScriptedServer.useHTTP2({ _ in [] }) { server in
      let url = try #require(URL(string: server.url.absoluteString.replacing("https:", with: "http:")))
      let error = await reelError { _ = try await quickFetcher(attempts: 1).bytes(url) }
      #expect(error?.reason == "the server speaks TLS on this port, and not plain HTTP")
      #expect(error?.advice == "try https://")
    }
  }

  @Test("As many bytes as are asked for at least are collected", arguments: [0, 5000, 64 << 10, .max])
  func collected(minimum: Int) async throws {
    // In packets of less than 2 kB.
    let (bytes, link) = (pattern(150_000), try LinkSpec(parsing: "8M/1ms"))
    try await Origin.use(.init(routes: ["/a": .init(bytes)], link: link)) { origin in
      var request = FetchRequest(url: origin.url("a"), purpose: .segment)
      request.minimumChunkByteCount = minimum
      let held = Locked((now: 0, most: 0))
      request.recordHeld = { change in
        held.withLock { held in
          held.now += change
          held.most = max(held.most, held.now)
        }
      }
      var chunks: [[UInt8]] = []
      for try await chunk in try await quickFetcher().fetch(request).body { chunks.append(chunk) }
      #expect(Array(chunks.joined()) == bytes)
      #expect(chunks.dropLast().allSatisfy { $0.count >= min(minimum, 64 << 10) })
      #expect(held.withLock { $0.now } == 0)
      #expect(held.withLock { $0.most } < 100_000)
    }
  }

  @Test("What was collected comes before the error that ends it")
  func collectedBeforeError() async throws {
    let faults = [FaultRule("*", .stall(after: 10_000))]
    try await Origin.use(.init(routes: ["/a": .init(pattern(150_000))], faults: faults)) { origin in
      var request = FetchRequest(url: origin.url("a"), purpose: .segment)
      request.minimumChunkByteCount = 64 << 10
      let response = try await quickFetcher(idleTimeout: .seconds(10), attempts: 0).fetch(request)
      var iterator = response.body.makeAsyncIterator()
      #expect(try await iterator.next() == pattern(10_000))
      #expect(await reelError { _ = try await iterator.next() }?.kind == .timedOut)
    }
  }

  @Test("A body that is closed ends, and so does its transfer")
  func closedBody() async throws {
    try await Origin.use(.init(routes: ["/a": .init(pattern(8_000_000))])) { origin in
      let response = try await quickFetcher().fetch(FetchRequest(url: origin.url("a"), purpose: .segment))
      var iterator = response.body.makeAsyncIterator()
      #expect(try await iterator.next() != nil)
      response.body.close()
      #expect(try await iterator.next() == nil)
      await origin.wait { $0.openConnectionCount == 0 }
      withExtendedLifetime(response) {}
    }
  }

  @Test("A part that can't be is refused", arguments: [(-1, 5), (5, 0), (5, -1)] as [(Int64, Int64)])
  func impossibleRange(offset: Int64, length: Int64) async throws {
    let url = try #require(URL(string: "http://127.0.0.1:9/a"))
    let range = ByteRange(offset: offset, length: length)
    let error = await reelError { _ = try await quickFetcher().bytes(url, range: range) }
    #expect(error?.kind == .usage)
  }

  @Test("Refusals end at once with their status", arguments: [400, 401, 403, 404, 410, 416, 501])
  func refusal(status: Int) async throws {
    let faults = [FaultRule("*", .status(status))]
    try await Origin.use(.init(routes: ["/a": .init(bytes)], faults: faults)) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a")) }
      #expect(error?.kind == .server)
      #expect(error?.reason.hasPrefix("\(status) ") == true)
      #expect(error?.status == status)
      #expect(error?.isTemporary == false)
      #expect(error?.location == origin.url("a").absoluteString)
      if status == 404 { #expect(error?.reason == "404 Not Found") }
      // The server might answer only ranges.
      let ranges: [String?] = [400, 416].contains(status) ? [nil, "bytes=0-"] : [nil]
      #expect(origin.requestLog.map(\.range) == ranges)
    }
  }

  @Test("Only manifests and unknown sources are asked for compressed", arguments: FetchPurpose.all)
  func acceptedCodings(purpose: FetchPurpose) async throws {
    try await Origin.use(.init(routes: ["/a": .init(bytes)])) { origin in
      _ = try await quickFetcher().bytes(origin.url("a"), purpose: purpose)
      _ = try await quickFetcher().bytes(
        origin.url("a"), range: ByteRange(offset: 0, length: 10), purpose: purpose)
      let codings = origin.requestLog.map { $0.header("Accept-Encoding") }
      #expect(
        codings == [purpose == .manifest || purpose == .source ? "gzip, deflate" : "identity", "identity"])
    }
  }

  @Test("A compressed body is inflated, and counted as it came over the wire")
  func gzip() async throws {
    let faults = [FaultRule("*", .gzip)]
    try await Origin.use(.init(routes: ["/a.mpd": .init(bytes)], faults: faults)) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a.mpd"), purpose: .manifest))
      #expect(response.bodyByteCount == nil)
      #expect(!response.supportsRanges)
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == bytes)
      let sent = try #require(origin.requestLog.first?.bodyBytesSent)
      #expect(sent > 300_000)
      #expect(reports.all.first?.byteCount == sent)
    }
  }

  @Test("A compressed body that grows beyond all measure is an error")
  func gzipBomb() async throws {
    let bomb = Origin.Response(
      GzipBomb.zeros(megabytes: 80), headers: [.contentEncoding: "gzip"])
    // Over a link, so that the event loop that inflates it can serve other tests in between.
    let link = try LinkSpec(parsing: "20Mbit/1ms")
    try await Origin.use(.init(routes: ["/a.mpd": bomb], link: link)) { origin in
      let error = await reelError {
        _ = try await quickFetcher().bytes(origin.url("a.mpd"), purpose: .manifest)
      }
      #expect(error?.kind == .server)
      #expect(error?.reason.contains("compressed data expands to more than") == true)
    }
  }

  @Test("Header fields: ours, the caller's, and the caller's in place of ours; a line break adds none")
  func headers() async throws {
    try await Origin.use(.init(routes: ["/a": .init(bytes)])) { origin in
      let fetcher = quickFetcher()
      _ = try await fetcher.bytes(origin.url("a"))
      let own = [("user-agent", "other"), ("X-A", "1"), ("X-A", "2"), ("X-B", "1\r\nX-C: 2")]
      _ = try await fetcher.bytes(
        origin.url("a"), headers: HTTPFields(own.map { HTTPField(name: .init($0.0)!, value: $0.1) }))
      let user = try #require(URL(string: "http://me:se%20cret@127.0.0.1:\(origin.port)/a"))
      _ = try await fetcher.bytes(user)
      let log = origin.requestLog
      try #require(log.count == 3)
      #expect(log[0].header("User-Agent") == "reel/0.1")
      let fields = log[1].headers
      #expect(fields[values: .userAgent] == ["other"])
      #expect(fields.filter { $0.name.rawName == "X-A" }.map(\.value) == ["1", "2"])
      #expect(log[1].header("X-B") == "1  X-C: 2" && log[1].header("X-C") == nil)
      #expect(fields.allSatisfy { !$0.name.canonicalName.hasPrefix("reel-") })
      let password = Data("me:se cret".utf8).base64EncodedString()
      #expect(log[2].header("Authorization") == "Basic \(password)", "user and password of the URL")
    }
  }

  @Test("What is not read is not fetched")
  func backPressure() async throws {
    let size = 32 << 20
    try await Origin.use(
      .init(routes: ["/large": .init([UInt8](repeating: 7, count: size)), "/small": .init("small")])
    ) { origin in
      let fetcher = quickFetcher()
      let response = try await fetcher.fetch(FetchRequest(url: origin.url("large"), purpose: .segment))
      var iterator = response.body.makeAsyncIterator()
      let first = try #require(try await iterator.next())
      for _ in 0..<20 { _ = try await fetcher.bytes(origin.url("small")) }
      let sent = try #require(origin.requestLog.first { $0.path == "/large" }).bodyBytesSent
      // What the sockets hold is the kernel's choice, some megabytes.
      #expect(sent < size * 3 / 4)
      var count = first.count
      while let chunk = try await iterator.next() { count += chunk.count }
      #expect(count == size)
    }
  }

  @Test("Many requests at once over one host all succeed")
  func manyAtOnce() async throws {
    let part = pattern(20_000)
    try await Origin.use(.init(routes: ["/a": .init(part)])) { origin in
      let fetcher = quickFetcher(connectionsAhead: 1)
      try await withThrowingTaskGroup(of: [UInt8].self) { group in
        for index in 0..<100 {
          group.addTask {
            try await fetcher.bytes(origin.url("a"), purpose: index % 2 == 0 ? .manifest : .segment)
          }
        }
        for try await result in group { #expect(result == part) }
      }
      #expect(origin.requestLog.count == 100)
    }
  }

  @Test("Other schemes are refused", arguments: ["ftp://example.com/a", "gopher://example.com/a", "a.mp4"])
  func scheme(text: String) async throws {
    let url = try #require(URL(string: text))
    let error = await reelError { _ = try await quickFetcher().bytes(url) }
    #expect(error?.kind == .unsupported)
    #expect(error?.location == text)
  }
}

extension FetchPurpose {
  static let all: [FetchPurpose] = [.source, .manifest, .initialization, .segment, .resource]
}
