package import Foundation
internal import HTTPTypes
package import ReelCore
internal import ReelPool

/// A modelled disk that several visits share, each in a simulation of its own.
package final class SimulatedDisk: Sendable {
  private let media: Locked<StoredMedia>

  package init(byteLimit: Int64) { media = Locked(StoredMedia(byteLimit: byteLimit)) }

  /// Ends a visit; the next one begins after this time, counted from the beginning of this one.
  package func endVisit(after time: Duration) { change { $0.endVisit(after: time) } }

  package var byteCount: Int64 { change { $0.byteCount } }

  func change<Result>(_ body: (inout StoredMedia) -> Result) -> Result { media.withLock { body(&$0) } }
}

/// A cache of media on a modelled disk, in front of a fetcher over a modelled link, in a simulation.
///
/// It answers as `MediaCache` does for servers that send no caching fields: media is fresh for a day, a manifest costs a round
/// trip each time, in which all that it leads to is asked about too, and only the parts that are missing are fetched, as far as they are read. It keeps no bytes: those that are
/// stored are read again from the real source, and take the time of the disk. What servers have changed since goes unnoticed,
/// so a live playlist counts as unchanged.
package final class SimulatedCache: MediaStoring, ConnectionOpening {
  /// The disk: 0.1 ms for each answer, up to 0.3 ms beside others, and 2 Gbit/s, which the flash of a slow phone (eMMC 5.1) gives.
  private static let flash = (bitsPerSecond: Int64(2_000_000_000), lookup: Duration.microseconds(100))

  private let base: any Fetching
  private let disk: SimulatedDisk
  private let reader: any Fetching
  private let clock: any MonotonicClock
  /// Until when requests for an item are for what its manifest led to.
  private let asked = Locked<[FeedItem.ID: Duration]>([:])

  /// - Parameters:
  ///   - disk: What is stored before, and after.
  ///   - front: The fetcher over the link.
  ///   - source: Fetches the real bytes.
  ///   - limit: The longest real time to wait for them.
  package init(
    on disk: SimulatedDisk, inFrontOf front: any Fetching, source: any Fetching,
    in simulation: SimulatedRuntime,
    limit: Duration? = nil, files: FileAnswers? = nil
  ) throws(ReelError) {
    (base, self.disk, clock) = (front, disk, simulation)
    let link = try LinkSpec(
      bitsPerSecond: Self.flash.bitsPerSecond, roundTripTime: Self.flash.lookup)
    reader = ThrottledFetcher(source, link: link, in: simulation, limit: limit, files: files)
  }

  package func openConnection(to url: URL) { (base as? any ConnectionOpening)?.openConnection(to: url) }

  // MARK: MediaStoring

  package var storedByteCount: Int64 { disk.byteCount }

  package func trim(toByteCount byteCount: Int64) async { disk.change { $0.trim(toByteCount: byteCount) } }

  package func storedFetch(of request: FetchRequest) -> (@Sendable () async throws -> FetchResponse)? {
    guard stores(request) else { return nil }
    return { [self] in try await fetch(request) }
  }

  /// True only for what needs no request.
  package func stores(_ request: FetchRequest) -> Bool {
    guard Self.isStorable(request) else { return false }
    let now = clock.now
    return disk.change { media in
      guard let resource = media[request.url], media.isFresh(resource, at: now),
        let range = resource.range(of: request)
      else { return false }
      return resource.part(at: range.lowerBound, upTo: range.upperBound) == (range, true)
    }
  }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard Self.isStorable(request) else { return try await base.fetch(request) }
    let now = clock.now
    let found = disk.change { media -> (resource: StoredMedia.Resource, isFresh: Bool)? in
      media.touch(request.url)
      return media[request.url].map { ($0, media.isFresh($0, at: now)) }
    }
    guard let found, let range = found.resource.range(of: request) else {
      let response = try await base.fetch(request)
      return joined(response, StoredBody(self, request, response, isStored: false, upTo: nil))
    }
    let part = found.resource.part(at: range.lowerBound, upTo: range.upperBound)
    var first = request
    if part.isStored, !found.isFresh {
      if isAsked(now) {
        disk.change { $0.confirm(request.url, at: now) }
      } else {
        try await ask(for: request)
        first.report = nil
      }
      if found.resource.isManifest, let item = RequestOwner.item {
        asked.withLock { $0[item] = clock.now + .seconds(5) }
      }
    }
    // A request for all that is missing stays as it is.
    if part.isStored || part.range != range { first.range = ByteRange(part.range) }
    var response = try await open(first, isStored: part.isStored)
    if part.isStored { response.requestCount = found.isFresh ? 0 : 1 }
    if response.bodyOffset == range.lowerBound { response.bodyByteCount = Int64(range.count) }
    let end = response.bodyOffset == range.lowerBound ? range.upperBound : nil
    return joined(response, StoredBody(self, request, response, isStored: part.isStored, upTo: end))
  }

  // MARK: - Private

  /// Keys are not stored, nor is what was requested with credentials.
  private static func isStorable(_ request: FetchRequest) -> Bool {
    request.method == .get && request.url.scheme?.lowercased() != "data"
      && request.purpose != .key && request.purpose != .clock
      && request.headers[.authorization] == nil && request.headers[.cookie] == nil
  }

  private func open(_ request: FetchRequest, isStored: Bool) async throws -> FetchResponse {
    guard isStored else { return try await base.fetch(request) }
    var request = request
    // The disk tells nothing of the network.
    let report = request.report
    request.report = { metrics in
      var metrics = metrics
      (metrics.requestCount, metrics.reusedConnection) = (0, nil)
      report?(metrics)
    }
    return try await reader.fetch(request)
  }

  private func isAsked(_ now: Duration) -> Bool {
    guard let item = RequestOwner.item, let end = asked.withLock({ $0[item] }) else { return false }
    return now < end
  }

  /// Asks the server whether a resource has changed: a round trip, and a byte in place of an answer without a body.
  private func ask(for request: FetchRequest) async throws {
    var question = request
    question.range = ByteRange(offset: 0, length: 1)
    let answer = try await base.fetch(question)
    _ = try await answer.body.next()
    _ = try await answer.body.next()
    let now = clock.now
    disk.change { $0.confirm(request.url, at: now) }
  }

  private func joined(_ response: FetchResponse, _ body: StoredBody) -> FetchResponse {
    var response = response
    response.storedByteCount = { body.storedByteCount }
    response.body = FetchBody { try await body.next() }
    return response
  }

  /// The body of an answer: parts from the disk, and what is missing between them, fetched once it is read.
  private final class StoredBody: Sendable {
    private struct State {
      var part: FetchBody?
      var isStored: Bool
      var position: Int64
      var storedByteCount: Int64 = 0
      /// The position at which the part began.
      var began: Int64
      var isManifest: Bool?
    }

    private let cache: SimulatedCache
    private let request: FetchRequest
    private let size: Int64?
    /// Nil for a body with one part.
    private let end: Int64?
    private let state: Locked<State>

    init(
      _ cache: SimulatedCache, _ request: FetchRequest, _ response: FetchResponse, isStored: Bool,
      upTo end: Int64?
    ) {
      (self.cache, self.request, self.end) = (cache, request, end)
      size = response.resourceByteCount
      state = Locked(
        State(
          part: response.body, isStored: isStored, position: response.bodyOffset, began: response.bodyOffset,
          isManifest: request.purpose == .source ? nil : request.purpose == .manifest))
    }

    var storedByteCount: Int64 { state.withLock { $0.storedByteCount } }

    func next() async throws -> [UInt8]? {
      while true {
        if let chunk = try await state.withLock({ $0.part })?.next() {
          record(chunk)
          return chunk
        }
        let (position, began) = state.withLock { ($0.position, $0.began) }
        guard let end, position < end else {
          // The size of a body that states none is known at its end.
          if end == nil, request.range?.length == nil { record([], size: position) }
          return nil
        }
        // A part that gave nothing is shorter than was stated.
        guard position > began else { return nil }
        let found = cache.disk.change { $0[request.url] }
        let part =
          found?.part(at: position, upTo: end) ?? (range: position..<end, isStored: false)
        var further = request
        (further.range, further.report) = (ByteRange(part.range), nil)
        let response = try await cache.open(further, isStored: part.isStored)
        guard response.bodyOffset == position else { return nil }
        // The end of the part before calls its owner, so it is released outside the lock.
        let ended = state.withLock { state in
          defer { (state.part, state.isStored, state.began) = (response.body, part.isStored, position) }
          return state.part
        }
        withExtendedLifetime(ended) {}
      }
    }

    private func record(_ chunk: [UInt8], size known: Int64? = nil) {
      let count = Int64(chunk.count)
      let (range, isStored, isManifest) = state.withLock { state in
        defer {
          state.position += count
          if state.isStored { state.storedByteCount += count }
        }
        if state.isManifest == nil { state.isManifest = Self.isManifest(chunk) }
        return (state.position..<state.position + count, state.isStored, state.isManifest == true)
      }
      guard !isStored else { return }
      let (size, now) = (known ?? size, cache.clock.now)
      cache.disk.change { $0.add(range, of: request.url, size: size, isManifest: isManifest, at: now) }
    }

    /// Returns true for the beginning of a playlist or an MPD.
    private static func isManifest(_ bytes: [UInt8]) -> Bool {
      let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes.dropFirst(3) : bytes[...]
      return text.starts(with: "#EXT".utf8) || text.first == UInt8(ascii: "<")
    }
  }
}

extension StoredMedia.Resource {
  /// The bytes that a request is for; nil if the size of the resource is not known, or for none.
  fileprivate func range(of request: FetchRequest) -> Range<Int64>? {
    let start = request.range?.offset ?? 0
    guard let end = size.map({ min(request.range?.end ?? $0, $0) }), start < end else { return nil }
    return start..<end
  }
}

extension ByteRange {
  fileprivate init(_ range: Range<Int64>) {
    self.init(offset: range.lowerBound, length: Int64(range.count))
  }
}
