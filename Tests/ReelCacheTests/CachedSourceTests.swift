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
@Suite(.hangLimit) struct CachedSourceTests {
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

  @Test("A part of which the server says nothing is not shown beside stored ones")
  func undescribedPart() async throws {
    let parts = [0, 6000].map { ByteRange(offset: $0, length: 6000) }
    let fetcher = ConfinedFetcher(base: cache, source: Self.url, headers: SourceHeaders(of: Self.url))
    let requests = parts.map { FetchRequest(url: Self.url, range: $0, purpose: .segment) }
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    _ = try await cache.fetch(requests[0]).body.collect(upTo: 10_000)
    _ = try await fetcher.fetch(requests[0]).body.collect(upTo: 10_000)
    origin["/a.mp4"]?.describesParts = false
    let error = await #expect(throws: ReelError.self) { try await fetcher.fetch(requests[1]) }
    #expect(error?.found == .otherVersion)
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

  @Test("What is stored and can't be read is read from the server")
  func unreadable() async throws {
    origin["/a.mp4"] = .init(bytes: [], fields: [.cacheControl: "max-age=600", .eTag: "\"1\""])
    await #expect(throws: ReelError.self) {
      try await extract(.count(1), from: .url(Self.url), fetcher: cache)
    }
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    for _ in 0..<2 {
      let frames = try await extract(.count(0), from: .url(Self.url), fetcher: cache).frames
      #expect(frames == (try await ReelTestSupport.frames(of: "media/colour-709-full.mp4")))
    }
  }

  private func serve(folder: String, _ fields: HTTPFields) throws {
    let root = Fixtures.folder.appending(path: folder)
    let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
    for path in paths where !root.appending(path: path).hasDirectoryPath {
      guard let bytes = try? Fixtures.bytes("\(folder)/\(path)") else { continue }
      origin["/\(folder)/\(path)"] = .init(
        bytes: bytes, fields: fields + [.eTag: "\"\(path)\""], chunkByteCount: 1000)
    }
  }

  /// A source, and what has to be confirmed before its first frame.
  private static let confirmations: [(source: String, paths: Set<String>)] = [
    ("hls-fmp4/master.m3u8", ["master.m3u8", "low/index.m3u8", "low/init.mp4", "low/segment-0.m4s"]),
    ("hls-byterange-fmp4/index.m3u8", ["index.m3u8", "media.mp4"]),
    ("dash-number/manifest.mpd", ["manifest.mpd", "0/init.mp4", "0/segment-00001.m4s"]),
    ("dash-ondemand/manifest.mpd", ["manifest.mpd", "low.mp4"]),
  ]

  @Test("What a stored manifest leads to is confirmed in the time of one answer", arguments: confirmations)
  func askedAhead(source: String, paths: Set<String>) async throws {
    let folder = String(source.prefix { $0 != "/" })
    try serve(folder: folder, [.cacheControl: "no-cache"])
    let url = URL.example("/\(source)")
    let first = try await extract(.count(0), from: .url(url), peakBitRate: 400_000, fetcher: cache).frames
    origin.forget()
    let expected = Set(paths.map { "/\(folder)/\($0)" })
    // No answer comes before all are asked for.
    origin.hold { [origin] _ in
      while !expected.isSubset(of: Set(origin.asked.map(\.path))) { await Task.yield() }
    }
    let second = try await extract(.count(1), from: .url(url), peakBitRate: 400_000, fetcher: cache)
    #expect(second.frames.first == first.first)
    for path in expected { #expect(origin.asked.filter { $0.path == path }.count == 1, "\(path)") }
    #expect(origin.asked.allSatisfy { $0.isConditional })
    #expect(origin.openCount == 0)
  }

  @Test("What is not confirmed is fetched", arguments: confirmations)
  func notConfirmed(source: String, paths: Set<String>) async throws {
    let folder = String(source.prefix { $0 != "/" })
    let url = URL.example("/\(source)")
    try serve(folder: folder, [.cacheControl: "no-cache"])
    let first = try await extract(.count(0), from: .url(url), peakBitRate: 400_000, fetcher: cache).frames
    for path in paths {
      origin["/\(folder)/\(path)"]?.fields[.eTag] = "\"new\""
      origin.forget()
      let again = try await extract(.count(0), from: .url(url), peakBitRate: 400_000, fetcher: cache).frames
      #expect(again == first)
      #expect(origin.openCount == 0)
      // Not even what has changed is requested twice, unless its parts are requested one by one.
      let asked = origin.asked.filter { $0.path == "/\(folder)/\(path)" && $0.range == nil }
      #expect(asked.count <= 1)
    }
  }

  @Test("A question that is not answered is not waited for", arguments: confirmations)
  func notAnswered(source: String, paths: Set<String>) async throws {
    let folder = String(source.prefix { $0 != "/" })
    let url = URL.example("/\(source)")
    try serve(folder: folder, [.cacheControl: "no-cache"])
    let first = try await extract(.count(0), from: .url(url), peakBitRate: 400_000, fetcher: cache).frames
    origin.forget()
    // What is asked ahead gets no answer.
    let questions = Set(paths.map { "/\(folder)/\($0)" }).subtracting([url.path])
    origin.hold { [origin] request in
      let path = request.url.path
      guard questions.contains(path), origin.asked.filter({ $0.path == path }).count == 1 else { return }
      try? await Task.sleep(for: .seconds(86_400))
    }
    let second = try await extract(.count(0), from: .url(url), peakBitRate: 400_000, fetcher: cache).frames
    #expect(second == first)
  }

  @Test("Each reading asks for itself", arguments: confirmations)
  func secondReading(source: String, paths: Set<String>) async throws {
    let folder = String(source.prefix { $0 != "/" })
    try serve(folder: folder, [.cacheControl: "no-cache"])
    let url = URL.example("/\(source)")
    for _ in 0..<3 {
      origin.forget()
      _ = try await extract(.count(0), from: .url(url), peakBitRate: 400_000, fetcher: cache)
      #expect(Set(paths.map { "/\(folder)/\($0)" }).isSubset(of: Set(origin.asked.map(\.path))))
    }
  }
}
