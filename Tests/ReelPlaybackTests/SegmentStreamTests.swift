import Foundation
import HTTPTypes
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@testable import ReelReading
@testable import ReelSources

/// Three segments of fragmented MP4, as one stream of bytes.
@Suite(.hangLimit) struct SegmentStreamTests {
  private func segments() throws -> SegmentList {
    let folder = try #require(URL(string: "http://host/hls-fmp4/high/"))
    let map = InitializationReference(url: folder.appending(path: "init.mp4"))
    let second = MediaTime(value: 1, timescale: 1)
    return SegmentList(
      (0..<3).map { index in
        SegmentReference(
          number: Int64(index), url: folder.appending(path: "segment-\(index).m4s"),
          start: second * Int64(index),
          duration: second, initialization: map)
      })
  }

  private func bytes(_ names: String...) throws -> [UInt8] {
    try names.flatMap { try Fixtures.bytes("hls-fmp4/high/\($0)") }
  }

  /// Reads a stream on a thread of its own.
  private func reading<Result: Sendable>(
    with fetcher: FixtureFetcher, readsAhead: Bool = false, endsBefore last: Int64 = .max,
    byteRate: Int64 = 64 << 20,
    _ body: @escaping @Sendable (SegmentStream) throws -> Result
  ) async throws -> Result {
    let list = try segments()
    let loader = SegmentLoader(
      fetcher: fetcher, keys: KeyStore(fetcher: fetcher),
      location: ServiceLocation(),
      recorder: StartupRecorder(), byteRate: byteRate, recordDamage: { error, _ in Issue.record(error) })
    let track = RungTrack(
      rung: Rung(id: "0", bitsPerSecond: nil, media: .segments(list)), supply: .list(list), loader: loader)
    return try await BlockingThread.run(named: "test") {
      try body(
        SegmentStream(
          track, from: 0, list[0], readsAhead: readsAhead, scope: LoadScope(),
          options: SegmentDownload.Options(), goesOn: { $0.number < last }))
    }
  }

  /// Reads at most `count` bytes.
  @discardableResult
  private static func read(_ stream: SegmentStream, upTo count: Int = .max) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let wanted = min(4096, count - bytes.count)
      let isEnd = try withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 1) { buffer in
        let count = try stream.read(into: buffer)
        bytes.append(contentsOf: buffer.prefix(count))
        return count == 0
      }
      if isEnd { break }
    }
    return bytes
  }

  private func names(_ fetcher: FixtureFetcher) -> [String] { fetcher.requests.map(\.url.lastPathComponent) }

  @Test func `Initialization and first segment are requested together, later segments when they are wanted`()
    async throws
  {
    let fetcher = FixtureFetcher()
    let first = try bytes("init.mp4", "segment-0.m4s")
    let (opening, rest) = try await reading(with: fetcher) { stream in
      let opening = try Self.read(stream, upTo: first.count)
      #expect(fetcher.requests.count == 2)
      return (opening, try Self.read(stream))
    }
    #expect(opening == first)
    #expect(try rest == bytes("segment-1.m4s", "segment-2.m4s"))
    #expect(names(fetcher) == ["init.mp4", "segment-0.m4s", "segment-1.m4s", "segment-2.m4s"])
  }

  @Test func `One segment is requested ahead, once the current one arrives`() async throws {
    let fetcher = FixtureFetcher()
    let first = try bytes("init.mp4").count
    try await reading(with: fetcher, readsAhead: true) { stream in
      try Self.read(stream, upTo: first)
      #expect(fetcher.requests.count == 2)
      try Self.read(stream, upTo: 1)
    }
    try await until { fetcher.requests.count == 3 }
    #expect(names(fetcher).last == "segment-1.m4s")
  }

  @Test func `A span ends where it should not go on`() async throws {
    let fetcher = FixtureFetcher()
    let (read, next) = try await reading(with: fetcher, endsBefore: 1) { (try Self.read($0), $0.nextIndex) }
    #expect(try read == bytes("init.mp4", "segment-0.m4s"))
    #expect(next == 1)
    #expect(fetcher.requests.count == 2)
  }

  @Test(arguments: [false, true])
  func `A segment that fails before its first byte ends the stream, and all before it is read`(
    readsAhead: Bool
  ) async throws {
    let fetcher = FixtureFetcher { request, _ in
      request.url.lastPathComponent == "segment-1.m4s"
        ? .error(ReelError(.server, "404", status: 404)) : .none
    }
    let (read, failure, next, hasFailed) = try await reading(with: fetcher, readsAhead: readsAhead) {
      stream in
      (try Self.read(stream), stream.failure, stream.nextIndex, stream.hasFailed)
    }
    #expect(try read == bytes("init.mp4", "segment-0.m4s"))
    #expect(failure?.status == 404)
    #expect(next == 1)
    #expect(!hasFailed)
  }

  @Test func `A failure of the first segment, or after some bytes, is thrown`() async throws {
    let error = ReelError(.network, "lost")
    for (name, fault) in [
      ("init.mp4", FixtureFetcher.Fault.error(error)), ("segment-0.m4s", .error(error)),
      ("segment-1.m4s", .endless(error, after: 9000)),
    ] {
      let fetcher = FixtureFetcher { request, _ in request.url.lastPathComponent == name ? fault : .none }
      let (thrown, failure, url) = try await reading(with: fetcher) { stream in
        let thrown = #expect(throws: ReelError.self) { try Self.read(stream) }
        return (thrown, stream.failure, stream.lastURL)
      }
      #expect(thrown?.kind == .network)
      #expect(failure == nil)
      #expect(url?.lastPathComponent == name)
    }
  }

  @Test func `A segment that does not end is cut off with an error`() async throws {
    let (first, count) = try (bytes("init.mp4").count, bytes("segment-0.m4s").count)
    // A segment of a second counts as four.
    let whole = try await reading(with: FixtureFetcher(), endsBefore: 1, byteRate: Int64(count / 4 + 1)) {
      try Self.read($0).count
    }
    #expect(whole == first + count)
    let limit = count / 4 - 1
    let error = await #expect(throws: ReelError.self) {
      try await reading(with: FixtureFetcher(), endsBefore: 1, byteRate: Int64(limit)) { try Self.read($0) }
    }
    #expect(error?.kind == .badMedia)
    #expect(error?.description.contains("more than \(limit * 4) bytes") == true)
    #expect(error?.description.contains("segment-0.m4s") == true)
  }

  @Test func `Each byte has the segment that it came from`() async throws {
    let counts = try (bytes("init.mp4").count, bytes("segment-0.m4s").count)
    try await reading(with: FixtureFetcher()) { stream in
      try Self.read(stream)
      for (offset, index, name) in [
        (0, 0, "init.mp4"), (counts.0, 0, "segment-0.m4s"), (counts.0 + counts.1 - 1, 0, "segment-0.m4s"),
        (counts.0 + counts.1, 1, "segment-1.m4s"),
      ] {
        let part = stream.part(at: Int64(offset))
        #expect(part?.index == index && part?.url.lastPathComponent == name)
      }
    }
  }
}
