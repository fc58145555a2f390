import Foundation
import HTTPTypes
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelCache

/// Ends, counts and reports of answers that a cache gives, and requests at the same time.
@Suite(.timeLimit(.minutes(2))) struct CachedAnswerTests {
  private let origin = CachedOrigin()
  private let clock = SetClock()
  private let folder: TemporaryFolder
  private let cache: MediaCache

  private static let url = URL.example("/a")
  private static let fresh: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"1\""]

  init() throws {
    folder = try TemporaryFolder()
    cache = origin.makeCache(at: folder.url, clock: clock)
  }

  private func read(
    _ range: ByteRange? = nil, purpose: FetchPurpose = .segment, url: URL = Self.url
  ) async throws -> [UInt8] {
    let response = try await cache.fetch(FetchRequest(url: url, range: range, purpose: purpose))
    return try await response.body.collect(upTo: 10_000_000)
  }

  @Test(
    "Where the size is unknown, a body ends where the resource does", arguments: [true, false], [0, 100])
  func unknownSize(sendsRanges: Bool, offset: Int) async throws {
    let bytes = content(500)
    origin["/a"] = .init(bytes: bytes, fields: Self.fresh, statesSize: false, sendsRanges: sendsRanges)
    let range = ByteRange(offset: Int64(offset), length: 10_000)
    let first = try await cache.fetch(FetchRequest(url: Self.url, range: range, purpose: .segment))
    #expect(first.bodyByteCount == nil)
    #expect(try await first.body.collect(upTo: 10_000) == Array(bytes[Int(first.bodyOffset)...]))
    // Now the size is known.
    #expect(try await read(range) == Array(bytes[offset...]))
    #expect(origin.asked.count == 1)
  }

  @Test("An empty resource is stored, and has no ranges", arguments: [true, false])
  func empty(statesSize: Bool) async throws {
    origin["/a"] = .init(bytes: [], fields: Self.fresh, statesSize: statesSize)
    for _ in 0..<2 { #expect(try await read() == []) }
    #expect(origin.asked.count == 1)
    let error = await #expect(throws: ReelError.self) { try await read(ByteRange(offset: 5, length: 5)) }
    #expect(error?.status == 416)
  }

  @Test("Each request is reported once")
  func reports() async throws {
    let outcomes = Locked<[RequestMetrics.Outcome]>([])
    func report() async throws -> [RequestMetrics.Outcome] {
      let request = FetchRequest(url: Self.url, purpose: .segment) { metrics in
        outcomes.withLock { $0.append(metrics.outcome) }
      }
      _ = try await cache.fetch(request).body.collect(upTo: 1_000_000)
      return outcomes.withLock { outcomes in
        defer { outcomes = [] }
        return outcomes
      }
    }
    origin["/a"] = .init(bytes: content(100_000), fields: Self.fresh)
    for seconds in [0, 1, 61] as [Int64] {
      clock.advance(by: seconds)
      #expect(try await report() == [.completed])
    }
    clock.advance(by: 61)
    origin["/a"]?.fields[.eTag] = "\"2\""
    #expect(try await report() == [.completed])
    clock.advance(by: 61)
    let failure = ReelError(.network, "no network")
    origin.fail(with: failure)
    #expect(try await report() == [.failed(failure)])
    #expect(origin.openCount == 0)
  }

  @Test("A stored body is complete for a reader that has all bytes")
  func completion() async throws {
    origin["/a"] = .init(bytes: content(1000), fields: Self.fresh)
    _ = try await read()
    let outcome = Locked<RequestMetrics.Outcome?>(nil)
    let response = try await cache.fetch(
      FetchRequest(url: Self.url, purpose: .segment) { metrics in outcome.withLock { $0 = metrics.outcome } })
    #expect(try await response.body.next()?.count == 1000)
    response.body.close()
    #expect(outcome.withLock { $0 } == .completed)
  }

  @Test("The rest of a stored part is not kept once it is fetched with cookies")
  func personalRest() async throws {
    let bytes = content(300_000)
    origin["/a"] = .init(bytes: bytes, fields: Self.fresh)
    _ = try await read(ByteRange(offset: 0, length: 100_000))
    origin["/a"]?.isPersonal = true
    origin.forget()
    for _ in 0..<2 { #expect(try await read() == bytes) }
    #expect(
      origin.asked.map(\.range) == Array(repeating: ByteRange(offset: 100_000, length: 200_000), count: 2))
  }

  @Test("A request waits for another one only if it may, and only for one that brings its first byte")
  func turns() {
    let running = RunningTransfers()
    let key = EntryKey(hashing: ["a"])
    func opens(_ range: ByteRange, mayWait: Bool = true) -> Bool {
      if case .open = running.turn(for: key, range, mayWait: mayWait) { true } else { false }
    }
    #expect(opens(ByteRange(offset: 0, length: 1000)))
    #expect(!opens(ByteRange(offset: 999, length: 1000)))
    #expect(opens(ByteRange(offset: 1000, length: 1000)))
    #expect(opens(ByteRange(offset: 0, length: 1000), mayWait: false))
  }

  @Test("A body is read to its end, so that its connection can be used again")
  func connection() async throws {
    origin["/a"] = .init(bytes: content(200_000), fields: Self.fresh)
    _ = try await read(ByteRange(offset: 0, length: 50_000))
    _ = try await read()
    #expect(origin.endedCount == 2)
  }

  @Test("A request does not wait for one of the range before it")
  func neighbours() async throws {
    let bytes = content(3000)
    origin["/a"] = .init(bytes: bytes, fields: Self.fresh)
    let hasEnded = Locked(false)
    let isHeld = Locked(false)
    origin.hold { request in
      guard request.range?.offset == 0 else { return }
      isHeld.withLock { $0 = true }
      while !hasEnded.withLock({ $0 }) { await Task.yield() }
    }
    async let first = read(ByteRange(offset: 0, length: 1000))
    while !isHeld.withLock({ $0 }) { await Task.yield() }
    #expect(try await read(ByteRange(offset: 1000, length: 2000)) == Array(bytes[1000...]))
    hasEnded.withLock { $0 = true }
    #expect(try await first == Array(bytes[..<1000]))
  }

  @Test("What is missing before a stale part costs one request")
  func staleParts() async throws {
    let bytes = content(300_000)
    origin["/a"] = .init(bytes: bytes, fields: Self.fresh)
    _ = try await read(ByteRange(offset: 100_000, length: 200_000))
    clock.advance(by: 61)
    origin.forget()
    #expect(try await read() == bytes)
    #expect(origin.asked == [.init(path: "/a", range: ByteRange(offset: 0, length: 100_000))])
    #expect(try await read() == bytes)
    #expect(origin.asked.count == 1)
  }

  @Test(
    "What a server confirms and forbids to keep is used once more, without a second request",
    arguments: [[.cacheControl: "no-store"], [.setCookie: "a=b"]] as [HTTPFields])
  func confirmedOnce(confirmation: HTTPFields) async throws {
    let bytes = content(300_000)
    origin["/a"] = .init(bytes: bytes, fields: [.eTag: "\"1\""], confirmation: confirmation)
    let request = FetchRequest(url: Self.url, purpose: .segment)
    for isConditional in [false, true, false] {
      origin.forget()
      #expect(try await read() == bytes)
      #expect(origin.asked == [.init(path: "/a", isConditional: isConditional)])
      #expect(cache.stores(request) != isConditional)
    }
  }

  @Test("A manifest that is redirected elsewhere is read again, even if it is the same")
  func movedManifest() async throws {
    let playlist = Array("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.m4s\n#EXT-X-ENDLIST\n".utf8)
    origin["/a"] = .init(bytes: playlist, fields: [.eTag: "\"1\""], redirectsTo: "http://one.example.com/b")
    #expect(try await read(purpose: .manifest) == playlist)
    origin["/a"]?.redirectsTo = "http://two.example.com/b"
    let response = try await cache.fetch(FetchRequest(url: Self.url, purpose: .manifest))
    #expect(response.url.host() == "two.example.com")
    #expect(try await response.body.collect(upTo: 1000) == playlist)
  }

  @Test("A multivariant playlist that was confirmed stays fresh")
  func confirmedParent() async throws {
    let parent = URL(string: "http://example.com/parent.m3u8")!
    origin["/parent.m3u8"] = .init(
      bytes: Array("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na\n".utf8), fields: Self.fresh)
    origin["/a"] = .init(
      bytes: Array("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.m4s\n#EXT-X-ENDLIST\n".utf8),
      fields: [.cacheControl: "max-age=600"])
    for url in [parent, Self.url] { _ = try await read(purpose: .manifest, url: url) }
    clock.advance(by: 61)
    origin.forget()
    for url in [parent, Self.url, parent] { _ = try await read(purpose: .manifest, url: url) }
    #expect(origin.asked == [.init(path: "/parent.m3u8", isConditional: true)])
  }

  @Test(
    "Whatever readers do at once, each gets bytes of one version, and no transfer stays open",
    arguments: 0..<6)
  func manyReaders(seed: Int) async throws {
    let size = 300_000
    let versions = (0..<11).map { content(size, seed: $0) }
    let cache = origin.makeCache(
      at: folder.url, byteLimit: seed % 2 == 0 ? 100_000_000 : 500_000, clock: clock)
    let isValidated = seed % 3 != 2
    @Sendable func serve(_ version: Int) {
      origin["/a"] = .init(
        bytes: versions[version],
        fields: isValidated
          ? [.cacheControl: "max-age=60", .eTag: "\"\(version)\""] : [.cacheControl: "max-age=60"],
        breaksAfter: version % 4 == 3 ? 100_000 : nil, statesSize: version % 2 == 0,
        sendsRanges: version % 5 != 4)
    }
    serve(0)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask { [clock] in
          var random = Numbers(state: UInt64(seed * 100 + number + 1))
          for turn in 0..<40 {
            if number == 0 { serve(turn / 4) }
            if number == 1, turn % 10 == 9 { clock.advance(by: 61) }
            let offset = Int64(random.next(below: 10) * 25_000)
            let length = random.next(below: 3) == 0 ? nil : Int64(1 + random.next(below: 150_000))
            let range = random.next(below: 4) == 0 ? nil : ByteRange(offset: offset, length: length)
            let limit = random.next(below: 3) == 0 ? random.next(below: 100_000) : .max
            let isCancelled = random.next(below: 5) == 0
            let reader = Task {
              let response = try await cache.fetch(
                FetchRequest(url: Self.url, range: range, purpose: .segment))
              var bytes: [UInt8] = []
              while bytes.count < limit, let chunk = try await response.body.next() {
                bytes += chunk
                if bytes.count % 7 == 0 { await Task.yield() }
              }
              return (response.bodyOffset, bytes, limit == .max)
            }
            if isCancelled { reader.cancel() }
            guard let (start, bytes, isWhole) = try? await reader.value else { continue }
            let from = Int(start)
            #expect(versions.contains { Array($0[from..<min(size, from + bytes.count)]) == bytes })
            if isWhole { #expect(from + bytes.count >= min(size, range?.end.map(Int.init) ?? size)) }
          }
        }
      }
    }
    while origin.openCount > 0 { await Task.yield() }
  }
}

/// Numbers that are the same in each run (xorshift).
private struct Numbers {
  var state: UInt64

  mutating func next(below limit: Int) -> Int {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return Int(state % UInt64(limit))
  }
}
