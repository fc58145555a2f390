import Foundation
import HTTPTypes
import ReelCore
import ReelPool
import ReelSimulation
import ReelTestSupport
import Testing

/// The link brings a byte each microsecond, and a round trip takes 100 ms.
@Suite("A modelled link between a fetcher and who asks it", .hangLimit)
struct ThrottledFetcherTests {
  private let simulation = SimulatedRuntime()

  private func url(_ text: String) -> URL { URL(string: text) ?? URL(filePath: "/") }

  /// Milliseconds of the simulation's clock.
  private var now: Double { simulation.now / .milliseconds(1) }

  private func get(
    _ text: String, _ fetcher: ThrottledFetcher, purpose: FetchPurpose = .segment, range: ByteRange? = nil,
    method: HTTPRequest.Method = .get
  ) async throws -> (head: Double, bytes: [UInt8], end: Double, metrics: RequestMetrics?) {
    let metrics = Locked<RequestMetrics?>(nil)
    let response = try await fetcher.fetch(
      FetchRequest(method, url: url(text), range: range, purpose: purpose) { value in
        metrics.withLock { $0 = value }
      })
    let head = now
    let bytes = try await response.body.collect(upTo: 1 << 24)
    return (head, bytes, now, metrics.withLock { $0 })
  }

  @Test("A first request costs two round trips, https three, and the next one")
  func roundTrips() async throws {
    let fetcher = ThrottledFetcher(MemoryFetcher(), link: .tenth, in: simulation)
    let (first, second, third) = try await simulation.run {
      (
        try await get("http://a/1", fetcher), try await get("http://a/2", fetcher),
        try await get("https://a/1", fetcher)
      )
    }
    #expect(first.head == 200)
    #expect(first.end == 205)
    #expect(first.bytes == (0..<5000).map { UInt8(truncatingIfNeeded: $0) })
    #expect(first.metrics?.reusedConnection == false)
    #expect(first.metrics?.timeToFirstByte == .milliseconds(200) + .microseconds(1448))
    #expect(first.metrics?.transferTime == .microseconds(5000 - 1448))
    #expect(first.metrics?.byteCount == 5000)
    #expect(first.metrics?.status == 200)
    #expect(second.head == 305)
    #expect(second.metrics?.reusedConnection == true)
    #expect(third.head == 310 + 300)
    #expect(fetcher.transferCount == 0)
  }

  @Test("Beside the first request of a source a connection is opened ahead, and may be asked for")
  func ahead() async throws {
    let fetcher = ThrottledFetcher(MemoryFetcher(byteCount: 0), link: .tenth, in: simulation)
    let ends = try await simulation.run {
      _ = try await get("http://a/1", fetcher, purpose: .source)
      async let first = get("http://a/2", fetcher)
      async let second = get("http://a/3", fetcher)
      async let third = get("http://a/4", fetcher)
      let both = try await [first.end, second.end, third.end]
      fetcher.openConnection(to: url("https://b/"))
      try await simulation.sleep(for: .seconds(1))
      let begin = now
      return both + [try await get("https://b/1", fetcher).end - begin]
    }
    #expect(ends == [300, 300, 400, 100])
  }

  @Test("Files cross the link as well, data: URLs do not")
  func schemes() async throws {
    let fetcher = ThrottledFetcher(MemoryFetcher(), link: .tenth, in: simulation)
    let file = try await simulation.run { try await get("file:///a", fetcher) }
    #expect(file.end == 205)
    #expect(file.metrics?.status == nil)
    let data = try await simulation.run { try await get("data:,x", fetcher) }
    #expect(data.end == 205)
    #expect(data.bytes.count == 5000)
  }

  @Test("A part, a head, and nothing at all")
  func parts() async throws {
    let fetcher = ThrottledFetcher(MemoryFetcher(), link: .tenth, in: simulation)
    let part = try await simulation.run {
      try await get("http://a/1", fetcher, range: ByteRange(offset: 1000, length: 2000))
    }
    #expect(part.bytes == (1000..<3000).map { UInt8(truncatingIfNeeded: $0) })
    #expect(part.end == 202)
    #expect(part.metrics?.status == 206)
    let head = try await simulation.run { try await get("http://a/1", fetcher, method: .head) }
    #expect(head.end == 302)
    #expect(head.bytes.isEmpty)
    #expect(head.metrics?.byteCount == 0)
    let empty = ThrottledFetcher(MemoryFetcher(byteCount: 0), link: .tenth, in: simulation)
    let nothing = try await simulation.run { try await get("http://a/1", empty) }
    #expect(nothing.end == 502)
    #expect(nothing.metrics?.requestCount == 1)
    #expect(nothing.metrics?.timeToFirstByte == nil)
    // Their connections are kept.
    #expect(try await simulation.run { try await get("http://a/1", empty) }.end == 602)
  }

  @Test("A redirect costs another round trip, and a connection where it leads to another host")
  func redirects() async throws {
    let near = ThrottledFetcher(
      MemoryFetcher(byteCount: 0, target: url("http://a/other")), link: .tenth, in: simulation)
    let same = try await simulation.run { try await get("http://a/1", near) }
    #expect(same.end == 300)
    #expect(same.metrics?.redirectCount == 1)
    let far = ThrottledFetcher(
      MemoryFetcher(byteCount: 0, target: url("https://b/")), link: .tenth, in: simulation)
    let other = try await simulation.run { try await get("http://a/1", far) }
    #expect(other.end == 300 + 200 + 300)
    #expect(other.metrics?.requestCount == 2)
  }

  @Test(
    "What does not come for real has failed at the limit, and is not asked for again", arguments: [0, 3000])
  func overdue(count: Int) async throws {
    let base = HangingFetcher(byteCount: count)
    let fetcher = ThrottledFetcher(base, link: .tenth, in: simulation, limit: .seconds(8))
    let times = Locked<[Double]>([])
    try await simulation.run {
      for _ in 0..<2 {
        let error = await #expect(throws: ReelError.self) { try await get("http://a/1", fetcher) }
        #expect(error?.kind == .timedOut)
        #expect(error?.location == "http://a/1")
        times.withLock { $0.append(now) }
      }
    }
    // One round trip until it leaves, and the limit; where there is an answer, another one. No connection is left of it.
    #expect(times.withLock { $0 } == (count == 0 ? [8100, 16_200] : [200, 8300]))
    #expect(base.requestCount == 1)
  }

  @Test("A refusal comes after its round trips, and leaves its connection; a lost one does not")
  func errors() async throws {
    var base = MemoryFetcher()
    base.error = ReelError(.server, "404", at: nil, status: 404)
    let refused = ThrottledFetcher(base, link: .tenth, in: simulation)
    let times = Locked<[Double]>([])
    try await simulation.run {
      for _ in 0..<2 {
        await #expect(throws: ReelError.self) { try await get("http://a/1", refused) }
        times.withLock { $0.append(now) }
      }
    }
    #expect(times.withLock { $0 } == [200, 300])
    let broken = ThrottledFetcher(MemoryFetcher(byteCount: 9000, cut: 4000), link: .tenth, in: simulation)
    let counts = Locked<[Int]>([])
    try await simulation.run {
      for _ in 0..<2 {
        let response = try await broken.fetch(FetchRequest(url: url("http://a/1"), purpose: .segment))
        var iterator = response.body.makeAsyncIterator()
        let error = await #expect(throws: ReelError.self) {
          while let chunk = try await iterator.next() { counts.withLock { $0.append(chunk.count) } }
        }
        #expect(error?.kind == .network)
        times.withLock { $0.append(now) }
      }
    }
    // What has come before is given first.
    #expect(counts.withLock { $0.reduce(0, +) } == 8000)
    #expect(times.withLock { Array($0.suffix(2)) } == [504, 708])
  }

  @Test("What is cancelled ends at once, and takes its connection along")
  func cancellation() async throws {
    let fetcher = ThrottledFetcher(MemoryFetcher(byteCount: 1 << 20), link: .tenth, in: simulation)
    let reported = Locked<[Int64]>([])
    let task = simulation.throwingTask {
      let response = try await fetcher.fetch(
        FetchRequest(url: url("http://a/1"), purpose: .segment) { metrics in
          reported.withLock { $0.append(metrics.byteCount) }
        })
      _ = try await response.body.collect(upTo: 1 << 24)
    }
    await simulation.run(until: .milliseconds(250))
    #expect(fetcher.transferCount == 1)
    task.cancel()
    #expect(fetcher.transferCount == 0)
    await #expect(throws: CancellationError.self) { try await simulation.run { try await task.value } }
    #expect(reported.withLock { $0 } == [1448 * 34])
    let early = simulation.throwingTask { try await get("http://a/1", fetcher) }
    await simulation.run(until: .milliseconds(300))
    early.cancel()
    await #expect(throws: CancellationError.self) { try await simulation.run { try await early.value } }
    #expect(fetcher.transferCount == 0)
    let next = try await simulation.run {
      try await get("http://a/1", fetcher, range: ByteRange(offset: 0, length: 1))
    }
    #expect(next.metrics?.reusedConnection == false)
  }

  @Test("A body that is let go ends its transfer; one that nobody reads stops, and takes nothing from others")
  func unread() async throws {
    let fetcher = ThrottledFetcher(MemoryFetcher(byteCount: 1 << 20), link: .tenth, in: simulation)
    let end = try await simulation.run {
      let kept = try await fetcher.fetch(FetchRequest(url: url("http://a/1"), purpose: .segment))
      try await simulation.sleep(for: .seconds(5))
      let begin = now
      let other = try await get("http://b/1", fetcher, range: ByteRange(offset: 0, length: 10_000))
      #expect(other.end - begin == 210)
      let bytes = try await kept.body.collect(upTo: 1 << 24)
      #expect(bytes.count == 1 << 20)
      #expect(bytes == (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0) })
      // 256 KiB, up to a parcel's end, were there already; the rest came then.
      let there = (256 * 1024 + 1447) / 1448 * 1448
      #expect(abs(now - other.end - Double((1 << 20) - there) / 1000) < 0.001)
      _ = try await fetcher.fetch(FetchRequest(url: url("http://a/1"), purpose: .segment))
      #expect(fetcher.transferCount == 0)
      return now
    }
    #expect(end > 5000)
  }

  @Test("How the real bytes come is not seen")
  func evenness() async throws {
    var traces: [[String]] = []
    for chunkByteCount in [1, 333, 100_000] {
      let simulation = SimulatedRuntime()
      let fetcher = ThrottledFetcher(
        MemoryFetcher(byteCount: 150_000, chunkByteCount: chunkByteCount), link: .lte, in: simulation)
      let lines = Locked<[String]>([])
      try await simulation.run {
        let response = try await fetcher.fetch(FetchRequest(url: url("http://a/1"), purpose: .segment))
        for try await chunk in response.body {
          lines.withLock { $0.append("\(simulation.now) \(chunk.count)") }
        }
      }
      traces.append(lines.withLock { $0 })
    }
    try #require(traces.count > 2)
    #expect(traces[0].count > 100)
    #expect(traces[0] == traces[1])
    #expect(traces[0] == traces[2])
  }

  @Test("In real time nothing comes sooner than over the link, and all of it comes")
  func realTime() async throws {
    let link = try LinkSpec(bitsPerSecond: 40_000_000, roundTripTime: .milliseconds(5))
    let fetcher = ThrottledFetcher(MemoryFetcher(byteCount: 400_000), link: link)
    let clock = SystemMonotonicClock()
    let beginning = clock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          let began = clock.now
          let metrics = Locked<RequestMetrics?>(nil)
          let response = try await fetcher.fetch(
            FetchRequest(url: url("http://a/\(number)"), purpose: .segment) { value in
              metrics.withLock { $0 = value }
            })
          #expect(clock.now - began >= .milliseconds(10))
          let bytes = try await response.body.collect(upTo: 1 << 24)
          #expect(bytes == (0..<400_000).map { UInt8(truncatingIfNeeded: $0) })
          #expect(clock.now - began >= .milliseconds(10) + .milliseconds(80))
          #expect(metrics.withLock { $0 }?.byteCount == 400_000)
        }
      }
      try await group.waitForAll()
    }
    // Four of them share the link.
    #expect(clock.now - beginning >= .milliseconds(10) + .milliseconds(4 * 80))
    #expect(fetcher.transferCount == 0)
    let kept = try await fetcher.fetch(FetchRequest(url: url("http://a/1"), purpose: .segment))
    var iterator = kept.body.makeAsyncIterator()
    #expect(try await iterator.next() != nil)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      for try await _ in kept.body {}
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(fetcher.transferCount == 0)
  }
}

/// Never brings an answer, or never the bytes behind the first ones.
private final class HangingFetcher: Fetching {
  private let byteCount: Int
  private let requests = Locked(0)

  init(byteCount: Int) { self.byteCount = byteCount }

  var requestCount: Int { requests.withLock { $0 } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    requests.withLock { $0 += 1 }
    if byteCount == 0 { try await Task.sleep(for: .seconds(3600)) }
    let rest = Locked(byteCount)
    let body = FetchBody {
      let count = rest.withLock { $0.take() }
      if count == 0 { try await Task.sleep(for: .seconds(3600)) }
      return [UInt8](repeating: 1, count: count)
    }
    return FetchResponse(
      url: request.url, contentType: nil, bodyOffset: 0, bodyByteCount: 10_000, resourceByteCount: 10_000,
      supportsRanges: true, body: body)
  }
}

extension Int {
  /// The number, leaving 0 behind.
  fileprivate mutating func take() -> Int {
    defer { self = 0 }
    return self
  }
}

/// Answers in memory, by path.
struct MemoryFetcher: Fetching {
  var byteCount = 5000
  /// The body breaks off after so many bytes.
  var cut: Int?
  var chunkByteCount = 700
  var error: ReelError?
  /// Where requests are led to.
  var target: URL?

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    if let error { throw error }
    let start = Int(request.range?.offset ?? 0)
    let end = min(Int(request.range?.end ?? Int64(byteCount)), byteCount)
    let position = Locked(start)
    let (cut, chunkByteCount) = (cut, chunkByteCount)
    return FetchResponse(
      url: target ?? request.url, contentType: "text/plain", bodyOffset: Int64(start),
      bodyByteCount: Int64(end - start), resourceByteCount: Int64(byteCount), supportsRanges: true,
      body: FetchBody {
        try position.withLock { position in
          if let cut, position >= cut { throw ReelError(.network, "the connection was lost") }
          let next = min(position + chunkByteCount, min(end, cut ?? end))
          defer { position = next }
          return next == position ? nil : (position..<next).map { UInt8(truncatingIfNeeded: $0) }
        }
      })
  }
}
