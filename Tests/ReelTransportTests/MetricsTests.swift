import Foundation
import HTTPTypes
import ReelCore
import ReelTesting
import ReelTransport
import ReelTestSupport
import Testing

@Suite("Metrics", .hangLimit)
struct MetricsTests {
  @Test("A request that ends well is reported once, with all that is known")
  func success() async throws {
    try await Origin.use(.init(routes: ["/a": .init(pattern(300_000))])) { origin in
      let reports = Reports()
      let fetcher = quickFetcher()
      for _ in 0..<2 {
        let response = try await fetcher.fetch(reports.request(origin.url("a"), purpose: .initialization))
        let before = reports.all.count
        _ = try await response.body.collect(upTo: 1 << 20)
        #expect(reports.all.count == before + 1)
      }
      for metrics in reports.all {
        #expect(metrics.url == origin.url("a"))
        #expect(metrics.purpose == .initialization)
        #expect(metrics.status == 200)
        #expect(metrics.byteCount == 300_000)
        #expect(metrics.requestCount == 1)
        #expect(metrics.redirectCount == 0)
        #expect(metrics.timeToFirstByte.map { $0 > .zero } == true)
        #expect(metrics.transferTime >= .zero)
      }
      #expect(reports.all.map(\.reusedConnection) == [false, true])
      #expect(origin.snapshot.acceptedConnectionCount == 1)
    }
  }

  @Test("A refusal is reported with its status")
  func refusal() async throws {
    try await Origin.use(.init()) { origin in
      let reports = Reports()
      _ = await reelError { _ = try await quickFetcher().fetch(reports.request(origin.url("a"))) }
      let metrics = try #require(reports.all.first)
      #expect(reports.all.count == 1)
      #expect(metrics.status == 404)
      #expect(metrics.timeToFirstByte == nil)
      #expect(metrics.byteCount == 0)
    }
  }

  @Test("The outcome says how a request ended")
  func outcomes() async throws {
    try await Origin.use(.init(routes: ["/a": .init(pattern(300_000))])) { origin in
      let reports = Reports()
      let fetcher = quickFetcher()
      let whole = try await fetcher.fetch(reports.request(origin.url("a")))
      _ = try await whole.body.collect(upTo: 1 << 20)
      // A reader that has all bytes of a range need not ask for the end.
      let range = ByteRange(offset: 0, length: 100)
      let part = try await fetcher.fetch(reports.request(origin.url("a"), range: range))
      _ = try await part.body.next()
      part.body.close()
      let left = try await fetcher.fetch(reports.request(origin.url("a")))
      left.body.close()
      let error = await reelError { _ = try await fetcher.fetch(reports.request(origin.url("b"))) }
      let failure = try #require(error)
      #expect(failure.status == 404)
      #expect(reports.all.map(\.outcome) == [.completed, .completed, .cancelled, .failed(failure)])
    }
  }

  @Test("A program that collects no metrics has no counters")
  func noMetrics() { #expect(RequestCounters() == nil) }

  @Test("An empty body has no first byte")
  func emptyBody() async throws {
    try await Origin.use(.init(routes: ["/a": .init([])])) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a")))
      #expect(response.bodyByteCount == 0)
      let body = try await response.body.collect(upTo: 10)
      #expect(body.isEmpty)
      #expect(reports.all.map(\.timeToFirstByte) == [nil])
    }
  }

  @Test("The header fields of an answer are reported as they were sent")
  func fields() async throws {
    let headers: HTTPFields = [.cacheControl: "max-age=2", .age: "7", .via: "1.1 a", .via: "1.1 b"]
    try await Origin.use(.init(routes: ["/a": .init("a", headers: headers)])) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a")))
      _ = try await response.body.collect(upTo: 10)
      let metrics = try #require(reports.all.first)
      #expect(metrics.fields[.age] == "7")
      #expect(metrics.fields[.cacheControl] == "max-age=2")
      #expect(metrics.fields[values: .via] == ["1.1 a", "1.1 b"])
      #expect(metrics.closesConnection == false)
      #expect(metrics.failedAttemptCount == 0)
      #expect(metrics.connectTime != nil)
      #expect(metrics.answerTime.map { $0 > .zero } == true)
    }
  }

  @Test("The fields of a compressed body are those before decompression")
  func compressed() async throws {
    let route = Origin.Response("#EXTM3U\n", contentType: "application/vnd.apple.mpegurl")
    try await Origin.use(.init(routes: ["/a": route], faults: [FaultRule("a", .gzip)])) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a"), purpose: .manifest))
      #expect(try await response.body.collect(upTo: 1 << 20) == "#EXTM3U\n".bytes)
      let metrics = try #require(reports.all.first)
      #expect(metrics.fields[.contentEncoding] == "gzip")
      #expect(metrics.fields[.contentLength].flatMap { Int64($0) } == metrics.byteCount)
      #expect(metrics.fields[.contentType] == "application/vnd.apple.mpegurl")
    }
  }

  @Test("The head of a refusal is reported")
  func refusedHead() async throws {
    let route = Origin.Response("no", headers: [.init("X-Cache")!: "Error"], status: 403)
    try await Origin.use(.init(routes: ["/a": route])) { origin in
      let reports = Reports()
      _ = await reelError { _ = try await quickFetcher().fetch(reports.request(origin.url("a"))) }
      let name = try #require(HTTPField.Name("X-Cache"))
      #expect(reports.all.first?.fields[name] == "Error")
    }
  }

  @Test("Attempts that failed are counted")
  func failedAttempts() async throws {
    let faults = [FaultRule("a", .status(503), count: 2)]
    try await Origin.use(.init(routes: ["/a": .init("a")], faults: faults)) { origin in
      let reports = Reports()
      let fetcher = quickFetcher()
      for _ in 0..<2 {
        let response = try await fetcher.fetch(reports.request(origin.url("a")))
        _ = try await response.body.collect(upTo: 10)
      }
      #expect(reports.all.map(\.failedAttemptCount) == [2, 0])
      #expect(reports.all.map { $0.connectTime == nil } == [true, true])
    }
  }

  @Test(
    "An answer that ends its connection says so",
    arguments: [
      ("HTTP/1.1 200 OK", true, "Connection: close"), ("HTTP/1.0 200 OK", true, "Server: old"),
      ("HTTP/1.0 200 OK", false, "Connection: keep-alive"), ("HTTP/1.1 200 OK", false, "Server: new"),
    ])
  func closing(status: String, closes: Bool, field: String) async throws {
    try await ScriptedServer.use("\(status)\r\nContent-Length: 1\r\n\(field)\r\n\r\na") { url in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(url))
      _ = try await response.body.collect(upTo: 10)
      #expect(reports.all.map(\.closesConnection) == [closes])
    }
  }
}
