import Foundation
import HTTPTypes
import Logging
import ReelCore
import ReelReading
import ReelSources
import ReelTestSupport
import Testing

@testable import ReelCache

/// Sources that are read through a cache.
@Suite struct CachedSourceTests {
  private let origin = CachedOrigin()
  private let folder: TemporaryFolder
  private let cache: MediaCache

  init() throws {
    folder = try TemporaryFolder()
    cache = MediaCache(
      at: folder.url, byteLimit: 100_000_000, inFrontOf: origin, logger: Logger(label: "test"))
  }

  private static let url = URL.example("/a.mp4")

  private func serve(_ path: String, tag: String) throws {
    origin["/a.mp4"] = .init(
      bytes: try Fixtures.bytes(path), fields: [.cacheControl: "max-age=600", .eTag: tag],
      chunkByteCount: 1000)
  }

  @Test("Parts of two versions are not of one source, even if both are stored")
  func storedVersions() async throws {
    let parts = [0, 6000].map { ByteRange(offset: $0, length: 6000) }
    let fetcher = ConfinedFetcher(base: cache, source: Self.url, headers: SourceHeaders(of: Self.url))
    let requests = parts.map { FetchRequest(url: Self.url, range: $0, purpose: .segment) }
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    _ = try await cache.fetch(requests[0]).body.collect(upTo: 10_000)
    _ = try await fetcher.fetch(requests[0]).body.collect(upTo: 10_000)
    try serve("media/colour-709-full.mp4", tag: "\"2\"")
    _ = try await cache.fetch(requests[1]).body.collect(upTo: 10_000)
    #expect(origin.asked.map(\.range) == parts)
    let error = await #expect(throws: ReelError.self) { try await fetcher.fetch(requests[1]) }
    #expect(error?.found == .otherVersion)
    #expect(origin.asked.count == 2)
  }

  @Test("A file that changed while its beginning was stored is read from the server alone")
  func changedFile() async throws {
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    let head = try await cache.fetch(
      FetchRequest(url: Self.url, range: ByteRange(offset: 0, length: 6000), purpose: .segment))
    _ = try await head.body.collect(upTo: 10_000)
    try serve("media/colour-hlg.mp4", tag: "\"2\"")
    let frames = try await extract(.count(0), from: .url(Self.url), fetcher: cache).frames
    #expect(frames == (try await ReelTestSupport.frames(of: "media/colour-hlg.mp4")))
  }

  @Test("A file that changed behind stored frames goes on with those of the server")
  func changedInTheMiddle() async throws {
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    let size = try #require(origin["/a.mp4"]?.bytes.count)
    let head = try await cache.fetch(
      FetchRequest(url: Self.url, range: ByteRange(offset: 0, length: Int64(size - 100)), purpose: .segment))
    _ = try await head.body.collect(upTo: size)
    try serve("media/colour-hlg.mp4", tag: "\"2\"")
    let frames = try await extract(.count(0), from: .url(Self.url), fetcher: cache).frames
    #expect(frames.count == (try await ReelTestSupport.frames(of: "media/colour-hlg.mp4")).count)
  }

  @Test("A file is decoded from the folder without a request")
  func storedFile() async throws {
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    let first = try await extract(.count(0), from: .url(Self.url), fetcher: cache).frames
    origin.forget()
    let second = try await extract(.count(0), from: .url(Self.url), fetcher: cache).frames
    #expect(first == second && !first.isEmpty)
    #expect(origin.asked.isEmpty)
  }
}
