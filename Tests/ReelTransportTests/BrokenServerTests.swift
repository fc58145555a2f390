import Foundation
import ReelCore
import ReelTestSupport
import ReelTransport
import Testing

@Suite("Servers that break HTTP/1.1", .hangLimit)
struct BrokenServerTests {
  @Test("A status that no response may have", arguments: [0, 1, 42, 99, 101])
  func status(_ status: Int) async throws {
    let digits = String(String(1000 + status).dropFirst())
    try await ScriptedServer.use("HTTP/1.1 \(digits) X\r\nContent-Length: 0\r\n\r\n") { url in
      let error = await reelError { _ = try await quickFetcher().bytes(url) }
      #expect(
        error
          == ReelError(.server, "unexpected status \(status)", at: url.absoluteString, status: status))
    }
  }

  @Test("A bad status after a redirect, on a connection that has served a request before")
  func laterStatus() async throws {
    let answer = { @Sendable (request: String) in
      switch request.split(separator: " ").dropFirst().first {
      case "/redirected": "HTTP/1.1 302 Found\r\nLocation: /bad\r\nContent-Length: 0\r\n\r\n"
      case "/bad": "HTTP/1.1 042 X\r\nContent-Length: 0\r\n\r\n"
      default: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
      }
    }
    try await ScriptedServer.use(staysOpen: true, answer) { url in
      let fetcher = quickFetcher()
      let before = try await fetcher.bytes(url)
      #expect(before == "good".bytes)
      let redirected = url.deletingLastPathComponent().appending(path: "redirected")
      let error = await reelError { _ = try await fetcher.bytes(redirected) }
      #expect(error?.reason == "unexpected status 42")
      let after = try await fetcher.bytes(url)
      #expect(after == "good".bytes)
    }
  }

  @Test("Interim responses come before a response, but not without end")
  func interimResponses() async throws {
    let interim = "HTTP/1.1 103 Early Hints\r\nContent-Encoding: gzip\r\n\r\n"
    let end = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
    try await ScriptedServer.use(String(repeating: interim, count: 30) + end) { url in
      let body = try await quickFetcher().bytes(url)
      #expect(body == "good".bytes)
    }
    try await ScriptedServer.use(String(repeating: interim, count: 70) + end) { url in
      let error = await reelError { _ = try await quickFetcher().bytes(url) }
      #expect(error?.reason == "more than 64 interim responses")
    }
  }

  @Test(
    "Bytes without end that are no response, or no part of its body",
    arguments: [
      "\r\n", "HTTP/1.1 200 ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;",
    ])
  func endless(start: String) async throws {
    let filler = start.hasSuffix("0") ? "0" : start == "\r\n" ? "\r\n" : "x"
    let text = start + String(repeating: filler, count: 300_000)
    try await ScriptedServer.use(staysOpen: true, { _ in text }) { url in
      let error = await reelError { _ = try await quickFetcher(attempts: 0).bytes(url) }
      #expect(error?.reason == "the server sent 262144 bytes without a response or a part of its body")
    }
  }

  @Test("Damaged responses end in a result or an error", arguments: [1, 2])
  func damage(seed: Int) async throws {
    let responses = [
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Type: text/plain\r\n\r\n0123456789",
      "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
      "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/4\r\nETag: \"a\"\r\n\r\nabcd",
      "HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\nHTTP/1.1 000 X\r\n\r\n",
      "HTTP/1.1 302 Found\r\nLocation: ?b\r\nContent-Length: 0\r\n\r\n",
    ]
    let damage = Locked(Damage(seed: seed))
    try await ScriptedServer.use({ _ in
      damage.withLock { damage in
        let bytes = damage.damaged(responses[damage.random.next(below: responses.count)].bytes)
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
      }
    }) { url in
      let fetcher = quickFetcher(attempts: 0)
      for _ in 0..<200 { await expectEnd(of: fetcher, url) }
    }
  }
}

@Suite("Servers that break HTTP/2", .hangLimit)
struct BrokenHTTP2ServerTests {
  /// A connection error, and the bytes that cause it.
  struct Fault: CustomTestStringConvertible, Sendable {
    var error: String
    var testDescription: String
    var bytes: [UInt8]

    init(_ error: String, _ name: String, _ bytes: [UInt8]) {
      (self.error, testDescription, self.bytes) = (error, name, bytes)
    }
  }

  @Test(
    "A connection error closes the connection, and is named",
    arguments: [
      Fault("FRAME_SIZE_ERROR", "a frame over the limit", [255, 255, 255, 0, 0, 0, 0, 0, 1]),
      Fault("FRAME_SIZE_ERROR", "an HTTP/1.1 response", "HTTP/1.1 400 Bad Request\r\n\r\n".bytes),
      Fault("FRAME_SIZE_ERROR", "a short PING", HTTP2Frame(.ping, [1]).bytes),
      Fault("PROTOCOL_ERROR", "padding over the frame", HTTP2Frame(.data, flags: 8, stream: 1, [9]).bytes),
      Fault("PROTOCOL_ERROR", "a stream of the server", HTTP2Frame.head("200", stream: 2)),
      Fault("PROTOCOL_ERROR", "a promise", HTTP2Frame.pushPromise(2, stream: 1)),
      Fault(
        "PROTOCOL_ERROR", "a promise that ends at once",
        HTTP2Frame.pushPromise(2, stream: 1)
          + HTTP2Frame(.resetStream, stream: 2, [0, 0, 0, 8]).bytes
          + HTTP2Frame.head("200", stream: 1, isEnd: true)),
      Fault(
        "COMPRESSION_ERROR", "fields that can't be decoded",
        HTTP2Frame(.headers, flags: 5, stream: 1, [255, 255, 255, 255]).bytes),
      Fault(
        "FLOW_CONTROL_ERROR", "a window over the limit",
        HTTP2Frame(.windowUpdate, [0x7F, 255, 255, 255]).bytes),
      Fault("PROTOCOL_ERROR", "an empty status", HTTP2Frame.head("", stream: 1, isEnd: true)),
      Fault("PROTOCOL_ERROR", "a negative status", HTTP2Frame.head("-5", stream: 1, isEnd: true)),
      Fault("PROTOCOL_ERROR", "a long status", HTTP2Frame.head("1000", stream: 1, isEnd: true)),
      Fault(
        "PROTOCOL_ERROR", "an end after an interim response", HTTP2Frame.head("103", stream: 1, isEnd: true)),
      Fault("ENHANCE_YOUR_CALM", "PINGs", repeated(HTTP2Frame(.ping, [1, 2, 3, 4, 5, 6, 7, 8]))),
      Fault("ENHANCE_YOUR_CALM", "SETTINGS", repeated(HTTP2Frame(.settings))),
      Fault("ENHANCE_YOUR_CALM", "window updates", repeated(HTTP2Frame(.windowUpdate, [0, 0, 0, 1]))),
      Fault(
        "ENHANCE_YOUR_CALM", "unknown frames",
        repeated(HTTP2Frame(type: 99, [UInt8](repeating: 0, count: 100)))),
      Fault(
        "ENHANCE_YOUR_CALM", "empty DATA",
        HTTP2Frame.head("200", stream: 1) + repeated(HTTP2Frame(.data, stream: 1))),
      Fault(
        "ENHANCE_YOUR_CALM", "CONTINUATION",
        HTTP2Frame(.headers, stream: 1, [0x88]).bytes + repeated(HTTP2Frame(.continuation, stream: 1))),
    ])
  func connectionError(fault: Fault) async throws {
    try await ScriptedServer.useHTTP2({ _ in fault.bytes }) { server in
      let error = await reelError { _ = try await fetcher().bytes(server.url) }
      #expect(error?.reason == "the server broke the HTTP/2 protocol: \(fault.error)")
      #expect(error?.kind == .server)
      try await until { server.openConnectionCount == 0 }
    }
  }

  @Test("A response that arrives faster than it is read breaks nothing")
  func fastResponse() async throws {
    let bytes = pattern(6_000_000)
    let parts = stride(from: 0, to: bytes.count, by: 16_384).map { bytes[$0..<min($0 + 16_384, bytes.count)] }
    try await ScriptedServer.useHTTP2({ stream in
      HTTP2Frame.head("200", stream: stream)
        + parts.flatMap { HTTP2Frame.data(Array($0), stream: stream, isEnd: false) }
        + HTTP2Frame.data([], stream: stream)
    }) { server in
      let body = try await fetcher().bytes(server.url)
      #expect(body == bytes)
    }
  }

  @Test("A response counts before the bytes that arrive with it exceed the limit")
  func headWithinRead() async throws {
    try await ScriptedServer.useHTTP2({ stream in
      let head = HTTP2Frame.head("200", stream: stream)
      func ignored(_ count: Int) -> [UInt8] {
        HTTP2Frame(type: 0xBE, [UInt8](repeating: 0, count: count)).bytes
      }
      let first = (0..<15).flatMap { _ in ignored(16_384) }
      // With the first frame of the connection, head and ignored frames exceed the limit.
      let rest = ignored(262_144 - first.count - head.count - 9)
      return first + rest + head + HTTP2Frame.data("good".bytes, stream: stream)
    }) { server in
      let body = try await fetcher().bytes(server.url)
      #expect(body == "good".bytes)
    }
  }

  @Test("A status that no response may have", arguments: ["000", "042", "099", "101"])
  func status(_ status: String) async throws {
    try await ScriptedServer.useHTTP2({ HTTP2Frame.head(status, stream: $0) }) { server in
      let error = await reelError { _ = try await fetcher().bytes(server.url) }
      #expect(error?.reason == "unexpected status \(Int(status) ?? -1)")
    }
  }

  @Test("Interim responses come before a response, but not without end")
  func interimResponses() async throws {
    let isEndless = Locked(false)
    try await ScriptedServer.useHTTP2({ stream in
      let count = isEndless.withLock { $0 } ? 70 : 30
      return (0..<count).flatMap { _ in HTTP2Frame.head("103", stream: stream) }
        + HTTP2Frame.head("200", stream: stream) + HTTP2Frame.data("good".bytes, stream: stream)
    }) { server in
      let body = try await fetcher().bytes(server.url)
      #expect(body == "good".bytes)
      isEndless.withLock { $0 = true }
      let error = await reelError { _ = try await fetcher().bytes(server.url) }
      #expect(error?.reason == "more than 64 interim responses")
    }
  }

  @Test("A stream or connection that the server ends is an error that may pass, and says the server's reason")
  func ended() async throws {
    try await ScriptedServer.useHTTP2({ HTTP2Frame(.resetStream, stream: $0, [0, 0, 0, 7]).bytes }) {
      server in
      let error = await reelError { _ = try await fetcher().bytes(server.url) }
      #expect(error?.reason == "HTTP/2 stream reset by the server (REFUSED_STREAM)")
      #expect(error?.kind == .network)
    }
    try await ScriptedServer.useHTTP2({ _ in HTTP2Frame(.goAway, [0, 0, 0, 0, 0, 0, 0, 11]).bytes }) {
      server in
      let error = await reelError { _ = try await fetcher().bytes(server.url) }
      #expect(error?.reason == "HTTP/2 connection ended by the server (ENHANCE_YOUR_CALM)")
      #expect(error?.kind == .network)
    }
    let short = { @Sendable (stream: Int) in
      HTTP2Frame.head("200", [("content-length", "9")], stream: stream)
        + HTTP2Frame.data("good".bytes, stream: stream)
    }
    try await ScriptedServer.useHTTP2(short) { server in
      let error = await reelError { _ = try await fetcher().bytes(server.url) }
      #expect(error?.reason.hasPrefix("the response breaks the HTTP/2 protocol (PROTOCOL_ERROR)") == true)
    }
  }

  @Test("Requests that are never sent take no stream from the others")
  func streamsOpenedAhead() async throws {
    let limit = HTTP2Frame(.settings, [0, 3, 0, 0, 0, 4]).bytes
    try await ScriptedServer.useHTTP2(
      opening: limit,
      { HTTP2Frame.head("200", stream: $0) + HTTP2Frame.data("good".bytes, stream: $0) }
    ) { server in
      let fetcher = fetcher(connectionsAhead: 2)
      for _ in 0..<20 {
        let body = try await fetcher.bytes(server.url, purpose: .source)
        #expect(body == "good".bytes)
      }
      try await until { server.openConnectionCount == 1 }
    }
  }

  @Test("Settings that change while no request is open harm no request")
  func changesBetweenRequests() async throws {
    try await ScriptedServer.useHTTP2({ stream in
      Self.good(stream) + HTTP2Frame(.settings, [0, 3, 0, 0, 0, UInt8(stream % 5 + 1)]).bytes
    }) { server in
      let fetcher = fetcher()
      for _ in 0..<8 {
        let body = try await fetcher.bytes(server.url)
        #expect(body == "good".bytes)
      }
      #expect(server.openConnectionCount == 1)
    }
  }

  @Test(
    "A connection that allows no stream at first serves requests once it does",
    // A debug build of AsyncHTTPClient asserts that this does not happen.
    .enabled(if: !isDebugBuild))
  func noStreamAtFirst() async throws {
    let opening = ([0, 4] as [UInt8]).flatMap { HTTP2Frame(.settings, [0, 3, 0, 0, 0, $0]).bytes }
    try await ScriptedServer.useHTTP2(opening: opening, { Self.good($0) }) { server in
      let fetcher = fetcher()
      for _ in 0..<3 {
        let body = try await fetcher.bytes(server.url)
        #expect(body == "good".bytes)
      }
    }
  }

  @Test("A connection that allows no stream ends at the time limit")
  func noStream() async throws {
    let opening = HTTP2Frame(.settings, [0, 3, 0, 0, 0, 0]).bytes
    try await ScriptedServer.useHTTP2(opening: opening, { Self.good($0) }) { server in
      let error = await reelError {
        _ = try await fetcher(connectTimeout: .milliseconds(200)).bytes(server.url)
      }
      #expect(error?.kind == .timedOut)
      #expect(error?.reason == "no connection within 0.2 s")
    }
  }

  @Test("The end of a stream that a malformed promise began harms no request")
  func malformedPromise() async throws {
    try await ScriptedServer.useHTTP2({ stream in
      HTTP2Frame(.pushPromise, flags: HTTP2Frame.endHeaders, stream: stream, [0, 0, 0, UInt8(2 * stream)])
        .bytes
        + HTTP2Frame(.resetStream, stream: 2 * stream, [0, 0, 0, 8]).bytes
        + HTTP2Frame(.resetStream, stream: stream + 2, [0, 0, 0, 8]).bytes
    }) { server in
      let fetcher = fetcher()
      for _ in 0..<3 {
        let error = await reelError { _ = try await fetcher.bytes(server.url) }
        #expect(error != nil)
      }
    }
  }

  @Test(
    "A server whose connections change between HTTP/2 and HTTP/1.1 serves all requests",
    arguments: [["h2", "http/1.1"], ["http/1.1", "h2"], ["h2", "h2", "http/1.1"]])
  func changingProtocol(protocols: [String]) async throws {
    try await ScriptedServer.useHTTP2(
      protocols: { [protocols[$0 % protocols.count]] },
      text: { _ in "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood" },
      { HTTP2Frame(.goAway, [0x7F, 255, 255, 255, 0, 0, 0, 0]).bytes + Self.good($0) }
    ) { server in
      let fetcher = fetcher(attempts: 3)
      for _ in 0..<6 {
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
          for _ in 0..<6 { group.addTask { try await fetcher.bytes(server.url) } }
          for try await body in group { #expect(body == "good".bytes) }
        }
      }
    }
  }

  @Test("Damaged frames end in a result or an error", arguments: [1, 2])
  func damage(seed: Int) async throws {
    let damage = Locked(Damage(seed: seed))
    let answer = { @Sendable (stream: Int) in
      let other =
        HTTP2Frame(.windowUpdate, [0, 0, 1, 0]).bytes + HTTP2Frame(.settings, [0, 3, 0, 0, 0, 1]).bytes
      let answers = [
        HTTP2Frame.head("200", [("content-length", "4")], stream: stream)
          + HTTP2Frame.data("good".bytes, stream: stream),
        HTTP2Frame.head("103", stream: stream) + other + HTTP2Frame.head("404", stream: stream, isEnd: true),
        HTTP2Frame.head("200", stream: stream) + HTTP2Frame.data("go".bytes, stream: stream, isEnd: false)
          + HTTP2Frame(.headers, flags: 5, stream: stream, [0, 1, 97, 1, 98]).bytes,
        HTTP2Frame.pushPromise(2, stream: stream) + HTTP2Frame.head("200", stream: 2, isEnd: true)
          + HTTP2Frame.head("302", [("location", "?b")], stream: stream, isEnd: true),
        HTTP2Frame(.ping, [1, 2, 3, 4, 5, 6, 7, 8]).bytes
          + HTTP2Frame(.goAway, [0, 0, 0, 1, 0, 0, 0, 0]).bytes
          + HTTP2Frame(.resetStream, stream: stream, [0, 0, 0, 2]).bytes,
      ]
      return damage.withLock { damage in damage.damaged(answers[damage.random.next(below: answers.count)]) }
    }
    try await ScriptedServer.useHTTP2(staysOpen: false, answer) { server in
      let fetcher = fetcher()
      for _ in 0..<150 { await expectEnd(of: fetcher, server.url) }
    }
  }

  // MARK: - Private

  private static func good(_ stream: Int) -> [UInt8] {
    HTTP2Frame.head("200", stream: stream) + HTTP2Frame.data("good".bytes, stream: stream)
  }

  private func fetcher(
    connectTimeout: Duration = HangLimit.duration, attempts: Int = 0, connectionsAhead: Int = 0
  ) -> TransportFetcher {
    var configuration = TransportConfiguration(
      connectTimeout: connectTimeout, firstByteTimeout: HangLimit.duration,
      idleTimeout: HangLimit.duration,
      retryPolicy: RetryPolicy(attempts: attempts, baseDelay: .milliseconds(1)),
      connectionsAhead: connectionsAhead)
    configuration.trust = .any
    return TransportFetcher(configuration: configuration, logger: silentLogger)
  }

  /// More than any limit on frames, and on their bytes, allows.
  private static func repeated(_ frame: HTTP2Frame) -> [UInt8] {
    (0..<(400_000 / frame.bytes.count)).flatMap { _ in frame.bytes }
  }
}

/// True if a program checks its assertions.
private var isDebugBuild: Bool {
  #if DEBUG
    true
  #else
    false
  #endif
}

/// Fetches a resource. The process goes on, whatever the server sends: there is a body, or a `ReelError`.
private func expectEnd(of fetcher: TransportFetcher, _ url: URL) async {
  do {
    _ = try await fetcher.bytes(url)
  } catch {
    #expect(error is ReelError)
  }
}

/// Damages bytes, in the same way for the same seed.
private struct Damage {
  var random: SplitMix

  init(seed: Int) { random = SplitMix(seed: seed) }

  mutating func damaged(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0...random.next(below: 4) {
      let index = random.next(below: bytes.count)
      switch random.next(below: 6) {
      case 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
      case 1: bytes[index] ^= 1 << UInt8(random.next(below: 8))
      case 2: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: index)
      case 3: bytes.insert(contentsOf: bytes[index...].prefix(1 + random.next(below: 20)), at: index)
      case 4: if bytes.count > 1 { bytes.remove(at: index) }
      // Digits: of a status, a length, a size of a chunk.
      default:
        if let digit = bytes[index...].firstIndex(where: { (0x30...0x39).contains($0) }) {
          bytes[digit] = 0x30 + UInt8(random.next(below: 10))
        }
      }
    }
    return bytes
  }
}
