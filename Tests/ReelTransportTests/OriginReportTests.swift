import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@Suite("Reports to an origin", .hangLimit)
struct OriginReportTests {
  private func post(_ path: String, _ body: String, to origin: Origin) async throws -> String {
    try await RawClient.exchange(
      "POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)",
      port: origin.port)
  }

  @Test("POST requests reach the receiver with their bodies, up to a limit")
  func post() async throws {
    var configuration = Origin.Configuration(routes: ["/a": .init("a")])
    configuration.receiver = { request, body in
      request.path == "/report"
        ? .init("\(body.count) bytes from \(request.client ?? "?")", status: 202) : nil
    }
    try await Origin.use(configuration) { origin in
      let answer = try await post("/report?x=1", "12345", to: origin)
      #expect(answer.hasPrefix("HTTP/1.1 202 "))
      #expect(answer.hasSuffix("\r\n\r\n5 bytes from 127.0.0.1"))
      #expect(try await post("/a", "x", to: origin).hasPrefix("HTTP/1.1 405 "))
      let limit = Origin.Configuration.postLimit
      let largest = try await post("/report", String(repeating: "x", count: limit), to: origin)
      #expect(largest.contains("\(limit) bytes from"))
      let larger = try await post("/report", String(repeating: "x", count: limit + 1), to: origin)
      #expect(larger.hasPrefix("HTTP/1.1 413 "))
      let allowed = try await RawClient.exchange(
        "OPTIONS /report HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", port: origin.port)
      #expect(allowed.contains("Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\n"))
    }
  }

  @Test("An observer receives each request once, when its answer has ended, also one that was cut off")
  func observer() async throws {
    let folder = try TemporaryFolder()
    try folder.write("<media>", to: "a.ts")
    let seen = Locked<[RequestRecord]>([])
    var configuration = Origin.Configuration(
      routes: ["/large.ts": .init(Array(repeating: 7, count: 100_000))],
      faults: try FaultRule.parse("large.ts=stall:1000"))
    configuration.resourcePath = { $0.hasPrefix("/p/") ? String($0.dropFirst(2)) : $0 }
    configuration.file = { path in path == "/b.ts" ? (folder.url, "a.ts") : nil }
    configuration.observer = { request in seen.withLock { $0.append(request) } }
    try await Origin.use(configuration) { origin in
      let answer = try await RawClient.exchange(
        "GET /p/b.ts HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", port: origin.port)
      #expect(answer.hasSuffix("\r\n\r\n<media>"))
      let missing = try await RawClient.exchange(
        "GET /a.ts HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", port: origin.port)
      #expect(missing.hasPrefix("HTTP/1.1 404 "))
      let cut = Task { try await quickFetcher().bytes(origin.url("/p/large.ts")) }
      await origin.wait { $0.acceptedConnectionCount == 3 }
      cut.cancel()
      _ = await cut.result
      await origin.wait { $0.openConnectionCount == 0 }
      #expect(origin.requestLog.isEmpty)
    }
    let requests = seen.withLock { $0 }
    #expect(requests.prefix(2).map(\.path) == ["/b.ts", "/a.ts"])
    #expect(requests.first?.target == "/p/b.ts")
    #expect(requests.first?.bodyBytesSent == 7)
    #expect(requests.prefix(2).allSatisfy { $0.isComplete })
    // The client may have gone before its request was read.
    for request in requests.dropFirst(2) {
      #expect(request.path == "/large.ts" && !request.isComplete && request.bodyBytesSent <= 1_000)
    }
  }
}
