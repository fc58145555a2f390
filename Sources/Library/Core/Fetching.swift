public import Foundation
public import HTTPTypes

/// The purpose of a request. Metrics are grouped by it, and a fetcher may prioritise by it.
public enum FetchPurpose: String, Sendable, Hashable, CaseIterable {
  /// The first request of a source, before its format is known.
  case source
  /// A playlist or an MPD.
  case manifest
  /// A key for decrypting segments.
  case key
  /// The time of a server (ISO/IEC 23009-1 §5.8.5.7).
  case clock
  /// An initialization segment.
  case initialization
  /// A media segment, a segment index, or a part of a media file.
  case segment
  /// A poster image or any other resource.
  case resource

  /// The order in which a start waits for requests; lower ones come first.
  package var order: Int {
    switch self {
    case .source: 0
    case .manifest, .clock: 1
    case .key: 2
    case .initialization: 3
    case .segment: 4
    case .resource: 5
    }
  }
}

/// A request for a resource or for a range of its bytes.
public struct FetchRequest: Sendable {
  /// The method: `.get`, or `.head` for a response without a body.
  public var method: HTTPRequest.Method
  /// The URL of the resource. Its scheme must be one that the fetcher serves.
  public var url: URL
  /// The range of bytes to fetch, or nil for the whole resource.
  public var range: ByteRange?
  /// Additional header fields, in order. They replace the fetcher's defaults, except for `Accept-Encoding`.
  ///
  /// After a redirect to another scheme, host or port, credentials are left out: `Authorization`, `Proxy-Authorization`,
  /// `Cookie`, fields whose names end in `key`, `token`, `secret` or `password`, and those of `HTTPField.secret(_:_:)`.
  public var headers: HTTPFields
  /// The fields of the source that the request is for, for redirects; nil if it belongs to no source.
  package var source: SourceHeaders?
  /// The purpose of the request.
  public var purpose: FetchPurpose
  /// The media that is requested; nil for what is no part of a rung, and if it is not known.
  package var media: RequestedMedia?
  /// True if the response shall have the head of the answer, as a cache in front of the fetcher needs it.
  public var wantsHead = false
  /// The reading of a source that the request belongs to; nil if it belongs to none.
  package var storeUse: StoreUse?
  /// The number of bytes of the body that the fetcher may collect before it delivers a chunk, for a consumer
  /// that can't use fewer. With 0, bytes are delivered as they arrive. Fetchers may ignore it.
  package var minimumChunkByteCount = 0
  /// Called once, when the transfer has succeeded, failed or been cancelled. Must not block.
  package var report: (@Sendable (RequestMetrics) -> Void)?
  /// Called with the change in the number of body bytes that were received but not yet read. Must not block.
  package var recordHeld: (@Sendable (Int) -> Void)?
  /// Called with the error of each attempt that the fetcher will repeat by itself, before its pause, and with the HTTP
  /// status of its answer: 200 for one that broke off, nil without an answer. Must not block.
  ///
  /// The error of the last attempt is thrown, by `fetch` or by the body, and is not passed here.
  package var recordFailedAttempt: (@Sendable (_ error: ReelError, _ status: Int?) -> Void)?

  /// Creates a request, by default for the whole of a resource.
  public init(
    _ method: HTTPRequest.Method = .get, url: URL, range: ByteRange? = nil, headers: HTTPFields = [:],
    purpose: FetchPurpose, report: (@Sendable (RequestMetrics) -> Void)? = nil
  ) {
    self.method = method
    self.url = url
    self.range = range
    self.headers = headers
    self.purpose = purpose
    self.report = report
  }
}

/// A segment or an initialization of a rung, as its reader describes it.
package struct RequestedMedia: Sendable, Hashable {
  package enum Tracks: Sendable, Hashable {
    case video
    case audio
    case videoAndAudio
  }

  package var tracks: Tracks
  /// The bit rate of the rung, and the highest one among those that may be chosen, in bits per second; nil if the
  /// manifest does not state them.
  package var bitRate: Int?
  package var topBitRate: Int?
  /// True for DASH, and false for HLS.
  package var isDASH: Bool
  package var isLive: Bool
  /// The duration of the segment; nil for an initialization.
  package var duration: MediaTime?
  /// The segment of the same rung after this one; nil for an initialization, and if it is not known.
  package var next: Next?

  package struct Next: Sendable, Hashable {
    package var url: URL
    /// Nil for the whole resource.
    package var range: ByteRange?

    package init(url: URL, range: ByteRange?) { (self.url, self.range) = (url, range) }
  }

  package init(tracks: Tracks, bitRate: Int?, topBitRate: Int?, isDASH: Bool, isLive: Bool) {
    (self.tracks, self.bitRate, self.topBitRate) = (tracks, bitRate, topBitRate)
    (self.isDASH, self.isLive) = (isDASH, isLive)
  }
}

/// The head of an answer, and its body, which is read as it arrives.
public struct FetchResponse: Sendable {
  /// The URL of the body, after redirects.
  public var url: URL
  /// The media type as the server states it; nil if it does not, or for a local file.
  public var contentType: String?
  /// The position in the resource of the body's first byte: the offset of the requested range, or 0 if the server sent
  /// the whole resource.
  public var bodyOffset: Int64
  /// The size of the body in bytes, if known in advance. After a `HEAD` request, the size that `GET` would give.
  public var bodyByteCount: Int64?
  /// The size of the whole resource in bytes, if known.
  public var resourceByteCount: Int64?
  /// True if ranges of the resource can be requested.
  package var supportsRanges: Bool
  /// The time of the answer by the server's clock (`Date`, RFC 9110 §6.6.1).
  package var date: WallTime?
  /// The number of requests sent for this response: 1, plus 1 for each redirect and retry; 0 if it came from a store.
  package var requestCount = 1
  /// The head of the answer, if the request wants it and the answer came over HTTP.
  public var head: AnswerHead?
  /// What tells this version of the resource from others (RFC 9110 §8.8): a strong entity tag or a date; nil if unknown.
  package var validator: String?
  /// Returns how many of the bytes that the body has given so far came from a store, without the network; nil if no part
  /// of the answer is stored.
  package var storedByteCount: (@Sendable () -> Int64)?
  /// True if the body was received before the response was returned, so that its pieces measure no throughput.
  package var isReceived = false
  /// The body.
  public var body: FetchBody

  /// Creates a response.
  public init(
    url: URL, contentType: String?, bodyOffset: Int64, bodyByteCount: Int64?, resourceByteCount: Int64?,
    supportsRanges: Bool, body: FetchBody
  ) {
    self.url = url
    self.contentType = contentType
    self.bodyOffset = bodyOffset
    self.bodyByteCount = bodyByteCount
    self.resourceByteCount = resourceByteCount
    self.supportsRanges = supportsRanges
    self.body = body
  }
}

/// The status and the header fields of an answer over HTTP.
public struct AnswerHead: Sendable, Hashable {
  /// The status: 200, 206, or 304 for a request with `If-None-Match` or `If-Modified-Since`, whose body is empty.
  public var status: Int
  /// The fields as the server sent them. `Content-Encoding` and `Content-Length` describe the body before decompression.
  public var fields: HTTPFields
  /// True if the request was sent with credentials, cookies included. A cache keeps no such answer.
  public var isPersonal: Bool

  /// Creates a head.
  public init(status: Int, fields: HTTPFields, isPersonal: Bool) {
    self.status = status
    self.fields = fields
    self.isPersonal = isPersonal
  }
}

/// The bytes of a body, as a sequence of chunks for a single consumer.
///
/// A fetcher reads on only as the chunks are consumed, apart from a bounded read-ahead. Iteration throws `ReelError`,
/// or `CancellationError` if the consuming task is cancelled, which ends the transfer. `close()` and the release of the
/// last copy end it too.
public struct FetchBody: AsyncSequence, Sendable {
  /// A chunk of bytes, never empty.
  public typealias Element = [UInt8]

  private let chunks: Chunks

  /// The source of the chunks, shared by all copies of a body.
  fileprivate final class Chunks: Sendable {
    /// Wraps the function, because a function that is itself the value of a lock gets another wrapper at each
    /// access.
    private struct Source {
      let pull: @Sendable () async throws -> [UInt8]?
    }

    /// Nil after `close()`.
    private let source: Locked<Source?>

    init(_ pull: @escaping @Sendable () async throws -> [UInt8]?) { source = Locked(Source(pull: pull)) }

    func next() async throws -> [UInt8]? { try await source.withLock { $0 }?.pull() }

    func close() {
      // Release the source outside the lock, because that ends its transfer.
      let closed = source.withLock { $0.take() }
      withExtendedLifetime(closed) {}
    }
  }

  /// Creates a body from a function that returns its chunks.
  ///
  /// - Parameter pull: Returns the next chunk, never an empty one, or nil at the end. Throws `ReelError` or
  ///   `CancellationError`. It is released when the body is closed.
  public init(pull: @escaping @Sendable () async throws -> [UInt8]?) { chunks = Chunks(pull) }

  /// Returns an iterator. All iterators of a body share its position.
  public func makeAsyncIterator() -> Iterator { Iterator(chunks: chunks) }

  /// Iterates over the chunks of a body.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let chunks: Chunks

    /// Returns the next chunk, or nil at the end. Throws `ReelError` or `CancellationError`.
    public mutating func next() async throws -> [UInt8]? { try await chunks.next() }
  }

  /// Discards the unread rest: iteration ends, and so does the transfer, even if others hold copies of the
  /// body.
  package func close() { chunks.close() }

  /// Reads the rest of the body into memory.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of bytes.
  ///   - kind: The kind of the error if there are more.
  /// - Throws: `ReelError` of kind `kind` if there are more than `limit` bytes, and the errors of iteration.
  public func collect(upTo limit: Int, orThrow kind: ReelError.Kind = .badMedia) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for try await chunk in self {
      guard bytes.count + chunk.count <= limit else {
        throw ReelError(kind, "larger than the limit of \(limit) bytes")
      }
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }
}

/// Measurements of one transfer, from the call of `fetch` to the end of the body.
public struct RequestMetrics: Sendable, Hashable {
  /// How a transfer ended.
  public enum Outcome: Sendable, Hashable {
    /// The whole body arrived.
    case completed
    /// The transfer failed, after all retries.
    case failed(ReelError)
    /// The reader ended the transfer before the end of the body. A player does this often, such as after a swipe.
    case cancelled

    package init(_ result: Result<Void, any Error>) {
      switch result {
      case .success: self = .completed
      case .failure(let error as ReelError): self = .failed(error)
      case .failure: self = .cancelled
      }
    }
  }

  /// The requested URL, before redirects.
  public var url: URL
  /// The purpose of the request.
  public var purpose: FetchPurpose
  /// How the transfer ended.
  public var outcome = Outcome.completed
  /// The HTTP status of the last answer; nil without an answer, and for local files and `data:` URLs.
  public var status: Int?
  /// The time from the call to the first byte of the body, including redirects and retries; nil without a byte.
  public var timeToFirstByte: Duration?
  /// The time from the first byte of the body to the end of the transfer; 0 without a byte.
  public var transferTime = Duration.zero
  /// The number of body bytes received, before decompression.
  public var byteCount: Int64 = 0
  /// True if no request of the transfer opened a connection; nil if unknown.
  public var reusedConnection: Bool?
  /// The number of redirects followed.
  public var redirectCount = 0
  /// The number of requests sent, including redirects and retries.
  package var requestCount: Int
  /// The number of attempts that failed before the last one.
  package var failedAttemptCount = 0
  /// The header fields of the last answer, as the server sent them; empty without an answer, for local files, and for
  /// simulated transfers.
  ///
  /// `Content-Encoding` and `Content-Length` describe the body before decompression.
  package var fields = HTTPFields()
  /// True if the last answer ends its connection: `Connection: close`, HTTP/1.0 without `Connection: keep-alive`, or a
  /// body of unknown length (RFC 9112 §6.3, §9.3); nil if unknown.
  package var closesConnection: Bool?
  /// The time that the last request waited until its new connection was open, with TLS; nil if it took an open one, or
  /// if unknown.
  package var connectTime: Duration?
  /// The time from sending the last request over its connection to the head of the answer; nil without an answer.
  package var answerTime: Duration?

  package init(url: URL, purpose: FetchPurpose, requestCount: Int) {
    self.url = url
    self.purpose = purpose
    self.requestCount = requestCount
  }
}

/// A source of bytes by URL.
///
/// Pools, players and the gateway take their fetcher as a parameter, so tests can run without a network, and a program can
/// change requests on their way to a `TransportFetcher`.
public protocol Fetching: Sendable {
  /// Sends a request and returns once the head of a successful answer has arrived.
  ///
  /// - Throws: `ReelError` with the URL as its location, typically of kind `server`, `network`, `timedOut`,
  ///   `noSuchFile` or `unsupported` (a scheme that the fetcher does not serve); or `CancellationError`.
  func fetch(_ request: FetchRequest) async throws -> FetchResponse
}

/// A fetcher in front of another that keeps what it fetches, such as on disk.
package protocol MediaStoring: Fetching {
  /// Returns a function that answers the request, if all its bytes are stored and need no request to a server; nil for others.
  func storedFetch(of request: FetchRequest) -> (@Sendable () async throws -> FetchResponse)?
  /// Returns true if all bytes of the request are stored, though a server may have to confirm them.
  func stores(_ request: FetchRequest) -> Bool
  /// The number of bytes that the store occupies.
  var storedByteCount: Int64 { get }
  /// Removes what was not used for the longest time, until at most this many bytes are left.
  func trim(toByteCount byteCount: Int64) async
}

// Shared by fetchers that wrap another fetcher.

extension FetchRequest {
  /// Passes the metrics to `record` before the request's own handler gets them.
  package mutating func addReport(_ record: @escaping @Sendable (RequestMetrics) -> Void) {
    let report = report
    self.report = { metrics in
      record(metrics)
      report?(metrics)
    }
  }

  /// Passes each failed attempt to `record` before the request's own handler gets it.
  package mutating func addFailedAttempt(_ record: @escaping @Sendable (ReelError, _ status: Int?) -> Void) {
    let recordFailedAttempt = recordFailedAttempt
    self.recordFailedAttempt = { error, status in
      record(error, status)
      recordFailedAttempt?(error, status)
    }
  }
}

extension FetchResponse {
  /// Returns a function to call after each piece of the body, which says whether that piece came from a store.
  package func pieceOrigin() -> @Sendable () -> Bool {
    guard let storedByteCount else { return { false } }
    let counted = Locked(Int64(0))
    return {
      let count = storedByteCount()
      return counted.withLock { counted in
        defer { counted = count }
        return count > counted
      }
    }
  }

  /// Returns the response with a body whose chunks `pull` takes from the original body.
  package func wrappingBody(
    onEnd: FetchBody.EndHandler? = nil, _ pull: @escaping @Sendable (FetchBody) async throws -> [UInt8]?
  ) -> FetchResponse {
    var response = self
    let body = body
    let next = { @Sendable in try await pull(body) }
    response.body = onEnd.map { FetchBody(onEnd: $0, pull: next) } ?? FetchBody(pull: next)
    return response
  }
}

extension FetchBody {
  /// Called once with the result of a body: success after its last chunk, or an error, which is
  /// `CancellationError` if the body was released before its end.
  package typealias EndHandler = @Sendable (Result<Void, any Error>) -> Void

  /// - Parameters:
  ///   - onEnd: Called before the captures of `pull` are released.
  ///   - pull: Returns the next chunk, never an empty one, or nil at the end.
  package init(onEnd: @escaping EndHandler, pull: @escaping @Sendable () async throws -> [UInt8]?) {
    let body = EndingBody(onEnd: onEnd, pull: pull)
    self.init { try await body.next() }
  }

  /// Returns the next chunk; nil at the end.
  package func next() async throws -> [UInt8]? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }
}

/// A body that reports its end. If it is pulled again after that, it ends in the same way.
private final class EndingBody: Sendable {
  private enum State {
    case open(FetchBody.EndHandler)
    case ended(Result<Void, any Error>)
  }

  private let pull: @Sendable () async throws -> [UInt8]?
  private let state: Locked<State>

  init(onEnd: @escaping FetchBody.EndHandler, pull: @escaping @Sendable () async throws -> [UInt8]?) {
    self.pull = pull
    state = Locked(.open(onEnd))
  }

  deinit { end(.failure(CancellationError())) }

  func next() async throws -> [UInt8]? {
    if case .ended(let result) = state.withLock({ $0 }) {
      try result.get()
      return nil
    }
    do {
      let chunk = try await pull()
      if chunk == nil { end(.success(())) }
      return chunk
    } catch {
      end(.failure(error))
      throw error
    }
  }

  private func end(_ result: Result<Void, any Error>) {
    let onEnd = state.withLock { state -> FetchBody.EndHandler? in
      guard case .open(let onEnd) = state else { return nil }
      state = .ended(result)
      return onEnd
    }
    onEnd?(result)
  }
}

/// Opens connections in advance, which saves the first request the round trips of connecting.
public protocol ConnectionOpening: Sendable {
  /// Opens a connection to the host of `url` unless one is idle. Returns at once and does not report failures.
  func openConnection(to url: URL)
}

/// A fetcher that adds a `User-Agent` to requests without one.
package protocol AgentNaming: Fetching {
  var userAgent: String { get }
}

/// An optional closure for a `Locked`.
///
/// It is kept in a structure because a closure that is itself the value of a generic type gets another wrapper
/// at each access in place, and the wrappers accumulate.
package struct Callback<Argument>: Sendable {
  package var call: (@Sendable (Argument) -> Void)?

  package init(_ call: (@Sendable (Argument) -> Void)? = nil) { self.call = call }
}

extension URL {
  /// Returns the address by which a program on this machine reaches an HTTP server that listens on a host and
  /// port. A host that stands for all addresses is replaced by the loopback address.
  package static func server(host: String, port: Int, path: String) -> URL? {
    let wildcards: Set = ["0.0.0.0", "::", ""]
    let name = wildcards.contains(host) ? "127.0.0.1" : host
    return URL(string: "http://\(name.contains(":") ? "[\(name)]" : name):\(port)/\(path)")
  }

  /// True if the host is this machine.
  package var isLoopback: Bool { host().map(Self.isLoopback) ?? false }

  /// Returns true for the names and addresses of this machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3).
  package static func isLoopback(host: String) -> Bool {
    let host = host.lowercased()
    return host == "localhost" || host.hasSuffix(".localhost") || host == "::1" || host == "[::1]"
      || host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." }
  }
}
