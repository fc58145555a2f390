import Foundation
import HTTPTypes
@testable import ReelCheck
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@Suite("Log of requests", .hangLimit)
struct RequestLogTests {
  @Test("Requests are recorded in order, with what came of them, and pass unchanged")
  func records() async throws {
    let routes: [String: Origin.Response] = [
      "/a.m3u8": .init("#EXTM3U\n", headers: [.age: "3"]),
      "/b.ts": .init(Array(repeating: 7, count: 5000)),
    ]
    let faults = [FaultRule("b.ts", .status(503), count: 1), FaultRule("c.ts", .redirectChain(1), count: 1)]
    try await Origin.use(.init(routes: routes, faults: faults)) { origin in
      let log = RequestLog(makeFetcher())
      let source = try await log.fetch(FetchRequest(url: origin.url("a.m3u8"), purpose: .source))
      #expect(try await source.body.collect(upTo: 100) == Array("#EXTM3U\n".utf8))
      log.endStart()
      let range = ByteRange(offset: 1000, length: 100)
      let part = try await log.fetch(FetchRequest(url: origin.url("b.ts"), range: range, purpose: .segment))
      #expect(try await part.body.collect(upTo: 1000).count == 100)
      await #expect(throws: ReelError.self) {
        try await log.fetch(FetchRequest(url: origin.url("none.ts"), purpose: .segment))
      }
      let requests = log.requests
      #expect(requests.map(\.url.lastPathComponent) == ["a.m3u8", "b.ts", "none.ts"])
      #expect(requests.map(\.isComplete) == [true, true, false])
      #expect(requests.map { $0.metrics?.status } == [200, 206, 404])
      #expect(requests[0].field("age") == "3")
      #expect(requests[1].failedAttempts.map(\.status) == [503])
      #expect(requests[2].failure?.status == 404)
      #expect(requests.allSatisfy { $0.ended != nil })
      #expect(log.sourceBeginning == Array("#EXTM3U\n".utf8))
      let waits = ServerWaits(requests)
      #expect(waits.wait(of: requests[0]) != nil)
    }
  }

  @Test("A body that the reader leaves is not complete, and no failure")
  func left() async throws {
    try await Origin.use(.init(routes: ["/a": .init(Array(repeating: 1, count: 500_000))])) { origin in
      let log = RequestLog(makeFetcher())
      do {
        let response = try await log.fetch(FetchRequest(url: origin.url("a"), purpose: .segment))
        response.body.close()
      }
      let request = try #require(log.requests.first)
      #expect(!request.isComplete)
      #expect(request.failure == nil)
      #expect(request.ended != nil)
    }
  }

  @Test("Of the requests after the start, a limited number is kept, and failed ones beyond it")
  func limit() async throws {
    try await Origin.use(.init(routes: ["/a": .init("a")])) { origin in
      let log = RequestLog(makeFetcher(), limit: 2)
      func fetch(_ path: String) async throws {
        let response = try await log.fetch(FetchRequest(url: origin.url(path), purpose: .segment))
        _ = try await response.body.collect(upTo: 10)
      }
      for _ in 0..<3 { try await fetch("a") }
      log.endStart()
      for _ in 0..<5 { try await fetch("a") }
      try? await fetch("none")
      #expect(log.requests.count == 3 + 2 + 1)
      #expect(log.requests.last?.failure?.status == 404)
    }
  }

  /// Answers with a body of a byte after stated waits, however slow this machine is.
  private struct Server: Fetching {
    var hasRanges = true
    /// In milliseconds; of the last one on, the same.
    let waits: [Int]
    private let count = Locked(0)

    init(hasRanges: Bool = true, waits: [Int]) {
      self.hasRanges = hasRanges
      self.waits = waits
    }

    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      let number = count.withLock { count in
        count += 1
        return count - 1
      }
      var metrics = RequestMetrics(url: request.url, purpose: request.purpose, requestCount: 1)
      (metrics.status, metrics.byteCount) = (hasRanges && request.range != nil ? 206 : 200, 1)
      metrics.answerTime = .milliseconds(waits[min(number, waits.count - 1)])
      metrics.fields = [.contentLength: "1"]
      let (report, body) = (request.report, Locked<[UInt8]?>([1]))
      return FetchResponse(
        url: request.url, contentType: nil, bodyOffset: 0, bodyByteCount: 1, resourceByteCount: nil,
        supportsRanges: hasRanges,
        body: FetchBody(onEnd: { [metrics] _ in report?(metrics) }) { body.withLock { $0.take() } })
    }
  }

  /// The names of the findings about a source on a server, which is asked what its start left open.
  private func probed(_ server: Server, _ name: String, format: String) async throws -> [String] {
    let log = RequestLog(server)
    let url = try #require(URL(string: "http://origin.example/\(name)"))
    let response = try await log.fetch(FetchRequest(url: url, purpose: .source))
    _ = try await response.body.collect(upTo: 10)
    var facts = StreamFacts()
    facts.format = format
    var thresholds = Thresholds()
    thresholds[.ttfbSlow] = 200
    try await ServerProbe(log: log, headers: SourceHeaders(of: nil), thresholds: thresholds)
      .run(facts)
    facts.requests = log.requests
    #expect(facts.requests.count == (format == "hls" ? 3 : 2))
    return TransportFindings.findings(in: facts, thresholds).map(\.name)
  }

  @Test(
    "Whether a file's server has ranges is asked, if no request has told it", arguments: [true, false])
  func ranges(hasRanges: Bool) async throws {
    let names = try await probed(Server(hasRanges: hasRanges, waits: [5]), "a.mp4", format: "mp4")
    #expect(names == (hasRanges ? [] : ["no-ranges"]))
  }

  @Test("One late answer is followed by others, to tell a slow server from a cold one")
  func slow() async throws {
    #expect(try await probed(Server(waits: [300, 5]), "a.m3u8", format: "hls") == ["ttfb-slow/cold"])
    #expect(try await probed(Server(waits: [300]), "a.m3u8", format: "hls") == ["ttfb-slow/manifest"])
  }
}
