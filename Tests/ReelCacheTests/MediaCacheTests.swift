import Foundation
import HTTPTypes
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelCache

@Suite struct MediaCacheTests {
  private let origin = CachedOrigin()
  private let clock = SetClock()
  private let temporary: TemporaryFolder
  private let folder: URL

  init() throws {
    temporary = try TemporaryFolder()
    folder = temporary.url.appending(path: "cache", directoryHint: .isDirectory)
  }

  private func makeCache(byteLimit: Int64 = 100_000_000) -> MediaCache {
    origin.makeCache(at: folder, byteLimit: byteLimit, clock: clock)
  }

  private func url(_ path: String) -> URL { URL.example(path) }

  private func read(
    _ cache: MediaCache, _ path: String, _ range: ByteRange? = nil, purpose: FetchPurpose = .segment,
    headers: HTTPFields = [:]
  ) async throws -> [UInt8] {
    let response = try await cache.fetch(
      FetchRequest(url: url(path), range: range, headers: headers, purpose: purpose))
    return try await response.body.collect(upTo: 10_000_000)
  }

  @Test("What is fresh is used without a request, by a later process too")
  func fresh() async throws {
    origin["/a.m4s"] = .init(
      bytes: content(300_000), fields: [.cacheControl: "max-age=60", .eTag: "\"1\""])
    #expect(try await read(makeCache(), "/a.m4s") == content(300_000))
    let cache = makeCache()
    origin.forget()
    #expect(try await read(cache, "/a.m4s") == content(300_000))
    #expect(
      try await read(cache, "/a.m4s", ByteRange(offset: 1000, length: 70_000))
        == Array(content(300_000)[1000..<71_000]))
    #expect(origin.asked.isEmpty)
    clock.advance(by: 61)
    #expect(try await read(cache, "/a.m4s") == content(300_000))
    #expect(origin.asked == [.init(path: "/a.m4s", isConditional: true)])
    #expect(origin.sentByteCount == 0)
    // The confirmation makes it fresh again.
    #expect(try await read(cache, "/a.m4s") == content(300_000))
    #expect(origin.asked.count == 1)
  }

  @Test("Media without any field is assumed to be fresh, a manifest is not")
  func assumed() async throws {
    let playlist = Array("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.m4s\n#EXT-X-ENDLIST\n".utf8)
    origin["/a.m4s"] = .init(bytes: content(100_000))
    origin["/a.m3u8"] = .init(bytes: playlist)
    let cache = makeCache()
    for _ in 0..<2 {
      #expect(try await read(cache, "/a.m4s") == content(100_000))
      #expect(try await read(cache, "/a.m3u8", purpose: .source) == playlist)
    }
    #expect(origin.asked.map(\.path) == ["/a.m4s", "/a.m3u8", "/a.m3u8"])
    clock.advance(by: 86_401)
    #expect(try await read(cache, "/a.m4s") == content(100_000))
    #expect(origin.asked.count == 4)
    // Without the network, what is stale is better than nothing.
    clock.advance(by: 86_401)
    origin.fail(with: ReelError(.network, "no network"))
    #expect(try await read(cache, "/a.m4s") == content(100_000))
    #expect(try await read(cache, "/a.m3u8", purpose: .source) == playlist)
  }

  @Test(
    "Nothing is kept of what must not be",
    arguments: [
      [.cacheControl: "no-store", .eTag: "\"1\""], [.cacheControl: "private, no-store, max-age=10"],
      [.vary: "*"],
      [.setCookie: "a=b", .cacheControl: "max-age=60"],
      [.vary: "Accept, Cookie", .cacheControl: "max-age=60"],
    ] as [HTTPFields])
  func forbidden(fields: HTTPFields) async throws {
    origin["/a.m4s"] = .init(bytes: content(100_000), fields: fields)
    let cache = makeCache()
    for _ in 0..<2 { #expect(try await read(cache, "/a.m4s") == content(100_000)) }
    #expect(origin.asked == Array(repeating: .init(path: "/a.m4s"), count: 2))
  }

  @Test("Keys, and what is sent with credentials, are fetched each time")
  func secrets() async throws {
    let fields: HTTPFields = [.cacheControl: "max-age=60"]
    origin["/key"] = .init(bytes: content(16), fields: fields)
    origin["/a.m4s"] = .init(bytes: content(1000), fields: fields)
    origin["/cookie.m4s"] = .init(bytes: content(1000), fields: fields, isPersonal: true)
    let cache = makeCache()
    for _ in 0..<2 {
      _ = try await read(cache, "/key", purpose: .key)
      _ = try await read(cache, "/a.m4s", headers: [.authorization: "Bearer x"])
      _ = try await read(cache, "/cookie.m4s")
    }
    #expect(origin.asked.count == 6)
    #expect(cache.storedByteCount < 40_000)
  }

  @Test("Vary chooses by the fields of the request")
  func vary() async throws {
    origin["/a.m4s"] = .init(
      bytes: content(1000), fields: [.cacheControl: "max-age=60", .vary: "X-Device, Accept-Encoding"])
    let cache = makeCache()
    let device = HTTPField.Name("X-Device")!
    for device in [[device: "a"], [device: "a"], [device: "b"]] as [HTTPFields] {
      _ = try await read(cache, "/a.m4s", headers: device)
    }
    #expect(origin.asked.count == 2)
  }

  @Test("Vary counts the agent that the fetcher names")
  func agent() async throws {
    let origins = ["one", "one", "two"].map(CachedOrigin.init)
    for origin in origins {
      origin["/a.m4s"] = .init(
        bytes: content(1000), fields: [.cacheControl: "max-age=60", .vary: "User-Agent"])
      #expect(try await read(origin.makeCache(at: folder), "/a.m4s") == content(1000))
    }
    #expect(origins.map(\.asked.count) == [1, 0, 1])
  }

  @Test("At the end of a program, what came is on disk")
  func finished() async throws {
    origin["/a.mp4"] = .init(
      bytes: content(500_000), fields: [.cacheControl: "max-age=60", .eTag: "\"1\""])
    let cache = makeCache()
    let response = try await cache.fetch(FetchRequest(url: url("/a.mp4"), purpose: .segment))
    #expect(try await response.body.next()?.count == 10_000)
    await cache.finish()
    let part = ByteRange(offset: 0, length: 10_000)
    #expect(cache.stores(FetchRequest(url: url("/a.mp4"), range: part, purpose: .segment)))
    #expect(origin.openCount == 0)
    response.body.close()
  }

  @Test("A part that is there is not fetched again")
  func parts() async throws {
    let bytes = content(500_000)
    origin["/a.mp4"] = .init(bytes: bytes, fields: [.cacheControl: "max-age=60", .eTag: "\"1\""])
    let cache = makeCache()
    _ = try await read(cache, "/a.mp4", ByteRange(offset: 100_000, length: 100_000))
    _ = try await read(cache, "/a.mp4", ByteRange(offset: 400_000, length: nil))
    origin.forget()
    #expect(try await read(cache, "/a.mp4") == bytes)
    #expect(
      origin.asked == [
        .init(path: "/a.mp4", range: ByteRange(offset: 0, length: 100_000)),
        .init(path: "/a.mp4", range: ByteRange(offset: 200_000, length: 200_000)),
      ])
    #expect(origin.sentByteCount == 300_000)
    origin.forget()
    #expect(try await read(cache, "/a.mp4") == bytes)
    #expect(origin.asked.isEmpty)
  }

  @Test(
    "Without a strong validator, only a whole answer is kept",
    arguments: [[:], [.eTag: "W/\"1\""]] as [HTTPFields])
  func unvalidatedParts(fields: HTTPFields) async throws {
    let bytes = content(300_000)
    origin["/a.mp4"] = .init(bytes: bytes, fields: [.cacheControl: "max-age=60"] + fields)
    let cache = makeCache()
    let range = ByteRange(offset: 50_000, length: 100_000)
    for _ in 0..<2 { #expect(try await read(cache, "/a.mp4", range) == Array(bytes[50_000..<150_000])) }
    #expect(origin.asked.count == 2)
    _ = try await read(cache, "/a.mp4")
    // Parts of it are, and those of another version on the server are not mixed with it.
    origin["/a.mp4"]?.bytes = content(300_000, seed: 2)
    #expect(try await read(cache, "/a.mp4", range) == Array(bytes[50_000..<150_000]))
    #expect(origin.asked.count == 3)
  }

  @Test("Another version replaces what is stored")
  func changed() async throws {
    origin["/a.m4s"] = .init(bytes: content(100_000), fields: [.eTag: "\"1\""])
    let cache = makeCache()
    _ = try await read(cache, "/a.m4s")
    origin["/a.m4s"] = .init(bytes: content(100_000, seed: 2), fields: [.eTag: "\"2\""])
    for _ in 0..<2 { #expect(try await read(cache, "/a.m4s") == content(100_000, seed: 2)) }
    #expect(
      origin.asked == Array(repeating: .init(path: "/a.m4s"), count: 1)
        + Array(repeating: .init(path: "/a.m4s", isConditional: true), count: 2))
    #expect(origin.sentByteCount == 200_000)
  }

  @Test("A resource that changed behind a stored part is an error, not a mixture")
  func changedInTheMiddle() async throws {
    let fields: HTTPFields = [.cacheControl: "max-age=60"]
    origin["/a.mp4"] = .init(bytes: content(300_000), fields: fields.merged(with: [.eTag: "\"1\""]))
    let cache = makeCache()
    _ = try await read(cache, "/a.mp4", ByteRange(offset: 0, length: 100_000))
    origin["/a.mp4"] = .init(
      bytes: content(300_000, seed: 2), fields: fields.merged(with: [.eTag: "\"2\""]))
    let error = await #expect(throws: ReelError.self) { try await read(cache, "/a.mp4") }
    #expect(error?.found == .otherVersion)
    // What was stored is gone.
    #expect(try await read(cache, "/a.mp4") == content(300_000, seed: 2))
  }

  @Test("What a cancelled transfer brought stays")
  func cancelled() async throws {
    let bytes = content(500_000)
    origin["/a.mp4"] = .init(bytes: bytes, fields: [.cacheControl: "max-age=60", .eTag: "\"1\""])
    let cache = makeCache()
    let response = try await cache.fetch(FetchRequest(url: url("/a.mp4"), purpose: .segment))
    var iterator = response.body.makeAsyncIterator()
    for _ in 0..<15 { _ = try await iterator.next() }
    response.body.close()
    origin.forget()
    #expect(try await read(cache, "/a.mp4") == bytes)
    #expect(origin.asked.map(\.range) == [ByteRange(offset: 150_000, length: 350_000)])
  }

  @Test("What came is on disk once its reader was cancelled, although more was awaited")
  func closed() async throws {
    origin["/a.mp4"] = .init(
      bytes: content(500_000), fields: [.cacheControl: "max-age=60", .eTag: "\"1\""], hangsAfter: 150_000)
    let cache = makeCache()
    let response = try await cache.fetch(FetchRequest(url: url("/a.mp4"), purpose: .segment))
    let reader = Task { try await response.body.collect(upTo: 500_000) }
    while origin.hangingCount == 0 { await Task.yield() }
    reader.cancel()
    _ = await reader.result
    response.body.close()
    let part = ByteRange(offset: 0, length: 150_000)
    #expect(cache.stores(FetchRequest(url: url("/a.mp4"), range: part, purpose: .segment)))
  }

  @Test("A part that does not exist, by the server's word, removes what is stored of another size")
  func shrunk() async throws {
    origin["/a.mp4"] = .init(
      bytes: content(300_000), fields: [.cacheControl: "max-age=60", .eTag: "\"1\""])
    let cache = makeCache()
    _ = try await read(cache, "/a.mp4", ByteRange(offset: 0, length: 100_000))
    origin["/a.mp4"]?.bytes = content(150_000)
    let error = await #expect(throws: ReelError.self) {
      try await read(cache, "/a.mp4", ByteRange(offset: 200_000, length: 10_000))
    }
    #expect(error?.found == .otherVersion)
    #expect(try await read(cache, "/a.mp4") == content(150_000))
  }

  @Test("A transfer that breaks fails, and what came stays")
  func broken() async throws {
    let bytes = content(300_000)
    origin["/a.mp4"] = .init(
      bytes: bytes, fields: [.cacheControl: "max-age=60", .eTag: "\"1\""], breaksAfter: 200_000)
    let cache = makeCache()
    await #expect(throws: ReelError.self) { try await read(cache, "/a.mp4") }
    origin["/a.mp4"]?.breaksAfter = nil
    origin.forget()
    #expect(try await read(cache, "/a.mp4") == bytes)
    #expect(origin.asked.map(\.range) == [ByteRange(offset: 200_000, length: 100_000)])
  }

  @Test(
    "Two readers of a range fetch it once, with and without a validator",
    arguments: [[.eTag: "\"1\""], [:]] as [HTTPFields])
  func shared(fields: HTTPFields) async throws {
    let bytes = content(400_000)
    origin["/a.m4s"] = .init(bytes: bytes, fields: fields)
    let cache = makeCache()
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<8 { group.addTask { try await read(cache, "/a.m4s") } }
      for try await result in group { #expect(result == bytes) }
    }
    #expect(origin.sentByteCount == 400_000)
  }

  @Test("A reader that is cancelled does not end the transfer of another")
  func leaving() async throws {
    let bytes = content(400_000)
    origin["/a.m4s"] = .init(bytes: bytes, fields: [.eTag: "\"1\""])
    let cache = makeCache()
    let first = try await cache.fetch(FetchRequest(url: url("/a.m4s"), purpose: .segment))
    let second = try await cache.fetch(FetchRequest(url: url("/a.m4s"), purpose: .segment))
    var iterator = first.body.makeAsyncIterator()
    _ = try await iterator.next()
    first.body.close()
    #expect(try await second.body.collect(upTo: 1_000_000) == bytes)
    #expect(origin.asked.count == 1)
  }

  @Test("A folder that can't be written is a plain fetcher")
  func unusable() async throws {
    try Data("x".utf8).write(to: URL(filePath: folder.path(percentEncoded: false).trimmingSuffix("/")))
    origin["/a.m4s"] = .init(bytes: content(400_000), fields: [.cacheControl: "max-age=60"])
    let cache = makeCache()
    for _ in 0..<2 { #expect(try await read(cache, "/a.m4s") == content(400_000)) }
    #expect(origin.asked.count == 2)
  }

  @Test("A limit smaller than the media bounds the folder, and the bytes are right")
  func limited() async throws {
    for number in 0..<8 {
      origin["/\(number).m4s"] = .init(
        bytes: content(200_000, seed: number),
        fields: [.cacheControl: "max-age=60", .eTag: "\"\(number)\""])
    }
    let cache = makeCache(byteLimit: 600_000)
    for number in Array(0..<8) + Array(0..<8) {
      #expect(try await read(cache, "/\(number).m4s") == content(200_000, seed: number))
      #expect(cache.storedByteCount <= 600_000)
    }
  }

  @Test("Stale media is used when the server can't be reached, unless that is forbidden")
  func disconnected() async throws {
    origin["/a.m4s"] = .init(bytes: content(1000), fields: [.cacheControl: "max-age=1", .eTag: "\"1\""])
    origin["/b.m4s"] = .init(
      bytes: content(1000), fields: [.cacheControl: "max-age=1, must-revalidate", .eTag: "\"1\""])
    let cache = makeCache()
    for path in ["/a.m4s", "/b.m4s"] { _ = try await read(cache, path) }
    clock.advance(by: 100)
    origin.fail(with: ReelError(.network, "no network"))
    #expect(try await read(cache, "/a.m4s") == content(1000))
    await #expect(throws: ReelError.self) { try await read(cache, "/b.m4s") }
    // A server's error says that it is there.
    origin.fail(with: ReelError(.server, "500", status: 500))
    await #expect(throws: ReelError.self) { try await read(makeCache(), "/a.m4s") }
  }

  @Test("A clock that jumps back makes nothing fresh")
  func clockJump() async throws {
    origin["/a.m4s"] = .init(bytes: content(1000), fields: [.cacheControl: "max-age=60", .eTag: "\"1\""])
    let cache = makeCache()
    _ = try await read(cache, "/a.m4s")
    clock.advance(by: -365 * 86_400)
    #expect(try await read(cache, "/a.m4s") == content(1000))
    #expect(origin.asked.last == .init(path: "/a.m4s", isConditional: true))
  }

  @Test("A manifest of a live stream is never served from the folder, nor one with keys or queries")
  func manifests() async throws {
    let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"1\""]
    let media = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"
    let texts = [
      "/live.m3u8": media, "/vod.m3u8": media + "#EXT-X-ENDLIST\n",
      "/signed.m3u8": media + "#EXTINF:4,\nb.ts?token=1\n#EXT-X-ENDLIST\n",
      "/key.m3u8":
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=AES-128,URI=\"data:;base64,AAAAAAAAAAAAAAAAAAAAAA==\"\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n",
      "/a.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nvod.m3u8\n",
      "/b.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlive.m3u8\n",
      "/live.mpd":
        "<?xml version=\"1.0\"?><MPD type=\"dynamic\" availabilityStartTime=\"2020-01-01T00:00:00Z\"><Period start=\"PT0S\"/></MPD>",
    ]
    for (path, text) in texts { origin[path] = .init(bytes: Array(text.utf8), fields: fields) }
    let order = ["/a.m3u8", "/b.m3u8", "/vod.m3u8", "/live.m3u8", "/signed.m3u8", "/key.m3u8", "/live.mpd"]
    for path in order { _ = try await read(makeCache(), path, purpose: .manifest) }
    origin.forget()
    let cache = makeCache()
    for path in order + order {
      #expect(try await read(cache, path, purpose: .manifest) == Array((texts[path] ?? "").utf8))
    }
    // The multivariant playlist is kept once its media playlist is known to be complete.
    #expect(
      origin.asked.map(\.path) == ["/a.m3u8"] + order.filter { $0 != "/a.m3u8" && $0 != "/vod.m3u8" }
        + order.filter { $0 != "/a.m3u8" && $0 != "/vod.m3u8" })
  }

  @Test("A redirect is asked for again, and no query is in the folder")
  func redirects() async throws {
    origin["/a.m4s"] = .init(
      bytes: content(1000), fields: [.cacheControl: "max-age=60", .eTag: "\"1\""],
      redirectsTo: "http://cdn.example.com/b.m4s?token=secret")
    let cache = makeCache()
    for _ in 0..<2 { #expect(try await read(cache, "/a.m4s?token=secret") == content(1000)) }
    #expect(origin.asked.map(\.isConditional) == [false, true])
    for case let file as URL in FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)! {
      let text = String(decoding: (try? Data(contentsOf: file)) ?? Data(), as: UTF8.self)
      #expect(!text.contains("secret") && !file.path.contains("secret"))
    }
  }

  @Test("Stored answers say so, and what is held is known without a request")
  func origins() async throws {
    origin["/a.m4s"] = .init(
      bytes: content(100_000), fields: [.cacheControl: "max-age=60", .eTag: "\"1\""])
    let cache = makeCache()
    let request = FetchRequest(url: url("/a.m4s"), purpose: .segment)
    #expect(cache.storedFetch(of: request) == nil)
    let first = try await cache.fetch(request)
    _ = try await first.body.collect(upTo: 1_000_000)
    #expect(first.requestCount == 1 && first.storedByteCount?() == 0)
    let fetch = try #require(cache.storedFetch(of: request))
    let second = try await fetch()
    _ = try await second.body.collect(upTo: 1_000_000)
    #expect(second.requestCount == 0 && second.storedByteCount?() == 100_000)
    #expect(second.resourceByteCount == 100_000 && second.bodyByteCount == 100_000)
  }
}

extension HTTPFields {
  fileprivate func merged(with other: HTTPFields) -> HTTPFields { self + other }
}

extension String {
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}
