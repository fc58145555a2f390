import Foundation
import HTTPTypes
import ReelCore
import ReelTesting
import ReelTransport
import ReelTestSupport
import Testing

@Suite("Resources made when they are asked for", .hangLimit)
struct DynamicResourceTests {
  /// Counts its requests in its answers.
  private final class Counter: DynamicResource {
    private let count = Locked(0)

    func response(at path: String) -> Origin.Response? {
      switch path {
      case "/count.m3u8":
        return Origin.Response(
          count.withLock { count in
            count += 1
            return "\(count) of this"
          })
      case "/gone.ts":
        return Origin.Response(
          "gone", contentType: "text/plain", headers: [.age: "1"], status: 410)
      default: return nil
      }
    }
  }

  @Test("Each request gets a new answer, with a tag of its own")
  func fresh() async throws {
    try await Origin.use(.init(resources: [Counter()])) { origin in
      var tags: Set<Substring> = []
      for number in 1...3 {
        let answer = try await RawClient.exchange(
          "GET /count.m3u8 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", port: origin.port)
        #expect(answer.hasSuffix("\r\n\r\n\(number) of this"))
        #expect(answer.contains("Content-Type: application/vnd.apple.mpegurl\r\n"))
        let tag = try #require(answer.split(separator: "\r\n").first { $0.hasPrefix("ETag: ") })
        tags.insert(tag)
      }
      #expect(tags.count == 3)
    }
  }

  @Test("Ranges and faults count for them too, and routes go before them")
  func ranges() async throws {
    let faults = [FaultRule("*.m3u8", .status(503), count: 1)]
    let routes = ["/gone.ts": Origin.Response("here")]
    try await Origin.use(.init(routes: routes, resources: [Counter()], faults: faults)) { origin in
      let fetcher = quickFetcher(attempts: 0)
      let error = await reelError { _ = try await fetcher.bytes(origin.url("count.m3u8")) }
      #expect(error?.reason.hasPrefix("503 ") == true)
      let part = try await fetcher.bytes(origin.url("count.m3u8"), range: ByteRange(offset: 2, length: 2))
      #expect(part == "of".bytes)
      let route = try await fetcher.bytes(origin.url("gone.ts"))
      #expect(route == "here".bytes)
    }
  }

  @Test("A status of its own, and 404 for what nobody knows")
  func statuses() async throws {
    try await Origin.use(.init(resources: [Counter()])) { origin in
      let gone = try await RawClient.exchange(
        "GET /gone.ts HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0\r\nConnection: close\r\n\r\n", port: origin.port
      )
      #expect(gone.hasPrefix("HTTP/1.1 410 Gone\r\n"))
      #expect(gone.contains("Age: 1\r\n"))
      #expect(gone.hasSuffix("\r\n\r\ngone"))
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("none.ts")) }
      #expect(error?.reason.hasPrefix("404 ") == true)
    }
  }
}
