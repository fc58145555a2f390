import Foundation
import HTTPTypes
import ReelCore
@testable import ReelTesting
import ReelTransport
import ReelTestSupport
import Testing

@Suite("Retries and resumption", .hangLimit)
struct RetryTests {
  let bytes = pattern(200_000)

  private func origin(_ faults: [FaultRule], ranges: Bool = true) -> Origin.Configuration {
    Origin.Configuration(routes: ["/a": .init(bytes)], faults: faults, supportsRanges: ranges)
  }

  @Test("A status that may pass is tried again", arguments: [408, 425, 429, 500, 502, 503, 504])
  func transientStatus(status: Int) async throws {
    try await Origin.use(origin([FaultRule("a", .status(status), count: 2)])) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a")))
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == bytes)
      #expect(reports.all.map(\.requestCount) == [3])
      #expect(reports.all.map(\.status) == [200])
      #expect(origin.snapshot.acceptedConnectionCount == 1)
    }
  }

  @Test("Each attempt that is repeated is told while it is, and the last one is thrown")
  func failedAttempts() async throws {
    let faults = [FaultRule("a", .status(503), count: 2), FaultRule("a", .close(after: 40_000), count: 1)]
    try await Origin.use(origin(faults)) { origin in
      let (told, statuses) = (Locked<[ReelError]>([]), Locked<[Int?]>([]))
      var request = FetchRequest(url: origin.url("a"), purpose: .segment)
      request.recordFailedAttempt = { error, status in
        told.withLock { $0.append(error) }
        statuses.withLock { $0.append(status) }
      }
      let response = try await quickFetcher().fetch(request)
      #expect(told.withLock { $0.map(\.status) } == [503, 503])
      #expect(try await response.body.collect(upTo: 1 << 20) == bytes)
      #expect(told.withLock { $0.map(\.kind) } == [.server, .server, .network])
      // The answer that broke off had a status too.
      #expect(statuses.withLock { $0 } == [503, 503, 200])
      #expect(told.withLock { $0.allSatisfy { $0.location == origin.url("a").absoluteString } })
    }
    try await Origin.use(origin([FaultRule("a", .status(404))])) { origin in
      let told = Locked<[ReelError]>([])
      var request = FetchRequest(url: origin.url("a"), purpose: .segment)
      request.recordFailedAttempt = { error, _ in told.withLock { $0.append(error) } }
      let error = await reelError { _ = try await quickFetcher().fetch(request) }
      #expect(error?.status == 404)
      #expect(told.withLock { $0.isEmpty })
    }
  }

  @Test("The budget ends, and the error tells the status")
  func lastingStatus() async throws {
    try await Origin.use(origin([FaultRule("a", .status(500))])) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a")) }
      #expect(error?.kind == .server)
      #expect(error?.reason == "500 Internal Server Error (4 requests)")
      #expect(error?.status == 500)
      #expect(error?.isTemporary == true)
      #expect(origin.requestLog.count == 4)
    }
  }

  @Test("Retry-After is waited for")
  func retryAfter() async throws {
    let fault = Fault.status(429, headers: [.retryAfter: "1"])
    try await Origin.use(origin([FaultRule("a", fault, count: 1)])) { origin in
      let body = try await quickFetcher().bytes(origin.url("a"))
      #expect(body == bytes)
      let arrivals = origin.requestLog.map(\.arrival)
      try #require(arrivals.count == 2)
      #expect(arrivals[1] - arrivals[0] >= .milliseconds(990))
    }
  }

  @Test("A server that asks for too long a pause gets no second request")
  func longRetryAfter() async throws {
    let fault = Fault.status(503, headers: [.retryAfter: "3600"])
    try await Origin.use(origin([FaultRule("a", fault)])) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a")) }
      #expect(error?.reason == "503 Service Unavailable")
      #expect(error?.advice == "the server asks to come back in 3600 s")
      #expect(origin.requestLog.count == 1)
    }
  }

  @Test("A refused connection ends soon, and says so")
  func refused() async throws {
    let origin = try await Origin.start(.init())
    let url = origin.url("a")
    await origin.stop()
    let reports = Reports()
    let error = await reelError { _ = try await TransportFetcher().fetch(reports.request(url)) }
    #expect(error?.kind == .network)
    #expect(error?.reason == "connection refused")
    #expect(error?.location == url.absoluteString)
    #expect(reports.all.map(\.requestCount) == [3])
    #expect(reports.all.map(\.status) == [nil])
  }

  @Test("A name without an address ends at once, and says so")
  func unknownHost() async throws {
    // A label of more than 63 letters is no name, so nobody is asked for it.
    let host = String(repeating: "a", count: 70) + ".invalid"
    let url = try #require(URL(string: "http://\(host)/a"))
    let error = await reelError { _ = try await quickFetcher().bytes(url) }
    #expect(error?.kind == .network)
    #expect(error?.reason == "no such host: no address for \(host)")
    #expect(error?.isTemporary == false)
  }

  @Test(
    "A transfer that breaks goes on at the byte where it broke",
    arguments: [Fault.close(after: 40_000), .close(after: 0), .reset(after: 40_000), .reset(after: 0)])
  func resumption(fault: Fault) async throws {
    try await Origin.use(origin([FaultRule("a", fault, count: 1)])) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a")))
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == bytes)
      let log = origin.requestLog
      try #require(log.count == 2)
      let metrics = try #require(reports.all.first)
      #expect(metrics.requestCount == 2)
      // With a reset the client may lose what it has not read yet.
      if case .close(40_000) = fault {
        #expect(metrics.byteCount == 200_000)
        #expect(log[1].range == "bytes=40000-199999")
        #expect(log[1].header("If-Range") != nil)
        #expect(log[1].status == 206)
        #expect(log[1].bodyBytesSent == 160_000)
      }
    }
  }

  @Test("A broken part goes on within the part")
  func resumptionOfPart() async throws {
    try await Origin.use(origin([FaultRule("a", .close(after: 1_000), count: 2)])) { origin in
      let range = ByteRange(offset: 50_000, length: 20_000)
      let expected = Array(bytes[50_000..<70_000])
      let body = try await quickFetcher().bytes(origin.url("a"), range: range)
      #expect(body == expected)
      #expect(
        origin.requestLog.map(\.range) == ["bytes=50000-69999", "bytes=51000-69999", "bytes=52000-69999"])
    }
  }

  @Test("A server without ranges sends all again, and what is known is skipped")
  func resumptionWithoutRanges() async throws {
    try await Origin.use(origin([FaultRule("a", .close(after: 40_000), count: 1)], ranges: false)) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a")))
      let body = try await response.body.collect(upTo: 1 << 20)
      #expect(body == bytes)
      #expect(reports.all.map(\.byteCount) == [240_000])
      #expect(origin.requestLog.map(\.status) == [200, 200])
    }
  }

  @Test("A part from a server that forgot its ranges ends where the part does")
  func resumptionWithWhole() async throws {
    let faults = [FaultRule("a", .close(after: 1_000), count: 1), FaultRule("a", .ignoreRange, count: 1)]
    try await Origin.use(origin(faults)) { origin in
      let range = ByteRange(offset: 50_000, length: 20_000)
      let expected = Array(bytes[50_000..<70_000])
      let body = try await quickFetcher().bytes(origin.url("a"), range: range)
      #expect(body == expected)
      #expect(origin.requestLog.map(\.status) == [206, 200])
    }
  }

  @Test("A body that stands still is continued")
  func resumptionAfterStall() async throws {
    try await Origin.use(origin([FaultRule("a", .stall(after: 40_000), count: 1)])) { origin in
      let fetcher = quickFetcher(idleTimeout: .seconds(10))
      let body = try await fetcher.bytes(origin.url("a"))
      #expect(body == bytes)
      #expect(origin.requestLog.last?.range == "bytes=40000-199999")
    }
  }

  @Test("A server that breaks off again and again, after some bytes each time, brings all in the end")
  func progress() async throws {
    let long = pattern(700_000)
    let origin = Origin.Configuration(
      routes: ["/a": .init(long)], faults: [FaultRule("a", .close(after: 70_000))])
    try await Origin.use(origin) { origin in
      let bytes = try await quickFetcher(attempts: 1).bytes(origin.url("a"))
      #expect(bytes == long)
      #expect(origin.requestLog.count == 10)
    }
  }

  @Test("Where nothing new comes, as the server knows no ranges, breaks use up the budget all the same")
  func noProgress() async throws {
    try await Origin.use(origin([FaultRule("a", .close(after: 70_000))], ranges: false)) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a")) }
      #expect(error?.kind == .network)
      // The first one brings something.
      #expect((4...5).contains(origin.requestLog.count))
    }
  }

  @Test("Breaks use up the budget, and the error tells how far it came")
  func lastingBreak() async throws {
    try await Origin.use(origin([FaultRule("a", .close(after: 1_000))])) { origin in
      let reports = Reports()
      let response = try await quickFetcher().fetch(reports.request(origin.url("a")))
      let error = await reelError { _ = try await response.body.collect(upTo: 1 << 20) }
      #expect(error?.kind == .network)
      #expect(error?.reason == "connection closed by the server after 4000 of 200000 bytes (4 requests)")
      #expect(error?.location == origin.url("a").absoluteString)
      #expect(reports.all.map(\.byteCount) == [4_000])
    }
  }

  @Test(
    "What has come before a server closes is kept, however late it is read",
    arguments: [1, 40_000, 100_000, 150_001])
  func bytesBeforeClose(count: Int) async throws {
    try await Origin.use(origin([FaultRule("a", .close(after: Int64(count)))])) { origin in
      let response = try await quickFetcher(attempts: 0).fetch(Reports().request(origin.url("a")))
      try await until { origin.snapshot.openConnectionCount == 0 }
      var come: [UInt8] = []
      let error = await reelError { for try await chunk in response.body { come += chunk } }
      #expect(error?.reason.hasPrefix("connection closed by the server after \(count) of 200000") == true)
      #expect(come == Array(bytes.prefix(count)))
    }
  }

  @Test("A Content-Length that is too large is a broken transfer")
  func tooLargeContentLength() async throws {
    let route = Origin.Response(pattern(40_000))
    let faults = [FaultRule("a", .contentLength(by: 100))]
    try await Origin.use(.init(routes: ["/a": route], faults: faults, supportsRanges: false)) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a")) }
      #expect(error?.kind == .network)
      #expect(error?.reason == "connection closed by the server after 40000 of 40100 bytes (4 requests)")
    }
  }

  @Test("A Content-Length that is too small cuts the body")
  func tooSmallContentLength() async throws {
    try await Origin.use(origin([FaultRule("a", .contentLength(by: -100))])) { origin in
      let expected = Array(bytes.dropLast(100))
      let body = try await quickFetcher().bytes(origin.url("a"))
      #expect(body == expected)
    }
  }

  @Test("Bytes of another version are not put behind those of the first")
  func changedResource() async throws {
    let other = pattern(200_001)
    try await Origin.use(origin([FaultRule("a", .close(after: 40_000), count: 1)])) { origin in
      let response = try await quickFetcher().fetch(FetchRequest(url: origin.url("a"), purpose: .segment))
      origin.setRoute("/a", .init(other))
      let error = await reelError { _ = try await response.body.collect(upTo: 1 << 20) }
      #expect(error?.kind == .network)
      #expect(error?.reason.hasPrefix("the resource changed after 40000 bytes") == true)
    }
  }

  @Test("A compressed body that breaks is an error once bytes of it were given out")
  func brokenCompressedBody() async throws {
    let whole = StoredGzip.encode(bytes)
    let route = Origin.Response(whole, headers: [.contentEncoding: "gzip"])
    let faults = [FaultRule("a", .close(after: 0), count: 1), FaultRule("a", .close(after: 150_000))]
    try await Origin.use(.init(routes: ["/a": route], faults: faults)) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a"), purpose: .manifest) }
      #expect(error?.kind == .network)
      #expect(error?.reason.hasPrefix("connection closed by the server after ") == true)
      #expect(origin.requestLog.count == 2)
    }
  }

  @Test("Compressed data that is none is an error")
  func corruptCompressedBody() async throws {
    let route = Origin.Response("<MPD/>", headers: [.contentEncoding: "gzip"])
    try await Origin.use(.init(routes: ["/a": route])) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a"), purpose: .manifest) }
      #expect(error?.kind == .server)
      #expect(error?.reason == "its compressed data is damaged")
      #expect(error?.isTemporary == false)
      #expect(origin.requestLog.count == 1)
    }
  }
}
