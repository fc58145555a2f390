package import Foundation
internal import HTTPTypes
package import ReelCore
package import ReelSimulation
internal import ReelSources

/// The answers to the requests of a start, kept so that it can be replayed.
///
/// While it is open, it passes requests on and keeps the heads and bodies of the answers, and how the servers behave:
/// how long they wait, whether they redirect, close connections, or ignore ranges. Afterwards it passes them on, and
/// only measures again how long servers wait. A replay asks it with `answer(to:)`; what was not recorded is fetched for
/// real, once.
package final class StartRecording: Fetching, ConnectionOpening {
  /// A resource, by the URL of its answers.
  fileprivate struct Resource {
    var contentType: String?
    /// The size; nil until it is known.
    var byteCount: Int64?
    /// True if the server says that it serves ranges.
    var supportsRanges = false
    /// True if the server answered a request for a range with the whole resource.
    var ignoresRanges = false
    var date: WallTime?
    /// The bytes that are known, each run from an offset.
    var runs: [(offset: Int64, bytes: [UInt8])] = []
  }

  /// The answers to the requests for a URL.
  fileprivate struct Answers {
    /// The URL of the answers, after redirects; nil if there was none.
    var url: URL?
    var redirectCount = 0
    var closesConnection = false
    /// The metrics of each request, in the order in which they were sent; nil until they are reported.
    var metrics: [RequestMetrics?] = []
    var failure: ReelError?
  }

  fileprivate struct State {
    var answers: [URL: Answers] = [:]
    var resources: [URL: Resource] = [:]
    /// The header fields of the source.
    var headers: SourceHeaders?
    var isOpen = true
    var byteCount = 0
  }

  private let base: any Fetching
  private let state = Locked(State())
  /// The time of day when the recording began, at which a live presentation is replayed.
  package let beginning: WallTime

  /// The most bytes of bodies to keep. Those beyond it are fetched again if a replay needs them.
  private static let byteLimit = 64 << 20
  /// The size of the parts that are fetched for a replay.
  private static let pieceByteCount: Int64 = 128 << 10
  /// The number of bytes that an answer delivers at a time.
  private static let chunkByteCount: Int64 = 64 << 10
  /// A shorter wait of a server is not told from the noise of the network and of this machine.
  static let leastWait = Duration.milliseconds(20)

  /// - Parameter base: Fetches for real.
  package init(_ base: any Fetching, wallClock: any WallClock = SystemWallClock()) {
    self.base = base
    beginning = wallClock.now
  }

  /// Ends recording: the first frame is there.
  package func close() { state.withLock { $0.isOpen = false } }

  /// The number of bytes that are kept.
  package var byteCount: Int { state.withLock { $0.byteCount } }

  /// Returns the URL of the answer to a request for `url`, after redirects.
  package func target(of url: URL) -> URL {
    let url = url.withoutUserInformation
    return state.withLock { $0.answers[url]?.url } ?? url
  }

  /// Returns the URL of the answers of a resource by its name in a change, a URL or a path: that of a request, or of
  /// its answer.
  func url(named name: String) -> URL? {
    let name = name.withoutUserInformation
    return state.withLock { state in
      let isNamed = { (url: URL) in url.absoluteString == name || url.reelName == name }
      if let request = state.answers.first(where: { isNamed($0.key) }) {
        return request.value.url ?? request.key
      }
      return state.resources.keys.first(where: isNamed)
    }
  }

  /// The URLs of the answers to requests for playlists and other manifests.
  var manifests: [URL] {
    state.withLock { state in
      let targets = state.answers.values.compactMap { answers -> URL? in
        let purpose = answers.metrics.lazy.compactMap { $0?.purpose }.first
        return purpose == .manifest || purpose == .source ? answers.url : nil
      }
      return Set(targets).sorted { $0.absoluteString < $1.absoluteString }
    }
  }

  /// Returns the size of the resource at `url`, if it is known.
  package func byteCount(of url: URL) -> Int64? {
    let url = target(of: url)
    return state.withLock { $0.resources[url]?.byteCount }
  }

  /// Returns how the server behaves at a request for `url`.
  ///
  /// It waits as long as for the fastest of the answers that were measured: what others took longer is the noise of the
  /// network and of this machine, or the first answer of a cache.
  package func behaviour(of url: URL) -> LinkServers.Behaviour {
    let url = url.withoutUserInformation
    return state.withLock { state in
      var behaviour = LinkServers.Behaviour()
      guard let answers = state.answers[url] else { return behaviour }
      if let last = answers.url, last != url || answers.redirectCount > 0 {
        // The hops before the last one are not known, and taken to be at the same host.
        behaviour.hops = Array(repeating: url, count: max(answers.redirectCount, 1) - 1) + [last]
      }
      behaviour.closesConnection = answers.closesConnection
      if let answerTime = answers.metrics.compactMap({ $0?.answerTime }).min() {
        let wait = answerTime - state.roundTrip(to: answers.url ?? url)
        if wait >= Self.leastWait { behaviour.wait = wait }
      }
      return behaviour
    }
  }

  // MARK: Recording

  package func openConnection(to url: URL) { (base as? any ConnectionOpening)?.openConnection(to: url) }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard request.method == .get else { return try await base.fetch(request) }
    let url = request.url
    let (isOpen, number) = state.withLock { state -> (Bool, Int?) in
      state.headers = request.source ?? state.headers
      guard state.isOpen || state.answers[url] != nil else { return (false, nil) }
      state.answers[url, default: Answers()].metrics.append(nil)
      return (state.isOpen, state.answers[url]?.metrics.count)
    }
    guard let number else { return try await base.fetch(request) }
    var request = request
    request.addReport { [self] metrics in
      state.withLock { state in
        state.answers[url]?.metrics[number - 1] = metrics
        guard isOpen else { return }
        state.answers[url]?.redirectCount = metrics.redirectCount
        if metrics.closesConnection == true { state.answers[url]?.closesConnection = true }
      }
    }
    guard isOpen else { return try await base.fetch(request) }
    do {
      let response = try await base.fetch(request)
      keep(response, to: request)
      return recording(response)
    } catch {
      keep(error, of: url)
      throw error
    }
  }

  // MARK: Replaying

  /// Answers a request from what is known, and fetches the rest.
  ///
  /// - Parameter servesRanges: True to serve ranges even if the server ignores them.
  package func answer(to request: FetchRequest, servesRanges: Bool = false) async throws -> FetchResponse {
    guard request.method == .get else { return try await base.fetch(request) }
    if state.withLock({ $0.failureOrResource(at: request.url) }) == nil {
      try await fetchMissing(at: request.range?.offset ?? 0, of: request)
    }
    guard let known = state.withLock({ $0.failureOrResource(at: request.url) }) else {
      throw ReelError(.internalFault, "an answer is not kept", at: request.url.reelName)
    }
    let (url, resource) = try known.get()
    let servesRanges = servesRanges || !resource.ignoresRanges
    let range = servesRanges ? request.range : nil
    let offset = range?.offset ?? 0
    if let size = resource.byteCount, offset > 0, offset >= size {
      throw ReelError(.server, "the range is outside of the resource", at: url.reelName, status: 416)
    }
    let end = Self.least(range?.end, resource.byteCount)
    let position = Locked(offset)
    var response = FetchResponse(
      url: url, contentType: resource.contentType, bodyOffset: offset, bodyByteCount: end.map { $0 - offset },
      resourceByteCount: resource.byteCount, supportsRanges: resource.supportsRanges && servesRanges,
      body: FetchBody { [self] in
        let start = position.withLock { $0 }
        let chunk = try await bytes(from: start, upTo: end, of: request)
        position.withLock { $0 = start + Int64(chunk?.count ?? 0) }
        return chunk
      })
    response.date = resource.date
    return response
  }

  /// Returns bytes of a resource, fetched if they are not known; fewer at its end.
  package func bytes(in range: ByteRange, of url: URL) async throws -> [UInt8] {
    var request = FetchRequest(url: url.withoutUserInformation, range: range, purpose: .segment)
    state.withLock { $0.headers }?.apply(to: &request)
    var bytes: [UInt8] = []
    while let chunk = try await self.bytes(
      from: range.offset + Int64(bytes.count), upTo: range.end, of: request)
    {
      bytes += chunk
    }
    return bytes
  }

  // MARK: - Private

  private static func least(_ left: Int64?, _ right: Int64?) -> Int64? {
    guard let left, let right else { return left ?? right }
    return min(left, right)
  }

  /// Returns bytes from `start` on, fetched if they are not known; nil at the end.
  private func bytes(from start: Int64, upTo end: Int64?, of request: FetchRequest) async throws -> [UInt8]? {
    if let end, start >= end { return nil }
    let count = min(end.map { $0 - start } ?? .max, Self.chunkByteCount)
    let url = target(of: request.url)
    let known = { [state] in state.withLock { $0.resources[url]?.bytes(at: start, count: count) } }
    if let bytes = known() { return bytes }
    if let size = byteCount(of: url), start >= size { return nil }
    try await fetchMissing(at: start, of: request)
    return known()
  }

  /// Fetches bytes that were not recorded, and keeps them.
  private func fetchMissing(at start: Int64, of request: FetchRequest) async throws {
    let resource = state.withLock { state in state.resources[state.answers[request.url]?.url ?? request.url] }
    var real = request.again()
    if let resource {
      if resource.supportsRanges, !resource.ignoresRanges {
        let length = min(resource.byteCount.map { $0 - start } ?? .max, Self.pieceByteCount)
        real.range = ByteRange(offset: start, length: length)
      }
    } else {
      real.range = request.range
    }
    let response: FetchResponse
    do {
      response = try await base.fetch(real)
    } catch {
      guard resource == nil, let error = error as? ReelError else { throw error }
      keep(error, of: request.url)
      return
    }
    keep(response, to: real)
    var offset = response.bodyOffset
    while offset < start + Self.pieceByteCount {
      guard let chunk = try await response.body.next() else {
        self.end(of: response, at: offset)
        break
      }
      append(chunk, at: offset, of: response.url, isLimited: false)
      offset += Int64(chunk.count)
    }
    response.body.close()
  }

  private func keep(_ error: any Error, of url: URL) {
    guard let error = error as? ReelError else { return }
    state.withLock { state in
      if state.answers[url]?.url == nil { state.answers[url, default: Answers()].failure = error }
    }
  }

  private func keep(_ response: FetchResponse, to request: FetchRequest) {
    state.withLock { state in
      state.answers[request.url, default: Answers()].url = state.answers[request.url]?.url ?? response.url
      state.answers[request.url]?.failure = nil
      var resource = state.resources[response.url] ?? Resource()
      resource.contentType = response.contentType
      resource.byteCount = response.resourceByteCount ?? resource.byteCount
      resource.supportsRanges = resource.supportsRanges || response.supportsRanges
      resource.date = response.date ?? resource.date
      if let range = request.range, response.bodyOffset == 0,
        range.offset > 0 || range.length.map({ $0 < response.bodyByteCount ?? .max }) ?? false
      {
        resource.ignoresRanges = true
      }
      state.resources[response.url] = resource
    }
  }

  /// Returns the response with a body whose bytes are kept as they are read.
  private func recording(_ response: FetchResponse) -> FetchResponse {
    let position = Locked(response.bodyOffset)
    return response.wrappingBody { [self] body in
      let chunk = try await body.next()
      let start = position.withLock { position in
        defer { position += Int64(chunk?.count ?? 0) }
        return position
      }
      if let chunk {
        append(chunk, at: start, of: response.url, isLimited: true)
      } else {
        end(of: response, at: start)
      }
      return chunk
    }
  }

  /// Records the end of a body whose size was not stated.
  private func end(of response: FetchResponse, at offset: Int64) {
    guard response.resourceByteCount == nil, response.bodyByteCount == nil else { return }
    state.withLock { $0.resources[response.url]?.byteCount = offset }
  }

  private func append(_ chunk: [UInt8], at offset: Int64, of url: URL, isLimited: Bool) {
    state.withLock { state in
      guard !isLimited || state.isOpen && state.byteCount + chunk.count <= Self.byteLimit else { return }
      state.byteCount += chunk.count
      state.resources[url]?.append(chunk, at: offset)
    }
  }
}

extension StartRecording.State {
  /// Nil if the URL was not requested, or its answer has not arrived.
  fileprivate func failureOrResource(at url: URL) -> Result<(URL, StartRecording.Resource), ReelError>? {
    let target = answers[url]?.url ?? url
    if let resource = resources[target] { return .success((target, resource)) }
    return answers[url]?.failure.map { .failure($0) }
  }

  /// The round trip of the real network to the host of a URL: the least time of connecting.
  fileprivate func roundTrip(to url: URL) -> Duration {
    if url.isLoopback { return .zero }
    let times = answers.values.lazy.filter { $0.url?.host() == url.host() && $0.url?.port == url.port }
      .flatMap(\.metrics).compactMap { $0?.connectTime }
    // TCP takes one round trip, TLS 1.3 another.
    return (times.min() ?? .zero) / (url.scheme?.lowercased() == "https" ? 2 : 1)
  }
}

extension StartRecording.Resource {
  fileprivate mutating func append(_ chunk: [UInt8], at offset: Int64) {
    if let index = runs.lastIndex(where: { $0.offset + Int64($0.bytes.count) == offset }) {
      runs[index].bytes.append(contentsOf: chunk)
    } else {
      runs.append((offset, chunk))
    }
  }

  /// Returns at most `count` bytes from `position` on; nil if the first one is not known.
  fileprivate func bytes(at position: Int64, count: Int64) -> [UInt8]? {
    for run in runs where run.offset <= position && position < run.offset + Int64(run.bytes.count) {
      let start = Int(position - run.offset)
      return Array(run.bytes[start..<Int(min(Int64(run.bytes.count), Int64(start) + count))])
    }
    return nil
  }
}
