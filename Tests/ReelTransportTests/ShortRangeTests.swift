import Foundation
import ReelCore
import ReelTestSupport
import ReelTransport
import Testing

@Suite("Answers with less than the range that was asked for", .hangLimit)
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
        return "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
      }
      let last = min(Int(ends.2) ?? .max, first + 999, 9_999)
      return [
        "HTTP/1.1 206 Partial Content", "Content-Range: bytes \(first)-\(last)/\(size(first))",
        "Content-Length: \(last - first + 1)", "Connection: close", "",
        String(Self.text.dropFirst(first).prefix(last - first + 1)),
      ].joined(separator: "\r\n")
    }
    return try await ScriptedServer.use(answer, body)
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

  @Test("Where the size of the resource is unknown, its end may have been reached")
  func unknownSize() async throws {
    let body = try await withServer(size: { _ in "*" }) { url in
      try await quickFetcher().bytes(url, range: ByteRange(offset: 500, length: 4_000))
    }
    #expect(body == Array(Self.text.bytes[500..<1_500]))
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
