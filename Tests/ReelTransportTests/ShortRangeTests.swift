import Foundation
import ReelCore
import ReelTestSupport
import ReelTransport
import Testing

@Suite("Servers that answer only ranges, and with other bytes than were asked for", .hangLimit)
struct ShortRangeTests {
  private static let text = String(
    decoding: (0..<10_000).map { UInt8(ascii: "a") + UInt8($0 * 7919 / 13 % 26) }, as: UTF8.self)

  /// Runs `body` with a server that sends at most 1000 bytes of a range.
  ///
  /// - Parameters:
  ///   - size: The size of the resource that it states for a range from this byte on.
  ///   - end: Ranges from this byte on are refused.
  private func withServer<Result>(
    size: @escaping @Sendable (Int) -> String = { _ in "10000" }, end: Int = 10_000,
    _ body: (URL) async throws -> Result
  ) async throws -> Result {
    let answer: @Sendable (String) -> String = { request in
      let ends = request.firstMatch(of: /[Rr]ange: bytes=(\d+)-(\d*)/)
      guard let ends, let first = Int(ends.1), first < end else {
        return Self.empty("416 Range Not Satisfiable")
      }
      return Self.part(first, min(Int(ends.2) ?? .max, first + 999, 9_999), of: size(first))
    }
    return try await ScriptedServer.use(answer, body)
  }

  /// An answer with a part of the text, as one of a resource of this size.
  private static func part(_ first: Int, _ last: Int, of size: String = "10000") -> String {
    "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes \(first)-\(last)/\(size)\r\n"
      + "Content-Length: \(last - first + 1)\r\nConnection: close\r\n\r\n"
      + text.dropFirst(first).prefix(last - first + 1)
  }

  private static func empty(_ status: String) -> String {
    "HTTP/1.1 \(status)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
  }

  /// The first byte of the range that a request is for; nil for one without a range.
  private static func first(of request: String) -> Int? {
    request.firstMatch(of: /[Rr]ange: bytes=(\d+)-/).flatMap { Int($0.1) }
  }

  /// Counts a request, and returns its number, from 1 on.
  private static func next(_ count: Locked<Int>) -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }

  @Test(
    "The rest is requested",
    arguments: [
      (ByteRange(offset: 500, length: 4_000), 4_000, 4),
      (ByteRange(offset: 7_500, length: nil), 2_500, 3),
      (ByteRange(offset: 8_500, length: 5_000), 1_500, 2),
      (ByteRange(offset: 500, length: 1_000), 1_000, 1),
      (ByteRange(offset: 9_500, length: 5_000), 500, 1),
    ])
  func rest(range: ByteRange, byteCount: Int, requestCount: Int) async throws {
    try await withServer { url in
      let reports = Reports()
      let response = try await quickFetcher(attempts: 0).fetch(reports.request(url, range: range))
      #expect(response.bodyByteCount == Int64(byteCount))
      let body = try await response.body.collect(upTo: 1 << 20)
      let expected = Self.text.bytes.dropFirst(Int(range.offset)).prefix(byteCount)
      #expect(body == Array(expected))
      #expect(reports.all.map(\.requestCount) == [requestCount])
      #expect(reports.all.map(\.byteCount) == [Int64(byteCount)])
    }
  }

  @Test(
    "Where the size of the resource is unknown, its end is where the server has no more",
    arguments: [(4_000, 4_500), (20_000, 10_000), (nil, 10_000)] as [(Int64?, Int)])
  func unknownSize(length: Int64?, end: Int) async throws {
    try await withServer(size: { _ in "*" }) { url in
      let response = try await quickFetcher(attempts: 0).fetch(
        Reports().request(url, range: ByteRange(offset: 500, length: length)))
      // What the first answer has: no more is known.
      #expect(response.bodyByteCount == 1_000)
      #expect(response.resourceByteCount == nil)
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == Array(Self.text.bytes[500..<end]))
    }
  }

  @Test("A size that a later answer states is the size of the resource")
  func laterSize() async throws {
    try await withServer(size: { $0 == 8_500 ? "*" : "10000" }) { url in
      let reports = Reports()
      let response = try await quickFetcher(attempts: 0).fetch(
        reports.request(url, range: ByteRange(offset: 8_500, length: 5_000)))
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == Array(Self.text.bytes[8_500...]))
      #expect(reports.all.map(\.requestCount) == [2])
    }
  }

  @Test("Short ranges restore the budget of retries as long ones do")
  func budget() async throws {
    let (requests, size) = (Locked(0), 600_000)
    let answer: @Sendable (String) -> String = { request in
      guard Self.next(requests) % 5 != 0 else { return Self.empty("503 Service Unavailable") }
      let first = Self.first(of: request) ?? 0
      let last = min(first + 19_999, size - 1)
      return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes \(first)-\(last)/\(size)\r\n"
        + "Content-Length: \(last - first + 1)\r\nConnection: close\r\n\r\n"
        + String(repeating: "a", count: last - first + 1)
    }
    let body = try await ScriptedServer.use(answer) { url in
      try await quickFetcher(attempts: 1).bytes(url, range: ByteRange(offset: 0, length: Int64(size)))
    }
    #expect(body.count == size)
  }

  @Test("A shorter answer can't continue a body whose length is unknown")
  func shorterContinuation() async throws {
    let requests = Locked(0)
    let answer: @Sendable (String) -> String = { _ in
      let isFirst = Self.next(requests) == 1
      return isFirst
        ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1f40\r\n\(Self.text.prefix(5_000))"
        : "HTTP/1.1 200 OK\r\nContent-Length: 24\r\nConnection: close\r\n\r\nWe will be back shortly.\n"
    }
    let error = try await ScriptedServer.use(answer) { url in
      await reelError { _ = try await quickFetcher().bytes(url) }
    }
    #expect(error?.reason == "the resource changed after 5000 bytes, when the connection broke")
  }

  @Test("A server that sends only a few bytes at a time is given up")
  func fewBytes() async throws {
    let requests = Locked(0)
    let answer: @Sendable (String) -> String = { request in
      _ = Self.next(requests)
      let first = Self.first(of: request) ?? 0
      return Self.part(first, first, of: "100000")
    }
    let error = try await ScriptedServer.use(answer) { url in
      await reelError {
        _ = try await quickFetcher(attempts: 2).bytes(url, range: ByteRange(offset: 0, length: 50_000))
      }
    }
    #expect(error?.kind == .network)
    #expect(error?.reason == "the server sent only 19 of 50000 bytes of the range (19 requests)")
    #expect(requests.withLock { $0 } == 19)
  }

  @Test("A body without a length that breaks off has the length of the answer that continues it")
  func lengthOfContinuation() async throws {
    let answer: @Sendable (String) -> String = { request in
      guard let first = Self.first(of: request) else {
        return "HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n"
          + "Connection: close\r\n\r\n7d0\r\n\(Self.text.prefix(1_000))"
      }
      let last = min(first + 1_999, 9_999)
      return [
        "HTTP/1.1 206 Partial Content", "Content-Range: bytes \(first)-\(last)/10000", "ETag: \"a\"",
        "Content-Length: \(last - first + 1)", "Connection: close", "",
        // The first of them breaks off too.
        String(Self.text.dropFirst(first).prefix(first == 1_000 ? 500 : last - first + 1)),
      ].joined(separator: "\r\n")
    }
    let body = try await ScriptedServer.use(answer) { url in try await quickFetcher().bytes(url) }
    #expect(body == Self.text.bytes)
  }

  @Test("A resource that turns out shorter than announced is an error")
  func endsWhereItBroke() async throws {
    let requests = Locked(0)
    let answer: @Sendable (String) -> String = { _ in
      let isFirst = Self.next(requests) == 1
      let bytes = Self.text.prefix(5_000)
      return isFirst
        ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-7999/*\r\nContent-Length: 8000\r\n"
          + "Connection: close\r\n\r\n\(bytes)"
        : "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n\(bytes)"
    }
    let error = try await ScriptedServer.use(answer) { url in
      await reelError {
        _ = try await quickFetcher().bytes(url, range: ByteRange(offset: 0, length: 8_000))
      }
    }
    #expect(error?.kind == .network)
    #expect(error?.reason == "the resource changed after 5000 bytes, when the connection broke")
    #expect(requests.withLock { $0 } == 2)
  }

  @Test(
    "An answer without a length that goes on after its range is not waited for", arguments: [1_000, 3_000])
  func endless(length: Int) async throws {
    let answer: @Sendable (String) -> String = { request in
      let first = Self.first(of: request) ?? 0
      return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes \(first)-\(first + 999)/10000\r\n"
        + "Transfer-Encoding: chunked\r\n\r\n7d0\r\n\(Self.text.dropFirst(first).prefix(2_000))\r\n7d0\r\n"
    }
    let body = try await ScriptedServer.use(staysOpen: true, answer) { url in
      try await quickFetcher(attempts: 0).bytes(url, range: ByteRange(offset: 0, length: Int64(length)))
    }
    #expect(body == Array(Self.text.bytes[..<length]))
  }

  @Test(
    "An answer may have more than the range",
    arguments: [(500, 1_499), (400, 1_399), (0, 9_999), (600, 999), (0, 800)])
  func longerRange(first: Int, last: Int) async throws {
    let answer: @Sendable (String) -> String = { request in
      // A later request is for the rest.
      let wanted = Self.first(of: request) ?? 0
      return wanted == 600 ? Self.part(first, last) : Self.part(wanted, min(wanted + 999, 9_999))
    }
    try await ScriptedServer.use(answer) { url in
      let response = try await quickFetcher(attempts: 0).fetch(
        Reports().request(url, range: ByteRange(offset: 600, length: 400)))
      #expect(response.bodyOffset == 600)
      #expect(response.bodyByteCount == 400)
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == Array(Self.text.bytes[600..<1_000]))
    }
  }

  @Test(
    "A server that refuses requests without a range is asked for the range of all bytes",
    arguments: ["400 Bad Request", "416 Range Not Satisfiable"])
  func rangeOnly(refusal: String) async throws {
    let ranges = Locked<[String?]>([])
    let answer: @Sendable (String) -> String = { request in
      let range = request.firstMatch(of: /[Rr]ange: (bytes=(\d+)-)/)
      ranges.withLock { $0.append(range.map { String($0.1) }) }
      guard let first = range.flatMap({ Int($0.2) }) else { return Self.empty(refusal) }
      return Self.part(first, min(first + 4_999, 9_999))
    }
    try await ScriptedServer.use(answer) { url in
      let fetcher = quickFetcher(attempts: 0)
      let response = try await fetcher.fetch(Reports().request(url))
      #expect(response.bodyOffset == 0)
      #expect(response.resourceByteCount == 10_000)
      #expect(response.supportsRanges)
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == Self.text.bytes)
      #expect(ranges.withLock { $0 } == [nil, "bytes=0-", "bytes=5000-"])
      // From now on it is known.
      let again = try await fetcher.bytes(url)
      #expect(again == Self.text.bytes)
      #expect(ranges.withLock { $0.count } == 5)
    }
  }

  @Test("A refusal that no range helps is reported as it came first", arguments: [400, 416])
  func refusedInAnyCase(status: Int) async throws {
    let requests = Locked(0)
    let answer: @Sendable (String) -> String = { request in
      _ = Self.next(requests)
      return Self.empty(request.contains("ange: bytes") ? "404 Not Found" : "\(status) X")
    }
    let error = try await ScriptedServer.use(answer) { url in
      await reelError { _ = try await quickFetcher().bytes(url) }
    }
    #expect(error?.status == status)
    #expect(requests.withLock { $0 } == 2)
  }

  @Test(
    "A source is requested as a range where another request is refused, fails, or brings a part",
    arguments: [
      empty("403 Forbidden"), empty("405 Method Not Allowed"), empty("500 Internal Server Error"),
      part(0, 2), "",
    ])
  func rangeOnlySource(refusal: String) async throws {
    let ranges = Locked<[Bool]>([])
    let answer: @Sendable (String) -> String = { request in
      let hasRange = request.contains("ange: bytes=0-")
      ranges.withLock { $0.append(hasRange) }
      return hasRange ? Self.part(0, 9_999) : refusal
    }
    try await ScriptedServer.use(answer) { url in
      let fetcher = quickFetcher(attempts: 1)
      for purpose in [FetchPurpose.source, .segment] {
        let body = try await fetcher.bytes(url, purpose: purpose)
        #expect(body == Self.text.bytes)
      }
    }
    #expect(ranges.withLock { $0 } == [false, true, true])
  }

  @Test("A failure that no range helps is reported as it came, after all attempts")
  func failedInAnyCase() async throws {
    let ranges = Locked<[Bool]>([])
    let answer: @Sendable (String) -> String = { request in
      let hasRange = request.contains("ange: bytes=0-")
      ranges.withLock { $0.append(hasRange) }
      return Self.empty(hasRange ? "403 X" : "500 X")
    }
    let error = try await ScriptedServer.use(answer) { url in
      await reelError { _ = try await quickFetcher(attempts: 2).bytes(url, purpose: .source) }
    }
    #expect(error?.status == 500)
    #expect(ranges.withLock { $0 } == [false, true, false, true, false])
  }

  @Test("A source whose server never answers a request without a range")
  func silentWithoutRange() async throws {
    let answer: @Sendable (String) -> String = { request in
      request.contains("ange: bytes=0-") ? Self.part(0, 9_999) : ""
    }
    try await ScriptedServer.use(staysOpen: true, answer) { url in
      let fetcher = quickFetcher(firstByteTimeout: .seconds(30), attempts: 0)
      for purpose in [FetchPurpose.source, .segment] {
        let body = try await fetcher.bytes(url, purpose: purpose)
        #expect(body == Self.text.bytes)
      }
    }
  }

  @Test("The rest of another version is an error")
  func changed() async throws {
    let error = try await withServer(size: { $0 == 500 ? "10000" : "10001" }) { url in
      await reelError {
        _ = try await quickFetcher().bytes(url, range: ByteRange(offset: 500, length: 4_000))
      }
    }
    #expect(error?.kind == .server)
    #expect(error?.reason.hasPrefix("the server sent only 1000 of 4000 bytes of the range") == true)
    #expect(error?.isTemporary == true)
  }

  @Test("The rest that is refused is an error")
  func refused() async throws {
    let error = try await withServer(end: 2_000) { url in
      await reelError {
        _ = try await quickFetcher().bytes(url, range: ByteRange(offset: 500, length: 4_000))
      }
    }
    #expect(error?.kind == .server)
    #expect(error?.reason.hasPrefix("the server sent only 2000 of 4000 bytes of the range") == true)
    #expect(error?.status == 416)
  }
}
