import Foundation
import HTTPTypes
import ReelCore
import ReelPool
import ReelSimulation
import ReelTestSupport
import Testing

/// The link brings a byte each microsecond, and a round trip takes 100 ms. Each resource has 5000 bytes.
@Suite("A cache on a modelled disk", .hangLimit)
struct SimulatedCacheTests {
  private let simulation = SimulatedRuntime()
  private let disk: SimulatedDisk
  private let link: LoggedFetcher
  private let cache: SimulatedCache

  init() throws { try self.init(byteLimit: 1 << 30) }

  private init(byteLimit: Int64) throws {
    disk = SimulatedDisk(byteLimit: byteLimit)
    link = LoggedFetcher(
      ThrottledFetcher(
        MemoryFetcher(), link: try LinkSpec(parsing: "8Mbit/100ms"), in: simulation))
    cache = try SimulatedCache(on: disk, inFrontOf: link, source: MemoryFetcher(), in: simulation)
  }

  private func request(
    _ name: String, _ range: ByteRange? = nil, purpose: FetchPurpose = .segment
  ) throws -> FetchRequest {
    FetchRequest(url: try #require(URL(string: "http://a/\(name)")), range: range, purpose: purpose)
  }

  /// The bytes of an answer, how many of them were stored, the requests that it took, and its time in milliseconds.
  private func get(
    _ request: FetchRequest
  ) async throws -> (bytes: [UInt8], storedCount: Int64, requestCount: Int, time: Double) {
    try await simulation.run { [simulation, cache] in
      let began = simulation.now
      let response = try await cache.fetch(request)
      let bytes = try await response.body.collect(upTo: 1 << 20)
      return (
        bytes, response.storedByteCount?() ?? 0, response.requestCount,
        (simulation.now - began) / .milliseconds(1)
      )
    }
  }

  private func bytes(_ range: Range<Int>) -> [UInt8] { range.map { UInt8(truncatingIfNeeded: $0) } }

  @Test("What was fetched comes from the disk, without a request")
  func again() async throws {
    #expect(!cache.stores(try request("1")))
    let first = try await get(try request("1"))
    #expect(first.bytes == bytes(0..<5000) && first.storedCount == 0 && first.requestCount == 1)
    #expect(cache.storedByteCount == 5000)
    #expect(cache.stores(try request("1")))
    let again = try await get(try request("1"))
    #expect(again.bytes == first.bytes && again.storedCount == 5000 && again.requestCount == 0)
    #expect(again.time > 0 && again.time < 1)
    #expect(link.ranges == ["all"])
  }

  @Test("Of a resource that is stored in part, only the rest is fetched")
  func parts() async throws {
    let part = try await get(try request("1", ByteRange(offset: 1000, length: 2000)))
    #expect(part.bytes == bytes(1000..<3000))
    #expect(!cache.stores(try request("1")))
    let whole = try await get(try request("1"))
    #expect(whole.bytes == bytes(0..<5000) && whole.storedCount == 2000)
    #expect(link.ranges == ["1000+2000", "0+1000", "3000+2000"])
    let end = try await get(try request("1", ByteRange(offset: 2500, length: nil)))
    #expect(end.bytes == bytes(2500..<5000) && end.requestCount == 0)
  }

  @Test("What a cancelled transfer brought stays")
  func cancelled() async throws {
    let count = try await simulation.run { [cache] in
      let response = try await cache.fetch(try request("1"))
      let chunk = try await response.body.next()
      response.body.close()
      return chunk?.count ?? 0
    }
    #expect(count > 0 && count < 5000 && cache.storedByteCount == Int64(count))
    #expect(try await get(try request("1")).bytes == bytes(0..<5000))
    #expect(link.ranges == ["all", "\(count)+\(5000 - count)"])
  }

  @Test("Beyond the limit, what was not used for the longest time goes first, from its end on")
  func limit() async throws {
    let small = try SimulatedCacheTests(byteLimit: 8000)
    _ = try await small.get(try request("1"))
    _ = try await small.get(try request("2"))
    #expect(small.cache.storedByteCount == 8000)
    #expect(small.cache.stores(try request("2")))
    #expect(small.cache.stores(try request("1", ByteRange(offset: 2999, length: 1))))
    #expect(!small.cache.stores(try request("1", ByteRange(offset: 3000, length: 1))))
    await small.cache.trim(toByteCount: 4000)
    #expect(small.cache.storedByteCount == 4000)
    #expect(!small.cache.stores(try request("1")))
    #expect(small.cache.stores(try request("2", ByteRange(offset: 3999, length: 1))))
  }

  @Test("After a day, media costs a round trip, and a manifest does so each time")
  func lifetime() async throws {
    _ = try await get(try request("1"))
    _ = try await get(try request("2", purpose: .manifest))
    disk.endVisit(after: .seconds(86_400 + 60))
    #expect(!cache.stores(try request("1")))
    let later = try await get(try request("1"))
    #expect(later.bytes == bytes(0..<5000) && later.storedCount == 5000 && later.requestCount == 1)
    #expect(later.time >= 100 && later.time < 110)
    // It is fresh again.
    #expect(try await get(try request("1")).requestCount == 0)
    for _ in 0..<2 {
      let manifest = try await get(try request("2", purpose: .manifest))
      #expect(manifest.storedCount == 5000 && manifest.requestCount == 1 && manifest.time >= 100)
    }
    #expect(link.ranges == ["all", "all", "0+1", "0+1", "0+1"])
  }

  @Test("What a manifest of an item leads to is asked about with it")
  func askedAhead() async throws {
    let requests = [
      try request("1", purpose: .manifest), try request("2", purpose: .manifest), try request("3"),
    ]
    func visit(_ item: FeedItem.ID?) async throws -> [Bool] {
      disk.endVisit(after: .seconds(86_400 + 60))
      return try await RequestOwner.$item.withValue(item) {
        var waits: [Bool] = []
        for request in requests {
          let answer = try await get(request)
          #expect(answer.storedCount == 5000 && answer.requestCount == 1)
          waits.append(answer.time >= 100)
        }
        return waits
      }
    }
    for request in requests { _ = try await get(request) }
    #expect(try await visit(FeedItem.ID(feed: "feed", source: "a")) == [true, false, false])
    #expect(try await visit(nil) == [true, true, true])
  }

  @Test("Keys, and what was requested with credentials, are not stored")
  func secrets() async throws {
    var personal = try request("2")
    personal.headers[.authorization] = "Bearer x"
    for _ in 0..<2 {
      _ = try await get(try request("1", purpose: .key))
      _ = try await get(personal)
    }
    #expect(cache.storedByteCount == 0 && link.ranges.count == 4)
  }
}

/// Notes the ranges of requests.
private final class LoggedFetcher: Fetching {
  private let base: any Fetching
  private let log = Locked<[String]>([])

  init(_ base: any Fetching) { self.base = base }

  var ranges: [String] { log.withLock { $0 } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let text = request.range.map { "\($0.offset)+\($0.length.map(String.init) ?? "")" } ?? "all"
    log.withLock { $0.append(text) }
    return try await base.fetch(request)
  }
}
