import Foundation
import HTTPTypes
import ReelCore
import ReelTestSupport
import ReelTesting
import ReelTransport
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("A remote file as a demuxer reads it", .hangLimit)
struct ResourceByteSourceTests {
  private static let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 24) }

  /// What stands at `offset`.
  private static func read(_ source: ResourceByteSource, at offset: Int) throws {
    try source.seek(to: Int64(offset))
    var buffer = [UInt8](repeating: 0, count: 1000)
    let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
    #expect(count > 0)
    #expect(buffer.prefix(count).elementsEqual(bytes[offset..<offset + count]))
  }

  /// A source of which nothing has been read. To be called on a thread that may block.
  private static func source(
    at url: URL, _ fetcher: any Fetching, scope: LoadScope, spoolByteLimit: Int64 = .max
  ) throws -> ResourceByteSource {
    ResourceByteSource(
      response: try BlockingThread.wait(scope: scope) {
        try await fetcher.fetch(FetchRequest(url: url, purpose: .source))
      }, read: [], isSeekable: true, fetcher: fetcher, scope: scope,
      recorder: StartupRecorder(clock: SystemMonotonicClock()), spoolByteLimit: spoolByteLimit)
  }

  @Test("A transfer that was left waits, until all of the reading goes elsewhere")
  func leaving() async throws {
    let fetcher = FixtureFetcher { _, _ in .bytes(Self.bytes) }
    let url = try #require(URL(string: "http://fixtures.test/a.bin"))
    let scope = LoadScope()
    try await BlockingThread.run(named: "test") {
      let source = try Self.source(at: url, fetcher, scope: scope)
      let wait = { (count: Int) in
        while fetcher.heldCount != count { sched_yield() }
      }
      try Self.read(source, at: 0)
      try Self.read(source, at: 800_000)
      wait(2)
      // Back to the first, and to the other again.
      try Self.read(source, at: 60_000)
      try Self.read(source, at: 801_000)
      #expect(fetcher.requests.count == 2)
      wait(2)
      source.leave()
      try Self.read(source, at: 400_000)
      wait(1)
      #expect(fetcher.requests.count == 3)
      source.leave()
      // That one is there.
      try Self.read(source, at: 410_000)
      wait(1)
      #expect(fetcher.requests.count == 3)
    }
    scope.cancel()
    try await until { fetcher.heldCount == 0 }
  }

  @Test("After a transfer that has failed, the rest is asked for anew")
  func failed() async throws {
    let fetcher = FixtureFetcher { _, number in number == 0 ? .cut(5000) : .none }
    let url = try #require(URL(string: "http://fixtures.test/media/h264.ts"))
    let scope = LoadScope()
    let expected = try Fixtures.bytes("media/h264.ts")
    try await BlockingThread.run(named: "test") {
      let source = try Self.source(at: url, fetcher, scope: scope)
      var come: [UInt8] = []
      var failureCount = 0
      while come.count < expected.count {
        do {
          let chunk = try withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            let count = try source.read(into: buffer)
            return Array(buffer.prefix(count))
          }
          come += chunk
        } catch {
          failureCount += 1
          try #require(failureCount < 10)
        }
      }
      #expect(come == Array(expected))
      #expect(failureCount == 1)
    }
    #expect(fetcher.requests.map { $0.range?.offset } == [nil, 5000])
  }

  @Test("A transfer that fails before the place that is read is not used again")
  func failedBefore() async throws {
    let fetcher = FixtureFetcher { _, number in number == 0 ? .cut(5000) : .none }
    let url = try #require(URL(string: "http://fixtures.test/media/h264.ts"))
    let scope = LoadScope()
    let expected = try Fixtures.bytes("media/h264.ts")
    try await BlockingThread.run(named: "test") {
      let source = try Self.source(at: url, fetcher, scope: scope)
      try source.seek(to: 20_000)
      var buffer = [UInt8](repeating: 0, count: 100)
      #expect(throws: ReelError.self) { try buffer.withUnsafeMutableBytes { try source.read(into: $0) } }
      let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
      #expect(count > 0)
      #expect(buffer.prefix(count).elementsEqual(expected[20_000..<20_000 + count]))
    }
    #expect(fetcher.requests.map { $0.range?.offset } == [nil, 20_000])
  }

  @Test("A range of a resource that has another size by now is an error")
  func changed() async throws {
    try await Self.useRemote(supportsRanges: true) { source, origin in
      try Self.read(source, at: 0)
      origin.setRoute("/a.bin", .init(Array(Self.bytes.prefix(700_000))))
      let error = #expect(throws: ReelError.self) { try Self.read(source, at: 600_000) }
      #expect(error?.reason == "the resource changed: it had 1000000 bytes, and now has 700000")
    }
  }

  @Test("Requests are told, and bytes as they come")
  func traffic() async throws {
    let fetcher = FixtureFetcher { _, _ in .bytes(Self.bytes) }
    let url = try #require(URL(string: "http://fixtures.test/a.bin"))
    let scope = LoadScope()
    let counts = Locked((requests: 0, bytes: 0))
    try await BlockingThread.run(named: "test") {
      let response = try BlockingThread.wait(scope: scope) {
        try await fetcher.fetch(FetchRequest(url: url, purpose: .source))
      }
      let head = try BlockingThread.wait(scope: scope) { try await response.body.next() ?? [] }
      let source = ResourceByteSource(
        response: response, read: head, isSeekable: true, fetcher: fetcher, scope: scope,
        recorder: StartupRecorder(clock: SystemMonotonicClock()),
        recordTraffic: { requests, bytes in
          counts.withLock { counts in
            counts.requests += requests
            counts.bytes += bytes
          }
        })
      #expect(counts.withLock { $0.requests } == 1)
      #expect(counts.withLock { $0.bytes } >= head.count)
      // All of it, and from another place on.
      var buffer = [UInt8](repeating: 0, count: 64 << 10)
      for start in [0, 900_000] as [Int64] {
        try source.seek(to: start)
        while try buffer.withUnsafeMutableBytes({ try source.read(into: $0) }) > 0 {}
      }
      #expect(counts.withLock { $0 } == (2, Self.bytes.count + 100_000))
    }
    scope.cancel()
    try await until { fetcher.heldCount == 0 }
  }

  /// Runs `body` on a thread of its own with a source of all the bytes from an origin.
  ///
  /// - Parameter supportsRanges: False if the origin ignores ranges, although it says that it supports them.
  private static func useRemote(
    supportsRanges: Bool = false, spoolByteLimit: Int64 = .max,
    _ body: @escaping @Sendable (ResourceByteSource, Origin) throws -> Void
  ) async throws {
    let configuration: Origin.Configuration =
      supportsRanges ? .init(routes: ["/a.bin": .init(bytes)]) : .ignoringRanges(of: bytes, at: "/a.bin")
    try await Origin.use(configuration) { origin in
      let scope = LoadScope()
      defer { scope.cancel() }
      try await BlockingThread.run(named: "test") {
        let fetcher = makeFetcher(connectionsAhead: 0)
        let source = try Self.source(
          at: origin.url("a.bin"), fetcher, scope: scope, spoolByteLimit: spoolByteLimit)
        try body(source, origin)
      }
    }
  }

  @Test(
    "A server that ignores ranges, from the first or after one that it sent, is asked for the file once",
    arguments: [false, true])
  func ignoredRanges(first: Bool) async throws {
    try await Self.useRemote(supportsRanges: first) { source, origin in
      #expect(source.isSeekable)
      try Self.read(source, at: 0)
      if first {
        try Self.read(source, at: 600_000)
        origin.setFaults([FaultRule("a.bin", .ignoreRange)])
      }
      for offset in [800_000, 1_000, 200_000, 999_500, 100_000, 799_500] {
        try Self.read(source, at: offset)
      }
      try source.seek(to: Int64(Self.bytes.count))
      var end: [UInt8] = [0]
      #expect(try end.withUnsafeMutableBytes { try source.read(into: $0) } == 0)
      #expect(origin.requestLog.map(\.status) == (first ? [200, 206, 200] : [200, 200]))
    }
  }

  @Test("Planned ranges from a server that ignores them")
  func ignoredPlannedRanges() async throws {
    try await Self.useRemote { source, _ in
      try Self.read(source, at: 0)
      let offsets = [300_000, 600_000, 200_000, 900_000]
      source.plan(offsets.map { Int64($0)..<Int64($0 + 1_000) })
      for offset in offsets { try Self.read(source, at: offset) }
      try Self.read(source, at: 500_000)
    }
  }

  @Test("A file that is too large to keep is a lasting error")
  func ignoredRangesOfLargeFile() async throws {
    try await Self.useRemote(spoolByteLimit: 900_000) { source, _ in
      try Self.read(source, at: 0)
      let error = #expect(throws: ReelError.self) { try Self.read(source, at: 800_000) }
      #expect(error?.reason == "the server ignores byte ranges, and the file is too large to keep")
      #expect(error?.isTemporary == false)
    }
  }
}
