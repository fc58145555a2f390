import Foundation
import HTTPTypes
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
    cache = origin.makeCache(at: folder.url)
  }

  private static let url = URL.example("/a.mp4")

  private func serve(_ path: String, tag: String) throws {
    origin["/a.mp4"] = .init(
      bytes: try Fixtures.bytes(path), fields: [.cacheControl: "max-age=600", .eTag: tag],
      chunkByteCount: 1000)
  }

  private func read(_ url: URL = Self.url, _ selection: FrameSelection = .count(0)) async throws -> [Shown] {
    try await extract(selection, from: .url(url), peakBitRate: 400_000, fetcher: cache).frames
  }

  /// A reader of a file that has one part of it from the folder, and its request for another.
  private func beginReading() async throws -> (reader: ConfinedFetcher, request: FetchRequest) {
    let requests = [0, 6000].map {
      FetchRequest(url: Self.url, range: ByteRange(offset: $0, length: 6000), purpose: .segment)
    }
    let reader = ConfinedFetcher(base: cache, source: Self.url, headers: SourceHeaders(of: Self.url))
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    for fetcher in [cache, reader] as [any Fetching] {
      _ = try await fetcher.fetch(requests[0]).body.collect(upTo: 10_000)
    }
    #expect(origin.asked.count == 1)
    return (reader, requests[1])
  }

  @Test("Parts of two versions are not of one source, even if both are stored")
  func storedVersions() async throws {
    let (reader, request) = try await beginReading()
    try serve("media/colour-709-full.mp4", tag: "\"2\"")
    _ = try await cache.fetch(request).body.collect(upTo: 10_000)
    let error = await #expect(throws: ReelError.self) { try await reader.fetch(request) }
    #expect(error?.found == .otherVersion)
    #expect(origin.asked.count == 2)
  }

  @Test("A part of which the server says nothing is not shown beside stored ones")
  func undescribedPart() async throws {
    let (reader, request) = try await beginReading()
    origin["/a.mp4"]?.describesParts = false
    let error = await #expect(throws: ReelError.self) { try await reader.fetch(request) }
    #expect(error?.found == .otherVersion)
  }

  @Test("A file that changed while its beginning was stored is read from the server alone")
  func changedFile() async throws {
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    let head = try await cache.fetch(
      FetchRequest(url: Self.url, range: ByteRange(offset: 0, length: 6000), purpose: .segment))
    _ = try await head.body.collect(upTo: 10_000)
    try serve("media/colour-hlg.mp4", tag: "\"2\"")
    let frames = try await read()
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
    let frames = try await read()
    #expect(frames.count == (try await ReelTestSupport.frames(of: "media/colour-hlg.mp4")).count)
  }

  @Test("A file is decoded from the folder without a request")
  func storedFile() async throws {
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    let first = try await read()
    origin.forget()
    let second = try await read()
    #expect(first == second && !first.isEmpty)
    #expect(origin.asked.isEmpty)
  }

  @Test("What is stored and can't be read is read from the server")
  func unreadable() async throws {
    origin["/a.mp4"] = .init(bytes: [], fields: [.cacheControl: "max-age=600", .eTag: "\"1\""])
    await #expect(throws: ReelError.self) { try await read(Self.url, .count(1)) }
    try serve("media/colour-709-full.mp4", tag: "\"1\"")
    for _ in 0..<2 {
      let frames = try await read()
      #expect(frames == (try await ReelTestSupport.frames(of: "media/colour-709-full.mp4")))
    }
  }

  /// Serves the files of a folder, each of which has to be confirmed.
  private func serve(folder: String) throws {
    let root = Fixtures.folder.appending(path: folder)
    let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
    for path in paths where !root.appending(path: path).hasDirectoryPath {
      guard let bytes = try? Fixtures.bytes("\(folder)/\(path)") else { continue }
      origin["/\(folder)/\(path)"] = .init(
        bytes: bytes, fields: [.cacheControl: "no-cache", .eTag: "\"\(path)\""], chunkByteCount: 1000)
    }
  }

  /// What has to be confirmed before the first frame of a source, the source first.
  private static let confirmations = [
    "hls-fmp4": ["master.m3u8", "low/index.m3u8", "low/init.mp4", "low/segment-0.m4s"],
    "hls-byterange-fmp4": ["index.m3u8", "media.mp4"],
    "dash-number": ["manifest.mpd", "0/init.mp4", "0/segment-00001.m4s"],
    "dash-ondemand": ["manifest.mpd", "low.mp4"],
  ].map { folder, paths in (folder: folder, paths: paths.map { "/\(folder)/\($0)" }) }

  @Test("What a stored manifest leads to is confirmed in the time of one answer", arguments: confirmations)
  func askedAhead(folder: String, paths: [String]) async throws {
    try serve(folder: folder)
    let first = try await read(.example(paths[0]))
    origin.forget()
    // No answer comes before all are asked for.
    origin.hold { [origin] _ in
      while !Set(paths).isSubset(of: origin.asked.map(\.path)) { await Task.yield() }
    }
    let second = try await read(.example(paths[0]), .count(1))
    #expect(second.first == first.first)
    for path in paths { #expect(origin.asked.filter { $0.path == path }.count == 1, "\(path)") }
    #expect(origin.asked.allSatisfy { $0.isConditional })
    #expect(origin.openCount == 0)
  }

  @Test("What is not confirmed is fetched", arguments: confirmations)
  func notConfirmed(folder: String, paths: [String]) async throws {
    try serve(folder: folder)
    let first = try await read(.example(paths[0]))
    for path in paths {
      origin[path]?.fields[.eTag] = "\"new\""
      origin.forget()
      #expect(try await read(.example(paths[0])) == first)
      #expect(origin.openCount == 0)
      // Not even what has changed is requested twice, unless its parts are requested one by one.
      #expect(origin.asked.filter { $0.path == path && $0.range == nil }.count <= 1)
    }
  }

  @Test("A question that is not answered is not waited for", arguments: confirmations)
  func notAnswered(folder: String, paths: [String]) async throws {
    try serve(folder: folder)
    let first = try await read(.example(paths[0]))
    origin.forget()
    // What is asked ahead gets no answer.
    origin.hold { [origin] request in
      let path = request.url.path
      guard paths.dropFirst().contains(path), origin.asked.filter({ $0.path == path }).count == 1
      else { return }
      try? await Task.sleep(for: .seconds(86_400))
    }
    #expect(try await read(.example(paths[0])) == first)
  }

  @Test("Each reading asks for itself", arguments: confirmations)
  func secondReading(folder: String, paths: [String]) async throws {
    try serve(folder: folder)
    for _ in 0..<3 {
      origin.forget()
      _ = try await read(.example(paths[0]))
      #expect(Set(paths).isSubset(of: origin.asked.map(\.path)))
    }
  }
}
